"""The ground a flow stands on: a folder on this host, and where it keeps what it goes back to.

That is a checkpoint, which outlives the driver, if the user wants one. Otherwise it is in the
folder on this host and goes with it. Flows of which all is in this process have nothing of the
kind: what runs here is lost with the driver.
"""

from contextlib import ExitStack
from os import PathLike
from pathlib import Path

import msgspec

from floodway.core.errors import OptionError
from floodway.engine.checkpoint.checkpoint import Checkpoint, check_connectors
from floodway.engine.checkpoint.commits import Commits
from floodway.engine.checkpoint.records import CommitRecord
from floodway.engine.datastream.settings import Settings
from floodway.engine.driver.epoching import Epoching
from floodway.engine.host.scratch import make_scratch, remove_scratch
from floodway.engine.host.whereabouts import Whereabouts
from floodway.engine.spark.shipping import pack
from floodway.plan.stages import Plan


class Ground:
    """What there has to be before a flow is started, and is gone, or closed, when it is over.

    Parameters
    ----------
    checkpoint
        The folder of the checkpoint, if there is to be one.
    recovery
        Whether the flow is to survive the loss of tasks.

    Attributes
    ----------
    scratch
        The folder on this host, once the ground is open.
    shipped
        The plan, packed, as soon as that is known to work.
    """

    scratch: Path
    shipped: bytes

    def __init__(
        self, plan: Plan, checkpoint: str | PathLike[str] | None, *, recovery: bool
    ) -> None:
        if checkpoint is not None and not recovery:
            raise OptionError(
                "a checkpoint is there to recover from, and recovery is off",
                remedy="leave out one of checkpoint= and recovery=False",
            )
        self._plan = plan
        self._recovery = recovery
        self._checkpoint = None if checkpoint is None else Checkpoint(checkpoint, plan)
        self._record: CommitRecord | None = None
        self._to_close = ExitStack()

    def open(self) -> None:
        """Make what is needed; what is known to fail is refused here. Close it in any case."""
        if self._checkpoint is not None:
            self._record = self._checkpoint.open()
            self._to_close.callback(self._checkpoint.close)
        check_connectors(self._plan, self._record)
        self.shipped = pack(self._plan)
        self.scratch = make_scratch()
        self._to_close.callback(remove_scratch, self.scratch)
        # What runs in this process is lost with it, and needs no other recovery.
        if self._checkpoint is None and self._recovery and self._plan.tasks:
            self._checkpoint = Checkpoint(self.scratch / "recovery", self._plan, lasting=False)
            self._checkpoint.open()
            self._to_close.callback(self._checkpoint.close)

    def close(self) -> None:
        """Remove what is not to last, and let others have the rest."""
        self._to_close.close()

    @property
    def start_epoch(self) -> int:
        """The epoch from which the flow goes on; 0 if it starts from the beginning."""
        return 0 if self._record is None else self._record.epoch

    @property
    def commits(self) -> Commits | None:
        """Where epochs are committed, if they are."""
        return None if self._checkpoint is None else self._checkpoint.commits

    def epoching(self, every_ms: int, silent_ms: int) -> Epoching | None:
        """Return how the flow goes back, and from where it goes on; None if it does not."""
        checkpoint = self._checkpoint
        if checkpoint is None:
            return None
        return Epoching(
            every_ms,
            self._record,
            silent_ms,
            checkpoint.attempts,
            lasting=checkpoint.lasting,
            folder=str(checkpoint.path),
            machine=Whereabouts.here().machine,
        )

    def known_to(self, settings: Settings) -> Settings:
        """Return the settings of tasks, with what they have to know of where epochs are kept."""
        checkpoint = self._checkpoint
        if checkpoint is None:
            return settings
        return msgspec.structs.replace(
            settings,
            vault=str(checkpoint.path),
            lasting=checkpoint.lasting,
            nonce=checkpoint.nonce,
        )
