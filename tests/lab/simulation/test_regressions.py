"""Faults of the engine that simulations have found, each with the least that shows it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from floodway_lab.simulation import Scenario, simulate
from floodway_lab.simulation.conditions import Conditions, Fault, conditions
from floodway_lab.simulation.joins import StreamJoin
from floodway_lab.simulation.streams import FanOut, Stateless
from floodway_lab.simulation.tasks import TaskProcess
from floodway_lab.simulation.timeline import Timeline
from floodway_lab.simulation.world import World

from floodway.core.errors import ConnectorError
from floodway.engine.checkpoint.commits import Commits
from floodway.engine.checkpoint.records import CommitRecord
from floodway.engine.checkpoint.rescale import show_logs
from floodway.engine.checkpoint.vault import FolderVault, epoch_name
from floodway.engine.control.messages import Beat, Hello, Start, to_frame
from floodway.engine.datastream.task import Task
from floodway.engine.program.mark import Mark
from floodway.engine.state.delta import Part, PartWriter, merged
from floodway.engine.state.pickling import Pickling
from floodway.engine.transport.frame import FrameError, Kind, make_frame, parse
from floodway.model.flow import Flow
from floodway.operators.keyed import GONE
from floodway.plan.stages import Plan
from tests.engine.checkpoint.making import commit, delta_name, make_record, store
from tests.engine.driver.leading import Fake, launches, simple


def changed(**changes: Any) -> Callable[[Conditions], Conditions]:
    return lambda given: msgspec.structs.replace(given, **changes)


def problems(scenario: Scenario, seeds: range, **changes: Any) -> list[tuple[int, str]]:
    found = []
    for seed in seeds:
        outcome = simulate(seed, scenario=scenario, under=changed(**changes))
        if outcome.problem is not None:
            found.append((seed, outcome.problem))
    return found


# ---------------------------------------------------------------------- marks


def test_pulses_that_come_twice_do_not_put_marks_out_of_step() -> None:
    # One channel was a mark ahead of the others from then on: state and positions did not match.
    faults = (Fault(900_000, "kill", 0), Fault(1_200_000, "kill driver", 0))
    assert problems(StreamJoin(), range(8), doubling=0.4, faults=faults) == []


def joined() -> Plan:
    flow = Flow("joined")
    one = flow.source("one", schema=str).isolate().key_by("value")
    two = flow.source("two", schema=str).isolate().key_by("value")
    one.join(two, within=10, name="both").to("out")
    return Plan.of(flow)


def test_marks_that_are_out_of_step_are_refused() -> None:
    plan = joined()
    task = Task(plan, plan.stage_of("both"), 0, lambda number, frame: None)
    marks = [msgspec.msgpack.encode(Mark(0, 0, commit=True))] * 2
    first, second = (exchange.number for exchange in plan.inputs(task.stage))
    for exchange, epoch, mark in zip((first, second), (1, 2), marks, strict=True):
        frame = make_frame(Kind.MARK, mark, exchange=exchange, epoch=epoch)
        task.receive(parse(frame), frame)
    assert task.step(0)
    with pytest.raises(FrameError, match="mark 2 came where 1 was due"):
        task.step(0)


def test_source_that_ends_while_a_mark_waits_is_not_followed_by_that_mark() -> None:
    # The mark went out behind the end: tasks that come after took the epoch a second time.
    flow = Flow("ends")
    flow.source("numbers", schema=int).isolate().map("value + 1", name="more").to("out")
    plan = Plan.of(flow)
    sent: list[int] = []
    source = Task(plan, plan.stage_of("numbers"), 0, lambda number, frame: sent.append(frame[1]))
    ended: list[int] = []
    source.on_commit = lambda epoch, _: ended.append(epoch)
    source.pulse(1, Mark(0, 0, commit=True))
    source.end_source("numbers", 0)
    while source.step(0):
        pass
    assert sent == [Kind.END]
    assert ended == []


# ---------------------------------------------------------------------- sinks


def test_task_does_not_leave_before_its_last_epoch_is_shown() -> None:
    # It left when an earlier epoch had been shown: the sink was away, and the rest was lost.
    faults = tuple(Fault(after, "sink away", 3_000_000) for after in (300_000, 2_000_000))
    for scenario in (Stateless(), FanOut()):
        assert problems(scenario, range(4), faults=faults, traps=(), epoch_ms=20) == []


def test_process_that_hears_too_late_to_begin_leaves_the_sinks_alone(tmp_path: Path) -> None:
    # A zombie opened a sink at its old place, which took back what its successor had shown.
    timeline = Timeline(1)
    given = conditions(1, timeline.random, Stateless())
    world = World(timeline, msgspec.structs.replace(given, undoes=True, dops=(1,)), tmp_path)
    plan = world.plan()
    process = TaskProcess(
        world,
        plan,
        "readings",
        0,
        number=1,
        run=0,
        launch=0,
        driver="sim://0",
        scratch=tmp_path,
        settings=given.settings,
    )
    world.outside.committed = lambda: 5
    world.outside.show("out", "simulated.out.0", 5, b"rows")
    world.disk.put("commits/000000000005", b"", process)
    process.deliver(to_frame(Start([""] * plan.tasks, [1] * plan.tasks, epoch=3)))
    while process.alive and timeline.seconds < 1:
        timeline.step()
    assert not process.alive
    assert world.outside.shown == {("out", "simulated.out.0", 5): b"rows"}
    process.clear_up()
    world.outside.forget()


def test_sink_that_is_away_when_a_flow_is_rescaled_is_named(tmp_path: Path) -> None:
    # What the connector raised went through as it was, and no user could know what it meant.
    timeline = Timeline(1)
    given = conditions(1, timeline.random, Stateless())
    world = World(timeline, given, tmp_path)
    world.begin()
    while (record := _record_with_logs(world)) is None:
        assert timeline.step()
    world.outside.away_until["out"] = timeline.now + 1_000_000
    with pytest.raises(ConnectorError, match="out cannot be opened: out is away"):
        show_logs(record, world.plan(), world.disk.vault(world.drivers[0]))
    for process in world.processes:
        process.leave()
        process.clear_up()
    world.outside.forget()


def _record_with_logs(world: World) -> CommitRecord | None:
    """Return the last commit record if its sinks had not shown everything by then."""
    latest = Commits(world.disk.vault(world.drivers[0])).latest()
    if latest is None or not any(s.logs for t in latest.tasks for s in t.sinks.values()):
        return None
    return latest


# ---------------------------------------------------------------------- the checkpoint


def test_attempts_of_a_run_that_never_committed_are_not_used_again(tmp_path: Path) -> None:
    # Its tasks lingered, and wrote over files of the same name that the next run had committed.
    commits = Commits(FolderVault(tmp_path))
    first, second = commits.new_attempts(), commits.new_attempts()
    assert second - first >= 1000


def test_attempts_are_found_in_the_names_of_files_if_they_are_not_written_down(
    tmp_path: Path,
) -> None:
    vault = FolderVault(tmp_path)
    vault.write(epoch_name("state/counts-0", 3, 4711, "delta"), b"rows")
    assert Commits(vault).new_attempts() == 5000


@pytest.mark.parametrize("damage", [b"no number", b""])
def test_attempts_that_cannot_be_read_are_found_as_well(tmp_path: Path, damage: bytes) -> None:
    vault = FolderVault(tmp_path)
    vault.write(epoch_name("state/counts-0", 3, 4711, "delta"), b"rows")
    vault.write("attempts", damage)
    assert Commits(vault).new_attempts() == 5000


def test_files_of_a_dead_run_do_not_stay_for_ever(tmp_path: Path) -> None:
    # Those of later epochs than the last were never deleted.
    commits = Commits(FolderVault(tmp_path))
    record = commit(commits, 3)
    store(commits.vault, 50, "delta", b"of a task that was ahead", attempt=1)
    commits.go_on_from(record)
    assert commits.vault.names("state/") == [delta_name(3)]


def test_files_of_former_attempts_do_not_outlive_the_end(tmp_path: Path) -> None:
    # A task numbers its end by the marks it has seen: in a former attempt there may be more.
    commits = Commits(FolderVault(tmp_path))
    store(commits.vault, 4, "delta", b"of an attempt that is over", attempt=1)
    commits.write(msgspec.structs.replace(make_record(3), finished=True))
    assert commits.vault.names("state/") == []


def test_merged_parts_are_the_same_bytes_in_every_process() -> None:
    pickling = Pickling(())
    parts = []
    for number in range(3):
        writer = PartWriter(pickling)
        for name in ("b", "a", "c"):
            writer.drop(("counts", name, number))
            writer.rows(("counts", name, number), {"key": GONE})
        parts.append(writer.finish())
    found = Part(merged(parts[:2], parts[2], pickling, base=False), pickling).drops
    assert found == [("counts", name, number) for number in (2, 1, 0) for name in "bac"]


# ---------------------------------------------------------------------- losses


def test_hello_of_a_dead_process_that_comes_after_its_successors_is_found_out() -> None:
    # The driver waited for ever for the dead one: the beats of the other were taken for its own.
    fake = Fake(simple(), every_ms=1000, silent_ms=5000)
    for task in range(fake.count):
        fake.hello(task)
    assert fake.say(Hello(0, 0, "dead", 7, "here"))
    fake.quiet = {0}
    for _ in range(49):
        fake.say(Beat(0, 0, fake.pids[0]))  # of the one that lives, and has not been told to start
        assert launches(fake.tick()) == []
    assert [launch.task for launch in launches(fake.tick(by=200))] == [0]


def test_task_that_has_just_answered_is_not_silent() -> None:
    fake = Fake(simple(), every_ms=1000, silent_ms=5000)
    for task in range(fake.count):
        fake.hello(task)
    fake.now += 4900  # nobody beats: they are busy with reading state
    for task in range(fake.count):
        fake.ready(task)
    fake.quiet = set(range(fake.count))
    assert launches(fake.tick(by=200)) == []
