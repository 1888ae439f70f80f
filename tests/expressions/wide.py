"""A wide record with every type, nullable and not, and seeded random rows with nasty values."""

# Tables of cases are easier to read wide.
# ruff: noqa: E501

import datetime as dt
import random
from decimal import Decimal
from typing import Any

import msgspec

from floodway.core.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    ArrayType,
    DataType,
    DecimalType,
    Field,
    MapType,
    StructType,
)
from floodway.expressions import Column, Scope

Point = msgspec.defstruct("Point", [("x", int | None), ("y", str | None)], frozen=True)
POINT = StructType((Field("x", LONG, True), Field("y", STRING, True)), Point)
MONEY = DecimalType(12, 3)

# Name -> type; each exists twice, "a" nullable and "a0" not.
COLUMNS: dict[str, DataType] = {
    "b": BOOLEAN,
    "b2": BOOLEAN,
    "i": INTEGER,
    "i2": INTEGER,
    "k": INTEGER,
    "l": LONG,
    "l2": LONG,
    "d": DOUBLE,
    "d2": DOUBLE,
    "m": MONEY,
    "w": DecimalType(38, 18),
    "s": STRING,
    "s2": STRING,
    "n": STRING,
    "q": STRING,
    "j": STRING,
    "t": DATE,
    "t2": DATE,
    "ts": TIMESTAMP,
    "ts2": TIMESTAMP,
    "al": ArrayType(LONG),
    "al2": ArrayType(LONG),
    "ax": ArrayType(STRING),
    "ad": ArrayType(DOUBLE),
    "mp": MapType(STRING, LONG),
    "p": POINT,
}

STRINGS = (
    "",
    "a",
    "abc",
    "ABC",
    "Abc Def",
    "  pad ",
    "héllo wörld",
    "日本語",
    "a,b,,c",
    "aXbXc",
    "x.y.z",
    "a%b_c",
    "line\nbreak",
    "😀 smile",
    "foo123bar456",
    "ÀÉ",
    "user@host.org",
    "aaa",
    "ab12-cd34",
    "\ttab",
    "ba",
    "The quick brown fox",
    "a~b c/d?e=f&g",
    "4111111111111111",
    "Robert",
    "Tymczak",
)
NUMBERS = (
    "0",
    "12",
    "-7",
    " 42 ",
    "3.5",
    "-0.0",
    "1e3",
    "NaN",
    "Infinity",
    "-inf",
    "abc",
    "",
    "2147483648",
    "9223372036854775807",
    "9223372036854775808",
    "+5",
    ".5",
    "1.",
    "1 2",
    "12.345678",
    "true",
    "no",
    "Y",
    "0x1F",
    "1d",
    "99999999999999999999.99",
)
TIMES = (
    "2024-02-29", "2023-02-29", "2020-1-5", "1999-12-31 23:59:59", "2024-02-29T12:34:56.789", "2021",
    "2021-07", "2024-03-10 02:30:00 America/New_York", "2024-01-01 00:00:00Z", "2020-06-15 10:20:30+02:00",
    "2020-13-01", "garbage", "", "0200-03-01", "9999-12-31", "2024-02-29 1:2:3", " 2024-05-05 ",
    "2024-05-05 25:00:00", "2024-05-05 10:61", "1969-12-31 23:59:59.999999", "2024-02-29 12:34:56",
)  # fmt: skip
JSONS = (
    '{"a": 1, "b": {"c": [1, 2, {"d": "x"}]}}', '{"a": "text", "b": null}', "[1, 2, 3]", "[]", "{}",
    '{"a": 1.50, "b": {"c": []}}', "not json", "", '{"a": true, "b": {"c": ["é", "\\"q\\"", "\\n"]}}',
    '{"a": -12345678901234567890, "b": {"c": [null]}}', "null", '"str"', "12", '{"a": {"x": 1e10, "y": [1.0]}}',
    '{"a": [], "a b": 3}', '{"a": 1, "a": 2}', "{'a': 'x', \"b\": {'c': ['\"', 'it\\\\'s']}}", '{"a": 1} rest', '{"a": 1, broken',
    '{"a": "x\ty"}', '{"a": NaN}', '{a: 1}', '[1, 2] x', ' {"a": null, "a": 5}', '{"a": 01}', '{"a": {"b": 1, "b": 2}}', "12x", "true", '[[1], [2, 3]]',
    '{"a": 1e400}', '{"a": 123456789012345678901234567890.5}', "[1,,2]", "['a', 'b']", "[1",
)  # fmt: skip
INTS = (0, 1, -1, 2, 7, -7, 10, 100, 255, 2**31 - 1, -(2**31), 2024)
LONGS = (0, 1, -1, 2, 3, 10, -10, 42, 1000, 2**31, 2**53 + 1, 2**63 - 1, -(2**63), 10**12, -(10**9))
DOUBLES = (
    0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, 0.1, 3.14159, 1e10, 1e-7, 1e300, -1e300, 123456.789,
    float("nan"), float("inf"), float("-inf"), 2.0, 9.999, 2.0**63, -(2.0**63), 2147483647.5, 4.9e-324, 1e18, 1234567.0, 12345678.0, 0.001,
)  # fmt: skip
DATES = (
    dt.date(1970, 1, 1), dt.date(2024, 2, 29), dt.date(2023, 2, 28), dt.date(1999, 12, 31),
    dt.date(2000, 1, 1), dt.date(1900, 3, 1), dt.date(2021, 1, 3), dt.date(2024, 12, 30), dt.date(1969, 12, 31),
    dt.date(2026, 7, 4), dt.date(2024, 1, 31), dt.date(9999, 12, 31), dt.date(1850, 5, 17),
)  # fmt: skip
MOMENTS = (
    dt.datetime(1970, 1, 1), dt.datetime(2024, 2, 29, 23, 59, 59, 999999),
    dt.datetime(1969, 12, 31, 23, 59, 59, 500000), dt.datetime(2000, 1, 1, 12, 0),
    dt.datetime(2024, 3, 31, 1, 30), dt.datetime(1999, 12, 31, 13, 5, 7, 120000),
    dt.datetime(2021, 1, 31, 0, 0, 1), dt.datetime(1901, 6, 1, 8, 15, 30, 123456),
    dt.datetime(2024, 2, 29, 12, 34, 56), dt.datetime(2038, 1, 19, 3, 14, 8),
)  # fmt: skip
UTC = dt.UTC


