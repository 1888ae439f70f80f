"""Blocks of given units, written as a task writes what it collects."""

from collections.abc import Iterable
from pathlib import Path

from floodway.engine.opstream.blocks import BlockWriter, Cut, Unit


def write_block(path: Path, units: Iterable[Unit]) -> list[Cut]:
    """Write a block; return where it can be cut, from its beginning to its end."""
    writer = BlockWriter(path)
    for unit in units:
        if writer.add(unit):
            writer.flush()
    return writer.close()
