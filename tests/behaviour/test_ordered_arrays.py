"""Arrays are put in order as Spark does it: null before everything, NaN after every number."""

from collections.abc import Callable
from itertools import permutations
from math import nan
from typing import Any

import pytest

import floodway as fw
from floodway import Flow
from tests.engines import Engine


class Row(fw.Record):
    whole: list[int | None]
    parts: list[float]


ORDERED: dict[str, list[Row]] = {
    "whole": [Row([1], []), Row([1, None], []), Row([1, 2], [])],
    "parts": [Row([], [-1.0]), Row([], [1.0, 2.0]), Row([], [nan])],
}
AGGREGATES: dict[str, tuple[Callable[[Any, str], Any], int]] = {
    "min": (lambda grouped, of: grouped.min(of, name="op"), 0),
    "max": (lambda grouped, of: grouped.max(of, name="op"), -1),
    "top": (lambda grouped, of: grouped.top(1, of, name="op"), -1),
}


@pytest.mark.parametrize("column", ORDERED)
@pytest.mark.parametrize("aggregate", AGGREGATES)
@pytest.mark.parametrize("source", ["records", "rows"])
def test_arrays_are_in_order(engine: Engine, source: str, aggregate: str, column: str) -> None:
    build, place = AGGREGATES[aggregate]
    wanted = ORDERED[column][place]
    flow = Flow("arrays")
    rows = flow.source("rows", schema=Row)
    given: Any = rows if source == "records" else flow.table("named", schema=Row, key=int)
    build(given.group_by("1 AS g"), column)
    for order in permutations(ORDERED[column]):
        with engine(flow) as driver:
            for number, row in enumerate(order):
                if source == "records":
                    driver.push("rows", row, at=number)
                else:
                    driver.update("named", number, row, at=number)
            expected: Any = [wanted] if aggregate == "top" else getattr(wanted, column)
            assert repr(driver.table("op").values()) == repr({1: expected})
