"""Values of conformance cases: decoding what JSON cannot hold, and comparing outcomes."""

from everfold.session.frozen import Json, json_equal

SPECIAL: dict[str, object] = {
    "negative-zero": -0.0,
    "nan": float("nan"),
    "infinity": float("inf"),
    "-infinity": float("-inf"),
    "opaque": object(),
}
INFORMATIONAL = frozenset(("error", "failedAt", "projectedSeqs"))


def decoded(value: Json) -> Json:
    """Return an input with its `$nonjson` objects replaced by what they stand for."""
    if isinstance(value, dict):
        if value.keys() == {"$nonjson"}:
            return SPECIAL[value["$nonjson"]]
        return {key: decoded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [decoded(item) for item in value]
    return value


def difference(expected: Json, actual: Json, path: str = "") -> str | None:
    """Return the first place where an outcome is not the expected one; extra fields are ignored."""
    if isinstance(expected, dict) and expected.keys() == {"$text"}:
        return None if isinstance(actual, str) and actual else f"{path}: {actual!r} is no text"
    if isinstance(expected, dict) and "errorKind" in expected:
        expected = {"errorKind": expected["errorKind"]}
    if isinstance(expected, dict):
        return _object_difference(expected, actual, path)
    if isinstance(expected, list):
        if not isinstance(actual, list) or len(actual) != len(expected):
            return f"{path}: {actual!r} where {expected!r} is right"
        pairs = enumerate(zip(expected, actual, strict=True))
        found = (difference(want, have, f"{path}[{index}]") for index, (want, have) in pairs)
        return next((each for each in found if each is not None), None)
    return (
        None if json_equal(expected, actual) else f"{path}: {actual!r} where {expected!r} is right"
    )


def _object_difference(expected: dict[str, Json], actual: Json, path: str) -> str | None:
    if not isinstance(actual, dict):
        return f"{path}: {actual!r} where {expected!r} is right"
    if "errorKind" in actual and "errorKind" not in expected:
        return f"{path}: refused ({actual['errorKind']}: {actual.get('error')})"
    for key, want in expected.items():
        if key in INFORMATIONAL:
            continue
        if key not in actual:
            return f"{path}.{key}: is missing"
        found = difference(want, actual[key], f"{path}.{key}")
        if found is not None:
            return found
    return None
