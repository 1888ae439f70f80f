"""What operators without state are asked, and what each means for one record."""

from collections.abc import Callable
from typing import Any

from floodway import Record, Stream


class Sale(Record):
    shop: str | None
    pieces: int
    tags: list[str] | None


Fact = tuple[int, Any, Any]


def tags(sale: Sale) -> list[str]:
    return list(sale.tags or ())


def shops_kept(sale: Sale) -> bool:
    return sale.pieces > 2 and sale.shop == "a"


# Each case: what the user writes, and what it means for one record.
CASES: dict[str, tuple[Callable[[Stream], Stream], Callable[[int, Sale], list[Fact]]]] = {
    "map_expression": (
        lambda sales: sales.map("pieces * 2"),
        lambda t, sale: [(t, None, sale.pieces * 2)],
    ),
    "map_function": (
        lambda sales: sales.map(lambda sale: sale.shop),
        lambda t, sale: [(t, None, sale.shop)],
    ),
    "flat_map_expression": (
        lambda sales: sales.flat_map("explode(tags)"),
        lambda t, sale: [(t, None, tag) for tag in tags(sale)],
    ),
    "flat_map_function": (
        lambda sales: sales.flat_map(tags),
        lambda t, sale: [(t, None, tag) for tag in tags(sale)],
    ),
    "filter_expression": (
        lambda sales: sales.filter("pieces > 2 AND shop = 'a'"),
        lambda t, sale: [(t, None, sale)] if shops_kept(sale) else [],
    ),
    "filter_function": (
        lambda sales: sales.filter(shops_kept),
        lambda t, sale: [(t, None, sale)] if shops_kept(sale) else [],
    ),
    "filter_drops_null": (
        lambda sales: sales.filter("shop <> 'a'"),
        lambda t, sale: [(t, None, sale)] if sale.shop not in ("a", None) else [],
    ),
    "select": (
        lambda sales: sales.select("pieces + 1 AS more", "shop").map(
            lambda row: (row.more, row.shop)
        ),
        lambda t, sale: [(t, None, (sale.pieces + 1, sale.shop))],
    ),
    "with_columns": (
        lambda sales: sales.with_columns(pieces="pieces * 10", one="1").map(
            lambda row: (row.shop, row.pieces, row.one)
        ),
        lambda t, sale: [(t, None, (sale.shop, sale.pieces * 10, 1))],
    ),
    "key_by_expression": (
        lambda sales: sales.key_by("shop"),
        lambda t, sale: [(t, sale.shop, sale)],
    ),
    "key_by_function": (
        lambda sales: sales.key_by(lambda sale: sale.pieces % 2),
        lambda t, sale: [(t, sale.pieces % 2, sale)],
    ),
    "key_by_several": (
        lambda sales: sales.key_by("shop", "pieces"),
        lambda t, sale: [(t, (sale.shop, sale.pieces), sale)],
    ),
    "peek": (
        lambda sales: sales.peek(lambda sale: None),
        lambda t, sale: [(t, None, sale)],
    ),
    "a_chain": (
        lambda sales: sales.filter("pieces > 0").flat_map(tags, schema=str).key_by("value"),
        lambda t, sale: [(t, tag, tag) for tag in tags(sale) if sale.pieces > 0],
    ),
}
