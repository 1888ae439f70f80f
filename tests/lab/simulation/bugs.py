"""Subtle bugs: each puts one wrong thing into the engine, and a flow that is likely to suffer."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import msgspec
import pytest
from floodway_lab.simulation.joins import LookupJoin, Preloaded, StreamJoin
from floodway_lab.simulation.scenario import Scenario
from floodway_lab.simulation.streams import (
    Confluence,
    FanOut,
    LargeState,
    Processing,
    Stateless,
    WindowedCounts,
)

from floodway.engine.checkpoint import output as output_module
from floodway.engine.checkpoint import rescale
from floodway.engine.checkpoint.commits import Commits
from floodway.engine.checkpoint.controller import Controller
from floodway.engine.checkpoint.output import Kept
from floodway.engine.checkpoint.records import CommitRecord, TaskRecord
from floodway.engine.checkpoint.state_files import StateFiles
from floodway.engine.checkpoint.vault import FileRef, epoch_name, header_of, verified_digest
from floodway.engine.control.messages import Commit, Go, Message, Pulse
from floodway.engine.datastream import task as task_module
from floodway.engine.datastream.alignment import Alignment
from floodway.engine.datastream.delivery import EpochSink
from floodway.engine.datastream.epochs import Epochs, Taken
from floodway.engine.datastream.reading import Sources
from floodway.engine.driver.actions import Tell
from floodway.engine.driver.coordinator import Coordinator
from floodway.engine.driver.leader import Leader
from floodway.engine.opstream.batch import Batch
from floodway.engine.opstream.batches import Batches
from floodway.engine.program.standing import LOCAL
from floodway.engine.state.keeper import Keeper
from floodway.engine.transport.frame import EPOCH, EXCHANGE, SENDER, Kind
from floodway.engine.transport.numbering import Numbering
from floodway.engine.worker.attempt import Attempt
from floodway.engine.worker.runner import Runner
from floodway.operators.keyed import GONE, Space

Patch = pytest.MonkeyPatch
Inject = Callable[[Patch], None]


class Bug(NamedTuple):
    """A bug, and the flow in which it is looked for."""

    inject: Inject
    scenario: Scenario


BUGS: dict[str, Bug] = {}


def bug(scenario: Scenario) -> Callable[[Inject], Inject]:
    """Remember a bug by its name."""

    def remember(inject: Inject) -> Inject:
        BUGS[inject.__name__] = Bug(inject, scenario)
        return inject

    return remember


def original(owner: Any, name: str) -> Any:
    """Return what is there before it is replaced."""
    return getattr(owner, name)


# ---------------------------------------------------------------------- committing


@bug(Stateless())
def sinks_show_an_epoch_when_it_is_stored(patch: Patch) -> None:
    stored = original(Epochs, "_stored")

    def and_show(self: Any, taken: Taken, durable: Any) -> None:
        stored(self, taken, durable)
        self._sinks.commit(taken.epoch, self._applying)

    patch.setattr(Epochs, "_stored", and_show)


@bug(Processing())
def state_is_acknowledged_before_it_is_durable(patch: Patch) -> None:
    write = original(StateFiles, "_write")
    waiting: dict[int, tuple[Any, ...]] = {}

    def later(self: Any, epoch: int, attempt: int, kind: str, data: bytes) -> FileRef:
        former = waiting.pop(id(self), None)
        if former is not None:
            write(*former)
        waiting[id(self)] = (self, epoch, attempt, kind, data)
        name = epoch_name(self._prefix, epoch, attempt, kind)
        return FileRef(name, len(data), verified_digest(name, header_of(data), data))

    patch.setattr(StateFiles, "_write", later)


@bug(Stateless())
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


@bug(Processing())
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


@bug(Stateless())
def positions_are_those_of_when_the_state_is_durable(patch: Patch) -> None:
    stored = original(Epochs, "_stored")

    def with_new_positions(self: Any, taken: Taken, durable: Any) -> None:
        stored(self, msgspec.structs.replace(taken, positions=self._sources.positions()), durable)

    patch.setattr(Epochs, "_stored", with_new_positions)


@bug(Stateless())
def only_the_files_of_the_newest_record_are_kept(patch: Patch) -> None:
    clear = original(Commits, "_clear")

    def keep_one(self: Any, kept: list[CommitRecord], *, up_to: int | None = None) -> None:
        clear(self, kept[:1], up_to=up_to)

    patch.setattr(Commits, "_clear", keep_one)


@bug(Stateless())
def files_of_older_epochs_are_never_deleted(patch: Patch) -> None:
    patch.setattr(Commits, "_clear", lambda self, kept, *, up_to=None: None)


@bug(Stateless())
def numbers_of_attempts_are_used_again_by_the_next_run(patch: Patch) -> None:
    patch.setattr(Commits, "new_attempts", lambda self: 0)


# ---------------------------------------------------------------------- fencing


@bug(FanOut())
def frames_of_earlier_attempts_are_taken(patch: Patch) -> None:
    for module in (task_module, output_module):
        patch.setattr(module, "stamp", lambda attempt: 0)


@bug(WindowedCounts())
def messages_of_earlier_attempts_count(patch: Patch) -> None:
    take = Coordinator.take

    def forgiving(self: Any, message: Message, now_ms: int) -> list[Any]:
        if hasattr(message, "attempt"):
            attempt = self.attempts[message.task]
            message = msgspec.structs.replace(message, attempt=attempt)
        return take(self, message, now_ms)

    patch.setattr(Coordinator, "take", forgiving)


# ---------------------------------------------------------------------- sending again


@bug(Processing())
def output_is_forgotten_one_frame_too_early(patch: Patch) -> None:
    drop = Kept.drop

    def too_much(self: Any, epoch: int) -> None:
        if epoch in self._cuts:
            self._cuts[epoch] = min(self._cuts[epoch] + 1, self._next)
        drop(self, epoch)

    patch.setattr(Kept, "drop", too_much)


@bug(Processing())
def output_is_kept_from_the_mark_and_not_from_after_it(patch: Patch) -> None:
    cut = Kept.cut

    def before_the_mark(self: Any, epoch: int) -> None:
        cut(self, epoch)
        self._cuts[epoch] = max(self._cuts[epoch] - 1, 0)

    patch.setattr(Kept, "cut", before_the_mark)


@bug(LargeState())
def frames_in_files_are_not_sent_again(patch: Patch) -> None:
    def only_in_memory(self: Any, number: int) -> Iterator[bytes]:
        yield from self.frames[max(number - self._first, 0) :]

    def jump(self: Any, epoch: int, attempt: int) -> None:
        replay(self, epoch, attempt)
        self._sent = max(self._sent, self._first)

    replay = Kept.replay
    patch.setattr(Kept, "_from", only_in_memory)
    patch.setattr(Kept, "replay", jump)


@bug(Processing())
def the_end_is_not_sent_again(patch: Patch) -> None:
    frames = original(Kept, "_from")

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


@bug(StreamJoin())
def marks_are_made_again_before_the_sources_have_caught_up(patch: Patch) -> None:
    patch.setattr(Sources, "reached", lambda self, counts: True)


@bug(Processing())
def marks_that_were_made_are_not_made_again(patch: Patch) -> None:
    overdue = original(Runner, "_overdue_marks")

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


@bug(Processing())
def state_is_not_loaded_on_going_back(patch: Patch) -> None:
    patch.setattr(Keeper, "load", lambda self, parts, **options: list(parts) and None)


@bug(Stateless())
def what_was_committed_and_not_shown_is_forgotten(patch: Patch) -> None:
    def resume(self: Any, record: Any) -> None:
        self._token = record.token

    patch.setattr(EpochSink, "resume", resume)


@bug(Stateless())
def readers_go_on_at_the_beginning(patch: Patch) -> None:
    opened = Sources.open

    def at_the_beginning(
        self: Any, split: Any, now: int, positions: Any = None, **options: Any
    ) -> None:
        opened(self, split, now, None, **options)

    patch.setattr(Sources, "open", at_the_beginning)


@bug(Processing())
def rows_that_are_gone_come_back(patch: Patch) -> None:
    take = Space.take

    def without_gone(self: Any) -> dict[Any, Any]:
        return {key: row for key, row in take(self).items() if row is not GONE}

    patch.setattr(Space, "take", without_gone)


@bug(Processing())
def only_the_lost_task_goes_back(patch: Patch) -> None:
    patch.setattr(Numbering, "after", lambda self, task: set())


# ---------------------------------------------------------------------- marks and ends


@bug(StreamJoin())
def marks_are_not_aligned(patch: Patch) -> None:
    def marked(self: Any, channel: Any) -> bool:
        self.held.clear()
        self.held[channel] = None
        return True

    patch.setattr(Alignment, "marked", marked)


@bug(StreamJoin())
def a_pulse_that_comes_twice_makes_two_marks(patch: Patch) -> None:
    def expect(self: Any, pulse: Pulse) -> None:
        self.marks.append(pulse)

    patch.setattr(Attempt, "expect", expect)


@bug(Stateless())
def a_task_leaves_when_its_end_is_committed_and_not_shown(patch: Patch) -> None:
    committed = Epochs.committed

    def and_leave(self: Any, epoch: int, *, ended: bool) -> None:
        committed(self, epoch, ended=ended)
        self.left = self.left or ended

    patch.setattr(Epochs, "committed", and_leave)


@bug(Preloaded())
def sources_do_not_wait_until_tables_are_committed(patch: Patch) -> None:
    def loaded(self: Any) -> list[Any]:
        if not self._loading.complete:
            return []
        sources = self._loading.release()
        return [Tell(task, Go(sources)) for task in sorted(self.roster.staying)]

    patch.setattr(Coordinator, "_loaded", loaded)


# ---------------------------------------------------------------------- another parallelism


@bug(Processing())
def state_is_dealt_out_to_the_neighbour(patch: Patch) -> None:
    deal = original(rescale, "_Deal")
    targets = original(deal, "_targets")

    def next_one(self: Any, key: Any, *, copies: bool) -> Iterable[int]:
        return [(target + 1) % self._stage.dop for target in targets(self, key, copies=copies)]

    patch.setattr(deal, "_targets", next_one)


@bug(Stateless())
def what_was_not_shown_is_forgotten_on_rescaling(patch: Patch) -> None:
    patch.setattr(rescale, "show_logs", lambda record, plan, vault: None)


# ---------------------------------------------------------------------- switching


@bug(LookupJoin())
def sources_are_asked_where_they_are_when_a_mark_is_collected(patch: Patch) -> None:
    collect = original(Batches, "_collect_mark")

    def late(self: Any, header: Any, data: bytes) -> None:
        if (header[EXCHANGE], header[SENDER]) == LOCAL:
            self._made[header[EPOCH]] = self._where()  # a read may have come in between
        collect(self, header, data)

    patch.setattr(Batches, "_collect_mark", late)


@bug(Processing())
def a_run_goes_on_beyond_a_mark(patch: Patch) -> None:
    def add(self: Any, step: Any) -> None:
        self.steps.append(step)

    patch.setattr(Batch, "add", add)


@bug(Processing())
def a_channel_has_ended_when_its_end_is_collected(patch: Patch) -> None:
    standing = original(task_module.Task, "standing")

    def early(self: Any) -> Any:
        found = standing(self)
        return msgspec.structs.replace(found, channels=sorted(self.inbox.open))

    patch.setattr(task_module.Task, "standing", early)


@bug(Stateless())
def a_task_goes_back_to_records_before_all_is_merged(patch: Patch) -> None:
    turn = original(Batches, "turn")

    def soon(self: Any, now: int) -> None:
        turn(self, now)
        if self.wanted == "data" and self._pending is None:
            self._active = False

    patch.setattr(Batches, "turn", soon)


@bug(Confluence())
def who_goes_back_collects_no_mark(patch: Patch) -> None:
    full = original(Batches, "full").fget

    def at_once(self: Any) -> bool:
        return self.wanted == "data" or bool(full(self))

    patch.setattr(Batches, "full", property(at_once))
