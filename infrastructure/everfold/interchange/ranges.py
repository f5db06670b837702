"""Range coding of cited sources, as files hold them: runs of three or more become pairs (R336)."""

from collections.abc import Sequence
from itertools import pairwise

from everfold.session.errors import SourceRefsError
from everfold.session.frozen import Json
from everfold.session.lossless import natural

_SHORTEST_RUN = 3


def encode_ranges(seqs: Sequence[Json]) -> list[Json]:
    """Return the coded form of a list of seqs; one that is not strictly increasing stays as it is (R337)."""
    if not _is_increasing(seqs):
        return list(seqs)
    coded: list[Json] = []
    start = 0
    for end in range(1, len(seqs) + 1):
        if end == len(seqs) or seqs[end] != seqs[end - 1] + 1:
            coded += _coded_run(seqs[start:end])
            start = end
    return coded


def decode_ranges(coded: Sequence[Json], seq: int) -> list[Json]:
    """Return the seqs that a coded list stands for; a list without pairs stays as it is.

    Args:
        seq: the seq of the event that cites them; nothing at or after it is expanded, so that
            two digits in a file cannot ask for all memory.

    Raises:
        SourceRefsError: a pair is malformed, or the whole is not strictly increasing below `seq`
            although it has pairs (R338).
    """
    if not any(isinstance(item, list) for item in coded):
        return list(coded)
    seqs: list[Json] = []
    for item in coded:
        first, last = _bounds(item, seq)
        if seqs and first <= seqs[-1]:
            raise SourceRefsError(
                f"sourceEventSeqs goes on with {first} after {seqs[-1]}; with ranges it must increase",
                seq=seq,
            )
        seqs.extend(range(first, last + 1))
    return seqs


def _bounds(item: Json, seq: int) -> tuple[int, int]:
    pair = item if isinstance(item, list) else [item, item]
    bounds = [natural(end) for end in pair]
    if len(bounds) != 2 or bounds[0] is None or bounds[1] is None:
        raise SourceRefsError(
            f"sourceEventSeqs holds {item!r}, no seq and no pair of seqs", seq=seq
        )
    first, last = bounds[0], bounds[1]
    if first > last:
        raise SourceRefsError(
            f"sourceEventSeqs holds the range {item!r}, which ends first", seq=seq
        )
    if last >= seq:
        raise SourceRefsError(f"source {last} of the event at seq {seq} is not earlier", seq=seq)
    return first, last


def _is_increasing(seqs: Sequence[Json]) -> bool:
    return all(natural(seq) is not None for seq in seqs) and all(
        left < right for left, right in pairwise(seqs)
    )


def _coded_run(run: Sequence[Json]) -> list[Json]:
    return list(run) if len(run) < _SHORTEST_RUN else [[run[0], run[-1]]]
