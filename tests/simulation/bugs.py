"""Subtle bugs: each puts one wrong thing into the engine."""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import msgspec
import pytest

from floodway.engine import rescale
from floodway.engine.control import Commit, Message, Pulse
from floodway.engine.coordinator import Coordinator
from floodway.engine.datastream import task as task_module
from floodway.engine.datastream.delivery import EpochSink
from floodway.engine.datastream.epochs import Epochs, Taken
from floodway.engine.datastream.inbox import Inbox
from floodway.engine.datastream.intake import Intake
from floodway.engine.datastream.reading import Sources
from floodway.engine.datastream.runner import Attempt, Runner
from floodway.engine.datastream.task import Task
from floodway.engine.leader import Leader
from floodway.engine.loading import Loading
from floodway.engine.rud import output as output_module
from floodway.engine.rud.commits import Commits
from floodway.engine.rud.controller import Controller
from floodway.engine.rud.output import Kept
from floodway.engine.rud.records import CommitRecord, TaskRecord
from floodway.engine.rud.vault import FileRef, epoch_name
from floodway.engine.state.files import StateFiles
from floodway.engine.state.keeper import Keeper
from floodway.engine.transport.frame import Kind

Patch = pytest.MonkeyPatch
Bug = Callable[[Patch], None]

BUGS: dict[str, Bug] = {}


def bug(inject: Bug) -> Bug:
    """Remember a bug by its name."""
    BUGS[inject.__name__] = inject
    return inject


# ---------------------------------------------------------------------- committing


@bug
def sinks_show_an_epoch_when_it_is_stored(patch: Patch) -> None:
    stored = Epochs._stored  # noqa: SLF001

    def and_show(self: Any, taken: Taken, durable: Any) -> None:
        stored(self, taken, durable)
        self._sinks.commit(taken.epoch, self._applying)

    patch.setattr(Epochs, "_stored", and_show)


@bug
def state_is_acknowledged_before_it_is_durable(patch: Patch) -> None:
    write = StateFiles._write  # noqa: SLF001
    waiting: dict[int, tuple[Any, ...]] = {}

    def later(self: Any, epoch: int, attempt: int, kind: str, data: bytes) -> FileRef:
        former = waiting.pop(id(self), None)
        if former is not None:
            write(*former)
        waiting[id(self)] = (self, epoch, attempt, kind, data)
        digest = hashlib.blake2b(data, digest_size=16).digest()
        return FileRef(epoch_name(self._prefix, epoch, attempt, kind), len(data), digest)

    patch.setattr(StateFiles, "_write", later)


@bug
def tasks_hear_of_a_commit_before_its_record_is_written(patch: Patch) -> None:
    def commit(self: Any, write: Any, now_ms: int) -> list[Any]:
        self._write = None
        if self.coordinator.writing != write.epoch:
            return []
        for task in write.tasks:
            self._tell(task, Commit(write.epoch, ended=write.tasks[task].ended))
        self._commits.write(self._record(write, now_ms))
        actions: list[Any] = self.coordinator.written(write)
        return actions

    patch.setattr(Leader, "_commit", commit)


@bug
def a_commit_does_not_wait_for_the_last_task(patch: Patch) -> None:
    def complete(self: Any) -> dict[int, TaskRecord] | None:
        if self.requested is None and all(self.ended(task) for task in self._tasks):
            return None
        found = self._ends | (self._stored if self.requested is not None else {})
        missing = self._tasks - found.keys()
        if self.requested is not None and len(missing) == 1 and missing <= self._records.keys():
            found |= {task: self._records[task] for task in missing}
        return found if found.keys() >= self._tasks else None

    patch.setattr(Controller, "complete", complete)


@bug
def positions_are_those_of_when_the_state_is_durable(patch: Patch) -> None:
    stored = Epochs._stored  # noqa: SLF001

    def with_new_positions(self: Any, taken: Taken, durable: Any) -> None:
        stored(self, msgspec.structs.replace(taken, positions=self._sources.positions()), durable)

    patch.setattr(Epochs, "_stored", with_new_positions)


