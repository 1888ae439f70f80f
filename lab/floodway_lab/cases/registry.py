"""Which workloads there are."""

import msgspec

from floodway.core.errors import OptionError
from floodway_lab.cases.ads import Ads
from floodway_lab.cases.base import Case, Shape
from floodway_lab.cases.join import Join
from floodway_lab.cases.mean import Mean
from floodway_lab.cases.road import Road
from floodway_lab.cases.sessions import Sessions
from floodway_lab.cases.words import Grep, WindowedWords, Words
from floodway_lab.sending.lines import CaseLines

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


def supply(case: str, shape: dict[str, object]) -> CaseLines:
    """Return the events of a workload; called in the process of a data engine."""
    return case_named(case).supply(msgspec.convert(shape, Shape))
