"""A small agent loop over a real host: it logs what it does before and after each request.

Run as a program it is the process that gets killed: it reads a job from standard input, reports
every acknowledged append on standard output, and waits for its end in the middle of a tool call.
"""

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import uuid4

import orjson

from everfold.attachments.filesystem import FileAttachments
from everfold.cli.demo.route import MODEL, PROVIDER, TOOL, Reply, ScriptedRoute
from everfold.cli.demo.tool import Tool, no_tool, zoom_tool
from everfold.host.opening import open_sessions
from everfold.host.sessions import Sessions
from everfold.llm.budgets import ImageBudget
from everfold.llm.failure import LlmError, LlmFailure
from everfold.projections.image_offload.selection import oldest_images
from everfold.session.deciding import AppendEvent, message
from everfold.session.errors import SessionError
from everfold.session.events import Recorded
from everfold.session.frozen import Json
from everfold.session.request_header import next_header

SYSTEM = "You look at pictures and say in one sentence what changed."
HEADER: Mapping[str, Json] = {"config": {"provider": PROVIDER, "model": MODEL}}


@dataclass(slots=True)
class Agent:
    """Drives one session.

    Attributes:
        stored: is told of every append once the store has acknowledged it.
    """

    sessions: Sessions
    session_id: str
    route: ScriptedRoute
    stored: Callable[[Sequence[Recorded]], None]
    _has_header: bool = field(default=False, init=False)

    def turn(self, number: int, text: str, images: Sequence[Json], tool: Tool) -> None:
        """Run a whole turn: the user's message, and steps until the model calls no tool."""
        self._append(AppendEvent("turn/start", {"turn": number}))
        step, content = 1, [{"type": "text", "text": text}, *images]
        is_first = self.sessions.load(self.session_id).next_seq == 1
        opening = [_system(number)] if is_first else []
        opening.append(message("user/message", _message("user", content, {"kind": "user"})))
        while True:
            where = {"turn": number, "step": step}
            self._append(AppendEvent("step/start", where), *opening)
            reply = self._answered(where)
            if reply.tool is not None:
                self._use_tool(where, f"call-{number}-{step}", reply.tool, tool)
            self._append(AppendEvent("step/end", where))
            if reply.tool is None:
                break
            step, opening = step + 1, []
        self._append(AppendEvent("turn/end", {"turn": number, "reason": {"kind": "completed"}}))

    def _answered(self, where: Mapping[str, int]) -> Reply:
        """Ask until the route takes the request; each refusal becomes one logged omission."""
        starts_series = False
        while True:
            self._log_header(starts_series=starts_series)
            session = self.sessions.load(self.session_id)
            try:
                reply = self.route.ask(session.messages())
            except LlmError as error:
                self._recover(where, error)
                starts_series = True
            else:
                self._append(_answer(where, reply))
                return reply

    def _recover(self, where: Mapping[str, int], error: LlmError) -> None:
        self._append(_attempt(where, error.failure))
        session = self.sessions.load(self.session_id)
        omission = oldest_images(session, error.failure.offload_images or 0)
        if omission is None:
            raise error
        self._append(omission)

    def _log_header(self, *, starts_series: bool) -> None:
        latest = self.sessions.load(self.session_id).latest("request/header")
        data = next_header(
            HEADER,
            baseline=None if latest is None else latest.data["header"],
            is_logged=self._has_header,
            starts_series=starts_series,
        )
        if data is not None:
            self._append(AppendEvent("request/header", data))
        self._has_header = True

    def _use_tool(self, where: Mapping[str, int], call_id: str, name: str, tool: Tool) -> None:
        call = {**where, "callId": call_id, "name": name, "arguments": "{}"}
        started = self._append(AppendEvent("tool/call", call))[0]
        content = list(tool())
        block = {"type": "tool-result", "toolCallId": call_id, "content": content}
        source = {"kind": "tool", "callId": call_id}
        data = {**where, "message": _message("user", [block], source)}
        options = {"surfaceOp": "append", "sourceEventSeqs": [started.seq]}
        self._append(AppendEvent("tool/result", data, options))

    def _append(self, *batch: AppendEvent) -> Sequence[Recorded]:
        events = self.sessions.append_batch(self.session_id, batch)
        self.stored(events)
        return events


def _message(role: str, content: list[Json], source: Json) -> dict[str, Json]:
    return {"id": uuid4().hex, "role": role, "content": content, "source": source}


def _system(turn: int) -> AppendEvent:
    source = {"kind": "plugin", "plugin": "demo"}
    prompt = _message("system", [{"type": "text", "text": SYSTEM}], source)
    return message("system/message", {"turn": turn, "step": 1, "message": prompt})


def _answer(where: Mapping[str, int], reply: Reply) -> AppendEvent:
    content: list[Json] = [{"type": "text", "text": reply.text}]
    kind = "stop"
    if reply.tool is not None:
        call_id = f"call-{where['turn']}-{where['step']}"
        content.append({"type": "tool-call", "id": call_id, "name": reply.tool, "arguments": "{}"})
        kind = "tool-calls"
    source = {"kind": "model", "provider": PROVIDER, "model": MODEL}
    now = _now_ms()
    stream = [
        {"type": "text-chunks", "time0": now, "index": 0, "dt": [0], "texts": [reply.text]},
        {"type": "chunk", "time": now, "chunk": {"type": "finish", "reason": {"kind": kind}}},
    ]
    answer = _message("assistant", content, source)
    return message("assistant/message", {**where, "message": answer, "stream": stream})


def _attempt(where: Mapping[str, int], failure: LlmFailure) -> AppendEvent:
    reason = {"kind": "error", "failure": failure.to_json()}
    finish = {"type": "chunk", "time": _now_ms(), "chunk": {"type": "finish", "reason": reason}}
    return AppendEvent("assistant/attempt", {**where, "stream": [finish]})


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def report(value: Json) -> None:
    """Write one line to whoever started this process, at once."""
    sys.stdout.buffer.write(orjson.dumps(value) + b"\n")
    sys.stdout.buffer.flush()


def never_ending_tool() -> Sequence[Json]:
    """Report that the tool runs, and wait for the end of the process."""
    report({"waiting": TOOL})
    while True:
        time.sleep(60)


def main() -> None:
    """Host the session of the job on standard input until somebody kills this process."""
    job = orjson.loads(sys.stdin.buffer.read())
    attachments = FileAttachments(job["attachments"])
    route = ScriptedRoute(attachments, ImageBudget(**job["budget"]))
    first, second, third = job["turns"]
    zoom = zoom_tool(attachments, second["images"][-1])
    try:
        with open_sessions(job["store"]) as sessions:
            session_id = sessions.create().id
            report({"session": session_id})
            agent = Agent(sessions, session_id, route, lambda rows: report({"seq": rows[-1].seq}))
            agent.turn(1, first["text"], first["images"], no_tool)
            agent.turn(2, second["text"], second["images"], zoom)
            agent.turn(3, third["text"], third["images"], never_ending_tool)
    except SessionError as error:
        report({"error": str(error)})


if __name__ == "__main__":
    main()
