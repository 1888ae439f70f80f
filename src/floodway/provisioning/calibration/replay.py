"""A source that reads what was written down for it, and a sink in the place of every sink."""

import copy
import pickle
import sys
from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from floodway.connectors.base import Format, Raw, Reader, SourceConnector, Split
from floodway.connectors.discard import DiscardSink
from floodway.connectors.lines import about_lines
from floodway.core.errors import OptionError
from floodway.model.flow import Flow
from floodway.operators.sink import Sink
from floodway.operators.source import Source

MOST_RECORDS, MOST_BYTES = 8_000_000, 1024 * 2**20
"""So much is written down for a source, at most."""


@dataclass(frozen=True)
class ReplaySource(SourceConnector):
    """Reads pieces from a file that this process has written, as fast as they are taken.

    Attributes
    ----------
    path
        The file; see `write_pieces`.
    shape
        The format of the source that is replaced.
    keyed
        Whether items bring their own time and key.
    """

    replayable: ClassVar[bool] = True

    path: str
    shape: Format
    keyed: bool

    @property
    def format(self) -> Format:
        """That of the source that is replaced."""
        return self.shape

    @property
    def bounded(self) -> bool:
        """What was written down has an end."""
        return True

    @property
    def timed(self) -> bool:
        """Whether items bring their own time."""
        return self.keyed

    def open(self, split: Split, position: Any = None) -> Reader:
        """Return a reader."""
        return _ReplayReader(Path(self.path), keyed=self.keyed)


class _ReplayReader(Reader):
    def __init__(self, path: Path, *, keyed: bool) -> None:
        self.keyed = keyed
        self._pieces = read_pieces(path)

    def poll(self, limit: int) -> Raw | None:
        return next(self._pieces, None)

    def close(self) -> None:
        self._pieces.close()


def write_pieces(path: Path, pieces: Iterable[Raw]) -> int:
    """Write pieces to a file until they are enough; return about how many records they have."""
    records = 0
    with path.open("wb") as file:
        for piece in pieces:
            file.write(pickle.dumps(piece, protocol=5))
            records += about_lines(piece) if isinstance(piece, bytes) else len(piece)
            if records >= MOST_RECORDS or file.tell() >= MOST_BYTES:
                break
    return records


def read_pieces(path: Path) -> Generator[Raw, None, None]:
    """Yield the pieces of a file, which is this user's own."""
    with path.open("rb") as file:
        while True:
            try:
                yield pickle.load(file)
            except EOFError:
                return


def replayed(flow: Flow, sources: Mapping[str, SourceConnector]) -> Flow:
    """Return a flow like another that reads elsewhere, and whose results are not kept.

    Tables are read from where they are: they have to be there for the rest to be what it is.
    """
    # What is not copied but kept, or replaced: modules cannot be copied, connectors need not be.
    others: dict[int, Any] = {id(module): module for module in sys.modules.values()}
    for operator in flow.operators:
        if isinstance(operator, Sink) and operator.connector is not None:
            others[id(operator.connector)] = DiscardSink()
        elif isinstance(operator, Source):
            own = operator.connector
            others[id(own)] = own if operator.brings_updates else sources[operator.name]
    try:
        return copy.deepcopy(flow, dict(others))
    except Exception as error:  # whatever a user's own objects raise
        problem = OptionError(
            "the flow cannot be measured, because something in it cannot be copied: "
            f"{type(error).__name__}: {error}",
            remedy="let functions make clients, locks and files when they are first called, and "
            "not when the flow is built",
        )
        raise _blaming(flow, others, problem) from error


def _blaming(flow: Flow, others: Mapping[int, Any], problem: OptionError) -> OptionError:
    """Name the operator that cannot be copied: the first, as those after it hold it, too."""
    for operator in flow.operators:
        try:
            copy.deepcopy(operator, dict(others))
        except Exception:
            return problem.at(operator.name, operator.place)
    return problem
