"""What a comparison says, for all that tell it: a page, a terminal, a table of Markdown."""

from collections.abc import Iterable
from statistics import median

import msgspec

from floodway_lab.runs.comparing import (
    LOADS,
    Compared,
    Comparison,
    Ratio,
    is_peer,
)
from floodway_lab.runs.experiment import Run
from floodway_lab.runs.series import CDF
from floodway_lab.runs.sustaining import interval

OWN = "floodway-dual"
"""The system that the others are compared with."""

RATE, LATE = "sustainable rate", "p99 at 10 % load"
"""What ratios are of."""


class Late(msgspec.Struct, frozen=True):
    """The latency at a part of the sustainable rate, the median of all rounds, and that rate."""

    p50: float
    p99: float
    rate: float


class Void(msgspec.Struct, frozen=True):
    """A run whose figures mean nothing."""

    title: str
    number: int
    load: float
    why: str


def ordered(found: Comparison) -> list[Compared]:
    """Return all systems, the one that sustains most first, and last those that were left out."""
    return sorted(found.systems, key=lambda of: -(of.sustainable_rate or 0.0))


def measured(found: Comparison) -> list[Compared]:
    """Return the systems that have sustained something, in the same order."""
    return [of for of in ordered(found) if of.sustainable_rate is not None]


def rate_interval(of: Compared) -> tuple[float, float] | None:
    """Return the bounds of the sustainable rate; a rate cannot be below 0."""
    bounds = interval(of.rates)
    return None if bounds is None else (max(bounds[0], 0.0), bounds[1])


def late_at(of: Compared, load: float) -> Late | None:
    """Return the latency at a part of the sustainable rate; None if no run has shown it."""
    runs = [run for run in of.at(load) if run.latency_ms is not None]
    if not runs:
        return None
    lates = [run.latency_ms for run in runs if run.latency_ms is not None]
    return Late(
        median(late.p50 for late in lates),
        median(late.p99 for late in lates),
        median(run.experiment.rate for run in runs),
    )


def distribution(of: Compared, load: float) -> list[tuple[float, float]]:
    """Return within how many milliseconds which share of results came, the median of all rounds."""
    runs = [run.cdf_ms for run in of.at(load) if len(run.cdf_ms) == len(CDF)]
    if not runs:
        return []
    return [(median(each), min(share, 1.0)) for *each, share in zip(*runs, CDF, strict=True)]


def all_runs(of: Compared) -> list[tuple[int, float, Run]]:
    """Return all runs at parts of the sustainable rate, with their round (from 1) and load."""
    return [
        (each.number + 1, load, run)
        for each in of.rounds
        for run, load in zip(each.runs, each.loads, strict=True)
    ]


def answers(of: Compared) -> str:
    """Return whether answers were right, in a word."""
    known = [run.correct for _, _, run in all_runs(of) if run.correct is not None]
    return "not known" if not known else "right" if all(known) else "WRONG"


def voids(found: Comparison) -> list[Void]:
    """Return the runs whose figures mean nothing."""
    return [
        Void(of.title, number, load, run.why)
        for of in found.systems
        for number, load, run in all_runs(of)
        if run.void
    ]


def why_not(of: Compared) -> str:
    """Return why there are no figures of a system; nothing if there are."""
    if of.sustainable_rate is not None:
        return ""
    return of.why or ("it has sustained nothing" if of.rounds else "its turn had not come yet")


def partial(found: Comparison) -> str:
    """Return what is missing of a comparison that was stopped; nothing if it came to its end."""
    if found.complete:
        return ""
    return (
        f"Partial results: the comparison was stopped before its end, after {rounds_done(found)} "
        "rounds of each system."
    )


def rounds_done(found: Comparison) -> str:
    """Return how many rounds there were of how many; while one lasts, some have one more."""
    done = [len(of.rounds) for of in found.systems if not of.why]
    few, many = min(done, default=0), max(done, default=0)
    return f"{few}{'' if few == many else f' or {many}'} of {found.rounds_wanted}"


def caveats(found: Comparison) -> list[str]:
    """Return what to keep in mind, and what else this comparison calls for."""
    return [*found.caveats, *_noticed(found)]


