"""Two configurations, or two sets of costs, side by side."""

from collections.abc import Mapping

import msgspec

from floodway.provisioning.cost.graph import CostGraph, Workload
from floodway.provisioning.cost.lean import waits_s
from floodway.provisioning.cost.settings import Settings, tasks
from floodway.provisioning.cost.throughput import Prediction, predict


class Outcome(msgspec.Struct, frozen=True):
    """What becomes of a workload under a configuration.

    Attributes
    ----------
    settings
        The configuration.
    prediction
        How much comes through, and the loads and bottlenecks that it follows from.
    waits_s
        How long a record waits on average for each operator's batch to fill.
    """

    settings: Settings
    prediction: Prediction
    waits_s: Mapping[str, float]

    @property
    def figures(self) -> dict[str, float]:
        """The figures of the flow, and for each operator its dop, b_out and utilisation."""
        throughput = self.prediction.throughput
        found: dict[str, float] = {
            "tasks": tasks(self.settings),
            "throughput": sum(throughput.values()),
            "bottlenecks": len(self.prediction.diagnosis.bottlenecks),
            "wait_s": sum(self.waits_s.values()),
        }
        for name, setting in self.settings.items():
            found[f"{name}.dop"] = setting.dop
            if setting.b_out is not None:
                found[f"{name}.b_out"] = setting.b_out
            found[f"{name}.utilisation"] = self.prediction.diagnosis.loads[name].utilisation
        return found


def outcome(graph: CostGraph, workload: Workload, settings: Settings) -> Outcome:
    """Return what becomes of a workload under a configuration."""
    prediction = predict(graph, workload, settings)
    leaving = {name: load.rate_out for name, load in prediction.diagnosis.loads.items()}
    return Outcome(settings, prediction, waits_s(graph, leaving, settings))


class Difference(msgspec.Struct, frozen=True):
    """A figure that two outcomes do not share; None where one of them does not have it."""

    figure: str
    before: float | None
    after: float | None


def compare(before: Outcome, after: Outcome) -> list[Difference]:
    """Return the figures in which two outcomes differ.

    They may be of one graph with two configurations, or of two graphs: what if an operator were
    cheaper, or let more through?

    Examples
    --------
    >>> from floodway.provisioning.cost.graph import OperatorCosts, Platform
    >>> from floodway.provisioning.cost.settings import Setting
    >>> graph = CostGraph.of([OperatorCosts(name="read", c_cpu_ns=1000)], [], Platform())
    >>> slow = outcome(graph, {"read": 1_500_000}, {"read": Setting(1)})
    >>> for found in compare(slow, outcome(graph, {"read": 1_500_000}, {"read": Setting(2)})):
    ...     print(found.figure, found.before, found.after)
    tasks 1 2
    throughput 1000000.0 1500000.0
    bottlenecks 1 0
    read.dop 1 2
    read.utilisation 1.5 0.75
    """
    first, second = before.figures, after.figures
    return [
        Difference(name, first.get(name), second.get(name))
        for name in dict.fromkeys([*first, *second])
        if first.get(name) != second.get(name)
    ]
