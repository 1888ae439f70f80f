"""Throughput: how much of a workload comes through, with back-pressure (thesis, algorithm 2).

First the bottlenecks are found, from the sources down. Then back-pressure goes from the sinks up:
a consumer that cannot take everything slows its producers down, each by the part it sends
(equation 4.11), and a producer is slowed down by its slowest consumer (equation 4.13).

Line 18 of the printed algorithm takes the smallest input rate among an operator's consumers for the
operator's own output rate. With several producers that would count each producer's share as if it
were all of the input, so line 16, which is equation 4.11, is used in both places; with one
producer for each consumer the two are the same. Dividing by the selectivity is left out as well:
what comes out of an operator is slowed down by as much as what goes in, and a selectivity of zero
is possible.

The prediction is careful. A source that is slowed down leaves room at the consumers it shares with
other sources, and the one pass does not hand that room on.
"""

from collections.abc import Mapping

import msgspec

from floodway.provisioning.cost.bottlenecks import Diagnosis, detect
from floodway.provisioning.cost.graph import CostGraph, Workload
from floodway.provisioning.cost.settings import Settings


class Prediction(msgspec.Struct, frozen=True):
    """How much comes through.

    Attributes
    ----------
    throughput
        For each source, records per second (definition 46); never more than the workload.
    effective
        For each operator, the input records per second that it processes (definition 45).
    held_back_by
        For each operator that is slowed down, the bottleneck that does it.
    diagnosis
        The bottlenecks and loads that it follows from.
    """

    throughput: Mapping[str, float]
    effective: Mapping[str, float]
    held_back_by: Mapping[str, str]
    diagnosis: Diagnosis


def predict(graph: CostGraph, workload: Workload, settings: Settings) -> Prediction:
    """Predict how much of a workload a configuration gets through.

    Examples
    --------
    Two producers share what their consumer can take, as in example 10:

    >>> from floodway.provisioning.cost.graph import Connection, OperatorCosts, Platform
    >>> from floodway.provisioning.cost.settings import Setting
    >>> graph = CostGraph.of(
    ...     [
    ...         OperatorCosts(name="p1", c_cpu_ns=0),
    ...         OperatorCosts(name="p2", c_cpu_ns=0),
    ...         OperatorCosts(name="c", c_cpu_ns=50_000_000),
    ...     ],
    ...     [Connection("p1", "c"), Connection("p2", "c")],
    ...     Platform(),
    ... )
    >>> settings = {"p1": Setting(1, 1), "p2": Setting(1, 1), "c": Setting(1)}
    >>> found = predict(graph, {"p1": 10, "p2": 30}, settings)
    >>> found.throughput, found.held_back_by["p1"]
    ({'p1': 5.0, 'p2': 15.0}, 'c')
    """
    diagnosis = detect(graph, workload, settings)
    bottlenecks = {bottleneck.operator for bottleneck in diagnosis.bottlenecks}
    effective: dict[str, float] = {}
    passed: dict[str, float] = {}  # which part of what arrives is processed in the end
    held: dict[str, str] = {}
    for level in reversed(graph.levels):
        for name in level:
            load = diagnosis.loads[name]
            slowest, part = name, 1.0
            for link in graph.outputs[name]:
                if passed[link.consumer] < part:
                    slowest, part = link.consumer, passed[link.consumer]
            effective[name] = load.rate_processed * part
            passed[name] = effective[name] / load.rate_in if load.rate_in else part
            if slowest != name:
                held[name] = held[slowest]
            elif name in bottlenecks:
                held[name] = name
    throughput = {source: effective[source] for source in graph.sources}
    return Prediction(throughput, effective, held, diagnosis)
