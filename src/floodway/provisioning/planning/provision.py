"""A flow planned for a rate: what `floodway.Flow.plan` returns, and how it is found."""

import math
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path

import msgspec

from floodway.core.errors import OptionError
from floodway.model.flow import Flow
from floodway.plan.configuration import Configuration
from floodway.provisioning.calibration.calibrating import Progress
from floodway.provisioning.calibration.describing import Calibrated
from floodway.provisioning.cost import Bottleneck, Figure
from floodway.provisioning.planning.answers import Answer, PlannedStage, explain_operator
from floodway.provisioning.planning.described import measured
from floodway.provisioning.planning.questions import (
    Question,
    refuse_no_rate,
    refuse_planning,
    reply,
)
from floodway.provisioning.planning.wording import in_full, summary


class Provision(msgspec.Struct, frozen=True, kw_only=True):
    """How many tasks and which batch sizes a rate takes, and what to expect of them.

    Made by `floodway.Flow.plan`. ``print`` shows it as a table.

    Attributes
    ----------
    flow
        The flow's name.
    configuration
        The degree of parallelism and the batch size of every operator, as
        ``flow.run(configuration=...)`` takes them.
    costs
        The costs of the stages on this machine, with bounds.
    answer
        Everything that was computed: loads, waiting times, steps.
    """

    flow: str
    configuration: Configuration
    costs: Calibrated
    answer: Answer

    @property
    def rate(self) -> float:
        """How many records per second are expected, all sources together."""
        return self.answer.rate

    @property
    def tasks(self) -> int:
        """How many tasks run."""
        return self.answer.tasks

    @property
    def stages(self) -> dict[str, PlannedStage]:
        """Every stage: its tasks and batches, what arrives, how much of its capacity that takes."""
        return self.answer.stages

    @property
    def throughput(self) -> float:
        """How many records per second come through, all sources together; predicted."""
        return sum(self.answer.outcome.prediction.throughput.values())

    @property
    def bottlenecks(self) -> tuple[Bottleneck, ...]:
        """The stages that get more than they can cope with, each with a remedy; usually none."""
        return self.answer.diagnosis.bottlenecks

    @property
    def bottleneck(self) -> str | None:
        """The first of them, seen from the sources; None if there is none."""
        return self.bottlenecks[0].operator if self.bottlenecks else None

    @property
    def planned_ns(self) -> dict[str, float]:
        """What a record should cost each stage, in nanoseconds; ``run`` and ``start`` take it."""
        return {name: stage.cost_ns for name, stage in self.stages.items()}

    @property
    def summary(self) -> str:
        """The plan in one line: tasks, and how busy each stage will be."""
        return summary(self.answer)

    def why(self, stage: str) -> list[Figure]:
        """Return every number of a stage, with the equation behind it and the values in that."""
        return explain_operator(self.answer, stage)

    def __str__(self) -> str:
        return in_full(self.answer)


def provision(
    flow: Flow,
    *,
    rate: float | None = None,
    max_tasks: int | None = None,
    max_b_out: int | None = None,
    lean: bool = False,
    headroom: float = 0.0,
    cores: int | None = None,
    what_if: Sequence[str] = (),
    configuration: Configuration | None = None,
    samples: Mapping[str, str | PathLike[str]] | None = None,
    fresh: bool = False,
    progress: Progress = lambda *_: None,
) -> Provision:
    """Plan a flow, or check a configuration; see `floodway.Flow.plan` for the options."""
    question = Question(
        rates=() if rate is None else (rate,),
        max_tasks=max_tasks,
        max_b_out=max_b_out,
        lean=lean,
        headroom=headroom,
        cores=cores,
        what_if=what_if,
        configuration=configuration,
    )
    refuse_no_rate(question)
    check_rate(rate)
    if configuration is not None:
        refuse_planning(question)
    files = {source: Path(file) for source, file in (samples or {}).items()}
    known = measured(flow, samples=files, fresh=fresh, progress=progress)
    found = reply(known, question)
    return Provision(
        flow=flow.name,
        configuration=configuration or known.configuration(found.settings),
        costs=known.costs,
        answer=found,
    )


def check_rate(rate: float | None) -> None:
    """Refuse what is no rate, before anything is measured for it."""
    if rate is None:
        return
    if not isinstance(rate, int | float) or not math.isfinite(rate) or rate <= 0:
        raise OptionError(
            f"rate={rate!r} is not a rate",
            remedy="give records per second, more than 0, all sources together, such as "
            "rate=500_000",
        )
