"""Why a compaction failed: one class for each code of R288.

None of them says that the conversation is unchanged: images that were omitted while a summary was
tried stay omitted (R278). The older messages are all still in place.
"""

from everfold.llm.failure import LlmFailure
from everfold.session.errors import SessionError


class CompactionError(SessionError):
    """No summary took the place of older messages.

    Attributes:
        failure: the provider's failure, with all its facts, where there was one (R289).
        has_omitted: whether images were omitted for the summary; they stay omitted (R278).
    """

    code = "compaction"

    def __init__(
        self,
        message: str,
        *,
        seq: int | None = None,
        advice: str | None = None,
        failure: LlmFailure | None = None,
    ) -> None:
        super().__init__(message, seq=seq, advice=advice)
        self.failure = failure
        self.has_omitted = False

    def __str__(self) -> str:
        said = super().__str__()
        return f"{said}; images that were omitted for it stay omitted" if self.has_omitted else said


class CompactionBusyError(CompactionError):
    """Another compaction of the session is under way, or was cut off and not freed (R280).

    Attributes:
        session_id: the session.
    """

    code = "busy"

    def __init__(self, session_id: str, seq: int) -> None:
        super().__init__(
            f"a compaction of session {session_id!r} is under way since seq {seq}",
            seq=seq,
            advice="if the process that ran it is gone, "
            f"`sessions.resume({session_id!r})` frees the session",
        )
        self.session_id = session_id


class CompactionCancelledError(CompactionError):
    """Somebody asked to stop."""

    code = "cancelled"


class CompactionChangedError(CompactionError):
    """What was to be summarised changed while the summary was being made (R277)."""

    code = "changed"


class CompactionSummaryError(CompactionError):
    """The model gave no summary that can be used (R283, R284)."""

    code = "summary"


class CompactionCommitError(CompactionError):
    """The session refused the summary."""

    code = "commit"


class CompactionPersistenceError(CompactionError):
    """The store failed."""

    code = "persistence"


class SummaryRequestError(SessionError):
    """A logged request for a summary cannot be made again."""

    code = "summary-request"

    def __init__(self, reason: str, seq: int | None = None) -> None:
        super().__init__(f"the request for a summary cannot be made again: {reason}", seq=seq)
