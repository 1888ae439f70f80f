"""How the scheduler's story is told to people: in a line below a table, or in full."""

from collections.abc import Iterable, Iterator, Sequence

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from floodway.engine.scheduler.story import Entry

STYLES = {"data": "cyan", "operation": "dark_orange", "switching": "yellow"}
"""How paradigms are coloured; both colours can be told apart by everybody."""

_WIDTH = 9  # of the time before a line: up to 99999.9 s


def paradigm_text(paradigm: str, *, width: int = 9) -> Text:
    """Return a paradigm for a table, cut to a width.

    Examples
    --------
    >>> paradigm_text("operation", width=4).plain
    'oper'
    """
    return Text(paradigm[:width], style=STYLES.get(paradigm, ""))


def headline(entry: Entry) -> Text:
    """Return what was decided, without the reason.

    Examples
    --------
    >>> print(
    ...     headline(
    ...         Entry(time_ms=0, what="switch", stage="s", why="", before="data", after="operation")
    ...     )
    ... )
    s: data → operation
    >>> print(
    ...     headline(
    ...         Entry(time_ms=0, what="switched", stage="s", why="", after="data", pause_us=1500)
    ...     )
    ... )
    s works in the data paradigm, after a pause of 1.5 ms
    """
    stage = (entry.stage, "bold")
    after = _value(entry.after)
    if entry.what == "switch":
        return Text.assemble(stage, ": ", _value(entry.before), " → ", after)
    if entry.what == "batch":
        operator = (entry.operator or entry.stage, "bold")
        return Text.assemble(operator, ": b_out ", _value(entry.before), " → ", after)
    if entry.what == "switched":
        pause = "" if not entry.pause_us else f", after a pause of {entry.pause_us / 1000:.1f} ms"
        return Text.assemble(stage, " works in the ", after, f" paradigm{pause}")
    if entry.what == "failed":
        return Text.assemble(stage, (" could not be switched to ", "red"), after)
    return Text.assemble(stage, " stays in the ", after, " paradigm")


def _value(value: str | int | None) -> tuple[str, str]:
    return (
        (f"{value:,}", "bold")
        if isinstance(value, int)
        else (str(value), STYLES.get(str(value), ""))
    )


def brief(entries: Sequence[Entry], *, since_ms: float, count: int) -> Iterator[Text]:
    """Return the last entries, each in one line that is cut where the console ends."""
    for entry in entries[-count:] if count else ():
        line = Text.assemble(_when(entry, since_ms), headline(entry), (f"  {entry.why}", "dim"))
        line.no_wrap, line.overflow = True, "ellipsis"
        yield line


def in_full(entries: Iterable[Entry], *, since_ms: float) -> Iterator[RenderableType]:
    """Return entries with all their words, however many lines they take."""
    for entry in entries:
        yield Text.assemble(_when(entry, since_ms), headline(entry))
        if entry.why and entry.what != "switched":  # where the headline has said it all
            yield Padding(Text(entry.why, style="dim"), (0, 0, 0, _WIDTH + 2), expand=False)


def _when(entry: Entry, since_ms: float) -> tuple[str, str]:
    return f"{(entry.time_ms - since_ms) / 1000:{_WIDTH - 2}.1f} s  ", "dim"