@bug
def only_the_files_of_the_newest_record_are_kept(patch: Patch) -> None:
    clear = Commits._clear  # noqa: SLF001

    def keep_one(self: Any, kept: list[CommitRecord], *, up_to: int | None = None) -> None:
        clear(self, kept[:1], up_to=up_to)

    patch.setattr(Commits, "_clear", keep_one)


@bug
def files_of_older_epochs_are_never_deleted(patch: Patch) -> None:
    patch.setattr(Commits, "_clear", lambda self, kept, *, up_to=None: None)


@bug
def numbers_of_attempts_are_used_again_by_the_next_run(patch: Patch) -> None:
    patch.setattr(Commits, "new_attempts", lambda self: 0)


# ---------------------------------------------------------------------- fencing


@bug
def frames_of_earlier_attempts_are_taken(patch: Patch) -> None:
    for module in (task_module, output_module):
        patch.setattr(module, "stamp", lambda attempt: 0)


@bug
def messages_of_earlier_attempts_count(patch: Patch) -> None:
    take = Coordinator.take

    def forgiving(self: Any, message: Message, now_ms: int) -> list[Any]:
        if hasattr(message, "attempt"):
            attempt = self._attempts[message.task]
            message = msgspec.structs.replace(message, attempt=attempt)
        return take(self, message, now_ms)

    patch.setattr(Coordinator, "take", forgiving)


@bug
def an_outdated_process_goes_on_where_it_was_told_to(patch: Patch) -> None:
    patch.setattr(Runner, "_outdated", lambda self, start: False)


# ---------------------------------------------------------------------- sending again


@bug
def output_is_forgotten_one_frame_too_early(patch: Patch) -> None:
    drop = Kept.drop

    def too_much(self: Any, epoch: int) -> None:
        if epoch in self._cuts:
            self._cuts[epoch] = min(self._cuts[epoch] + 1, self._next)
        drop(self, epoch)

    patch.setattr(Kept, "drop", too_much)


@bug
def output_is_kept_from_the_mark_and_not_from_after_it(patch: Patch) -> None:
    cut = Kept.cut

    def before_the_mark(self: Any, epoch: int) -> None:
        cut(self, epoch)
        self._cuts[epoch] = max(self._cuts[epoch] - 1, 0)

    patch.setattr(Kept, "cut", before_the_mark)


@bug
def frames_in_files_are_not_sent_again(patch: Patch) -> None:
    def only_in_memory(self: Any, number: int) -> Iterator[bytes]:
        yield from self.frames[max(number - self._first, 0) :]

    def jump(self: Any, epoch: int, attempt: int) -> None:
        replay(self, epoch, attempt)
        self._sent = max(self._sent, self._first)

    replay = Kept.replay
    patch.setattr(Kept, "_from", only_in_memory)
    patch.setattr(Kept, "replay", jump)


@bug
def the_end_is_not_sent_again(patch: Patch) -> None:
    frames = Kept._from  # noqa: SLF001

    def without_end(self: Any, number: int) -> Iterator[bytes]:
        for frame in frames(self, number):
            if frame[1] == Kind.END and self._behind_since is not None:
                self._sent += 1
            else:
                yield frame

    replay = Kept.replay

    def note(self: Any, epoch: int, attempt: int) -> None:
        self._behind_since = epoch
        replay(self, epoch, attempt)

    patch.setattr(Kept, "_behind_since", None, raising=False)
    patch.setattr(Kept, "_from", without_end)
    patch.setattr(Kept, "replay", note)


@bug
def marks_are_made_again_before_the_sources_have_caught_up(patch: Patch) -> None:
    patch.setattr(Sources, "reached", lambda self, counts: True)


@bug
def marks_that_were_made_are_not_made_again(patch: Patch) -> None:
    overdue = Runner._overdue_marks  # noqa: SLF001

    def forget(self: Any, attempt: Attempt) -> None:
        attempt.marks = type(attempt.marks)(
            mark for mark in attempt.marks if mark not in attempt.__dict__.get("old", ())
        )
        overdue(self, attempt)

    init = Attempt.__init__

    def remember(self: Any, runner: Runner, start: Any) -> None:
        init(self, runner, start)
        self.old = list(start.marks)

    patch.setattr(Attempt, "__init__", remember)
    patch.setattr(Runner, "_overdue_marks", forget)


