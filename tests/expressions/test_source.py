"""The generated source: snapshots, names, rows, projections, and how scopes look things up."""

# Tables of cases are easier to read wide.
# ruff: noqa: E501

import ast
import importlib
import inspect
import pkgutil
import warnings

import pytest

from floodway.core.errors import ExpressionTypeError, UnknownColumnError
from floodway.core.record import Record
from floodway.core.schema import Schema
from floodway.core.types import BOOLEAN, DOUBLE, INTEGER, LONG, STRING, IntegerType, StructType
from floodway.expressions import (
    Column,
    Scope,
    compile_expression,
    compile_projection,
    compile_projections,
    runtime,
)
from tests.expressions import cases, nested, wide


class Click(Record):
    page: str
    price: float
    count: int
    visitor: int | None = None
    tags: list[str] | None = None


SCOPE = Scope.of(Schema.of(Click))


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("price > 10", "(not v.price <= 10.0)"),
        ("price < 10", "(v.price < 10.0)"),
        ("page = 'home'", "(v.page == 'home')"),
        ("price * 2 > 10 AND page = 'view'", "((not (v.price * 2.0) <= 10.0) and (v.page == 'view'))"),
        ("count + 1", "(_1 if (_1 := (v.count + 1)) <= 9223372036854775807 else _overflow('count + 1', 'BIGINT'))"),
        ("count > 5", "(v.count > 5)"),
        ("length(page) + 1 > 3", "((_1 if (_1 := (len(v.page) + 1)) <= 2147483647 else _overflow('length(page) + 1', 'INT')) > 3)"),
        ("CAST(length(page) AS BIGINT) * 2", "(len(v.page) * 2)"),
        ("visitor > 5", "(None if (_1 := v.visitor) is None else (_1 > 5))"),
        ("visitor IS NULL", "(v.visitor is None)"),
        ("count IN (1, 2, 3)", "(v.count in {1, 2, 3})"),
        ("page LIKE 'a%'", "v.page.startswith('a')"),
        ("page LIKE '%a%'", "('a' in v.page)"),
        ("count BETWEEN 1 AND 10", "(1 <= v.count <= 10)"),
        ("upper(page)", "v.page.upper()"),
        ("substring(page, 1, 3)", "v.page[:3]"),
        ("coalesce(visitor, 0)", "(_1 if (_1 := v.visitor) is not None else 0)"),
        ("CASE WHEN count > 1 THEN 'many' ELSE 'one' END", "('many' if (v.count > 1) else 'one')"),
        ("1 + 2 * 3", "7"),
        ("true AND count > 1", "(v.count > 1)"),
        ("count % 10", "(v.count % 10 if v.count >= 0 else -(-v.count % 10))"),
        ("count", "v.count"),
    ],
)  # fmt: skip
def test_generated_source(text: str, source: str) -> None:
    assert compile_expression(text, SCOPE).source == source


def test_every_source_can_stand_anywhere() -> None:
    """What is put behind a source must belong to all of it, not to its last part."""
    scope = wide.scope()
    for text in [*cases.operators(), *cases.calls(), *nested.expressions(200)]:
        source = compile_expression(text, scope).source
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            outer = ast.parse(f"{source}[0]", mode="eval").body
        assert isinstance(outer, ast.Subscript), text
        assert ast.dump(outer.value) == ast.dump(ast.parse(source, mode="eval").body), text


def test_types_and_nullability() -> None:
    for text, data_type, nullable in (
        ("count + 1", LONG, False),
        ("length(page)", INTEGER, False),
        ("visitor + 1", LONG, True),
        ("price / 2", DOUBLE, False),
        ("page || visitor", STRING, True),
        ("visitor <=> 1", BOOLEAN, False),
        ("coalesce(visitor, 1)", LONG, False),
    ):
        expression = compile_expression(text, SCOPE)
        assert (expression.text, expression.type, expression.nullable) == (
            text,
            data_type,
            nullable,
        )


def test_one_line_and_only_its_own_names() -> None:
    expression = compile_expression("page RLIKE '^a.c$'\n AND price / count > 2", SCOPE)
    assert "\n" not in expression.source
    assert all(name.startswith("_") for name in expression.names)
    assert expression.function("v")(Click("abc", 9.0, 3)) is True


