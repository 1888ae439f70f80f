"""The documentation of ``/status.json`` names every field, and no other."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from floodway.engine.metrics.status import Status

PAGE = Path(__file__).resolve().parents[3] / "docs" / "metrics.md"


def structs(kind: Any, seen: set[Any]) -> Iterator[type[msgspec.Struct]]:
    """Give a struct and all that are part of it."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and kind not in seen:
        seen.add(kind)
        yield kind
        for field in msgspec.structs.fields(kind):
            yield from structs(field.type, seen)
    for part in getattr(kind, "__args__", ()):
        yield from structs(part, seen)


def section() -> str:
    return PAGE.read_text(encoding="utf-8").split("## `/status.json`")[1].split("\n## ")[0]


def documented() -> set[str]:
    rows = [line for line in section().splitlines() if line.startswith("| ")]
    return {name for row in rows for name in re.findall(r"`([a-z_0-9]+)`", row)}


def test_every_field_of_the_status_is_documented() -> None:
    fields = {
        field.name for kind in structs(Status, set()) for field in msgspec.structs.fields(kind)
    }
    assert fields - documented() == set()


def test_every_table_is_that_of_a_struct() -> None:
    """Fields that a table begins a row with belong to the struct that the table is about."""
    kinds = {kind.__name__: kind for kind in structs(Status, set())}
    tables = re.findall(r"\(`(\w+)`\):\n\n((?:\|.*\n)+)", section())
    assert [name for name, _ in tables] == [
        "Status",
        "StageStatus",
        "OperatorStatus",
        "TaskStatus",
        "Counters",
    ]
    for name, table in tables:
        rows = [row.split("|")[1] for row in table.splitlines()[2:]]
        listed = [field for row in rows for field in re.findall(r"`(\w+)`", row)]
        assert sorted(listed) == sorted(f.name for f in msgspec.structs.fields(kinds[name])), name
