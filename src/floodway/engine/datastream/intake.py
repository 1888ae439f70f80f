"""The head of a source's chain: from what a reader hands over to the first operators' results.

Decoding, event time and the operators fused with the source are one generated loop. The loop also
keeps the latest event time, which is all that stream time needs to know of a record.
"""

from collections.abc import Sequence
from typing import Any, Literal

from floodway.connectors.base import Format, Unreadable, Values
from floodway.operators.base import Outputs
from floodway.operators.code import CodeWriter
from floodway.operators.source import Changelog, Source
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


class Intake(ChainKernel):
    """Runs a source and the stateless operators fused with it.

    Attributes
    ----------
    latest
        The latest event time that has come in, or `NEVER`.
    undated
        How many records came without the timestamp that their reader should have brought.
    """

    remembers = ("latest",)

    def __init__(self, chain: Sequence[Stateless], outputs: Sequence[Outputs]) -> None:
        super().__init__(chain, outputs)
        source = chain[0]
        assert isinstance(source, Source)
        self._source = source
        self._outputs = outputs
        self.latest = NEVER
        self.undated = 0
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

    def process(self, port: int, rows: Sequence[Any]) -> None:
        """Take rows ``(timestamp, key, value)`` whose values need no decoding."""
        self._done(self._run_of("rows")(rows, 0, self.latest))

    def take(self, raw: list[Any] | bytes, now: int, *, keyed: bool) -> int:
        """Take what a reader handed over at `now`; return how many records that was."""
        if isinstance(raw, bytes):
            try:
                values = self._decode_block(raw)
            except Exception:
                # One line is bad. Taken one by one, it is that line which fails, and no other.
                raw = self._lines(raw)
            else:
                self._done(self._run_of("values")(values, now, self.latest))
                return len(values)
        head: Head = "keyed" if keyed else "items" if self._decodes else "values"
        self._done(self._run_of(head)(raw, now, self.latest))
        return len(raw)

    def _done(self, result: Any) -> None:
        self.latest, undated, *counts = result
        self.undated += undated
        if counts:
            self.add(counts)

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
        # A reader that brings timestamps should have one for every record.
        dated = head == "keyed" and self._source.timestamp is None and not self._source.arrival
        if dated:
            code.line("undated = 0")
        write_counters(code, self._counted)
        if head in ("values", "items"):
            code.line("t = now")
        *before, loop = _HEADS[head]
        for line in before:
            code.line(line)
        code.line(loop).indent()
        if head == "items":
            code.guarded(failed, "v = decode(v)")
        if head == "keyed":
            count = "; undated += 1" if dated else ""
            code.line("t = now" if self._source.arrival else f"if t is None: t = now{count}")
            code.guarded(failed, "if v is not None: v = decode(v)")
            if not isinstance(self._source, Changelog):
                code.line("k = None")
        if head in ("values", "items"):
            self._write_reset(code)
        write_body(
            code,
            self.chain,
            self.handlers,
            self._outputs[-1],
            self._counted,
            after_first="if t > m: m = t" if self._source.moves_time else "",
        )
        code.line(f"return m, {'undated' if dated else 0}, {counters(self._counted)}")

    def _undecoded(self, error: Exception, timestamp: int, key: Any, value: Any) -> None:
        """Deal with an item that is no value; one that could not be read says itself why."""
        if isinstance(value, Unreadable):
            error, value = value.error(), value.raw
        self.handlers[0](error, timestamp, key, value)

    def _write_reset(self, code: CodeWriter) -> None:
        """Undo per record what the chain changes and every record starts with."""
        if self._source.timestamp is not None or isinstance(self._source, Changelog):
            code.line("t = now")
        if any(operator.rekeys for operator in self.chain) or isinstance(self._source, Changelog):
            code.line("k = None")
