"""A page about a run: a picture, the phases and the scheduler's story, in one file of HTML."""

from collections.abc import Iterable, Sequence
from html import escape

from floodway.bench.series import PhaseFigures
from floodway.engine.scheduler.story import Entry

_STYLE = """
:root { color-scheme: light; }
body { max-width: 68rem; margin: 2rem auto; padding: 0 1rem; background: #fff; color: #222;
  font: 15px/1.5 system-ui, "DejaVu Sans", sans-serif; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
svg { width: 100%; height: auto; }
table { border-collapse: collapse; width: 100%; font-size: 0.9rem; }
th, td { text-align: left; vertical-align: top; padding: 0.3rem 0.8rem 0.3rem 0;
  border-bottom: 1px solid #ddd; }
th { border-bottom-color: #888; }
.n { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
.why { color: #444; } .d { white-space: nowrap; }
p.note { color: #444; }
""".strip()


def page(
    title: str,
    picture: str,
    figures: Sequence[PhaseFigures],
    story: Sequence[Entry],
    *,
    began_ms: int,
) -> str:
    """Return a page of HTML that needs nothing else.

    Parameters
    ----------
    title
        What it is about.
    picture
        The picture, as an ``svg`` element.
    figures, story
        What was measured, and what was decided.
    began_ms
        The zero of its times, in milliseconds since 1970.
    """
    name = escape(title)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{name}</title>
<style>
{_STYLE}
</style>
</head>
<body>
<h1>{name}</h1>
<figure style="margin: 0" role="img" aria-label="{name}: rate, latency and paradigms over time">
{picture}
</figure>
<h2>Phases</h2>
{_table(_PHASE_TITLES, map(_phase_row, figures))}
<p class="note">Latency is the time from when an event was due to its result, of probes that are
sent at all times; <i>waiting</i> is the most events that were due and not processed.</p>
<h2>What the scheduler decided</h2>
{_table(_STORY_TITLES, (_story_row(entry, began_ms) for entry in story))}
<p class="note">V: records that arrive in a second. L: records that wait. P<sub>D</sub>,
P<sub>O</sub>: records a second that the stage can do record by record, and in micro-batches.
L<sub>up</sub>: above it, micro-batches are faster. Numbers in italics are first guesses.</p>
</body>
</html>
"""


_PHASE_TITLES = ("phase", "due/s", "done/s", "p50", "p90", "p99", "max", "waiting")
_STORY_TITLES = ("time", "decision", "why", "V", "L", "P_D", "P_O", "L_up")


def _phase_row(phase: PhaseFigures) -> list[str]:
    times = (phase.latency_ms.get(quantile) for quantile in ("p50", "p90", "p99", "max"))
    return [
        f"<td>{escape(phase.name)}</td>",
        _number(f"{phase.per_second:,}"),
        _number(f"{phase.processed_per_s:,.0f}"),
        *(_number("" if time is None else f"{time:,.1f} ms") for time in times),
        _number(f"{phase.waiting:,}"),
    ]


def _story_row(entry: Entry, began_ms: int) -> list[str]:
    return [
        _number(f"{(entry.time_ms - began_ms) / 1000:.1f} s"),
        f'<td class="d">{_decision(entry)}</td>',
        f'<td class="why">{escape(entry.why)}</td>',
        *_point(entry),
    ]


def _point(entry: Entry) -> list[str]:
    point = entry.point
    if point is None:
        return [_number("")] * 5
    shown = {
        "arrival_per_s": f"{point.arrival_per_s:,.0f}",
        "queue_records": "∞" if point.unbounded else f"{point.queue_records:,}",
        "data_per_s": f"{point.data_per_s:,.0f}",
        "operation_per_s": f"{point.operation_per_s:,.0f}",
        "l_up": f"{point.l_up:,.0f}",
    }
    return [_number(f"<i>{t}</i>" if n in point.guessed else t) for n, t in shown.items()]


def _decision(entry: Entry) -> str:
    """Return what was decided.

    >>> _decision(
    ...     Entry(time_ms=0, what="switch", stage="a<b", why="", before="data", after="operation")
    ... )
    '<b>a&lt;b</b>: data → operation'
    """
    name = f"<b>{escape(entry.operator or entry.stage)}</b>"
    before, after = escape(str(entry.before)), escape(str(entry.after))
    if entry.what == "switch":
        return f"{name}: {before} → {after}"
    if entry.what == "batch":
        return f"{name}: b_out {before} → {after}"
    if entry.what == "switched":
        return f"{name} works in {after}"
    return f"{name} could not switch" if entry.what == "failed" else f"{name} stays in {after}"


def _number(text: str) -> str:
    return f'<td class="n">{text}</td>'


def _table(titles: Sequence[str], rows: Iterable[list[str]]) -> str:
    found = ["".join(row) for row in rows]
    if not found:
        return "<p>None.</p>"
    numeric = {"due/s", "done/s", "p50", "p90", "p99", "max", "waiting", "time"}
    numeric |= {"V", "L", "P_D", "P_O", "L_up"}
    head = "".join(
        f'<th class="n">{_title(title)}</th>' if title in numeric else f"<th>{title}</th>"
        for title in titles
    )
    body = "\n".join(f"<tr>{row}</tr>" for row in found)
    return f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>"


def _title(title: str) -> str:
    letter, _, index = title.partition("_")
    return f"{letter}<sub>{index}</sub>" if index else letter
