"""Other rates, other servers, other costs: descriptions that are like another but for something."""

import math
import re
from collections.abc import Iterable

import msgspec

from floodway.core.errors import OptionError
from floodway.provisioning.cost import checks
from floodway.provisioning.paper import Paper

_CHANGE = re.compile(r"\s*(?P<operator>.+)\.(?P<field>\w+?)\s*(?P<sign>\*?=)\s*(?P<value>[^=]+)")


def changed(paper: Paper, changes: Iterable[str], *, cores: int | None = None) -> Paper:
    """Return the description on other servers, if they are others, and after all changes."""
    paper = paper if cores is None else with_cores(paper, cores)
    for change in changes:
        paper = with_change(paper, change)
    return paper


def with_rate(paper: Paper, rate: float) -> Paper:
    """Return the description with another rate, all sources together, in the mix they had."""
    whole = sum(paper.workload.values())
    if not whole:
        raise OptionError(
            "the rates of all sources are 0, so a rate cannot be shared out to them",
            remedy="give the sources rates in the mix that is expected",
        )
    mix = {source: rate * part / whole for source, part in paper.workload.items()}
    return msgspec.structs.replace(paper, workload=mix)


def with_cores(paper: Paper, cores: int) -> Paper:
    """Return the description on servers with other cores, which share a server's bandwidth."""
    checks.check_count("cores", cores)
    part = (paper.cores or 1) / cores
    platform = msgspec.structs.replace(
        paper.graph.platform,
        in_bits_per_s=paper.graph.platform.in_bits_per_s * part,
        out_bits_per_s=paper.graph.platform.out_bits_per_s * part,
    )
    graph = msgspec.structs.replace(paper.graph, platform=platform)
    return msgspec.structs.replace(paper, graph=graph, cores=cores)


def with_change(paper: Paper, change: str) -> Paper:
    r"""Return the description after a change, ``operator.field=value`` or ``...*=factor``.

    Examples
    --------
    >>> from floodway.provisioning.paper import parse
    >>> paper = parse("[operators.read]\nrate = 500\nc_cpu_ns = 1000")
    >>> with_change(paper, "read.c_cpu_ns*=2").graph.operators["read"].c_cpu_ns
    2000.0
    >>> with_change(paper, "read.rate=700").workload
    {'read': 700.0}
    """
    match = _CHANGE.fullmatch(change)
    value = number_of(match["value"]) if match else None
    if match is None or value is None:
        raise OptionError(
            f"{change!r} is not a change",
            remedy="write operator.field=value or operator.field*=factor, such as "
            "parse.selectivity*=2",
        )
    operator, field, times = match["operator"], match["field"], match["sign"] == "*="
    checks.check_known([operator], paper.graph.operators, "change")
    if field == "rate":
        rate = paper.workload.get(operator, 0.0) * value if times else value
        workload = {**paper.workload, operator: rate}
        checks.check_workload(paper.graph, workload)
        return msgspec.structs.replace(paper, workload=workload)
    if field == "max_dop":
        if times or value != round(value):
            raise OptionError(
                f"{change!r} does not give max_dop a whole number",
                remedy=f"write {operator}.max_dop=N",
                operator=operator,
            )
        return msgspec.structs.replace(
            paper, graph=paper.graph.changed(operator, max_dop=int(value))
        )
    make = paper.graph.multiplied if times else paper.graph.changed
    return msgspec.structs.replace(paper, graph=make(operator, **{field: value}))


def number_of(text: str) -> float | None:
    """Return the finite number that somebody wrote; None if it is none."""
    try:
        found = float(text)
    except ValueError:
        return None
    return found if math.isfinite(found) else None