def _noticed(found: Comparison) -> Iterable[str]:
    links = dict.fromkeys(of.link for of in found.systems)
    if len(links) > 1:
        shown = "; ".join(
            f"{link}: {', '.join(of.system for of in found.systems if of.link == link)}"
            for link in links
        )
        yield f"Systems did not all read the same link, and a broker takes from the cores: {shown}."
    slow = [f"{of.system} {of.starts_s:g} s" for of in found.systems if of.starts_s]
    if slow:
        yield f"Systems that start slowly had more warm-up than the others: {', '.join(slow)}."
    if max((len(of.rounds) for of in found.systems), default=0) < 3:
        yield "With fewer than three rounds, intervals are very wide, or there are none."
    wrong = [of.title for of in found.systems if answers(of) == "WRONG"]
    if wrong:
        yield f"Answers were wrong: {'; '.join(wrong)}. Those runs are void."
    if count := len(voids(found)):
        yield f"{count} run{'s are' if count > 1 else ' is'} void and left out of all figures."


def ratio(found: Comparison, what: str, against: str) -> Ratio | None:
    """Return how Floodway compares with a system."""
    return next((r for r in found.ratios if (r.what, r.against) == (what, against)), None)


def relative(found: Comparison, system: str) -> tuple[float, tuple[float, float] | None] | None:
    """Return a system's sustainable rate as a multiple of Floodway's, and its interval."""
    of = ratio(found, RATE, system)
    if of is None or of.value <= 0:
        return None
    bounds = of.interval
    return 1 / of.value, (1 / bounds[1], 1 / bounds[0]) if bounds and bounds[0] > 0 else None


def best_peers(found: Comparison) -> list[str]:
    """Return how Floodway compares with the best of the systems that others have made."""
    peers = [of for of in measured(found) if is_peer(of.system)]
    told = []
    if peers and (rate := ratio(found, RATE, peers[0].system)):
        told.append(
            f"Floodway sustains {show_ratio(rate.value, rate.interval)} what the fastest peer does "
            f"({peers[0].title})."
        )
    lates = [(late.p99, of) for of in peers if (late := late_at(of, LOADS[0]))]
    quickest = min(lates, key=lambda each: each[0])[1] if lates else None
    if quickest and (tail := ratio(found, LATE, quickest.system)):
        told.append(
            f"Its p99 latency at 10 % load is {show_ratio(tail.value, tail.interval)} that of the "
            f"quickest peer ({quickest.title})."
        )
    return told


# --------------------------------------------------------------------------- as text


def show_ms(ms: float) -> str:
    """Return milliseconds with about three digits.

    >>> [show_ms(ms) for ms in (0.257, 3.14159, 25.43, 1234.5)]
    ['0.26', '3.1', '25', '1,234']
    """
    return f"{ms:,.2f}" if ms < 1 else f"{ms:,.1f}" if ms < 9.95 else f"{ms:,.0f}"


def show_rate(rate: float) -> str:
    """Return events per second; nobody measures more than four digits.

    >>> show_rate(1_234_567.8), show_rate(812.3)
    ('1,235,000', '812')
    """
    digits = max(len(f"{rate:.0f}") - 4, 0)
    return f"{round(rate, -digits):,.0f}"


def show_rates(bounds: tuple[float, float] | None) -> str:
    """Return the bounds of a rate.

    >>> show_rates((90_512.3, 101_000.0)), show_rates(None)
    ('90,510 to 101,000', '')
    """
    return "" if bounds is None else f"{show_rate(bounds[0])} to {show_rate(bounds[1])}"


def show_factor(value: float) -> str:
    """Return a factor with three digits or so.

    >>> show_factor(0.0123), show_factor(1.234), show_factor(45.6), show_factor(1234.0)
    ('0.012', '1.23', '45.6', '1,234')
    """
    if value >= 99.95:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 9.995 else f"{value:.2f}" if value >= 0.1 else f"{value:.3f}"


def show_ratio(value: float, bounds: tuple[float, float] | None) -> str:
    """Return a ratio with its interval.

    >>> show_ratio(1.234, (1.1, 1.4)), show_ratio(0.5, None)
    ('1.23x (1.10 to 1.40)', '0.50x')
    """
    shown = f"{show_factor(value)}x"
    if bounds is None:
        return shown
    return f"{shown} ({show_factor(max(bounds[0], 0.0))} to {show_factor(bounds[1])})"


def show_late(of: Late | None, missing: str = "-") -> str:
    """Return half of a latency, and 99 of 100."""
    return missing if of is None else f"{show_ms(of.p50)} / {show_ms(of.p99)}"
