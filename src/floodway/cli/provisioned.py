"""``floodway run --rate``: how many tasks and what batches, planned before the flow starts."""

from collections.abc import Mapping, Sequence

import msgspec
from rich.console import Console

from floodway.cli.described import measured
from floodway.cli.plan_output import show_part, show_rate
from floodway.cli.planning import Answer, Wishes, answer, with_rate
from floodway.core.errors import OptionError
from floodway.plan.configuration import Configuration
from floodway.provisioning.applying import configuration_of, stages_of

HEADROOM = 0.2
"""So much of each stage's capacity is kept free, unless somebody says otherwise: a plan without
any is full, and what is full has queues."""


class Provisioned(msgspec.Struct, frozen=True):
    """How a flow is to run, and what a record should cost each stage then, in nanoseconds."""

    configuration: Configuration
    planned_ns: Mapping[str, float]


def provision(
    flow: str,
    rate: float,
    *,
    headroom: float = HEADROOM,
    samples: Sequence[str] = (),
    console: Console,
) -> Provisioned:
    """Plan a flow for a rate; its costs are measured unless they are known."""
    known = measured(flow, samples=samples, console=console)
    found = answer(with_rate(known.paper, rate), Wishes(headroom=headroom, lean=True))
    console.print(summary(found), markup=False, soft_wrap=True)
    return Provisioned(
        configuration_of(stages_of(known.plan, found.settings)),
        {name: load.cost_ns for name, load in found.diagnosis.loads.items()},
    )


def summary(found: Answer) -> str:
    """Return a plan in a line."""
    parts = [
        f"{name} {setting.dop} ({show_part(found.diagnosis.loads[name].utilisation)} used)"
        for name, setting in found.settings.items()
    ]
    return f"planned {found.tasks} tasks for {show_rate(found.rate)} records/s: {', '.join(parts)}"


def refuse_both(rate: float | None, **options: object) -> None:
    """Refuse options that say by hand what a rate plans."""
    given = [name for name, value in options.items() if value is not None]
    if rate is not None and given:
        option = f"--{given[0].replace('_', '-')}"
        raise OptionError(
            f"--rate plans what {option} says by hand", remedy=f"leave out --rate or {option}"
        )
