"""Runs conformance cases of kind `fork` through the host, on a real store."""

from functools import partial
from typing import Any

from everfold.host.sessions import Sessions
from everfold.session.deciding import AppendEvent
from everfold.session.events import Recorded
from everfold.session.frozen import Json, thaw
from everfold.session.session import Session
from everfold.store.urls import open_store
from tests.conformance_drivers import attempt, composition_of, means, snapshot

Outcome = dict[str, Any]


def fork_case(data: Json) -> Outcome:
    """Run a case of kind `fork` on a store of its own."""
    with open_store("sqlite://") as store:
        sessions = Sessions(store, composition_of(None), means=means())
        for source in data["sessions"]:
            sessions.create(source["id"], **source.get("meta", {}))
            wishes = [_wish(event) for event in source["events"]]
            if wishes:
                sessions.append_batch(source["id"], wishes)
        actions = _Actions(sessions)
        return {"results": [attempt(partial(actions.run, action)) for action in data["actions"]]}


class _Actions:
    def __init__(self, sessions: Sessions) -> None:
        self.sessions = sessions

    def run(self, action: Json) -> Outcome:
        verbs = {"fork": self.fork, "append": self.append, "read": self.read, "own": self.own}
        return verbs[action["op"]](action)

    def fork(self, action: Json) -> Outcome:
        child = self.sessions.fork(
            action["source"], boundary=action.get("boundary"), child_id=action.get("child")
        )
        return {"ok": True, "child": self.described(self.sessions.load(child))}

    def append(self, action: Json) -> Outcome:
        stored = self.sessions.append(
            action["session"], action["type"], action["data"], action.get("intent")
        )
        return {"ok": True, "seq": stored.seq}

    def read(self, action: Json) -> Outcome:
        return {"ok": True, "session": self.described(self.sessions.load(action["session"]))}

    def own(self, action: Json) -> Outcome:
        session = self.sessions.load(action["session"])
        types = {event.seq: event.type for event in self.rows(session)}
        own = [seq >= session.inherited_count for seq in action["seqs"]]
        own_types = [type_ for seq, type_ in types.items() if seq >= session.inherited_count]
        return {"ok": True, "own": own, "ownEventTypes": own_types}

    def rows(self, session: Session) -> list[Recorded]:
        return list(self.sessions.log(session.id))

    def described(self, session: Session) -> Outcome:
        header = {key: value for key, value in session.header.items() if key != "createdAt"}
        return {
            "id": session.id,
            "header": thaw(header),
            "inheritedEventCount": session.inherited_count,
            "firstLiveSeq": session.first_live_seq,
            "eventTypes": [event.type for event in self.rows(session)],
            **snapshot(session),
        }


def _wish(event: Json) -> AppendEvent:
    names = ("surfaceOp", "sourceEventSeqs", "ignorable")
    options = {name: event[name] for name in names if name in event}
    return AppendEvent(event["type"], event["data"], options)
