"""What runs in a Spark slot: one task of one stage."""

import sys
from collections.abc import Iterable, Iterator

import msgspec

from floodway.engine.datastream.runner import Runner
from floodway.engine.datastream.settings import Settings
from floodway.engine.shipping import unpack
from floodway.engine.transport.sockets import Network


class Shipment(msgspec.Struct, frozen=True):
    """Everything a task needs to run."""

    plan: bytes
    stage: str
    network: Network
    driver: str
    settings: Settings
    paths: tuple[str, ...]

    def __call__(self, indexes: Iterable[int]) -> Iterator[int]:
        """Run the task of each index (there is one) and return it when it is over."""
        # What the driver can import, its tasks on the same host can.
        sys.path.extend(path for path in self.paths if path not in sys.path)
        plan = unpack(self.plan)
        for index in indexes:
            Runner(plan, self.stage, index, self.network, self.driver, self.settings).run()
            yield index
