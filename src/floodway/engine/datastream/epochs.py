"""A task's part in epochs: what it stores when one ends, and what it goes on from.

When an epoch ends at a task, what its kernels have changed, where its readers are, what its sinks
got and how far it is are taken at once, in the task's thread. Writing it down is done aside. When
that is durable the task acknowledges the epoch. When all tasks have, the driver commits it: then
the output cache is cut, readers are told, and sinks show what they got.
"""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from floodway.engine.checkpoint.output import OutputCache
from floodway.engine.checkpoint.records import SinkRecord, TaskRecord, standing_of
from floodway.engine.checkpoint.state_files import StateFiles
from floodway.engine.checkpoint.vault import FileRef, Vault
from floodway.engine.control.messages import Applied, Message, Stored
from floodway.engine.datastream.aside import Aside, Errands
from floodway.engine.datastream.delivery import StoredLog
from floodway.engine.datastream.reading import Sources
from floodway.engine.datastream.settings import Settings
from floodway.engine.datastream.task import Positions, Task
from floodway.engine.datastream.writing import Sinks
from floodway.engine.host.failpoints import reach
from floodway.engine.program.wiring import classes_of
from floodway.engine.state.keeper import Keeper, Loaded
from floodway.engine.state.pickling import Pickling
from floodway.engine.transport.batching import Send

TellDriver = Callable[[Message], None]

_encode = msgspec.msgpack.Encoder().encode


class Taken(msgspec.Struct):
    """What is to be stored of an epoch, besides the rows of sinks."""

    epoch: int
    delta: bytes
    positions: dict[str, Any]
    standing: bytes
    ended: bool
    sinks: dict[str, SinkRecord] = {}


