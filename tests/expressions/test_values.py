"""What expressions compute, without Spark: logic, numbers at their limits, errors, regressions."""

# Tables of cases are easier to read wide.
# ruff: noqa: E501

import datetime as dt
import itertools
from decimal import Decimal
from typing import Any

import pytest

from floodway.core.errors import ExpressionError
from floodway.expressions import compile_expression
from tests.expressions.wide import Point, scope

SCOPE = scope()
TRUTH = (True, False, None)
MIN, MAX = -(2**63), 2**63 - 1
NAN = float("nan")


def value(text: str, **columns: Any) -> Any:
    return compile_expression(text, SCOPE).function("v")(columns)


@pytest.mark.parametrize(
    ("one", "left", "two", "right"),
    [
        (one, left, two, right)
        for one, two in itertools.product(("b", "b0"), ("b2", "b20"))
        for left, right in itertools.product(TRUTH, TRUTH)
        if not (one == "b0" and left is None) and not (two == "b20" and right is None)
    ],
)
def test_and_and_or_are_three_valued(one: str, left: Any, two: str, right: Any) -> None:
    both = {one: left, two: right}
    known = [x for x in (left, right) if x is not None]
    conjunction = False if False in known else None if len(known) < 2 else True
    disjunction = True if True in known else None if len(known) < 2 else False
    assert value(f"{one} AND {two}", **both) is conjunction
    assert value(f"{one} OR {two}", **both) is disjunction
    assert value(f"NOT ({one} AND {two})", **both) is (
        None if conjunction is None else not conjunction
    )


@pytest.mark.parametrize(
    ("test", "answers"),
    [
        ("IS TRUE", (True, False, False)),
        ("IS NOT TRUE", (False, True, True)),
        ("IS FALSE", (False, True, False)),
        ("IS NOT FALSE", (True, False, True)),
        ("IS UNKNOWN", (False, False, True)),
        ("IS NOT NULL", (True, True, False)),
    ],
)
def test_truth_tests_always_know(test: str, answers: tuple[bool, ...]) -> None:
    assert tuple(value(f"b {test}", b=b) for b in TRUTH) == answers


@pytest.mark.parametrize(
    ("text", "columns", "expected"),
    [
        ("l IN (1, NULL)", {"l": 1}, True),
        ("l IN (1, NULL)", {"l": 2}, None),
        ("l NOT IN (1, NULL)", {"l": 2}, None),
        ("l IN (1, 2)", {"l": None}, None),
        ("d = d2", {"d": NAN, "d2": NAN}, True),
        ("d > d2", {"d": NAN, "d2": float("inf")}, True),
        ("d > 5", {"d": NAN}, True),
        ("5 < d", {"d": NAN}, True),
        ("d < 5", {"d": NAN}, False),
        ("d0 = 0", {"d0": -0.0}, True),
        ("l = d", {"l": 2**53 + 1, "d": 2.0**53}, True),
        ("CASE WHEN b THEN 1 END", {"b": None}, None),
        ("coalesce(l, l2, 7)", {"l": None, "l2": None}, 7),
        ("p.x + 1", {"p": Point(4, None)}, 5),
        ("p.x + 1", {"p": None}, None),
        ("mp['a']", {"mp": {}}, None),
        ("transform(al, x -> x + l)", {"al": [1, None], "l": 2}, [3, None]),
        ("s LIKE 'a!_%' ESCAPE '!'", {"s": "a_b"}, True),
        ("ts0 > '2024-01-01'", {"ts0": dt.datetime(2024, 1, 1, 1)}, True),
        ("ts0 = ts20", {"ts0": dt.datetime(2024, 1, 1), "ts20": dt.datetime(2024, 1, 1, tzinfo=dt.UTC)}, True),
        ("try_divide(l, 0)", {"l": 1}, None),
        ("try_add(l, 1)", {"l": MAX}, None),
        ("TRY_CAST(s AS INT)", {"s": "x"}, None),
        ("l * 1.5", {"l": 3}, Decimal("4.5")),
    ],
)  # fmt: skip
def test_values(text: str, columns: dict[str, Any], expected: Any) -> None:
    assert value(text, **columns) == expected


