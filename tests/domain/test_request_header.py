"""The request header and when the log gets a new one: group N, pure half."""

from typing import Any

import pytest

from everfold.session.events import Event
from everfold.session.frozen import Json, freeze
from everfold.session.request_header import canonical, fold_header, headers_equal, next_header

CONFIG = {"provider": "p", "model": "m"}


def header(**fields: Json) -> dict[str, Json]:
    return {"config": CONFIG, **fields}


def config(**fields: Json) -> dict[str, Json]:
    return {"config": {**CONFIG, **fields}}


def tool(**fields: Json) -> dict[str, Json]:
    return {"name": "t", "description": "d", "parameters": {}, **fields}


def test_the_canonical_form_drops_what_says_nothing_r187() -> None:
    assert canonical(header(x=1, tools=[], adapterDefaults={"maxTokens": False})) == header()
    assert canonical(header(adapterDefaults={})) == header()
    full = header(tools=[tool()], adapterDefaults={"maxTokens": True})
    assert canonical(full) == full


def test_the_current_header_is_the_latest_never_a_merge_r188() -> None:
    events = [
        Event("request/header", 0, {"header": header(tools=[tool()]), "reason": "initial"}),
        Event("todo/write", 1, {"header": 5}),
        Event("request/header", 2, {"header": config(temperature=1), "reason": "change"}),
        Event("turn/start", 3, {"turn": 1}),
    ]

    assert fold_header(events) == config(temperature=1)
    assert fold_header(events[:2]) == header(tools=[tool()])
    assert fold_header([]) is None
    assert fold_header([], header()) == header()


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (header(), header()),
        (header(), freeze(header())),
        (config(x=1), config(x=2)),
        (header(y=1), header()),
        (config(maxTokens=5), config(maxTokens=5.0)),
        (header(tools=[]), header()),
        (header(tools=None), header()),
        (header(adapterDefaults={}), header()),
        (header(adapterDefaults={"x": 1}), header()),
    ],
)
def test_headers_that_ask_for_the_same_are_equal_r189(left: Any, right: Any) -> None:
    assert headers_equal(left, right)
    assert headers_equal(right, left)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (header(), config(model="n")),
        (header(), config(provider="q")),
        (header(), config(reasoningEffort="low")),
        (header(), config(temperature=0)),
        (header(), config(maxTokens=1)),
        (header(), config(stop=[])),
        (config(stop=["a", "b"]), config(stop=["b", "a"])),
        (config(temperature=1), config(temperature=True)),
        (config(temperature=None), header()),
        (header(adapterDefaults={"maxTokens": True}), header()),
        (header(adapterDefaults={"maxTokens": False}), header()),
        (header(adapterDefaults={"maxTokens": True}), header(adapterDefaults={"maxTokens": 1})),
        (header(tools=[tool()]), header()),
        (header(tools=[tool(), tool(name="u")]), header(tools=[tool(name="u"), tool()])),
        (header(tools=[tool()]), header(tools=[dict(reversed(tool().items()))])),
    ],
)
def test_other_headers_differ_r189_to_r192(left: Any, right: Any) -> None:
    assert not headers_equal(left, right)
    assert not headers_equal(right, left)


@pytest.mark.parametrize("starts_series", [True, False])
def test_the_first_request_of_a_loop_writes_initial_or_resume_r193(starts_series: bool) -> None:
    first = next_header(header(), baseline=None, is_logged=False, starts_series=starts_series)
    later = next_header(header(), baseline=header(), is_logged=False, starts_series=starts_series)

    assert first == {"header": header(), "reason": "initial"}
    assert later == {"header": header(), "reason": "resume"}


def test_a_changed_header_writes_change_r194() -> None:
    changed = config(model="n")

    plain = next_header(changed, baseline=header(), is_logged=True, starts_series=False)
    series = next_header(changed, baseline=header(), is_logged=True, starts_series=True)

    assert plain == {"header": changed, "reason": "change"}
    assert series == {"header": changed, "reason": "change", "startsSeries": True}


def test_an_unchanged_header_writes_series_or_nothing_r195_r196() -> None:
    new = next_header(header(x=1), baseline=header(), is_logged=True, starts_series=True)
    same = next_header(header(x=1), baseline=header(), is_logged=True, starts_series=False)

    assert new == {"header": header(), "reason": "series"}
    assert same is None
