"""Finding and reading profiles: shipped ones by name, others by path."""

import os
import tomllib
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from everfold.profiles.checking import Table
from everfold.profiles.errors import ProfileError
from everfold.profiles.profile import Profile, profile_of

FILE_NAME = "everfold.toml"
VARIABLE = "EVERFOLD_PROFILE"
DEFAULT = "scripted"
MAX_BYTES = 1_000_000
_MAX_DEPTH = 8
_KEYS = ("api_key_env", "headers_env")


def shipped_names() -> list[str]:
    """Return the names of the profiles that everfold ships."""
    folder = resources.files("everfold.profiles").joinpath("shipped")
    return sorted(file.name.removesuffix(".toml") for file in folder.iterdir())


def load_profile(named: str | None = None, *, folder: Path | None = None) -> Profile:
    """Return a profile: the named one, else $EVERFOLD_PROFILE, else `everfold.toml`, else `scripted`.

    Args:
        named: a shipped profile's name, or the path of a TOML file.
        folder: where `everfold.toml` is looked for, and where relative paths start; the working
            directory if None.

    Raises:
        ProfileError: there is none, or it cannot be used.
    """
    here = Path.cwd() if folder is None else folder
    chosen = named or os.environ.get(VARIABLE)
    if not chosen:
        chosen = FILE_NAME if (here / FILE_NAME).is_file() else DEFAULT
    table, place = _read(chosen, here)
    return profile_of(_extended(table, place or here, (chosen,)), chosen, place)


def stored_in(folder: Path | None = None) -> str | None:
    """Return the store that the `everfold.toml` of a folder names, None if there is no such file."""
    here = Path.cwd() if folder is None else folder
    if not (here / FILE_NAME).is_file():
        return None
    profile = load_profile(str(here / FILE_NAME), folder=here)
    return located(profile.store, profile.folder)


def located(place: str | None, folder: Path | None) -> str | None:
    """Return a URL as it is, and a relative path as one that starts at a folder."""
    if place is None or "://" in place:
        return place
    return str((Path.cwd() if folder is None else folder) / Path(place).expanduser())


def _read(chosen: str, here: Path) -> tuple[dict[str, Any], Path | None]:
    """Return the table of a profile, and the folder of its file; None for a shipped one."""
    is_path = chosen.endswith(".toml") or os.sep in chosen or "/" in chosen
    if not is_path and chosen in shipped_names():
        shipped = resources.files("everfold.profiles").joinpath("shipped", f"{chosen}.toml")
        return tomllib.loads(shipped.read_text("utf-8")), None
    path = here / Path(chosen).expanduser()
    if not is_path and not path.is_file():
        raise ProfileError(
            f"there is no profile {chosen!r}; name one of {', '.join(shipped_names())}, "
            "or the path of a TOML file"
        )
    return _parsed(path), path.resolve().parent


def _parsed(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ProfileError(f"the profile {str(path)!r} cannot be read: {error.strerror}") from error
    if len(data) > MAX_BYTES:
        raise ProfileError(f"the profile {str(path)!r} is over {MAX_BYTES} bytes; is it a profile?")
    try:
        return tomllib.loads(data.decode("utf-8"))
    except ValueError as error:
        raise ProfileError(f"the profile {str(path)!r} is not TOML: {error}") from error


def _extended(table: dict[str, Any], here: Path, chain: tuple[str, ...]) -> Table:
    """Return a table with those that it extends laid under it."""
    below = table.get("extends")
    if below is None:
        return table
    if not isinstance(below, str) or below in chain or len(chain) > _MAX_DEPTH:
        raise ProfileError(
            f"profile {chain[0]!r}: 'extends' names {below!r}, which leads in a ring"
        )
    base, place = _read(below, here)
    return laid_over(_without_keys(_extended(base, place or here, (*chain, below)), table), table)


def _without_keys(below: Table, above: Table) -> Table:
    """Return a table without the keys of routes that another server gets in the table above it."""
    old, new = below.get("routes"), above.get("routes")
    if not isinstance(old, Mapping) or not isinstance(new, Mapping):
        return below
    moved = {
        name for name, route in new.items() if isinstance(route, Mapping) and "base_url" in route
    }
    routes = {name: _keyless(route) if name in moved else route for name, route in old.items()}
    return {**below, "routes": routes}


def _keyless(route: Any) -> Any:
    if not isinstance(route, Mapping):
        return route
    return {key: value for key, value in route.items() if key not in _KEYS}


def laid_over(below: Table, above: Table) -> dict[str, Any]:
    """Return a table with another one laid over it; tables inside are laid over each other too."""
    result = dict(below)
    for key, value in above.items():
        old = result.get(key)
        both = isinstance(old, Mapping) and isinstance(value, Mapping)
        result[key] = laid_over(old, value) if both and old is not None else value
    return result