@pytest.mark.parametrize(
    ("text", "columns", "problem", "remedy"),
    [
        ("l + 1", {"l": MAX}, "l + 1 does not fit into BIGINT", "try_add"),
        ("l0 - 1", {"l0": MIN}, "BIGINT", "try_subtract"),
        ("l * l2", {"l": MAX, "l2": 2}, "l * l2 does not fit", "try_multiply"),
        ("i + 1", {"i": 2**31 - 1}, "i + 1 does not fit into INT", "CAST"),
        ("-l", {"l": MIN}, "-l does not fit", "wider"),
        ("abs(l)", {"l": MIN}, "abs(l) does not fit", "wider"),
        ("l / l2", {"l": 1, "l2": 0}, "division by zero in l / l2", "try_divide"),
        ("d0 / 0", {"d0": 1.0}, "division by zero", "try_divide"),
        ("l % l2", {"l": 1, "l2": 0}, "division by zero", "try_mod"),
        ("l DIV l2", {"l": MIN, "l2": -1}, "does not fit", "wider"),
        ("m / 0", {"m": Decimal(1)}, "division by zero", "try_divide"),
        ("CAST(s AS INT)", {"s": "x"}, "'x' cannot be cast to INT", "TRY_CAST"),
        ("CAST(l AS INT)", {"l": 2**40}, "cannot be cast to INT", "TRY_CAST"),
        ("CAST(d AS BIGINT)", {"d": NAN}, "cannot be cast to BIGINT", "TRY_CAST"),
        ("CAST(q AS DATE)", {"q": "2023-02-29"}, "cannot be cast to DATE", "TRY_CAST"),
        ("al[5]", {"al": [1]}, "index 5 is outside", "get("),
        ("element_at(al, 2)", {"al": [1]}, "index 2 is outside", "try_element_at"),
        ("element_at(al, 0)", {"al": [1]}, "position 0", "from 1"),
        ("t + 1", {"t": dt.date(9999, 12, 31)}, "outside the years", "filter"),
        ("map(s, 1, s, 2)", {"s": "a"}, "occurs twice", "remove"),
        ("make_date(2023, 2, 29)", {}, "no date 2023-2-29", "CASE"),
        ("to_timestamp(s, 'yyyy-MM-dd')", {"s": "1.2.2024"}, "not in the format", "try_to_timestamp"),
    ],
)  # fmt: skip
def test_ansi_errors_have_a_remedy(
    text: str, columns: dict[str, Any], problem: str, remedy: str
) -> None:
    with pytest.raises(ExpressionError) as caught:
        value(text, **columns)
    assert problem in caught.value.problem
    assert remedy in caught.value.remedy


@pytest.mark.parametrize(
    ("text", "columns", "expected"),
    [
        # Found by the oracle, each once; kept so that they stay found.
        ("unix_timestamp(ts)", {"ts": dt.datetime(1969, 12, 31, 23, 59, 59, 500000)}, 0),
        ("unix_seconds(ts)", {"ts": dt.datetime(1969, 12, 31, 23, 59, 59, 500000)}, -1),
        ("pmod(-25, i0)", {"i0": -(2**31)}, 2147483623),
        ("substring('b', i0)", {"i0": -(2**31)}, ""),
        ("ceil(d)", {"d": NAN}, 0),
        ("get_json_object(j, '$')", {"j": "null"}, "null"),
        ("regexp_replace('ab', 'x*', '-', 3)", {}, "ab"),
        ("timestamp_seconds(d)", {"d": float("inf")}, None),
        ("1 IN (l0, 2)", {"l0": 1}, True),
        ("locate('a', s, k)", {"s": None, "k": None}, 0),
        ("char(l)", {"l": 321}, "A"),
        ("CAST(d AS BIGINT)", {"d": 2.0**63}, 2**63 - 1),
        ("trunc(q, 'minute')", {"q": "garbage"}, None),
        (
            "date_trunc('month', ts)",
            {"ts": dt.datetime(2024, 2, 29, 1, 2)},
            dt.datetime(2024, 2, 1, tzinfo=dt.UTC),
        ),
        ("reverse(hex(l0))", {"l0": 30}, "E1"),
        ("'it''s'", {}, "it's"),
    ],
)
def test_regressions(text: str, columns: dict[str, Any], expected: Any) -> None:
    assert value(text, **columns) == expected


def test_a_negative_zero_is_rounded_to_zero() -> None:
    assert str(value("round(d, 1)", d=-0.0)) == "0.0"
    assert str(value("array_distinct(ad)", ad=[-0.0])) == "[0.0]"


def test_what_comes_first_fails_first() -> None:
    """A null on the right does not hide an error on the left, as in Spark."""
    with pytest.raises(ExpressionError):
        value("(l0 + 1) + l", l0=MAX, l=None)
    assert value("l + (l0 + 1)", l0=MAX, l=None) is None
