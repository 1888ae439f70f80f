"""Whether the comparison of paradigms shows what was to be shown."""

from collections.abc import Callable, Iterable, Sequence
from statistics import median
from typing import Literal

import msgspec

from floodway_lab.paradigms.measures import Outcome


class Aim(msgspec.Struct, frozen=True):
    """What was to be shown.

    Attributes
    ----------
    what, workload, aim
        Of which runs, and in words.
    better, bound
        Whether the value is to be at least or at most so much.
    value, met
        What it is, and whether that is enough; None if it was not measured.
    """

    what: str
    workload: str
    aim: str
    better: Literal["more", "less"]
    bound: float
    value: float | None
    met: bool | None


def middle(
    outcomes: Iterable[Outcome], what: str, workload: str, mode: str, figure: str, load: str = "low"
) -> float | None:
    """Return the middle of a figure over all rounds; None if it was not measured."""
    wanted = (what, workload, mode, load)
    found = [
        each.figures[figure]
        for each in outcomes
        if (each.what, each.workload, each.mode, each.load) == wanted
        and each.error is None
        and figure in each.figures
    ]
    return median(found) if found else None


def aims(outcomes: Sequence[Outcome]) -> list[Aim]:
    """Return what was to be shown by these runs, and whether it was."""
    found: list[Aim] = []
    done = dict.fromkeys((each.what, each.workload) for each in outcomes)
    for what, workload in done:
        judge = _JUDGES.get(what)
        if judge is not None:
            found += judge(outcomes, what, workload)
    return found


def _aim(
    what: str,
    workload: str,
    aim: str,
    value: float | None,
    *,
    least: float | None = None,
    most: float | None = None,
) -> Aim:
    bound = least if least is not None else most or 0.0
    met = None
    if value is not None:
        met = value >= bound if least is not None else value <= bound
        value = round(value, 3)
    return Aim(what, workload, aim, "more" if least is not None else "less", bound, value, met)


def _ratio(first: float | None, second: float | None) -> float | None:
    return first / second if first is not None and second else None


def _judge_low(outcomes: Sequence[Outcome], what: str, workload: str) -> list[Aim]:
    dual, data, operation = (
        middle(outcomes, what, workload, mode, "p50") for mode in ("dual", "data", "operation")
    )
    return [
        _aim(what, workload, "p50 of dual / data", _ratio(dual, data), most=1.2),
        _aim(what, workload, "p50 of operation / dual", _ratio(operation, dual), least=5.0),
    ]


def _judge_flood(outcomes: Sequence[Outcome], what: str, workload: str) -> list[Aim]:
    dual, data, operation, single = (
        middle(outcomes, what, workload, mode, "per_s")
        for mode in ("dual", "data", "operation", "data_unbatched")
    )
    fixed = [rate for rate in (data, operation, single) if rate is not None]
    best = max(fixed, default=None)
    return [
        _aim(what, workload, "rate of dual / data_unbatched", _ratio(dual, single), least=3.0),
        _aim(what, workload, "rate of dual / best fixed mode", _ratio(dual, best), least=1.0),
        _aim(what, workload, "rate of dual / operation", _ratio(dual, operation), least=1.14),
    ]


def _judge_step(outcomes: Sequence[Outcome], what: str, workload: str) -> list[Aim]:
    def of(mode: str, figure: str) -> float | None:
        return middle(outcomes, what, workload, mode, figure)

    area = of("dual", "area")
    return [
        _aim(what, workload, "detection, ms", of("dual", "detection_ms"), most=300.0),
        _aim(what, workload, "pause of a switch, p99, ms", of("dual", "pause_ms"), most=250.0),
        _aim(
            what,
            workload,
            "p99 of other stages, in the flood / before",
            of("dual", "others_ratio"),
            most=2.0,
        ),
        _aim(what, workload, "area of dual / data", _ratio(area, of("data", "area")), most=1.0),
        _aim(
            what,
            workload,
            "area of dual / operation",
            _ratio(area, of("operation", "area")),
            most=1.0,
        ),
    ]


def _judge_varying(outcomes: Sequence[Outcome], what: str, workload: str) -> list[Aim]:
    shortest = middle(outcomes, what, workload, "dual", "shortest_s")
    aim = _aim(what, workload, "shortest time between switches, s", shortest, least=5.0)
    if shortest is None and middle(outcomes, what, workload, "dual", "switches") is not None:
        aim = msgspec.structs.replace(aim, met=True)  # no stage was switched twice
    return [aim]


_JUDGES: dict[str, Callable[[Sequence[Outcome], str, str], list[Aim]]] = {
    "low": _judge_low,
    "flood": _judge_flood,
    "step": _judge_step,
    "sine": _judge_varying,
    "noise": _judge_varying,
}
