"""Every operator is documented by an example, and reachable from the API."""

import importlib
import inspect
import pkgutil

import pytest

import floodway.operators
from floodway.model import Flow, GroupedStream, GroupedTable, Stream, Table, WindowedStream
from floodway.operators.base import Operator, TableOperator
from floodway.operators.stateless import Stateless

ABSTRACT = {Operator, TableOperator, Stateless}


def operators() -> list[type[Operator]]:
    for module in pkgutil.walk_packages(floodway.operators.__path__, "floodway.operators."):
        importlib.import_module(module.name)
    found: list[type[Operator]] = []
    waiting = [Operator]
    while waiting:
        kind = waiting.pop()
        found.append(kind)
        waiting.extend(kind.__subclasses__())
    # Dataclasses with slots are made anew by their decorator; the first edition is garbage.
    current = {k for k in found if getattr(inspect.getmodule(k), k.__name__, None) is k}
    return sorted(current - ABSTRACT, key=lambda kind: kind.__name__)


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
