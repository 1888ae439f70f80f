"""What a description, a workload and settings must be, and what is said if they are not."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from floodway.core.errors import DuplicateNameError, OptionError, UndefinedError

if TYPE_CHECKING:
    from floodway.provisioning.cost.graph import (
        Connection,
        CostGraph,
        OperatorCosts,
        Platform,
        Workload,
    )
    from floodway.provisioning.cost.settings import Settings

_COSTS = {
    "c_cpu_ns": "the cost of processing a record",
    "selectivity": "the selectivity",
    "record_bytes": "the size of an output record",
    "c_fetch_ns": "the cost of taking in a batch",
    "c_emit_ns": "the cost of sending a batch",
}


def check_platform(platform: "Platform") -> None:
    """Refuse costs below zero and connections that carry nothing."""
    for field in ("c_fetch_ns", "c_emit_ns"):
        _check_cost(field, getattr(platform, field), None)
    for field in ("in_bits_per_s", "out_bits_per_s"):
        value = getattr(platform, field)
        if not value > 0:
            raise OptionError(
                f"a bandwidth {field}={value!r} carries nothing",
                remedy=f"give {field} in bits per second, or leave it out if it does not matter",
            )


def check_operators(operators: Sequence["OperatorCosts"]) -> None:
    """Refuse an empty graph, names that come twice, and costs below zero."""
    if not operators:
        raise OptionError("there are no operators", remedy="describe at least one source")
    seen: set[str] = set()
    for operator in operators:
        if operator.name in seen:
            raise DuplicateNameError(
                f"two operators are called {operator.name!r}",
                remedy="give each operator a name of its own",
                operator=operator.name,
            )
        seen.add(operator.name)
        for field in _COSTS:
            _check_cost(field, getattr(operator, field), operator.name)
        if operator.max_dop is not None and operator.max_dop < 1:
            raise OptionError(
                f"max_dop={operator.max_dop} leaves no task to do the work",
                remedy="give max_dop as a whole number, 1 or more, or leave it out",
                operator=operator.name,
            )


def check_changes(changes: Iterable[str], operator: str) -> None:
    """Refuse to change what is no cost."""
    possible = [*_COSTS, "max_dop"]
    for field in changes:
        if field not in possible:
            raise OptionError(
                f"an operator has no {field!r} to change",
                remedy=f"change one of: {', '.join(possible)}",
                operator=operator,
            )


def _check_cost(field: str, value: float | None, operator: str | None) -> None:
    if value is None or (value >= 0 and math.isfinite(value)):
        return
    why = "below zero" if value < 0 else "not a finite number"
    raise OptionError(
        f"{_COSTS[field]}, {field}={value!r}, is {why}",
        remedy=f"give {field} as a number of at least zero",
        operator=operator,
    )


def check_connections(connections: Iterable["Connection"], known: Collection[str]) -> None:
    """Refuse connections with an end that is not there, doubled ones, and impossible shares."""
    seen: set[tuple[str, str]] = set()
    for connection in connections:
        ends = (connection.producer, connection.consumer)
        for name, other in (ends, ends[::-1]):
            if name not in known:
                raise UndefinedError(
                    f"{other!r} is connected to an operator {name!r} that is not there",
                    remedy=f"describe {name!r}, or use one of: {_listed(known)}",
                    operator=other,
                )
        if ends in seen:
            raise OptionError(
                f"{ends[1]!r} reads {ends[0]!r} twice",
                remedy="describe the connection once, with the share that it carries in all",
                operator=ends[1],
            )
        seen.add(ends)
        if not 0 < connection.share <= 1:
            raise OptionError(
                f"a share of {connection.share!r} of what {ends[0]!r} sends is not possible",
                remedy="give a share above 0 and up to 1; 1 is all of the output",
                operator=ends[1],
            )


def check_known(names: Iterable[str], known: Collection[str], what: str) -> None:
    """Refuse names of operators that are not there."""
    for name in names:
        if name not in known:
            raise UndefinedError(
                f"the {what} names an operator {name!r} that is not there",
                remedy=f"use one of: {_listed(known)}",
                operator=name,
            )


def check_workload(graph: "CostGraph", workload: "Workload") -> None:
    """Refuse a workload that does not give each source, and nothing else, a rate."""
    check_known(workload, graph.operators, "workload")
    for name, rate in workload.items():
        if not graph.is_source(name):
            raise OptionError(
                "the workload gives a rate to an operator that is not a source",
                remedy=f"give rates to the sources: {_listed(graph.sources)}",
                operator=name,
            )
        if not (rate >= 0 and math.isfinite(rate)):
            raise OptionError(
                f"a rate of {rate!r} records per second is not possible",
                remedy="give the rate as a number of at least zero",
                operator=name,
            )
    for name in graph.sources:
        if name not in workload:
            raise OptionError(
                "the source has no rate",
                remedy="say how many records per second are expected of it",
                operator=name,
            )


def check_settings(graph: "CostGraph", settings: "Settings") -> None:
    """Refuse settings that do not give each operator a dop and, unless it is a sink, a b_out."""
    check_known(settings, graph.operators, "configuration")
    for name in graph.in_order():
        setting = settings.get(name)
        if setting is None:
            raise OptionError(
                "the configuration says nothing of the operator",
                remedy="give it a dop, and a b_out unless it is a sink",
                operator=name,
            )
        counts: Mapping[str, int | None] = {"dop": setting.dop, "b_out": setting.b_out}
        for field, value in counts.items():
            missing = value is None and not graph.is_sink(name)
            if missing or (value is not None and value < 1):
                raise OptionError(
                    f"{field}={value!r} is not a number of at least 1",
                    remedy=f"give {field} as a whole number, 1 or more",
                    operator=name,
                )


def check_headroom(headroom: float) -> None:
    """Refuse a headroom that leaves nothing to work with."""
    if not 0 <= headroom < 1:
        raise OptionError(
            f"headroom={headroom!r} is not a share of the capacity that can be kept free",
            remedy="give headroom as a number from 0 to below 1; 0.2 keeps a fifth free",
        )


def check_count(name: str, value: int | None) -> None:
    """Refuse counts below one."""
    if value is not None and value < 1:
        raise OptionError(
            f"{name}={value!r} is not a number of at least 1",
            remedy=f"give {name} as a whole number, 1 or more",
        )


def _listed(names: Collection[str], most: int = 12) -> str:
    shown = sorted(names)
    rest = f", and {len(shown) - most} more" if len(shown) > most else ""
    return ", ".join(shown[:most]) + rest
