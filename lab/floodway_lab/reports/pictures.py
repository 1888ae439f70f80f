"""The charts of a comparison."""

from collections.abc import Sequence
from itertools import pairwise

from floodway.demo.drawing import COLOURS, Span
from floodway_lab.reports.charts import (
    Axis,
    Bar,
    Line,
    band_chart,
    bar_chart,
    line_chart,
    show_count,
    show_duration,
    show_share,
)
from floodway_lab.reports.facts import (
    OWN,
    RATE,
    distribution,
    late_at,
    measured,
    ordered,
    rate_interval,
    ratio,
    show_ms,
    show_rate,
    show_rates,
    show_ratio,
)
from floodway_lab.reports.looks import look_of
from floodway_lab.runs.comparing import Compared, Comparison
from floodway_lab.runs.experiment import Paradigm, Run


def throughput(found: Comparison) -> str:
    """Return the sustainable rates as bars."""
    bars = [
        Bar(
            of.system,
            of.sustainable_rate or 0.0,
            rate_interval(of),
            of.rates if len(of.rates) > 1 else (),
            look_of(of.system).colour,
            show_rate(of.sustainable_rate or 0.0),
            f"{of.title}: {show_rate(of.sustainable_rate or 0.0)} events/s"
            + (f", {shown}" if (shown := show_rates(rate_interval(of))) else ""),
        )
        for of in measured(found)
    ]
    axis = Axis("events per second", show=show_count)
    return bar_chart("Sustainable rate of each system", bars, axis)


def against(found: Comparison, what: str) -> str:
    """Return how Floodway compares with each of the others, as bars from 1 on."""
    bars = []
    for of in ordered(found):
        each = ratio(found, what, of.system)
        if each is not None:
            shown = show_ratio(each.value, each.interval)
            colour = look_of(of.system).colour
            bars.append(Bar(of.system, each.value, each.interval, (), colour, shown))
    axis = Axis(log=True, show=lambda value: f"{value:g}x", covers=(0.2, 5.0))
    better = ("", " (better)") if what == RATE else (" (better)", "")
    sides = (f"lower than theirs{better[0]}", f"higher than theirs{better[1]}")
    title = f"{OWN} against each system: {what}"
    return bar_chart(title, bars, axis, origin=1.0, sides=sides)


def distributions(found: Comparison, load: float) -> str:
    """Return which share of results came within which time."""
    lines = [_line(of, load, distribution(of, load)) for of in _quickest(found, load)]
    y = Axis("share of results that came within", show=show_share, covers=(0.0, 1.0))
    return line_chart(f"Latency at {load:.0%} load", lines, _latency(found, load), y, height=380)


def tails(found: Comparison, load: float) -> str:
    """Return which share of results took longer than which time: what is rare can be seen."""
    lines = []
    for of in _quickest(found, load):
        longer = [(ms, 1 - share) for ms, share in distribution(of, load) if share < 0.9995]
        lines.append(_line(of, load, longer))
    y = Axis(
        "share of results that took longer (logarithmic)",
        log=True,
        show=show_share,
        covers=(0.001, 1.0),
    )
    return line_chart(
        f"The slowest results at {load:.0%} load", lines, _latency(found, load), y, height=380
    )


def _latency(found: Comparison, load: float) -> Axis:
    """Return the axis of all latencies at a load, so that charts have the same."""
    all_ms = tuple(ms for of in measured(found) for ms, _ in distribution(of, load))
    return Axis("latency (logarithmic)", log=True, show=show_duration, covers=all_ms)


def _quickest(found: Comparison, load: float) -> list[Compared]:
    """Return systems whose latency is known, the quickest first."""
    known = [(late.p50, of) for of in measured(found) if (late := late_at(of, load))]
    return [of for _, of in sorted(known, key=lambda each: each[0])]


def _line(of: Compared, load: float, points: Sequence[tuple[float, float | None]]) -> Line:
    look, late = look_of(of.system), late_at(of, load)
    told = f": p50 {show_ms(late.p50)} ms, p99 {show_ms(late.p99)} ms" if late else ""
    return Line(of.system, points, look.colour, look.dash, look.wide, of.title + told)


def over_time(found: Comparison, load: float) -> list[str]:
    """Return a chart for each system, all with the same axes: its latency second by second."""
    runs = [(of, of.at(load)[-1]) for of in measured(found) if of.at(load)]
    values = [
        row[q] for _, run in runs for row in run.over_time for q in ("p50", "p99") if q in row
    ]
    lasts_s = max((run.experiment.seconds for _, run in runs), default=1.0)
    x = Axis(show=lambda value: f"{value:g} s", covers=(0.0, lasts_s))
    y = Axis(log=True, show=show_duration, covers=tuple(values))
    return [
        line_chart(
            f"{of.title}: latency over time at {load:.0%} load",
            _seconds(of, run),
            x,
            y,
            width=340,
            height=210,
            legend=False,
            heading=of.system,
            shade=(0.0, run.experiment.warm_s, "warm-up"),
        )
        for of, run in runs
    ]


def _seconds(of: Compared, run: Run) -> list[Line]:
    colour = look_of(of.system).colour
    return [
        Line(
            f"{of.system}, {quantile}",
            [(row["t"] + 0.5, row.get(quantile)) for row in run.over_time],
            colour,
            dash,
            wide,
        )
        for quantile, dash, wide in (("p99", "3 2", 1.4), ("p50", "", 2.2))
    ]


def paradigms(run: Run, title: str) -> str:
    """Return how the stages of Floodway worked in a run; nothing if none has switched."""
    seconds = run.experiment.seconds
    stages = dict.fromkeys(each.stage for each in run.paradigms)
    rows = {
        stage: spans([each for each in run.paradigms if each.stage == stage], seconds)
        for stage in stages
    }
    axis = Axis(show=lambda value: f"{value:g} s", covers=(0.0, seconds))
    return band_chart(title, rows, axis, COLOURS) if rows else ""


def spans(switches: Sequence[Paradigm], seconds: float) -> list[Span]:
    """Return how a stage worked from when until when, given when it switched.

    What it did before the first switch is the other of the two.

    >>> spans([Paradigm("a", "operation", 2.0), Paradigm("a", "data", 5.0)], 9.0)
    [Span(start=0.0, stop=2.0, kind='data'), Span(start=2.0, stop=5.0, kind='operation'),
     Span(start=5.0, stop=9.0, kind='data')]
    """
    inside = [(min(max(each.t, 0.0), seconds), each.paradigm) for each in switches]
    before = "operation" if inside and inside[0][1] == "data" else "data"
    ordered_ = [(0.0, before), *sorted(inside, key=lambda each: each[0]), (seconds, "")]
    return [
        Span(start, stop, kind) for (start, kind), (stop, _) in pairwise(ordered_) if stop > start
    ]
