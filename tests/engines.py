"""The engines that behavioural tests run on.

A test body takes the `engine` fixture, a factory for something with the reference driver's
interface, and uses nothing else; so a new engine runs every body by being added to `ENGINES`.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from floodway.model.tuning import Tuning
from floodway.plan import Configuration
from floodway.testing import Driver

Engine = Callable[..., Driver]


def data(dop: int, b_out: int, engine: str = "data", **options: Any) -> Engine:
    """The engine's tasks in this process."""
    configuration = Configuration(Tuning(dop=dop, b_out=b_out))
    return partial(Driver, engine=engine, configuration=configuration, **options)


ENGINES: dict[str, Engine] = {
    "reference": Driver,
    "data-1": data(1, 100),
    "data-3": data(3, 2),
    "restored": data(2, 3, restarts=True),
    "operation": data(2, 3, "operation"),
    "switching": data(2, 2, "switching"),
}