def test_a_name_means_the_same_in_every_expression() -> None:
    texts = ["page RLIKE 'a+'", "page RLIKE 'b+'", "page RLIKE 'a+' OR price > 1", "count + 1", "count * 2",
             "page LIKE 'a_b%'", "named_struct('a', count)", "named_struct('a', price)", "price * 1.5BD"]  # fmt: skip
    seen: dict[str, object] = {}
    for text in texts:
        for name, value in compile_expression(text, SCOPE).names.items():
            assert seen.setdefault(name, value) == value


def test_no_two_helpers_have_one_name() -> None:
    seen: dict[str, object] = {}
    for module in pkgutil.iter_modules(runtime.__path__, f"{runtime.__name__}."):
        loaded = importlib.import_module(module.name)
        for name, helper in vars(loaded).items():
            if inspect.isfunction(helper) and not name.startswith("_"):
                assert seen.setdefault(name, helper) is helper, name


def test_several_expressions_share_one_function() -> None:
    one = compile_expression("visitor + 1", SCOPE)
    two = compile_expression("coalesce(visitor, count) * 2", SCOPE)
    lines = f"def both(v):\n    return {one.source}, {two.source}\n"
    namespace = {**one.names, **two.names}
    exec(lines, namespace)
    assert namespace["both"](Click("a", 1.0, 4)) == (None, 8)  # type: ignore[operator]


def test_scopes_ignore_letter_case_and_take_more_columns() -> None:
    scope = SCOPE.with_columns(
        {"key": Column("k[0]", STRING, False), "PAGE": Column("k", STRING, True)}
    )
    assert scope.column("Key").source == "k[0]"
    assert scope.column("page").source == "k"
    assert compile_expression("`COUNT` + 0", scope).type == LONG
    assert scope.names == ("price", "count", "visitor", "tags", "key", "PAGE")


def test_a_scalar_is_one_column() -> None:
    scope = Scope.of(Schema.of(int, column="amount"), value="x")
    assert compile_expression("amount * 2", scope).function("x")(4) == 8


def test_projections_have_names() -> None:
    assert compile_projection("price * 2 AS double_price", SCOPE)[0] == "double_price"
    assert compile_projection("price * 2 twice", SCOPE)[0] == "twice"
    assert compile_projection("PRICE", SCOPE)[0] == "price"
    with pytest.raises(ExpressionTypeError, match="needs a name") as caught:
        compile_projection("price * 2", SCOPE)
    assert "AS" in caught.value.remedy


def test_a_star_is_all_columns() -> None:
    compiled = compile_projections(["*", "count % 2 AS odd"], SCOPE)
    assert [name for name, _ in compiled] == ["page", "price", "count", "visitor", "tags", "odd"]
    assert compiled[1][1].source == "v.price"
    with pytest.raises(UnknownColumnError, match="opaque"):
        compile_projections(["*"], Scope.of(Schema.of(set)))


@pytest.mark.parametrize(
    ("text", "tags", "expected"),
    [
        ("explode(tags)", ["a", "b"], ["a", "b"]),
        ("explode(tags)", None, []),
        ("explode_outer(tags)", None, [None]),
        ("explode_outer(tags)", [], [None]),
        ("explode(split(page, ','))", None, ["x", "y"]),
    ],
)
def test_generators_give_lists(text: str, tags: list[str] | None, expected: list[object]) -> None:
    expression = compile_expression(text, SCOPE, rows=True)
    assert expression.rows
    assert expression.type == STRING
    assert expression.function("v")(Click("x,y", 1.0, 1, None, tags)) == expected


def test_posexplode_gives_structs() -> None:
    expression = compile_expression("posexplode(tags)", SCOPE, rows=True)
    rows = expression.function("v")(Click("a", 1.0, 1, None, ["x", "y"]))
    assert [(row.pos, row.col) for row in rows] == [(0, "x"), (1, "y")]
    assert isinstance(expression.type, StructType)
    assert expression.type.fields[0].type == IntegerType()


def test_an_expression_without_rows_may_be_asked_for_rows() -> None:
    assert not compile_expression("price", SCOPE, rows=True).rows
