"""The session header: who the session is and where it came from (R150 to R152)."""

import re
from collections.abc import Mapping

from everfold.session.errors import SessionHeaderError
from everfold.session.frozen import Json
from everfold.session.lossless import natural

FORMAT_VERSION = 3
"""Version of the session format; new event types do not raise it (R13, R14)."""

_ABSOLUTE = re.compile(r"^(?:/|[A-Za-z]:[\\/]|\\\\)")


def check_header(header: object, session_id: str) -> dict[str, Json]:
    """Return a checked copy of a session header; unknown fields are kept.

    Raises:
        SessionHeaderError: a field is missing, retired or wrong.
    """
    if not isinstance(header, Mapping):
        raise SessionHeaderError(f"the header of session {session_id!r} is not an object")
    fault = _fault(header, session_id)
    if fault is not None:
        raise SessionHeaderError(f"header of session {session_id!r}: {fault}")
    return dict(header)


def _fault(header: Mapping[str, Json], session_id: str) -> str | None:
    version = header.get("version")
    if natural(version) != FORMAT_VERSION:
        return f"version {version!r} is not {FORMAT_VERSION}"
    if header.get("id") != session_id:
        return f"id {header.get('id')!r} is another one"
    if natural(header.get("createdAt")) is None:
        return f"createdAt {header.get('createdAt')!r} is not a whole number of milliseconds from 0"
    if not isinstance(header.get("isSeeded"), bool):
        return f"isSeeded {header.get('isSeeded')!r} is not true or false"
    if "seedLength" in header:
        return "seedLength is a field of formats before 2"
    return _optional_fault(header)


def _optional_fault(header: Mapping[str, Json]) -> str | None:
    for name in ("cwd", "parentSession", "agentPreset"):
        if name in header and not isinstance(header[name], str):
            return f"{name} {header[name]!r} is not text"
    if "cwd" in header and not _ABSOLUTE.match(header["cwd"]):
        return f"cwd {header['cwd']!r} is not an absolute path"
    if header.get("origin", "subagent") != "subagent":
        return f"origin {header['origin']!r} is not 'subagent'"
    if "delegationDepth" in header and natural(header["delegationDepth"]) is None:
        return f"delegationDepth {header['delegationDepth']!r} is not a whole number from 0"
    return None


def child_header(
    parent: Mapping[str, Json], parent_id: str, child_id: str, created_at_ms: int
) -> dict[str, Json]:
    """Return the header of a fork: it keeps `cwd` and names its parent (R171)."""
    header: dict[str, Json] = {
        "version": FORMAT_VERSION,
        "id": child_id,
        "createdAt": created_at_ms,
        "isSeeded": True,
        "parentSession": parent_id,
    }
    if "cwd" in parent:
        header["cwd"] = parent["cwd"]
    return header
