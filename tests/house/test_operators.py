"""Every operator is documented by an example, reachable from the API, and speaks for itself."""

import ast
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import fields

from floodway.model import Flow, GroupedStream, GroupedTable, Stream, Table, WindowedStream
from floodway.operators import facts
from floodway.operators.base import Operator, TableOperator
from floodway.operators.facts import Facts, State
from tests.operators.kinds import operators


@pytest.mark.parametrize("kind", operators(), ids=lambda kind: kind.__name__)
def test_operator_has_an_example_that_runs(kind: type[Operator]) -> None:
    assert kind.__doc__ is not None
    assert ">>> " in kind.__doc__


def test_all_operators_are_there() -> None:
    assert len(operators()) >= 20


API = [Flow, Stream, Table, GroupedStream, WindowedStream, GroupedTable]


@pytest.mark.parametrize("kind", API, ids=lambda kind: kind.__name__)
def test_every_public_method_is_documented(kind: type) -> None:
    bare = [
        name
        for name, item in inspect.getmembers(kind)
        if not name.startswith("_")
        and (inspect.isfunction(item) or isinstance(item, property))
        and not inspect.getdoc(item)
    ]
    assert not bare


def test_every_operator_states_its_facts_and_what_it_remembers() -> None:
    """What an operator leaves unsaid is nobody's guess: a family may say it for its members."""
    for kind in operators():
        family = [c for c in kind.__mro__ if c not in (Operator, TableOperator, object)]
        for said in ("facts", "state", "partitioning", "kernel"):
            assert any(said in vars(c) for c in family), f"{kind.__name__} does not say its {said}"


@pytest.mark.parametrize("said", [Facts, State])
def test_no_fact_has_a_default(said: type) -> None:
    assert [field.name for field in fields(said) if not field.required] == []


MAKERS = [facts.passing, facts.in_chain, facts.of_table, facts.connected]


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_what_makes_facts_asks_for_each_that_it_does_not_imply(make: Callable[..., Any]) -> None:
    parameters = inspect.signature(make).parameters.values()
    assert [p.name for p in parameters if p.default is not inspect.Parameter.empty] == []


KNOWN = {
    "base",
    "changelog",  # the record that tells of an update
    "code",
    "declared",
    "facts",
    "keyed",
    "lag",
    "on_error",
    "partials",
    "partitioning",
    "sink",
    "source",
    "stateless",
    "windows",
}
"""What plan and engine know of operators: what all have in common, the ends of a flow, and chains.

The list may only get shorter. An operator that seems to need a place in it needs a fact.
"""

SOURCE = Path(__file__).resolve().parents[2] / "src" / "floodway"


def imported(tree: ast.Module) -> Iterator[str]:
    """Yield all that a module imports, also within functions and for type checkers alone."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def operators_known_to(*layers: str) -> set[str]:
    """Return the modules of operators that layers import, by the first part of their names."""
    own = {file.stem for file in (SOURCE / "operators").iterdir()} - {"__init__", "__pycache__"}
    names = {
        name
        for layer in layers
        for file in (SOURCE / layer).rglob("*.py")
        for name in imported(ast.parse(file.read_text(encoding="utf-8")))
    }
    inside = {name.split(".")[2] for name in names if name.startswith("floodway.operators.")}
    return inside & own


def test_plan_and_engine_know_no_operator_by_its_name() -> None:
    assert operators_known_to("plan", "engine") == KNOWN


def test_imports_are_seen_wherever_they_are() -> None:
    text = "def late():\n    from a.b import c\nif True:\n    import d.e\n"
    assert set(imported(ast.parse(text))) == {"a.b", "a.b.c", "d.e"}
