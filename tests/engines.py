"""The engines that behavioural tests run on.

A test body takes the `engine` fixture, a factory for something with the reference driver's
interface, and uses nothing else; so a new engine runs every body by being added to `ENGINES`.
"""

from collections.abc import Callable

from floodway import Flow
from floodway.testing import Driver

Engine = Callable[[Flow], Driver]

ENGINES: dict[str, Engine] = {"reference": Driver}
