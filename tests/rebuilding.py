"""Compares each request that a test sends with the one that the log alone gives."""

from dataclasses import dataclass, field, replace

from everfold.agent.requests import rebuild_request, turn_seq
from everfold.host.sessions import Sessions
from everfold.llm.route import LlmRequest

ASKED = ("compaction/request", "compaction/retry")
_SUMMARY = "compaction-request-"


@dataclass(slots=True)
class Rebuilding:
    """Notes where a request is another than its rebuilt self.

    Attributes:
        reader: a host on the store, with nothing of the sender's in memory; None if there is no
            store, so that nothing may be sent.
        differences: what was found; a fixture asserts that it stays empty.
    """

    reader: Sessions | None
    differences: list[str] = field(default_factory=list)

    def check(self, request: LlmRequest) -> None:
        """Compare a request that is about to be sent."""
        assert self.reader is not None, "the fixture that compares requests does not know the store"
        seq = seq_of_request(self.reader, request)
        if seq is None:
            self.differences.append(f"nothing in the log tells of {request!r}")
            return
        rebuilt = rebuild_request(self.reader, request.session_id, seq)
        if rebuilt != replace(request, messages=tuple(request.messages)):
            self.differences.append(f"at seq {seq}: sent {request!r}, rebuilt {rebuilt!r}")


def is_summary(request: LlmRequest) -> bool:
    """Tell whether a request is one of the compaction's own."""
    return str(request.messages[-1]["id"]).startswith(_SUMMARY)


def seq_of_request(reader: Sessions, request: LlmRequest) -> int | None:
    """Return the seq of the event by which a request that is sent now is rebuilt; None if there is none."""
    if not is_summary(request):
        return turn_seq(reader, reader.load(request.session_id))
    compaction = request.messages[-1]["source"]["compactionId"]
    asked = [
        event.seq
        for event in reader.log(request.session_id)
        if event.type in ASKED and event.data["compactionId"] == compaction
    ]
    return asked[-1] if asked else None
