"""Files of comma-separated values."""

import csv
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, Self

import msgspec

from floodway.connectors.base import Format, Raw, Unreadable
from floodway.connectors.csv_lines import CsvLines
from floodway.connectors.formats import MAX_BYTES
from floodway.connectors.lines import SHOWN_BYTES
from floodway.connectors.paths import FileItems, FilesSource
from floodway.core.bounds import bounded, checked
from floodway.core.errors import ConnectorError, OptionError
from floodway.core.schema import Schema
from floodway.core.types import StructType

_Header = tuple[str, ...]
_Parsed = tuple[_Header | None, list[str], int]
"""What the reader hands over: the header if there is one, the fields, the number of the line."""


@dataclass(frozen=True)
class CsvSource(FilesSource):
    r"""Reads files of comma-separated values in UTF-8.

    Columns are found by the names in the first line, and converted to the types of the schema:
    numbers, booleans (``true``, ``false``, ``1``, ``0``), dates and timestamps in ISO 8601. An
    empty field is null where the column may be null. Quoted fields may contain line ends. Files
    whose names end in ``.gz`` are unpacked while they are read. Can go on from any record:
    replayable.

    A record that is not CSV or not UTF-8 is left to the source's ``on_error``. If a quote is
    missing, there is no telling where the record ends: the line where it starts is rejected, and
    reading goes on with the next line.

    Parameters
    ----------
    path
        A file, a folder or a glob. Several tasks share the files, not the lines of one file.
    delimiter
        What stands between fields.
    header
        Whether the first line has the names; otherwise, columns are in the order of the schema.
    extra
        What to do about columns that the schema does not have: ``"refuse"`` or ``"ignore"``.
    watch
        Whether to follow a folder and never end; see `JsonLinesSource`.
    pattern
        Which files of a folder to read.
    max_bytes
        The longest record that is accepted. One field has at most ``csv.field_size_limit()``
        characters.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from floodway.connectors.base import Split
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "cities.csv"
    ...     _ = file.write_text("city,people\nBern,134000\n")
    ...     source = CsvSource(file)
    ...     reader = source.open(Split())
    ...     rows = reader.poll(10)
    ...     reader.close()
    >>> schema = Schema.of(msgspec.defstruct("City", [("city", str), ("people", int)]))
    >>> [source.format.decoder(schema)(row) for row in rows]
    [City(city='Bern', people=134000)]
    """

    _: KW_ONLY
    delimiter: str = ","
    header: bool = True
    extra: Literal["refuse", "ignore"] = "refuse"
    pattern: str = "*.csv"
    max_bytes: int = MAX_BYTES

    def __post_init__(self) -> None:
        if len(self.delimiter) != 1 or self.delimiter in '"\r\n':
            raise OptionError(
                f"{self.delimiter!r} cannot be a delimiter",
                remedy="use one character such as ',' or ';'",
            )
        if self.extra not in ("refuse", "ignore"):
            raise OptionError(
                f"extra is {self.extra!r}", remedy="choose one of: 'refuse', 'ignore'"
            )

    @property
    def format(self) -> Format:
        """Fields of text to values."""
        return CsvRow(self.extra)

    def open_file(self, file: str, place: Any) -> FileItems:
        """Open one file, at a place or at its beginning."""
        return _Records(self, file, place)


