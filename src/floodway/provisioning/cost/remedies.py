"""What helps an overloaded operator, in words: more tasks, larger batches, or less to do."""

from floodway.provisioning.cost.equations import NS
from floodway.provisioning.cost.graph import CostGraph
from floodway.provisioning.cost.loads import Load
from floodway.provisioning.cost.rounding import up
from floodway.provisioning.cost.settings import Settings

MOST_NAMES = 3
"""How many producers are named before the rest is only counted."""


def remedy(graph: CostGraph, load: Load, settings: Settings) -> str:
    """Return what to do about an overloaded operator.

    A network bottleneck goes away with more tasks only. A cpu bottleneck may also go away with
    larger batches (thesis, section 4.1.1); so they are proposed where they would be enough.
    """
    needed = up(load.rate_in / (load.task_capacity * (1 - load.headroom)))
    most = graph.operators[load.operator].max_dop
    ways: list[str] = []
    if most is None or needed <= most:
        ways.append(f"raise its dop from {load.setting.dop} to {needed}")
    batches = _batches(graph, load, settings) if load.exceeded == ("cpu",) else None
    if batches:
        ways.append(batches)
    if not ways:
        ways.append(_less(load, most or load.setting.dop))
    return "; or ".join(ways)


def _batches(graph: CostGraph, load: Load, settings: Settings) -> str | None:
    """Return which batch sizes would do with the present dop, if any would.

    One size for what comes in and what goes out, as it is the simplest that solves equation 4.24.
    """
    name = load.operator
    hand_over = graph.c_fetch_ns(name) + graph.emit_ns(name)
    budget = NS * load.setting.dop * (1 - load.headroom) / load.rate_in
    left = budget - graph.operators[name].c_cpu_ns
    if left <= 0 or not hand_over:
        return None
    least = up(hand_over / left)
    senders = [link.producer for link in graph.inputs[name]] if graph.c_fetch_ns(name) else []
    if graph.emit_ns(name):
        senders.append(name)
    small = [sender for sender in senders if (settings[sender].b_out or 1) < least]
    return f"let batches hold at least {least} records: raise b_out of {_listed(small)}"


def _less(load: Load, most: int) -> str:
    reached = most * load.task_capacity * (1 - load.headroom)
    return (
        f"send it at most {reached:,.0f} records per second, or make a record cheaper for it: "
        f"its dop cannot be above {most}"
    )


def _listed(names: list[str]) -> str:
    if len(names) <= MOST_NAMES:
        return ", ".join(names)
    return f"{', '.join(names[:MOST_NAMES])} and {len(names) - MOST_NAMES} more"
