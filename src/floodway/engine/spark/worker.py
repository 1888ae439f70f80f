"""What runs in a Spark slot: one task of one stage."""

import sys
from collections.abc import Iterable, Iterator

import msgspec

from floodway.engine.datastream.settings import Settings
from floodway.engine.spark.shipping import unpack
from floodway.engine.transport.sockets import Network
from floodway.engine.worker.process import run_task


class Shipment(msgspec.Struct, frozen=True):
    """Everything a task needs to run."""

    plan: bytes
    stage: str
    index: int
    launch: int
    network: Network
    driver: str
    settings: Settings
    paths: tuple[str, ...]

    def __call__(self, indexes: Iterable[int]) -> Iterator[int]:
        """Run the task (there is one index) and return its index when it is over."""
        # What the driver can import, its tasks on the same host can.
        sys.path.extend(path for path in self.paths if path not in sys.path)
        plan = unpack(self.plan)
        for index in indexes:
            run_task(
                plan,
                self.stage,
                index,
                self.network,
                self.driver,
                self.settings,
                launch=self.launch,
            )
            yield index
