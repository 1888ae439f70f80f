"""A flow that starts as it is planned for a rate."""

import logging
from collections.abc import Mapping
from os import PathLike
from typing import Any

from floodway.core.duration import Duration
from floodway.core.errors import OptionError
from floodway.engine.driver import job
from floodway.engine.driver.job import Job
from floodway.model.flow import Flow
from floodway.model.tuning import Tuning
from floodway.plan.configuration import Configuration
from floodway.provisioning.planning.provision import Provision, check_rate, provision
from floodway.provisioning.planning.questions import Called, in_python

log = logging.getLogger(__name__)

HEADROOM = 0.2
"""So much of each stage's capacity is kept free, unless somebody says otherwise: a plan without
any is full, and what is full has queues."""


def start(
    flow: Flow,
    *,
    rate: float | None = None,
    headroom: float = HEADROOM,
    samples: Mapping[str, str | PathLike[str]] | None = None,
    dop: int | None = None,
    b_out: int | None = None,
    configuration: Configuration | None = None,
    **options: Any,
) -> Job:
    """Plan a flow for a rate and start it so; see `floodway.Flow.run` for the options."""
    if rate is None:
        raise OptionError(
            "headroom= and samples= say how to plan, and there is no rate to plan for",
            remedy="add rate=, in records per second",
        )
    check_rate(rate)
    refuse_by_hand({"dop": dop, "b_out": b_out, "configuration": configuration})
    found = for_rate(flow, rate, headroom=headroom, samples=samples)
    log.info("%s", found.summary)
    return start_planned(flow, found, **options)


def refuse_by_hand(options: Mapping[str, object], called: Called = in_python) -> None:
    """Refuse options that say by hand what a rate plans.

    Examples
    --------
    >>> refuse_by_hand({"dop": None, "b_out": 10})
    Traceback (most recent call last):
    floodway.core.errors.OptionError: rate= plans what b_out= says by hand
      remedy: leave out rate= or b_out=
    """
    for option, value in options.items():
        if value is not None:
            rate, by_hand = called("rate"), called(option)
            raise OptionError(
                f"{rate} plans what {by_hand} says by hand", remedy=f"leave out {rate} or {by_hand}"
            )


def for_rate(flow: Flow, rate: float, *, headroom: float = HEADROOM, **options: Any) -> Provision:
    """Return a plan to run with: some capacity is free, and records wait the least."""
    return provision(flow, rate=rate, headroom=headroom, lean=True, **options)


def start_planned(
    flow: Flow, found: Provision, *, linger: Duration | None = None, **options: Any
) -> Job:
    """Start a flow as it was planned; its status then compares costs with those planned."""
    return job.start(
        flow,
        configuration=found.configuration.with_default(Tuning(linger=linger)),
        planned_ns=found.planned_ns,
        **options,
    )
