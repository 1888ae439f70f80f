"""What texts are read as: their trees, their literals, how they group, and which are refused."""

from decimal import Decimal
from typing import Any

from floodway.core.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    LONG,
    NULL,
    STRING,
    TIMESTAMP,
    DataType,
    DecimalType,
)
from floodway.expressions import tree
from floodway.expressions.tree import (
    Between,
    Call,
    Case,
    Cast,
    Get,
    Index,
    InList,
    Lambda,
    Like,
    Literal,
    Name,
    Star,
    Term,
    Test,
    Unary,
)


def name(text: str) -> Name:
    return Name(text, tuple(text.split(".")))


def number(value: int) -> Literal:
    return Literal(str(value), value, INTEGER)


def string(value: str) -> Literal:
    return Literal(f"'{value}'", value, STRING)


A, B, C = name("a"), name("b"), name("c")


def binary(text: str, operator: str, left: Term, right: Term) -> tree.Binary:
    return tree.Binary(text, operator, left, right)


TREES: dict[str, Term] = {
    "a.b.c.d.e": name("a.b.c.d.e"),
    "`a``b`.`c.d`": Name("`a``b`.`c.d`", ("a`b", "c.d")),
    "a.from.true": name("a.from.true"),
    "1a": name("1a"),
    "date": name("date"),
    "interval": name("interval"),
    "*": Star("*"),
    "a[0]": Index("a[0]", A, number(0)),
    "a[0].b": Get("a[0].b", Index("a[0]", A, number(0)), "b"),
    "f(a).b[1]": Index("f(a).b[1]", Get("f(a).b", Call("f(a)", "f", (A,)), "b"), number(1)),
    "(a).b": Name("(a).b", ("a", "b")),
    "NVL(a, 1)": Call("NVL(a, 1)", "nvl", (A, number(1))),
    "`f`(a)": Call("`f`(a)", "f", (A,)),
    "f(ALL a)": Call("f(ALL a)", "f", (A,)),
    "count(*)": Call("count(*)", "count", (Star("*"),)),
    "like(a, b)": Call("like(a, b)", "like", (A, B)),
    "current_date": Call("current_date", "current_date", ()),
    "(a, b)": Call("(a, b)", "struct", (A, B)),
    "((a))": A,
    "- a": Unary("- a", "-", A),
    "+a": Unary("+a", "+", A),
    "~a": Unary("~a", "~", A),
    "!a": Unary("!a", "NOT", A),
    "a /* x */ + -- y\n b": binary("a /* x */ + -- y\n b", "+", A, B),
    "a == b": binary("a == b", "=", A, B),
    "a != b": binary("a != b", "<>", A, B),
    "a !> b": binary("a !> b", "<=", A, B),
    "a div b": binary("a div b", "DIV", A, B),
    "a >>> b": binary("a >>> b", ">>>", A, B),
    "a IS NULL": Test("a IS NULL", "NULL", A, False),
    "a IS NOT TRUE": Test("a IS NOT TRUE", "TRUE", A, True),
    "a IS UNKNOWN": Test("a IS UNKNOWN", "NULL", A, False),
    "a IS NOT DISTINCT FROM b": binary("a IS NOT DISTINCT FROM b", "<=>", A, B),
    "a IS DISTINCT FROM b": Unary(
        "a IS DISTINCT FROM b", "NOT", binary("a IS DISTINCT FROM b", "<=>", A, B)
    ),
    "a IN (1, b)": InList("a IN (1, b)", A, (number(1), B)),
    "a NOT IN (b)": Unary("a NOT IN (b)", "NOT", InList("a NOT IN (b)", A, (B,))),
    "a BETWEEN 1 AND b": Between("a BETWEEN 1 AND b", A, number(1), B),
    "a LIKE b": Like("a LIKE b", A, B, "\\", False),
    "a ILIKE b ESCAPE '!'": Like("a ILIKE b ESCAPE '!'", A, B, "!", True),
    "a REGEXP b": Call("a REGEXP b", "rlike", (A, B)),
    "a LIKE ALL (b, c)": binary(
        "a LIKE ALL (b, c)",
        "AND",
        Like("a LIKE ALL (b, c)", A, B, "\\", False),
        Like("a LIKE ALL (b, c)", A, C, "\\", False),
    ),
    "CASE WHEN a THEN b END": Case("CASE WHEN a THEN b END", None, ((A, B),), None),
    "case 'x' when a then b else c end": Case(
        "case 'x' when a then b else c end", string("x"), ((A, B),), C
    ),
    "CAST(a AS INT)": Cast("CAST(a AS INT)", A, INTEGER, False),
    "try_cast(a AS decimal(9, 2))": Cast(
        "try_cast(a AS decimal(9, 2))", A, DecimalType(9, 2), True
    ),
    "a::int::string": Cast("a::int::string", Cast("a::int", A, INTEGER, False), STRING, False),
    "a::int < b": binary("a::int < b", "<", Cast("a::int", A, INTEGER, False), B),
    "f(x -> a)": Call("f(x -> a)", "f", (Lambda("x -> a", ("x",), A),)),
    "(x, y) -> a": Lambda("(x, y) -> a", ("x", "y"), A),
    "position(a IN b)": Call("position(a IN b)", "position", (A, B)),
    "substring(a FROM b FOR c)": Call("substring(a FROM b FOR c)", "substring", (A, B, C)),
    "overlay(a PLACING b FROM c)": Call("overlay(a PLACING b FROM c)", "overlay", (A, B, C)),
    "trim(LEADING a FROM b)": Call("trim(LEADING a FROM b)", "ltrim", (A, B)),
    "trim(BOTH a FROM b)": Call("trim(BOTH a FROM b)", "btrim", (B, A)),
    "trim(TRAILING FROM b)": Call("trim(TRAILING FROM b)", "rtrim", (B,)),
    "trim(a)": Call("trim(a)", "trim", (A,)),
    "extract(HOUR FROM a)": Call(
        "extract(HOUR FROM a)", "extract", (Literal("HOUR", "HOUR", STRING), A)
    ),
    "DATE '2020-01-01'": Cast(
        "DATE '2020-01-01'", Literal("DATE '2020-01-01'", "2020-01-01", STRING), DATE, False
    ),
    "timestamp_ltz'x'": Cast(
        "timestamp_ltz'x'", Literal("timestamp_ltz'x'", "x", STRING), TIMESTAMP, False
    ),
}

