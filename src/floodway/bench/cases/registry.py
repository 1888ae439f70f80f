"""Which workloads there are."""

import msgspec

from floodway.bench.cases.ads import Ads
from floodway.bench.cases.base import Case, Shape
from floodway.bench.cases.join import Join
from floodway.bench.cases.mean import Mean
from floodway.bench.cases.road import Road
from floodway.bench.cases.sessions import Sessions
from floodway.bench.cases.words import Grep, WindowedWords, Words
from floodway.bench.data.lines import Lines
from floodway.core.errors import OptionError

CASES: dict[str, Case] = {
    case.name: case
    for case in (
        Ads(),
        Mean(),
        Join(),
        Words(),
        Grep(),
        WindowedWords(),
        Sessions(),
        Road(),
    )
}
"""All there are, by name."""


def case_named(name: str) -> Case:
    """Return a workload."""
    case = CASES.get(name)
    if case is None:
        raise OptionError(f"there is no workload {name!r}", remedy=f"use one of {', '.join(CASES)}")
    return case


def supply(case: str, shape: dict[str, object]) -> Lines:
    """Return the events of a workload; called in the process of a data engine."""
    return case_named(case).supply(msgspec.convert(shape, Shape))
