"""From planned settings to a configuration that a flow runs with, and back."""

from floodway.core.errors import OptionError
from floodway.model.tuning import Tuning
from floodway.plan.configuration import DEFAULT, Configuration
from floodway.plan.stages import Plan
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


def stages_of(plan: Plan, settings: Settings) -> dict[str, Setting]:
    """Return the settings of all operators of a flow, from those of its stages.

    Stages that nothing was planned for, because they only read a table, stay as they are.
    """
    return {
        operator.name: settings[stage.name]
        for stage in plan.stages
        if stage.name in settings
        for operator in stage.operators
    }


def of_stages(graph: CostGraph, plan: Plan) -> dict[str, Setting]:
    """Return the settings of the stages of a plan, for a description of the same stages."""
    found = {}
    for name in graph.operators:
        stage = next((stage for stage in plan.stages if stage.name == name), None)
        if stage is None:
            raise OptionError(
                f"with this configuration the flow has no stage {name!r}: it is divided otherwise",
                remedy="give all operators of a stage the same dop; `floodway explain` shows them",
                operator=name,
            )
        sizes = [plan.b_out(exchange.edge.operator.name) for exchange in plan.outputs(stage)]
        found[name] = Setting(stage.dop, min(sizes) if sizes and not graph.is_sink(name) else None)
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
    return configuration_of(settings).to_toml()
