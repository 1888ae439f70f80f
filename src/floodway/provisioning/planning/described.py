"""What there is to plan with: a file of costs, or a flow whose costs are measured here."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path

from floodway.model.flow import Flow
from floodway.plan.configuration import Configuration
from floodway.plan.stages import Plan
from floodway.provisioning.applying import (
    configuration_of,
    of_stages,
    settings_of,
    stages_of,
    to_toml,
)
from floodway.provisioning.calibration.calibrating import Progress, calibrate
from floodway.provisioning.calibration.describing import Calibrated
from floodway.provisioning.cost import Setting, Settings
from floodway.provisioning.paper import Paper


class Described(ABC):
    """Operators with costs, and what their names mean.

    Attributes
    ----------
    paper
        The operators, and what is expected of the sources; of a flow only in which mix.
    costs
        What was measured to know it; None if it was given.
    """

    paper: Paper
    costs: Calibrated | None = None

    @abstractmethod
    def settings(self, configuration: Configuration) -> dict[str, Setting]:
        """Return what a configuration means for the operators."""

    @abstractmethod
    def toml(self, settings: Settings) -> str:
        """Return settings as a file that ``floodway run --configuration`` reads."""


class OnPaper(Described):
    """Operators with given costs."""

    def __init__(self, paper: Paper) -> None:
        self.paper = paper

    def settings(self, configuration: Configuration) -> dict[str, Setting]:
        """Return what a configuration means for the operators."""
        configuration.check()
        return settings_of(self.paper.graph, configuration)

    def toml(self, settings: Settings) -> str:
        """Return settings as a file."""
        return to_toml(settings)


class OfFlow(Described):
    """A flow, whose stages are the operators."""

    costs: Calibrated

    def __init__(self, flow: Flow, costs: Calibrated) -> None:
        self._plan, self._flow, self.costs = Plan.of(flow), flow, costs
        self.paper = Paper(costs.graph, costs.mix)

    def settings(self, configuration: Configuration) -> dict[str, Setting]:
        """Return what a configuration means for the stages."""
        configuration.check()
        return of_stages(self.paper.graph, Plan.of(self._flow, configuration))

    def toml(self, settings: Settings) -> str:
        """Return settings of stages as a file, with all their operators."""
        return to_toml(stages_of(self._plan, settings))

    def configuration(self, settings: Settings) -> Configuration:
        """Return settings of stages as a configuration of all their operators."""
        return configuration_of(stages_of(self._plan, settings))


def measured(
    flow: Flow,
    *,
    samples: Mapping[str, Path] | None = None,
    fresh: bool = False,
    progress: Progress = lambda *_: None,
) -> OfFlow:
    """Return a flow with its costs, which are measured unless they are known."""
    return OfFlow(flow, calibrate(flow, samples=samples, fresh=fresh, progress=progress))
