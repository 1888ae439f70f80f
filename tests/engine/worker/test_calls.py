"""What the frames of a thread tell of the operator and the record it is at."""

import re
import sys
from typing import Any

import pytest

import floodway as fw
from floodway.engine.worker.calls import whereabouts
from floodway.testing import Driver


class Visit(fw.Record):
    """A visit with a page of any size."""

    page: str
    seconds: int


class Loud:
    """A value whose text is worse than useless."""

    def __repr__(self) -> str:
        raise ValueError("no text")


told: list[str] = []


def looks(value: Any) -> Any:
    told.append(whereabouts(sys._getframe()))
    return value


class Asked(str):
    """A text that is asked for its end by generated code, without a function of the user's."""

    def endswith(self, *_: Any) -> bool:
        looks(self)
        return True


@pytest.fixture(autouse=True)
def _fresh() -> None:
    told.clear()


def place_of(stream: Any) -> str:
    return str(stream.edge.operator.place)


def test_each_operator_of_a_chain_is_told_from_its_neighbours() -> None:
    flow = fw.Flow("chain")
    visits = flow.source("visits", schema=Visit)
    first = visits.map(looks, schema=Visit, name="first")
    second = first.filter("seconds > 3", name="long").map(looks, schema=Visit, name="second")
    third = second.filter(looks, name="third")
    third.to("out")
    with Driver(flow) as driver:
        driver.push_at("visits", (7, Visit("home", 5)))
    line = looks.__code__.co_firstlineno + 1
    assert told == [
        f"{name} ({place_of(stream)}), at the record Visit(page='home', seconds=5) at time 7, "
        f"{__file__}:{line} in looks"
        for name, stream in (("first", first), ("second", second), ("third", third))
    ]


def test_an_aggregate_and_a_join_are_told() -> None:
    flow = fw.Flow("tables")
    visits = flow.source("visits", schema=Visit)
    by_page = visits.group_by("page")
    by_page.aggregate(looks, lambda a, b: b, schema=Visit, name="last")
    pages = flow.table("pages", schema=Visit, key=str)
    other = flow.table("other", schema=Visit, key=str)
    pages.join(other, joiner=lambda a, b: looks(a), how="left", schema=Visit, name="both")
    with Driver(flow) as driver:
        driver.push_at("visits", (7, Visit("home", 5)))
        driver.update("pages", "x", Visit("there", 1), at=8)
    assert told[0].startswith("last (")
    assert "at the record Visit(page='home', seconds=5) at time 7" in told[0]
    joined = next(text for text in told if text.startswith("both ("))
    assert "at the record Visit(page='there', seconds=1) with key 'x' at time 8" in joined


def test_a_library_is_not_blamed() -> None:
    flow = fw.Flow("library")
    texts = flow.source("texts", schema=str)

    def replaced(value: str) -> str:
        return re.sub("a", lambda match: looks(match.group()), value)

    texts.map(replaced, name="mine").to("out")
    with Driver(flow) as driver:
        driver.push_at("texts", (1, "abc"))
    assert told[0].startswith("mine (")
    assert "re/__init__" not in told[0]


def test_an_expression_without_a_line_of_the_users_names_its_operator() -> None:
    flow = fw.Flow("expression")
    kept = flow.source("texts", schema=str).filter("value LIKE '%c'", name="ends")
    kept.to("out")
    with Driver(flow) as driver:
        driver.push_at("texts", (1, Asked("abc")))
    assert told[0].startswith(f"ends ({place_of(kept)}), at the record 'abc' at time 1")


def test_what_is_told_is_short_whatever_the_record_is() -> None:
    flow = fw.Flow("large")
    flow.source("visits", schema=Visit).map(looks, name="mine").to("out")
    flow.source("loud", schema=Any).map(looks, name="other").to("more")
    with Driver(flow) as driver:
        driver.push_at("visits", (1, Visit("x" * 10_000_000, 10**1000)))
        driver.push_at("loud", (2, Loud()))
    assert all(len(text) < 600 for text in told)
    assert "of type Loud" in told[1] or "Loud instance" in told[1]
