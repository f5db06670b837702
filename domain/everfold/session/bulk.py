"""Deciding the plain events of a batch together: messages put at the end, and log-only events.

Nothing is judged otherwise than one by one (`Decider.decide`), only sooner: the encoder, the
decoder and the fold are called for the batch. A batch that is not plain throughout, or not valid,
is left alone; deciding its events in turn says what is wrong with which one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from operator import attrgetter

from everfold.session.deciding import APPEND_OPTIONS, AppendEvent, DecisionMeans, Stamp
from everfold.session.errors import SessionError
from everfold.session.events import Recorded
from everfold.session.frozen import Json
from everfold.session.ids import version_of
from everfold.session.lossless import encode_all
from everfold.session.payload import Check, check_of
from everfold.session.short_streams import SHORTENED, stored_form
from everfold.session.state import StateFold
from everfold.session.vocabulary import MESSAGE_TYPES

_FIELDS = attrgetter("type", "data", "options", "event_id")


@dataclass(frozen=True, slots=True)
class _Kind:
    """What the plain events of one type have in common.

    Attributes:
        options: those that make an event of this type a plain one.
        check: the rule for its data, None if there is none.
    """

    options: Mapping[str, Json] | None
    check: Check | None


def decide_together(
    session_id: str,
    batch: Sequence[AppendEvent],
    fold: StateFold,
    means: DecisionMeans,
    stamp: Stamp,
) -> tuple[Recorded, ...] | None:
    """Judge a batch as the next events and make them part of the fold.

    Returns:
        the events as stored; None if not all of them are plain and valid, and then the fold is as
        it was.
    """
    if not batch:
        return None
    types, values, options, event_ids = zip(*map(_FIELDS, batch), strict=True)
    kinds = _kinds(types, options, fold)
    encoded = encode_all(list(values)) if kinds else None
    if kinds is None or encoded is None:
        return None
    forms, readings = encoded
    seq = fold.next_seq
    try:
        for kind, reading in zip(kinds, readings, strict=True):
            if kind.check is not None:
                kind.check(reading, seq)
        if SHORTENED in types:
            forms = list(map(stored_form, types, forms, readings))
        states = stamp.states(forms, event_ids)
        means.check_size(max(map(len, states)) + max(map(len, types)))
    except SessionError:
        return None
    versions = range(version_of(seq), version_of(seq) + len(states))
    events = tuple(map(Recorded, repeat(session_id), versions, types, states))
    fold.run(events)
    return events


def _kinds(
    types: Sequence[str], options: Sequence[Mapping[str, Json] | None], fold: StateFold
) -> list[_Kind] | None:
    """Return the kind of each wish, None if one is not plain."""
    if set(map(type, types)) != {str}:
        return None
    known = {type_: _kind_of(type_, fold) for type_ in set(types)}
    kinds = [kind for kind in map(known.__getitem__, types) if kind is not None]
    is_plain = len(kinds) == len(types) and all(map(_takes, kinds, options))
    return kinds if is_plain else None


def _kind_of(type_: str, fold: StateFold) -> _Kind | None:
    if type_ in MESSAGE_TYPES:
        return _Kind(APPEND_OPTIONS, check_of(type_))
    is_plain = type_.isascii() and fold.is_plain_log_only(type_)
    return _Kind(None, check_of(type_)) if is_plain else None


def _takes(kind: _Kind, options: Mapping[str, Json] | None) -> bool:
    """Tell whether events of a kind are plain with these options."""
    if options is kind.options:
        return True
    return type(options) is dict and options == (kind.options or {})