LITERALS: list[tuple[str, Any, DataType]] = [
    ("1", 1, INTEGER),
    ("-2147483648", -(2**31), INTEGER),
    ("2147483648", 2**31, LONG),
    ("1L", 1, LONG),
    ("- 9223372036854775808", -(2**63), LONG),
    ("9223372036854775808", Decimal(2**63), DecimalType(19, 0)),
    ("1.50", Decimal("1.50"), DecimalType(3, 2)),
    (".5", Decimal("0.5"), DecimalType(1, 1)),
    ("1.", Decimal(1), DecimalType(1, 0)),
    ("1e3", 1000.0, DOUBLE),
    ("1.5D", 1.5, DOUBLE),
    (".5d", 0.5, DOUBLE),
    ("1.5BD", Decimal("1.5"), DecimalType(2, 1)),
    ("null", None, NULL),
    ("TRUE", True, BOOLEAN),
    ("X'1F'", b"\x1f", BINARY),
    ("x 'abc'", b"\x0a\xbc", BINARY),
    (r"'a\tb\\\'\z'", "a\tb\\'z", STRING),
    (r"'\%\_\101\u00e9\U0001F600'", "\\%\\_Aé😀", STRING),
    ("'it''s'", "it's", STRING),
    ('"a""b\'"', "a\"b'", STRING),
    (r"r'a\n'", r"a\n", STRING),
    (r"'a' r'\b' ".strip() + ' "c"', r"a\bc", STRING),
    ("''", "", STRING),
]

