"""Deciding the plain events of a batch together: messages put at the end, and log-only events.

Nothing is judged otherwise than one by one (`Decider.decide`), only sooner: the encoder, the
decoder and the fold are called for the batch. A batch that is not plain throughout, or not valid,
is left alone; deciding its events in turn says what is wrong with which one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from operator import is_

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
    types = [command.type for command in batch]
    kinds = _kinds(types, [command.options for command in batch], fold)
    encoded = encode_all([command.data for command in batch]) if kinds else None
    if not kinds or encoded is None:
        return None
    forms, readings = encoded
    seq = fold.next_seq
    try:
        for kind, reading in zip(kinds, readings, strict=True):
            if kind.check is not None:
                kind.check(reading, seq)
        if SHORTENED in types:
            forms = list(map(stored_form, types, forms, readings))
        states = stamp.states(forms, [command.event_id for command in batch])
        means.check_size(max(map(len, states)) + max(map(len, types)))
    except SessionError:
        return None
    versions = range(version_of(seq), version_of(seq) + len(states))
    events = tuple(map(Recorded, repeat(session_id), versions, types, states))
    fold.take_plain(events, types)
    return events


def _kinds(
    types: Sequence[str], options: Sequence[Mapping[str, Json] | None], fold: StateFold
) -> list[_Kind] | None:
    """Return the kind of each wish, None if one is not plain."""
    if not set(map(type, types)) <= {str}:
        return None
    known = {type_: _kind_of(type_, fold) for type_ in set(types)}
    if None in known.values():
        return None
    kinds = list(filter(None, map(known.__getitem__, types)))
    usual = map(is_, options, [kind.options for kind in kinds])
    return kinds if all(usual) or all(map(_takes, kinds, options)) else None


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
