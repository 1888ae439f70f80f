"""The lines of a CSV file, one record after the other.

A record may have several lines, if it has line ends in quotes. Where a record ends is known only to
who parses it, and if it fails, where it should have ended is known to nobody: a quote too many
makes one record of all that follows. So the first line alone is given up, and the others are given
again.

Each of those by itself, but for the last: all of them began inside of quotes, and a line that ends
there too goes on as the record did that failed. So it fails as well, and need not be tried: without
this, a file with many such lines is read once for each of them.
"""

from collections import deque
from typing import Self

from floodway.connectors.paths import open_line


class CsvLines:
    """Gives the lines of a file to a parser, and counts those of the records that came of them.

    Parameters
    ----------
    file
        The file.
    max_bytes
        No record has more bytes than this.

    Attributes
    ----------
    offset, number
        Where the next record begins, and how many lines are before it.
    undecodable
        Why a line of the current record is no UTF-8, if one is not.
    too_long
        Whether the current record is longer than any may be; then it has no more lines.
    single
        So many of the next lines are a record by themselves, or none.
    open
        Whether the current record is such a line, and asked for another; then it has no more lines.
    """

    def __init__(self, file: str, max_bytes: int) -> None:
        self._name = file
        self._max_bytes = max_bytes
        self._file, self.offset, self._inside = open_line(file, 0)
        self.number = 0
        self._record: list[bytes] = []
        self._bytes = 0
        self._again: deque[bytes] = deque()
        self.undecodable: UnicodeDecodeError | None = None
        self.too_long = False
        self.single = 0
        self.open = False

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> str:
        if self.too_long:
            raise StopIteration
        if self._inside:
            self._pass_over()
        if self.single and self._record:
            self.open = True
            raise StopIteration
        line = self._again.popleft() if self._again else self._file.readline(self._max_bytes + 1)
        if not line:
            raise StopIteration
        self._record.append(line)
        self._bytes += len(line)
        if self._bytes > self._max_bytes:
            self.too_long = True
            raise StopIteration
        try:
            return line.decode()
        except UnicodeDecodeError as error:
            self.undecodable = error
            return line.decode(errors="replace")

    def go(self, offset: int, number: int, single: int = 0) -> None:
        """Go to where a record begins."""
        self._file.close()
        self._file, self.offset, self._inside = open_line(self._name, offset)
        self.number = number
        self.single = single
        self._again.clear()

    def take(self) -> None:
        """Take it that the lines so far are a record."""
        self.offset += self._bytes
        self.number += len(self._record)
        self.single = max(self.single - 1, 0)
        self._begin()

    def text(self) -> bytes:
        """Return the lines of the current record."""
        return b"".join(self._record)

    def give_up(self) -> bytes:
        """Take it that the lines so far are no record; return the first, and give the others again.

        Of a line that is too long for a record, the rest is passed over.
        """
        first, *others = self._record or [b""]
        self._again.extendleft(reversed(others))
        self._record, self._bytes = [first], len(first)
        self._inside = len(first) > self._max_bytes and not first.endswith(b"\n")
        self.take()
        # The last is where it failed; what a record that begins there comes to is not known.
        self.single = max(self.single, len(others) - 1)
        return first

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _begin(self) -> None:
        self._record.clear()
        self._bytes = 0
        self.undecodable = None
        self.too_long = False
        self.open = False

    def _pass_over(self) -> None:
        self._inside = False
        while piece := self._file.readline(self._max_bytes + 1):
            self.offset += len(piece)
            if piece.endswith(b"\n"):
                break
