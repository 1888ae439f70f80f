"""Rows of arrays and maps."""

from typing import Any


def entry_rows(source: dict[Any, Any] | None, row: Any) -> list[Any]:
    """Return one struct for each entry."""
    return [row(key, value) for key, value in (source or {}).items()]


def numbered_rows(source: list[Any] | None, row: Any) -> list[Any]:
    """Return one struct of position and value for each element."""
    return [row(i, value) for i, value in enumerate(source or ())]


def numbered_entry_rows(source: dict[Any, Any] | None, row: Any) -> list[Any]:
    """Return one struct of position, key and value for each entry."""
    return [row(i, key, value) for i, (key, value) in enumerate((source or {}).items())]
