"""Planning on paper: a TOML file of operators with given costs.

A file has one table for the platform, and one for each operator::

    [platform]
    c_fetch_ns = 7400           # taking in a batch
    c_emit_ns = 2600            # sending a batch
    bits_per_s = 1_000_000_000  # of a server, shared by its cores; left out, it does not matter
    cores = 4

    [operators.spout]
    rate = 500_000              # records per second; sources have one
    c_cpu_ns = 1000
    record_bytes = 107

    [operators.parse]
    from = "spout"              # or several: ["spout", "other"]
    c_cpu_ns = 3500
    selectivity = 0.99
    record_bytes = 32

    [operators.agg]
    from = { operator = "parse", partitioning = "hash", share = 1.0 }
    c_cpu_ns = 2600

An operator may have c_fetch_ns and c_emit_ns of its own, and a max_dop.
"""

import math
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from floodway.core.errors import OptionError
from floodway.provisioning.cost import checks
from floodway.provisioning.cost.graph import (
    Connection,
    CostGraph,
    OperatorCosts,
    Partitioning,
    Platform,
)

T = TypeVar("T", bound=msgspec.Struct)


class Paper(msgspec.Struct, frozen=True):
    """What a file says: a graph with costs, the workload, and the cores of a server if given."""

    graph: CostGraph
    workload: Mapping[str, float]
    cores: int | None = None


class _WrittenInput(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    operator: str
    partitioning: Partitioning = "random"
    share: float = 1.0


class _WrittenOperator(msgspec.Struct, forbid_unknown_fields=True):
    c_cpu_ns: float
    selectivity: float = 1.0
    record_bytes: float = 0.0
    c_fetch_ns: float | None = None
    c_emit_ns: float | None = None
    max_dop: int | None = None
    rate: float | None = None
    inputs: list[str | _WrittenInput] | str | _WrittenInput = msgspec.field(
        name="from", default_factory=list
    )


class _WrittenPlatform(msgspec.Struct, forbid_unknown_fields=True):
    c_fetch_ns: float = 0.0
    c_emit_ns: float = 0.0
    bits_per_s: float = math.inf
    cores: int | None = None


class _WrittenFile(msgspec.Struct, forbid_unknown_fields=True):
    operators: dict[str, dict[str, Any]]
    platform: dict[str, Any] = {}


def read(path: Path) -> Paper:
    """Read a file of operators with costs."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise OptionError(
            f"the file {path} cannot be read: {error}",
            remedy="give the path of a TOML file with operators and their costs",
        ) from None
    return parse(text)


def parse(text: str) -> Paper:
    """Make a graph and a workload of a file's text.

    Examples
    --------
    >>> paper = parse('''
    ... [platform]
    ... c_fetch_ns = 7400
    ...
    ... [operators.spout]
    ... rate = 500_000
    ... c_cpu_ns = 1000
    ...
    ... [operators.parse]
    ... from = "spout"
    ... c_cpu_ns = 3500
    ... ''')
    >>> paper.graph.levels, paper.workload
    ((('spout',), ('parse',)), {'spout': 500000.0})
    """
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise OptionError(
            f"this is not TOML: {error}",
            remedy="write a [platform] table and a table [operators.NAME] for each operator",
        ) from None
    written = _converted(found, _WrittenFile, None)
    platform = _converted(written.platform, _WrittenPlatform, None)
    operators = {
        name: _converted(table, _WrittenOperator, name) for name, table in written.operators.items()
    }
    checks.check_count("cores", platform.cores)
    graph = CostGraph.of(
        [_costs(name, operator) for name, operator in operators.items()],
        [link for name, operator in operators.items() for link in _links(name, operator)],
        _platform(platform),
    )
    rates = {name: one.rate for name, one in operators.items() if one.rate is not None}
    checks.check_workload(graph, rates)
    return Paper(graph, rates, platform.cores)


def _costs(name: str, written: _WrittenOperator) -> OperatorCosts:
    return OperatorCosts(
        name=name,
        c_cpu_ns=written.c_cpu_ns,
        selectivity=written.selectivity,
        record_bytes=written.record_bytes,
        c_fetch_ns=written.c_fetch_ns,
        c_emit_ns=written.c_emit_ns,
        max_dop=written.max_dop,
    )


def _links(name: str, written: _WrittenOperator) -> list[Connection]:
    inputs = written.inputs if isinstance(written.inputs, list) else [written.inputs]
    whole = [_WrittenInput(one) if isinstance(one, str) else one for one in inputs]
    return [Connection(one.operator, name, one.partitioning, one.share) for one in whole]


def _platform(written: _WrittenPlatform) -> Platform:
    return Platform.of_servers(
        bits_per_s=written.bits_per_s,
        cores=written.cores or 1,
        c_fetch_ns=written.c_fetch_ns,
        c_emit_ns=written.c_emit_ns,
    )


def _converted(found: object, kind: type[T], operator: str | None) -> T:
    try:
        return msgspec.convert(found, kind)
    except msgspec.ValidationError as error:
        fields = ", ".join(field.encode_name for field in msgspec.structs.fields(kind))
        raise OptionError(
            f"this cannot be planned with: {str(error)[:1].lower()}{str(error)[1:]}",
            remedy=f"write these fields, as numbers where they are: {fields}",
            operator=operator,
        ) from None
