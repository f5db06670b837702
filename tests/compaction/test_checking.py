"""The check that all tests of summaries share: that it bites, and that no route goes without it."""

import ast
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from everfold.session.ports import SessionStore
from tests.compaction.kit import StrictRoute, compacted, prompted, turn
from tests.domain.kit import log
from tests.projections.kit import again, hosted
from tests.rebuilding import Rebuilding

RouteMaker = Callable[..., StrictRoute]
TALK = log(*prompted(), *turn(1), *turn(2), *turn(3))


def test_a_request_for_a_summary_that_differs_from_the_log_is_found(
    store: SessionStore, a_route: RouteMaker
) -> None:
    access, route = hosted(store, TALK), a_route()
    compacted(access, route)
    (sent,) = route.requests
    checking = Rebuilding(again(access).sessions)

    checking.check(sent)
    checking.check(replace(sent, messages=(*sent.messages[1:-1], sent.messages[-1])))
    checking.check(replace(sent, access_path="/files/{digest}"))

    assert len(checking.differences) == 2


def test_a_request_for_a_summary_that_the_log_does_not_tell_of_is_found(
    store: SessionStore, a_route: RouteMaker
) -> None:
    access, route = hosted(store, TALK), a_route()
    compacted(access, route)
    checking = Rebuilding(hosted(store, TALK, "other").sessions)

    checking.check(replace(route.requests[0], session_id="other"))

    assert [each[:31] for each in checking.differences] == ["nothing in the log tells of Llm"]


def test_every_route_of_these_tests_is_one_that_checks() -> None:
    made = {
        (path.name, made)
        for path in Path(__file__).parent.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        for made in scripted(node)
    }

    assert made == {("kit.py", "StrictRoute")}


def scripted(node: ast.AST) -> Iterator[str]:
    """Yield the name of what makes a plain scripted route, or a kind of its own."""
    if isinstance(node, ast.ClassDef) and "ScriptedRoute" in map(ast.unparse, node.bases):
        yield node.name
    elif isinstance(node, ast.Call) and ast.unparse(node.func) == "ScriptedRoute":
        yield "ScriptedRoute"