class Epochs:
    """One attempt of a task, and the epochs it lives through.

    Parameters
    ----------
    task, sources, sinks
        The task and its connectors.
    vault
        Where state and logs are kept.
    scratch
        A folder for what need not outlive the process.
    storing, applying
        Who writes state, and who hands epochs to sinks, aside.
    post
        Hands a frame to the task of a number.
    tell
        Hands a message to the driver.
    """

    def __init__(
        self,
        task: Task,
        sources: Sources,
        sinks: Sinks,
        vault: Vault,
        settings: Settings,
        *,
        scratch: Path,
        storing: Aside,
        applying: Aside,
        post: Send,
        tell: TellDriver,
        epoch: int,
    ) -> None:
        self._task, self._sources, self._sinks = task, sources, sinks
        self._vault, self._tell = vault, tell
        self._storing, self._applying = Errands(storing), Errands(applying)
        classes = classes_of(task.plan)
        self._keeper = Keeper(
            task.program,
            classes,
            budget=settings.state_memory,
            trusted=not settings.lasting,
            folder=scratch / f"state-{task.number}-{task.attempt}",
        )
        self._folder = f"state/{task.stage.name}-{task.index}"
        self._pickling = Pickling(classes, trusted=not settings.lasting)
        self._files = self._state_files([])
        self.cache = OutputCache(
            task.lanes,
            post,
            budget=settings.output_cache,
            folder=scratch / f"output-{task.number}-{task.attempt}",
            written=lambda: task.bytes_out,
            epoch=epoch,
        )
        self._keyed = any(node.kernel.keyed for node in task.program.nodes)
        self._last = epoch
        self._positions: dict[int, dict[str, Any]] = {}
        self._unflushed: Taken | None = None
        self._works: dict[str, Callable[[], StoredLog | None]] = {}
        self.left = False
        """Whether the task has ended, its end is committed, and its sinks have shown everything."""
        self.size = self._keeper.size
        """How much state there was when it was last stored or loaded."""
        self._end_taken = False

    def _state_files(self, refs: list[FileRef]) -> StateFiles:
        operators = {node.name for node in self._task.program.nodes}
        return StateFiles(self._vault, self._folder, self._pickling, refs, operators=operators)

    # ------------------------------------------------------------------ going on

    def load(self, record: TaskRecord, progress: Loaded | None = None) -> None:
        """Go on where a task was: its state, and how far it was."""
        reach("restore.before")
        self._files = self._state_files(record.files)
        standing = standing_of(record)
        parts: Sequence[bytes] = self._files.parts()
        if standing.scalars:
            parts = [*parts, standing.scalars]  # newer than what files say of the same
        self._keeper.load(parts, progress=self._beating(progress))
        reach("restore.middle")
        self._keeper.adopt()
        self.size = self._keeper.size
        self._task.resume(standing)
        reach("restore.after")

    def _beating(self, progress: Loaded | None) -> Loaded:
        """Let everybody see that it goes on while state is read."""

        def told(done: int, total: int) -> None:
            self._task.beat += 1
            if progress is not None:
                progress(done, total)

        return told

    def resume(self) -> None:
        """Have applied what was committed before this attempt began."""
        self._sinks.commit(self._last, self._applying)

    # ------------------------------------------------------------------ an epoch ends

    def end_epoch(self, epoch: int, where: Positions | None = None) -> None:
        """Take what there is to store; called between two records.

        `where` the sources were when the epoch's mark was made, if they have read on since.
        """
        self.cache.cut(epoch)
        self._take(epoch, where, ended=False)

    def end_task(self) -> None:
        """Take what there is to store at the task's own end; once."""
        if not self._end_taken:
            self._end_taken = True
            self._take(self._last + 1, None, ended=True)

    def _take(self, epoch: int, where: Positions | None, *, ended: bool) -> None:
        task = self._task
        self._works = self._sinks.end_epoch(epoch, task.attempt)
        delta = self._keeper.changes()
        self._keeper.relieve()
        self.size = self._keeper.size
        positions = self._sources.positions(where)
        self._positions[epoch] = positions
        self._last = epoch
        standing = task.standing()
        if not self._keyed:
            standing, delta = msgspec.structs.replace(standing, scalars=delta), b""
        self._unflushed = Taken(epoch, delta, positions, _encode(standing), ended)
        self._store_if_flushed()

    def _store_if_flushed(self) -> None:
        """Store once sinks that take rows as they come have handed on what they took."""
        taken = self._unflushed
        if taken is None or self._sinks.pending or self._sinks.unflushed:
            return
        self._unflushed = None
        taken.sinks = self._sinks.positions()
        work = partial(self._store, taken, self._works, self._task.attempt)
        self._storing.add(work, partial(self._stored, taken))

    def _store(
        self, taken: Taken, works: dict[str, Callable[[], StoredLog | None]], attempt: int
    ) -> tuple[list[FileRef], dict[str, StoredLog | None]]:
        reach("task.before_store")
        entries = {name: work() for name, work in works.items()}
        refs = self._files.store(taken.epoch, attempt, taken.delta) if taken.delta else []
        reach("task.after_store")
        return refs, entries

    def _stored(
        self, taken: Taken, durable: tuple[list[FileRef], dict[str, StoredLog | None]]
    ) -> None:
        refs, entries = durable
        record = TaskRecord(
            stage=self._task.stage.name,
            index=self._task.index,
            files=refs,
            positions=taken.positions,
            sinks=taken.sinks | self._sinks.stored(entries),
            progress=taken.standing,
            ended=taken.ended,
        )
        self._tell(Stored(self._task.number, self._task.attempt, taken.epoch, record))

    # ------------------------------------------------------------------ an epoch is committed

    def committed(self, epoch: int, *, ended: bool) -> None:
        """Let go of what is committed; `ended` if that includes the task's own end."""
        self.cache.drop(epoch)
        self._sources.committed(self._positions.get(epoch, {}))
        self._positions = {e: at for e, at in self._positions.items() if e > epoch}
        self._sinks.commit(epoch, self._applying)
        self._applying.add(lambda: None, partial(self._shown, epoch, ended))

    def _shown(self, epoch: int, ended: bool, _: None) -> None:  # noqa: FBT001 - bound by `partial`
        self._tell(Applied(self._task.number, self._task.attempt, epoch))
        self.left = self.left or ended

    # ------------------------------------------------------------------ the loop

    def turn(self, now: int) -> bool:
        """Go on with what is done aside; return whether something happened."""
        self._store_if_flushed()
        busy = self._storing.turn(now)
        busy |= self._applying.turn(now)
        self.cache.pump()
        self.cache.relieve()
        return busy

    @property
    def held(self) -> str | None:
        """Why the task must not work on now: nothing may be made that could not be kept."""
        if self.cache.full is not None:
            return f"the output cache cannot grow: {self.cache.full.strerror}"
        if self._storing.away is not None:
            return self._storing.away
        return "a sink has to be flushed" if self._unflushed is not None else None

    @property
    def away(self) -> str | None:
        """What a person should know: why state cannot be stored, or sinks cannot be written."""
        full = self.cache.full
        return self._storing.away or self._applying.away or (str(full) if full else None)

    def due(self) -> list[int]:
        """Return when to try again what could not be done."""
        return self._storing.due() + self._applying.due()

    @property
    def last(self) -> int:
        """The last epoch that has ended here."""
        return self._last

    def close(self) -> None:
        """Finish what was begun, and remove what need not outlive the attempt."""
        self._storing.close()
        self._applying.close()
        self.cache.close()
        self._keeper.close()
