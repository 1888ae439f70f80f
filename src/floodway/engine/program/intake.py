"""The head of a source's chain: from what a reader hands over to the first operators' results.

Decoding, event time and the operators fused with the source are one generated loop. The loop also
keeps the latest event time, which is all that stream time needs to know of a record.

Only records with an event time of their own move that. Others are *undated*: records of a reader
that gives times and had none for them, and deletions where the time is taken from the value. They
get the time that the source has come to. A single one that got the time of the clock would carry
stream time from the past to the present, and all that follows would be late.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from floodway.connectors.base import Format, Unreadable, Values
from floodway.operators.base import Outputs
from floodway.operators.code import CodeWriter
from floodway.operators.source import BEGINNING, Source
from floodway.operators.stateless import (
    ChainKernel,
    Stateless,
    counters,
    write_body,
    write_counters,
)

NEVER = -(2**63)

Head = Literal["rows", "values", "items", "keyed"]

_HEADS: dict[Head, tuple[str, ...]] = {
    "rows": ("for t, k, v in rows:",),
    "values": ("k = None", "for v in rows:"),
    "items": ("k = None", "for v in rows:"),
    "keyed": ("for t, k, v in rows:",),
}

_WITH_TIMES: tuple[Head, ...] = ("rows", "keyed")
"""Where whoever brings records can say their time."""


class Intake(ChainKernel):
    """Runs a source and the stateless operators fused with it.

    Attributes
    ----------
    now
        When the rows that `process` takes came in.
    latest
        The latest event time of a record that had one of its own, or `NEVER`.
    arrived
        When the last undated record came in, or `NEVER`.
    """

    remembers = ("latest", "arrived")

    def __init__(self, chain: Sequence[Stateless], outputs: Sequence[Outputs]) -> None:
        super().__init__(chain, outputs)
        source = chain[0]
        assert isinstance(source, Source)
        self._source = source
        self._outputs = outputs
        self.now = 0
        self.latest = self.arrived = NEVER
        self._runs: dict[Head, Any] = {}
        self._sources: dict[Head, str] = {}
        self._decode: Any = None
        self._decodes = True
        self._decode_block: Any = None
        self._lines: Any = None
        self.use(getattr(source.connector, "format", None) or Values())

    def use(self, shape: Format) -> None:
        """Decode raw items by a format."""
        schema = self._source.outputs["main"].schema
        self._decodes = shape.decodes
        self._decode = shape.decoder(schema)
        self._decode_block = shape.block_decoder(schema)
        self._lines = shape.lines
        self._runs.clear()

    def source(self, head: Head) -> str:
        """Return the generated code for one kind of input."""
        self._run_of(head)
        return self._sources[head]

    @property
    def come_to(self) -> int | None:
        """How far the source is: by the clock if no record has had a time of its own."""
        time = self.arrived if self.latest == NEVER else self.latest
        return None if time == NEVER else time

    @property
    def looks_back(self) -> bool:
        """Whether what comes needs to know how far the source is, and nobody knows that yet."""
        return self._source.dates_values_only and self.latest == NEVER

    def adopt(self, saved: Sequence[Mapping[str, Any]]) -> None:
        """Go on where the one was that had come least far: what it had not read may be mine now."""
        for name in self.remembers:
            setattr(self, name, min((scalars.get(name, NEVER) for scalars in saved), default=NEVER))
        if any(scalars.get("latest", NEVER) != NEVER for scalars in saved):
            self.arrived = NEVER  # else the clock would be taken for the time that it has come to

    def process(self, port: int, rows: Sequence[Any]) -> None:
        """Take rows ``(timestamp, key, value)`` whose values need no decoding."""
        self._take("rows", rows)

    def take(self, raw: list[Any] | bytes, now: int, *, keyed: bool) -> int:
        """Take what a reader handed over at `now`; return how many records that was."""
        self.now = now
        if isinstance(raw, bytes):
            try:
                values = self._decode_block(raw)
            except Exception:
                # One line is bad. Taken one by one, it is that line which fails, and no other.
                raw = self._lines(raw)
            else:
                self._take("values", values)
                return len(values)
        self._take("keyed" if keyed else "items" if self._decodes else "values", raw)
        return len(raw)

    def _take(self, head: Head, rows: Sequence[Any]) -> None:
        self.latest, noticed, *counts = self._run_of(head)(rows, self.now, self.latest)
        if noticed:
            self._notice(noticed)
        if counts:
            self.add(counts)

    def _notice(self, count: int) -> None:
        """Take note of records whose times are not as they should be."""
        if not self._source.moves_time:
            self.ignored += count
            return
        self.undated += count
        if self._source.dated_outside:
            self.arrived = max(self.arrived, self.now)

    def _run_of(self, head: Head) -> Any:
        run = self._runs.get(head)
        if run is None:
            code = CodeWriter()
            self._write(code, head)
            run = self._runs[head] = code.compile("run")
            self._sources[head] = code.source
        return run

    def _write(self, code: CodeWriter, head: Head) -> None:
        code.names["decode"] = self._decode
        failed = code.bind(f"undecoded_{self._source.name}", self._undecoded)
        code.line("def run(rows, now, m):").indent()
        code.line("noticed = 0")
        write_counters(code, self._counted)
        *before, loop = _HEADS[head]
        if head not in _WITH_TIMES:
            code.line("t = now")
        for line in before:
            code.line(line)
        code.line(loop).indent()
        self._write_start(code, head, failed)
        write_body(
            code,
            self.chain,
            [self._failed, *self.handlers[1:]],
            self._outputs[-1],
            self._counted,
            after_first=self._moving(head),
        )
        code.line(f"return m, noticed, {counters(self._counted)}")

    def _write_start(self, code: CodeWriter, head: Head, failed: str) -> None:
        """Write what comes before the first operator; without a time of its own ``t`` is None."""
        if head == "items":
            code.guarded(failed, "v = decode(v)")
        if head in _WITH_TIMES and self._source.arrival:
            code.line("t = now" if head == "keyed" else "if t is None: t = now")
        if head == "keyed":
            if self._source.taken_for_static:
                code.line("if t is not None: noticed += 1")
            code.guarded(failed, "if v is not None: v = decode(v)")
            if not self._source.brings_updates:
                code.line("k = None")
        if head not in _WITH_TIMES:
            self._write_reset(code)

    def _moving(self, head: Head) -> tuple[str, ...]:
        """Return how a record's time moves that of the source, or is taken from it.

        No record with a time of its own is looked at more often than it needs.
        """
        if not self._source.moves_time:
            return ()
        if self._source.dates_values_only:
            # Nothing was there before the first row, and no later one may be older than that.
            dated = f"t = m if m > {NEVER} else {BEGINNING}; noticed += 1"
            return ("if v is None:", f"    if t is None: {dated}", "elif t > m: m = t")
        if self._source.dated_outside and head in _WITH_TIMES:
            dated = f"t = m if m > {NEVER} else now; noticed += 1"
            return (f"if t is None: {dated}", "elif t > m: m = t")
        return ("if t > m: m = t",)

    def _undecoded(self, error: Exception, timestamp: int | None, key: Any, value: Any) -> None:
        """Deal with an item that is no value; one that could not be read says itself why."""
        if isinstance(value, Unreadable):
            error, value = value.error(), value.raw
        self._failed(error, timestamp, key, value)

    def _failed(self, error: Exception, timestamp: int | None, key: Any, value: Any) -> None:
        """Deal with a record that failed in the source, perhaps before it was given a time."""
        if timestamp is None:
            timestamp = self.now
            self.undated += self._source.dated_outside
        self.handlers[0](error, timestamp, key, value)

    def _write_reset(self, code: CodeWriter) -> None:
        """Undo per record what the chain changes and every record starts with."""
        if self._source.dates_values_only:
            code.line("t = None")
        elif self._source.timestamp is not None or self._source.brings_updates:
            code.line("t = now")
        if any(operator.rekeys for operator in self.chain) or self._source.brings_updates:
            code.line("k = None")
