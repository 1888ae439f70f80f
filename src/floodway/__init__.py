"""Floodway: stream processing in Python on Apache Spark.

Start here::

    import floodway as fw

    flow = fw.Flow("clicks")
    clicks = flow.source("clicks", schema=Click, timestamp="at")
    clicks.group_by("country").window(fw.tumbling("10s")).count().changes().to("counts")

Reading order: `floodway.model` is what users write; `floodway.operators` is what each
operator means; `floodway.expressions` is Spark SQL in Python; `floodway.connectors` is where
records come from and go to; `floodway.plan` is how a flow is cut into stages and
`floodway.engine` what runs them on Spark; `floodway.testing` runs a flow in process.
"""

from importlib.metadata import version

from floodway.core import errors, secret
from floodway.core.errors import FloodwayError
from floodway.core.record import Record
from floodway.model import Flow, Stream, Table
from floodway.model.timing import ARRIVAL
from floodway.model.tuning import Tuning
from floodway.operators import emit
from floodway.operators.aggregates import aggregate, collect, count, max, mean, min, sum, top
from floodway.operators.changelog import Change
from floodway.operators.on_error import DeadLetter
from floodway.operators.windows import Window, hopping, session, tumbling
from floodway.plan.configuration import Configuration

__version__ = version("floodway")

__all__ = [
    "ARRIVAL",
    "Change",
    "Configuration",
    "DeadLetter",
    "FloodwayError",
    "Flow",
    "Record",
    "Stream",
    "Table",
    "Tuning",
    "Window",
    "aggregate",
    "collect",
    "count",
    "emit",
    "errors",
    "hopping",
    "max",
    "mean",
    "min",
    "secret",
    "session",
    "sum",
    "top",
    "tumbling",
]
