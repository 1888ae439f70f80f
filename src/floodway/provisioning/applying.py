"""From planned settings to a configuration that a flow runs with, and back."""

import json

from floodway.model.tuning import Tuning
from floodway.plan.configuration import DEFAULT, Configuration
from floodway.provisioning.cost import checks
from floodway.provisioning.cost.graph import CostGraph
from floodway.provisioning.cost.settings import Setting, Settings


def configuration_of(settings: Settings) -> Configuration:
    """Return the configuration with these degrees of parallelism and batch sizes.

    Examples
    --------
    >>> configuration_of({"read": Setting(2, 15)}).operators["read"]
    Tuning(dop=2, b_out=15, linger=None, batching=None, isolate=False, paradigm=None)
    """
    return Configuration(
        operators={name: Tuning(dop=one.dop, b_out=one.b_out) for name, one in settings.items()}
    )


def settings_of(graph: CostGraph, configuration: Configuration) -> dict[str, Setting]:
    """Return what a configuration means for a described flow; what it leaves open is default.

    Examples
    --------
    >>> from floodway.provisioning.cost.graph import OperatorCosts, Platform
    >>> graph = CostGraph.of([OperatorCosts(name="read", c_cpu_ns=1000)], [], Platform())
    >>> settings_of(graph, Configuration(Tuning(dop=3)))
    {'read': Setting(dop=3, b_out=None)}
    """
    checks.check_known(configuration.operators, graph.operators, "configuration")
    found: dict[str, Setting] = {}
    for name in graph.operators:
        own = configuration.operators.get(name, Tuning())
        complete = own.over(configuration.default).over(DEFAULT)
        b_out = None if graph.is_sink(name) else complete.b_out
        found[name] = Setting(complete.dop or 1, b_out)
    return found


def to_toml(settings: Settings) -> str:
    """Return settings as a file that ``floodway run --configuration`` reads.

    Examples
    --------
    >>> print(to_toml({"read": Setting(2, 15), "count": Setting(1)}))
    [operators."read"]
    dop = 2
    b_out = 15
    <BLANKLINE>
    [operators."count"]
    dop = 1
    <BLANKLINE>
    """
    tables = []
    for name, setting in settings.items():
        # A JSON string is a TOML string, whatever the name has in it.
        lines = [f"[operators.{json.dumps(name)}]", f"dop = {setting.dop}"]
        if setting.b_out is not None:
            lines.append(f"b_out = {setting.b_out}")
        tables.append("\n".join(lines) + "\n")
    return "\n".join(tables)
