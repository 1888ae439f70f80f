"""Engines: how a planned flow runs."""

from collections.abc import Mapping

from floodway.core.duration import Duration
from floodway.engine.datastream.runner import Settings
from floodway.engine.job import Job
from floodway.model.flow import Flow
from floodway.model.tuning import Tuning
from floodway.plan import Configuration, Plan

__all__ = ["Job", "Settings", "start"]


def start(
    flow: Flow,
    *,
    dop: int | None = None,
    b_out: int | None = None,
    linger: Duration | None = None,
    configuration: Configuration | None = None,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    metrics_port: int | None = 0,
    input_cache: int = Settings().input_cache,
    settings: Settings | None = None,
) -> Job:
    """Start a flow and return its handle at once; see `Flow.run` for the options."""
    given = configuration or Configuration()
    default = Tuning(dop=dop, b_out=b_out, linger=linger).over(given.default)
    plan = Plan.of(flow, Configuration(default, given.operators))
    return Job(
        plan,
        master=master,
        conf=conf,
        settings=settings or Settings(input_cache=input_cache),
        metrics_port=metrics_port,
    ).start()