def scope() -> Scope:
    """Return the columns, nullable and not."""
    columns = {}
    for name, data_type in COLUMNS.items():
        columns[name] = Column(f"v[{name!r}]", data_type, True)
        columns[name + "0"] = Column(f"v[{name + '0'!r}]", data_type, False)
    return Scope(columns)


def rows(count: int, seed: int = 7) -> list[dict[str, Any]]:
    """Return random rows; the first one is all NULL where that is allowed."""
    rng = random.Random(seed)
    made = []
    for index in range(count):
        row: dict[str, Any] = {"id": index}
        for name in COLUMNS:
            row[name + "0"] = _value(rng, name)
            row[name] = None if index == 0 or rng.random() < 0.15 else _value(rng, name)
        made.append(row)
    return made


def _value(rng: random.Random, name: str) -> Any:
    kind = name.rstrip("2")
    some: dict[str, Any] = {
        "b": lambda: rng.random() < 0.5,
        "i": lambda: rng.choice((*INTS, rng.randint(-100, 100))),
        "k": lambda: rng.randint(-3, 7),
        "l": lambda: rng.choice((*LONGS, rng.randint(-1000, 1000), rng.randint(-(10**15), 10**15))),
        "d": lambda: rng.choice((*DOUBLES, round(rng.uniform(-1000, 1000), 3), rng.random() * 5)),
        "m": lambda: Decimal(rng.choice((0, 1, -1, 12345, rng.randint(-(10**11), 10**11)))).scaleb(
            -3
        ),
        "w": lambda: Decimal(rng.choice((0, 1, rng.randint(-(10**30), 10**30)))).scaleb(-18),
        "s": lambda: rng.choice(STRINGS),
        "n": lambda: rng.choice(NUMBERS),
        "q": lambda: rng.choice(TIMES),
        "j": lambda: rng.choice(JSONS),
        "t": lambda: rng.choice(
            (*DATES, dt.date(1950, 1, 1) + dt.timedelta(rng.randint(0, 40000)))
        ),
        "ts": lambda: rng.choice((*MOMENTS, _moment(rng))).replace(tzinfo=rng.choice((None, UTC))),
        "al": lambda: _array(rng, lambda: rng.choice((1, 2, 3, -1, 10, 2**40))),
        "ax": lambda: _array(rng, lambda: rng.choice(("a", "b", "", "é", "zz"))),
        "ad": lambda: _array(rng, lambda: rng.choice((1.0, 2.5, float("nan"), 0.0, -0.0, -3.0))),
        "mp": lambda: {
            key: rng.choice((1, None, 3)) for key in sorted(rng.sample("abcd", rng.randint(0, 3)))
        },
        "p": lambda: Point(rng.choice((1, 2, None)), rng.choice(("a", None, "b"))),
    }
    return some[kind]()


def _moment(rng: random.Random) -> dt.datetime:
    return dt.datetime(1930, 1, 1) + dt.timedelta(
        microseconds=rng.randint(0, 3_500_000_000_000_000)
    )


def _array(rng: random.Random, item: Any) -> list[Any]:
    return [None if rng.random() < 0.15 else item() for _ in range(rng.randint(0, 5))]
