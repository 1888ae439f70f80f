"""A sample of what a source brings: some of its input, still encoded, and not marked as read."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from floodway.connectors.base import Raw, SourceConnector, Split, Unavailable
from floodway.connectors.lines import LineCutter, about_lines
from floodway.core.errors import FloodwayError, OptionError
from floodway.operators.source import Source

MOST_RECORDS = 20_000
"""A sample has about so many records at the most: enough for keys and sizes to be typical."""

PATIENCE_S = 5.0
"""After so long, a sample is what there was."""

_POLL_S = 0.01


class SourceSample(msgspec.Struct, frozen=True):
    """Some input of a source: as its reader hands it over, piece by piece.

    Attributes
    ----------
    keyed
        Whether items bring their own time and key.
    """

    pieces: list[Raw]
    keyed: bool
    records: int


def sample_of(source: Source, *, clock: Callable[[], float] = time.monotonic) -> SourceSample:
    """Read a sample of a source; nobody is told that it was read."""
    connector = source.connector
    if not isinstance(connector, SourceConnector):
        raise _unsuitable(source, "it has no connector")
    if not connector.replayable:
        raise _unsuitable(
            source, f"what a {type(connector).__name__} has read is gone for the flow"
        )
    try:
        connector.check()
        reader = connector.open(Split())
    except FloodwayError as error:
        raise error.at(source.name, source.place) from None
    try:
        return _read(reader, clock)
    finally:
        reader.close()


def _read(reader: Any, clock: Callable[[], float]) -> SourceSample:
    pieces: list[Raw] = []
    records, deadline = 0, clock() + PATIENCE_S
    while records < MOST_RECORDS and clock() < deadline:
        try:
            piece = reader.poll(1000)
        except Unavailable:
            piece = []
        if piece is None:
            break
        if not piece:
            time.sleep(_POLL_S)
            continue
        pieces.append(piece)
        records += about_lines(piece) if isinstance(piece, bytes) else len(piece)
    return SourceSample(pieces, reader.keyed, records)


def sample_from(path: Path) -> SourceSample:
    """Read a sample from a file of lines, as a source of lines would get them."""
    pieces: list[Raw] = []
    records, cutter = 0, LineCutter(str(path))
    try:
        with path.open("rb") as file:
            while records < MOST_RECORDS and (chunk := file.read(cutter.want(1000))):
                if block := cutter.feed(chunk):
                    pieces.append(block)
                    records += about_lines(block) if isinstance(block, bytes) else len(block)
    except OSError as error:
        raise OptionError(
            f"the sample {path} cannot be read: {error.strerror or error}",
            remedy="name a file of lines as the source would read them",
        ) from None
    if records < MOST_RECORDS and (rest := cutter.rest()):
        pieces.append(rest)
        records += 1
    return SourceSample(pieces, keyed=False, records=records)


def _unsuitable(source: Source, why: str) -> OptionError:
    return OptionError(
        f"a sample of the source cannot be taken: {why}",
        remedy=f"give one, with lines as the source reads them: --sample {source.name}=FILE, or "
        f"samples={{{source.name!r}: FILE}} in Python",
        operator=source.name,
        place=source.place,
    )