# ---------------------------------------------------------------------- going back


@bug
def state_is_not_loaded_on_going_back(patch: Patch) -> None:
    patch.setattr(Keeper, "load", lambda self, parts, **options: list(parts) and None)


@bug
def what_was_committed_and_not_shown_is_forgotten(patch: Patch) -> None:
    def resume(self: Any, record: Any) -> None:
        self._token = record.token

    patch.setattr(EpochSink, "resume", resume)


@bug
def readers_go_on_at_the_beginning(patch: Patch) -> None:
    opened = Sources.open

    def at_the_beginning(
        self: Any, split: Any, now: int, positions: Any = None, **options: Any
    ) -> None:
        opened(self, split, now, None, **options)

    patch.setattr(Sources, "open", at_the_beginning)


@bug
def rows_that_are_gone_come_back(patch: Patch) -> None:
    from floodway.operators.keyed import Space

    take = Space.take

    def without_gone(self: Any) -> dict[Any, Any]:
        from floodway.operators.keyed import GONE

        return {key: row for key, row in take(self).items() if row is not GONE}

    patch.setattr(Space, "take", without_gone)


@bug
def only_the_lost_task_goes_back(patch: Patch) -> None:
    from floodway.engine.numbering import Numbering

    patch.setattr(Numbering, "after", lambda self, task: set())


# ---------------------------------------------------------------------- marks and ends


@bug
def marks_are_not_aligned(patch: Patch) -> None:
    def marked(self: Any, channel: Any) -> bool:
        self._held.clear()
        self._held[channel] = []
        return True

    patch.setattr(Inbox, "marked", marked)


@bug
def a_pulse_that_comes_twice_makes_two_marks(patch: Patch) -> None:
    def expect(self: Any, pulse: Pulse) -> None:
        self.marks.append(pulse)

    patch.setattr(Attempt, "expect", expect)


@bug
def a_mark_may_follow_the_end_of_its_channel(patch: Patch) -> None:
    marked = Task._marked  # noqa: SLF001

    def also_after_the_end(self: Any, header: Any, data: bytes, now: int) -> None:
        channel = (header[2], header[3])
        ended = channel not in self.inbox.open
        if ended:
            self.inbox.open.add(channel)
        try:
            marked(self, header, data, now)
        finally:
            if ended:
                self.inbox.open.discard(channel)

    patch.setattr(Task, "_marked", also_after_the_end)


@bug
def a_task_leaves_when_its_end_is_committed_and_not_shown(patch: Patch) -> None:
    committed = Epochs.committed

    def and_leave(self: Any, epoch: int, *, ended: bool) -> None:
        committed(self, epoch, ended=ended)
        self.left = self.left or ended

    patch.setattr(Epochs, "committed", and_leave)


@bug
def sources_do_not_wait_until_tables_are_committed(patch: Patch) -> None:
    def loaded(self: Any) -> list[Any]:
        from floodway.engine.actions import Tell
        from floodway.engine.control import Go

        if not self._loading.complete:
            return []
        sources = self._loading.release()
        return [Tell(task, Go(sources)) for task in sorted(self.names.keys() - self._gone)]

    patch.setattr(Coordinator, "_loaded", loaded)


@bug
def tables_count_as_loaded_though_their_tasks_went_back(patch: Patch) -> None:
    patch.setattr(Loading, "again", lambda self, tasks: None)


# ---------------------------------------------------------------------- another parallelism


@bug
def state_is_dealt_out_to_the_neighbour(patch: Patch) -> None:
    deal = rescale._Deal  # noqa: SLF001
    targets = deal._targets  # noqa: SLF001

    def next_one(self: Any, key: Any, *, copies: bool) -> Iterable[int]:
        return [(target + 1) % self._stage.dop for target in targets(self, key, copies=copies)]

    patch.setattr(deal, "_targets", next_one)


@bug
def what_was_not_shown_is_forgotten_on_rescaling(patch: Patch) -> None:
    patch.setattr(rescale, "show_logs", lambda record, plan, vault: None)