GROUPED: list[tuple[str, str]] = [
    ("NOT a = b", "NOT (a = b)"),
    ("NOT a AND b", "(NOT a) AND b"),
    ("NOT a IS NULL", "NOT (a IS NULL)"),
    ("a OR b AND c", "a OR (b AND c)"),
    ("a OR b OR c", "(a OR b) OR c"),
    ("a AND b AND c AND d", "(a AND b) AND (c AND d)"),
    ("a BETWEEN b AND c AND d", "(a BETWEEN b AND c) AND d"),
    ("a BETWEEN b + 1 AND c = d", "a BETWEEN (b + 1) AND (c = d)"),
    ("a = b IS NULL", "(a = b) IS NULL"),
    ("a = b LIKE c", "(a = b) LIKE c"),
    ("a = b IN (c)", "(a = b) IN (c)"),
    ("a = b = c", "(a = b) = c"),
    ("a < b = c", "(a < b) = c"),
    ("a IS DISTINCT FROM b = c", "a IS DISTINCT FROM (b = c)"),
    ("a || b = c", "(a || b) = c"),
    ("a + b || c - d", "((a + b) || c) - d"),
    ("a | b ^ c & d << e + f * g", "a | (b ^ (c & (d << (e + (f * g)))))"),
    ("a & b = c", "(a & b) = c"),
    ("a - b - c", "(a - b) - c"),
    ("a * b DIV c % d", "((a * b) DIV c) % d"),
    ("-2 ^ 2", "(-2) ^ 2"),
    ("-a * b", "(-a) * b"),
    ("-a.b[0]::int", "-(((a.b)[0])::int)"),
    ("-1::string", "(-1)::string"),
    ("~a & b", "(~a) & b"),
    ("a - -1", "a - (-1)"),
    ("x -> a AND b", "x -> (a AND b)"),
    ("t + INTERVAL 1 DAY > u", "(t + (INTERVAL 1 DAY)) > u"),
    ("t - INTERVAL 1 DAY - INTERVAL 1 HOUR", "(t - (INTERVAL 1 DAY)) - (INTERVAL 1 HOUR)"),
    ("interval - 1", "(interval) - (1)"),
]

CLAUSE, UNREADABLE, FOREIGN = "more than an expression", "cannot read", "not part of Spark SQL"

REFUSED: list[tuple[str, str]] = [
    ("", "expected an expression at the end (position 1)"),
    ("a +", "expected an expression at the end (position 4)"),
    ("a b", "something is left over at 'b' (position 3)"),
    ("a, b", "something is left over at ','"),
    ("(a", "expected , or ) at the end"),
    ("()", "expected an expression in the parentheses"),
    ("a[", "expected ] at the end"),
    ("a[b, c]", "expected one index"),
    ("f(a,)", "expected an expression at ')'"),
    ("f(a AS b)", "expected , or ) at 'AS'"),
    ("a = NOT b", "expected an expression at 'NOT'"),
    ("a IS 1", "expected NULL, TRUE, FALSE or DISTINCT FROM"),
    ("a IS NULL IS NULL", "something is left over at 'IS'"),
    ("a IN ()", "IN needs at least one value"),
    ("a BETWEEN 1 OR 2", "expected AND at 'OR'"),
    ("a LIKE b ESCAPE 'xy'", "expected one character after ESCAPE"),
    ("a ! IN (b)", "something is left over at '!'"),
    ("CASE END", "something is left over at 'END'"),
    ("CASE WHEN a b END", "expected THEN at 'b'"),
    ("CASE WHEN a THEN b ELSE END", "expected an expression at 'END'"),
    ("CAST(a INT)", "expected AS at 'INT'"),
    ("CAST(a AS)", "expected the name of a type"),
    ("CAST(a AS decimal(x))", "cannot read"),
    ("a.1", "something is left over"),
    ("a.'b'", "expected the name of a field"),
    ("a.*", "expected the name of a field"),
    ("(x) -> a", "something is left over at '->'"),
    ("a AS b", "something is left over at 'AS'"),
    ("SELECT a FROM t", CLAUSE),
    ("a FROM t", CLAUSE),
    ("a WHERE b", CLAUSE),
    ("a IN (SELECT b FROM t)", CLAUSE),
    ("(SELECT 1)", CLAUSE),
    ("exists(SELECT 1)", CLAUSE),
    ("a;", FOREIGN),
    ("a; b", FOREIGN),
    ("a ? b", FOREIGN),
    ("{{ a }}", FOREIGN),
    ("a {# b #} + c", FOREIGN),
    ("${a}", FOREIGN),
    ("0x1F", FOREIGN),
    ("1.5x", FOREIGN),
    ("größe", "only in backquotes"),
    ("'abc", "the quote at position 1"),
    ("a = `b", "the quote at position 5"),
    ("a /* b", "the comment at position 3"),
    ("X'1G'", "not a binary literal"),
    ("[1, 2]", "expected an expression at '['"),
    ("INTERVAL 5 apples", "INTERVAL 5 apples is not an interval"),
    ("INTERVAL 5", "INTERVAL 5 is not an interval"),
    ("INTERVAL '1 day 2'", "not an interval"),
    ("INTERVAL '1' DAY TO", "expected a unit after TO"),
    ("INTERVAL 99999999999999 DAYS", "out of range"),
    ("1e99999999999999999999BD", "out of range"),
    ("9" * 5000, "out of range"),
    ("a" * 100_001, "too long"),
]
