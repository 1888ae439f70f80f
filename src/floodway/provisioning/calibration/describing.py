"""From a measured run to a graph with costs: an operator of the model is a stage of the flow."""

from collections.abc import Mapping, Sequence

import msgspec

from floodway.operators.partitioning import Broadcast, Hash, Range
from floodway.operators.partitioning import Partitioning as Spread
from floodway.plan.stages import Exchange, Plan, Stage
from floodway.provisioning.calibration.fitting import Estimate, Fitted, WorkStretch, fit
from floodway.provisioning.calibration.running import Measured
from floodway.provisioning.cost.graph import (
    Connection,
    CostGraph,
    OperatorCosts,
    Partitioning,
    Platform,
)


class Calibrated(msgspec.Struct, frozen=True, kw_only=True):
    """What the stages of a flow cost on a machine.

    Attributes
    ----------
    flow, machine, date
        Of what, where, and when.
    costs
        For each stage what was found.
    connections
        Who sends to whom, and which part of the output.
    most
        For each stage how many tasks it can have; those that can have any number are not in it.
    mix
        For each stage with sources, the share of all records that it brought.
    """

    flow: str
    machine: str
    date: str
    costs: dict[str, Fitted]
    connections: list[Connection]
    most: dict[str, int]
    mix: dict[str, float]

    @property
    def graph(self) -> CostGraph:
        """The graph to plan with."""
        operators = [
            OperatorCosts(
                name=name,
                c_cpu_ns=found.c_cpu_ns.value,
                selectivity=found.selectivity.value,
                record_bytes=found.record_bytes,
                c_fetch_ns=found.c_fetch_ns.value,
                c_emit_ns=found.c_emit_ns.value,
                max_dop=self.most.get(name),
            )
            for name, found in self.costs.items()
        ]
        return CostGraph.of(operators, self.connections, Platform())


def describe(plan: Plan, measured: Measured, *, machine: str, date: str) -> Calibrated:
    """Return what a run has shown as costs."""
    kept = [stage for stage in plan.stages if _works(measured.stretches[stage.name])]
    names = {stage.name for stage in kept}
    sent = {stage.name: _sent_by(plan, stage, measured) for stage in kept}
    connections = [
        Connection(e.sender, e.receiver, spread_of(e.partitioning), _share(e, sent[e.sender]))
        for e in plan.exchanges
        if {e.sender, e.receiver} <= names and not isinstance(e.partitioning, Broadcast)
    ]
    whole = sum(measured.taken.values()) or 1
    fed = {connection.consumer for connection in connections}
    return Calibrated(
        flow=plan.flow,
        machine=machine,
        date=date,
        costs={
            stage.name: _fitted(plan, stage, measured.stretches[stage.name], sent[stage.name])
            for stage in kept
        },
        connections=_united(connections),
        most={stage.name: most for stage in kept if (most := plan.most(stage)) is not None},
        mix={
            stage.name: sum(measured.taken[source.name] for source in stage.sources) / whole
            for stage in kept
            if stage.sources and stage.name not in fed
        },
    )


def spread_of(spread: Spread) -> Partitioning:
    """Return what the model calls it when records are spread like this."""
    return (
        "hash" if isinstance(spread, Hash) else "range" if isinstance(spread, Range) else "random"
    )


def _works(stretches: Sequence[WorkStretch]) -> bool:
    """Return whether a stage had something to do; one that has read a table before had not."""
    return any(stretch.records for stretch in stretches)


def _sent_by(plan: Plan, stage: Stage, measured: Measured) -> dict[tuple[str, str], int]:
    edges = [exchange.edge for exchange in plan.outputs(stage)]
    return {(e.operator.name, e.port): measured.sent[e.operator.name, e.port] for e in edges}


def _share(exchange: Exchange, sent: Mapping[tuple[str, str], int]) -> float:
    edge = exchange.edge
    whole = sum(sent.values())
    return sent[edge.operator.name, edge.port] / whole if whole else 1.0


def _united(connections: list[Connection]) -> list[Connection]:
    """Let two stages have one connection: both ways together."""
    found: dict[tuple[str, str], Connection] = {}
    for one in connections:
        ends = one.producer, one.consumer
        if ends in found:
            share = min(found[ends].share + one.share, 1.0)
            one = msgspec.structs.replace(one, share=share)
        found[ends] = one
    return list(found.values())


def _fitted(
    plan: Plan,
    stage: Stage,
    stretches: Sequence[WorkStretch],
    sent: Mapping[tuple[str, str], int],
) -> Fitted:
    outputs = plan.outputs(stage)
    found = fit(stretches, fetches=bool(plan.inputs(stage)), emits=bool(outputs))
    found = found if found is not None else _about(stretches)
    # The model counts a record once, and its sending once, however many consumers get a copy.
    copies = sum(sent[e.edge.operator.name, e.edge.port] for e in outputs)
    each = copies / whole if (whole := sum(sent.values())) else 1.0
    return msgspec.structs.replace(
        found,
        selectivity=_times(found.selectivity, 1 / each),
        c_emit_ns=_times(found.c_emit_ns, each),
    )


def _times(of: Estimate, factor: float) -> Estimate:
    return Estimate(of.value * factor, of.low * factor, of.high * factor)


def _about(stretches: Sequence[WorkStretch]) -> Fitted:
    """Return what little can be said of a stage that had little to do."""
    records = sum(stretch.records for stretch in stretches)
    out = sum(stretch.records_out for stretch in stretches)
    cost = 1e9 * sum(stretch.busy_s for stretch in stretches) / records
    none = Estimate(0.0, 0.0, 0.0)
    return Fitted(
        c_cpu_ns=Estimate(cost, 0.0, cost),
        c_fetch_ns=none,
        c_emit_ns=none,
        selectivity=Estimate(out / records, 0.0, out / records),
        record_bytes=sum(stretch.bytes_out for stretch in stretches) / out if out else 0.0,
        error=1.0,
        records=records,
    )
