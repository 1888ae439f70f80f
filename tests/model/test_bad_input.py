"""What users get wrong: each mistake has an error of its own, with operator, place and remedy."""

import ast
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import floodway as fw
from floodway import Flow
from floodway.connectors import CallbackSink, GeneratorSource
from floodway.core import errors
from floodway.testing import Driver
from tests.model import mistakes
from tests.model.mistakes import MISTAKES, Sale, ask, sales


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistake_names_operator_place_and_remedy(mistake: str) -> None:
    make, kind, operator, remedy = MISTAKES[mistake]
    with pytest.raises(kind) as caught:
        make()
    error = caught.value
    assert error.operator == operator
    assert error.place is not None
    assert Path(error.place.file).name == Path(mistakes.__file__).name
    assert _near(make, error.place.line)
    assert error.problem
    assert remedy in error.remedy
    assert str(error).startswith(error.problem)
    assert f"place: {error.place}" in str(error)


def _near(make: Callable[[], Any], line: int) -> bool:
    """Return whether a line lies in the mistake's own source, or in a helper it calls."""
    if make.__name__ == "<lambda>":
        return True
    lines, first = inspect.getsourcelines(make)
    return first <= line < first + len(lines)


def test_place_is_the_line_of_the_call() -> None:
    stream = sales()
    line = inspect.currentframe().f_lineno + 2  # type: ignore[union-attr]
    with pytest.raises(errors.UnknownColumnError) as caught:
        stream.filter("nothing = 1")
    assert caught.value.place is not None
    assert caught.value.place.line == line


@pytest.mark.parametrize("duration", ["", "10", "ten seconds", "10 lightyears", "-1s", 0, -5, True])
def test_bad_durations(duration: Any) -> None:
    with pytest.raises(errors.DurationError) as caught:
        fw.tumbling(duration)
    assert caught.value.remedy


def test_advance_longer_than_the_window() -> None:
    with pytest.raises(errors.DurationError):
        fw.hopping("1s", advance="2s")


def test_a_refused_operator_leaves_no_trace() -> None:
    flow = Flow("clean")
    stream = flow.source("sales", schema=Sale)
    with pytest.raises(errors.UnknownColumnError):
        stream.filter("nothing = 1", name="mine")
    stream.filter("price = 1", name="mine")
    assert [operator.name for operator in flow.operators] == ["sales", "mine"]


def test_every_error_is_in_the_documentation() -> None:
    root = Path(__file__).parents[2]
    text = (root / "docs" / "errors.md").read_text()
    known = {
        node.name
        for source in ("src", "lab")
        for file in (root / source).rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.ClassDef) and node.name.endswith("Error")
    }
    assert {"EngineError", "FrameError", "LoadError", "OutputError"} <= known
    assert not {name for name in known if not re.search(rf"\b{name}\b", text)}


@pytest.mark.parametrize(
    "make",
    [
        lambda: CallbackSink(ask),
        lambda: GeneratorSource(ask),
        lambda: fw.aggregate(ask, lambda a, b: a),
        lambda: fw.aggregate(lambda v: v, ask),
        lambda: fw.aggregate(lambda v: v, lambda a, b: a, ask),
        lambda: fw.aggregate(lambda v: v, lambda a, b: a, subtract=ask),
    ],
)
def test_coroutine_functions_are_refused_where_they_are_given(make: Callable[[], Any]) -> None:
    with pytest.raises(errors.OptionError, match="ask is a coroutine function"):
        make()


def test_a_column_may_be_called_self() -> None:
    flow = Flow("selves")
    numbers = flow.source("numbers", schema=Sale).with_columns(self="price + 1")
    numbers.group_by("shop").agg(self=fw.max("self"), name="largest")
    with Driver(flow) as driver:
        driver.push("numbers", Sale("a", 1), Sale("a", 3), at=1)
        assert driver.table("largest").lookup("a").self == 4