class _Records(FileItems):
    """Reads one file record by record; its place is the offset and the number of the next line."""

    def __init__(self, source: CsvSource, file: str, place: Any) -> None:
        self._name = file
        self._max_bytes = source.max_bytes
        self._lines = CsvLines(file, source.max_bytes)
        self._header: _Header | None = None
        self._spoilt: str | None = None
        self._first: list[Any] = []
        try:
            self._records = csv.reader(self._lines, delimiter=source.delimiter, strict=True)
            if source.header:
                self._read_header()
            if place is not None:
                self._first.clear()
                self._lines.go(*place)
        except BaseException:
            self._lines.close()
            raise

    def read(self, limit: int) -> Raw | None:
        items, self._first = self._first, []
        header, lines = self._header, self._lines
        while len(items) < limit:
            fields = self._next()
            if fields is None:
                break
            if isinstance(fields, Unreadable):
                items.append(fields)
            elif fields:
                items.append((header, fields, lines.number))
        return items or None

    def place(self) -> Any:
        lines = self._lines
        return [lines.offset, lines.number, *([lines.single] if lines.single else [])]

    def close(self) -> None:
        self._lines.close()

    def _next(self) -> list[str] | Unreadable | None:
        """Return the fields of the next record, none for an empty line, or None at the end."""
        lines = self._lines
        try:
            fields = next(self._records)
        except StopIteration:
            return self._too_long() if lines.too_long else None
        except csv.Error as error:
            return self._too_long() if lines.too_long else self._given_up(self._reason(error))
        if lines.undecodable is not None:
            text, problem = lines.text(), str(lines.undecodable)
            lines.take()
            return self._unreadable(text, problem)
        if self._spoilt and fields:
            text = lines.text()
            lines.take()
            return self._unreadable(text, self._spoilt)
        lines.take()
        return fields

    def _read_header(self) -> None:
        """Read the names; without them no record can be read, which each of them says."""
        names = self._next()
        if isinstance(names, Unreadable):
            self._spoilt = f"its header cannot be read: {names.problem}"
            self._first = [names]
            return
        self._header = tuple(name.strip() for name in names or ())
        if len(set(self._header)) < len(self._header):
            shown = ", ".join(self._header)
            self._spoilt = f"a column appears twice in its header: {shown}"
            self._first = [self._unreadable(shown.encode(), self._spoilt)]

    def _reason(self, error: csv.Error) -> str:
        return "it opens a quote that no line closes well" if self._lines.open else str(error)

    def _too_long(self) -> Unreadable:
        return self._given_up(
            f"it has over {self._max_bytes:,} bytes",
            remedy="check that it has lines at all, or give max_bytes= a larger number",
        )

    def _given_up(self, reason: str, **options: str) -> Unreadable:
        return self._unreadable(self._lines.give_up(), reason, **options)

    def _unreadable(
        self,
        text: bytes,
        reason: str,
        remedy: str = "correct the file; quotes in a field are doubled, and the encoding is UTF-8",
    ) -> Unreadable:
        problem = f"line {self._lines.number} of {self._name} is not CSV: {reason}"
        return Unreadable(text[:SHOWN_BYTES], problem, remedy)


@dataclass(frozen=True)
class CsvRow(Format):
    """Fields of text to values of a schema; what `CsvSource` reads with."""

    extra: Literal["refuse", "ignore"] = "refuse"

    def decoder(self, schema: Schema) -> Callable[[Any], Any]:
        """Return the function from a parsed line to a value."""
        columns = _Columns.of(schema)
        known: set[_Header | None] = set()
        ignore_extra = self.extra == "ignore"

        def decode(item: _Parsed) -> Any:
            header, fields, line = item
            if header not in known:
                columns.check(header, ignore_extra=ignore_extra)
                known.add(header)
            names = columns.names if header is None else header
            if len(fields) != len(names) and not schema.opaque:
                raise ValueError(f"line {line} has {len(fields)} fields instead of {len(names)}")
            try:
                return columns.convert(names, fields)
            except msgspec.ValidationError as error:
                raise msgspec.ValidationError(f"{error}, line {line}") from None

        return checked(decode, columns.python)


@dataclass(frozen=True)
class _Columns:
    """The columns that a schema wants, by the names they have outside."""

    schema: Schema
    names: _Header
    required: frozenset[str]
    nullable: frozenset[str]
    python: Any = Any

    @classmethod
    def of(cls, schema: Schema) -> Self:
        if schema.opaque:
            return cls(schema, (), frozenset(), frozenset())
        names, required = schema.names, set(schema.names)
        if isinstance(schema.type, StructType) and schema.type.python is not None:
            fields = msgspec.structs.fields(schema.type.python)
            names = tuple(field.encode_name for field in fields)
            required = {field.encode_name for field in fields if field.required}
        columns = zip(names, schema.fields, strict=True)
        nullable = frozenset(name for name, field in columns if field.nullable)
        return cls(schema, names, frozenset(required), nullable, bounded(schema.python))

    def check(self, header: _Header | None, *, ignore_extra: bool) -> None:
        """Compare a header with the schema."""
        if header is None or self.schema.opaque:
            return
        missing = sorted(self.required.difference(header))
        if missing:
            raise ConnectorError(
                f"the file has no column {', '.join(map(repr, missing))}; "
                f"it has {', '.join(header)}",
                remedy="correct the schema or the file, or give the field a default",
            )
        extra = sorted(set(header).difference(self.names))
        if extra and not ignore_extra:
            raise ConnectorError(
                f"the schema has no column {', '.join(map(repr, extra))}",
                remedy="add it to the schema, or pass extra='ignore'",
            )

    def convert(self, names: _Header, fields: list[str]) -> Any:
        """Return the value that fields of text stand for."""
        if self.schema.opaque:
            return dict(zip(names, fields, strict=True)) if names else fields
        row: dict[str, Any] = dict(zip(names, fields, strict=True))
        for name in self.nullable:
            if row.get(name) == "":
                row[name] = None
        if isinstance(self.schema.type, StructType):
            return msgspec.convert(row, self.python, strict=False)
        return msgspec.convert(row[self.names[0]], self.python, strict=False)
