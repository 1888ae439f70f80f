"""The cost model of the thesis, chapters 3 and 4: loads, bottlenecks, and the fewest tasks.

`graph` describes operators and their costs; `equations` has the model's arithmetic and `loads` puts
it together for an operator. `detect` finds bottlenecks, `predict` says how much comes through,
`minimize` finds the fewest tasks and `lean` the batch sizes that keep records waiting the least.
`what_if` and `comparison` answer questions, and the explanations say where a number comes from.
"""

from floodway.provisioning.cost.bottlenecks import Bottleneck, Diagnosis, detect
from floodway.provisioning.cost.comparison import Difference, Outcome, compare, outcome
from floodway.provisioning.cost.explain_load import explain_load, explain_throughput
from floodway.provisioning.cost.explain_minimum import explain_minimum
from floodway.provisioning.cost.figures import Figure
from floodway.provisioning.cost.graph import (
    Connection,
    CostGraph,
    OperatorCosts,
    Partitioning,
    Platform,
    Workload,
)
from floodway.provisioning.cost.lean import lean, waits_s
from floodway.provisioning.cost.loads import Kind, Load
from floodway.provisioning.cost.minimizer import Minimum, Step, minimize
from floodway.provisioning.cost.settings import Setting, Settings, tasks
from floodway.provisioning.cost.throughput import Prediction, predict
from floodway.provisioning.cost.what_if import largest_workload, minimize_within, servers

__all__ = [
    "Bottleneck",
    "Connection",
    "CostGraph",
    "Diagnosis",
    "Difference",
    "Figure",
    "Kind",
    "Load",
    "Minimum",
    "OperatorCosts",
    "Outcome",
    "Partitioning",
    "Platform",
    "Prediction",
    "Setting",
    "Settings",
    "Step",
    "Workload",
    "compare",
    "detect",
    "explain_load",
    "explain_minimum",
    "explain_throughput",
    "largest_workload",
    "lean",
    "minimize",
    "minimize_within",
    "outcome",
    "predict",
    "servers",
    "tasks",
    "waits_s",
]
