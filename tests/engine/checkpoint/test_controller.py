"""The RUD controller: which epoch is on its way, and who has stored its part."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floodway.engine.checkpoint.controller import Controller
from floodway.engine.checkpoint.records import TaskRecord

TASKS = range(3)


def part(task: int, epoch: int = 0, *, ended: bool = False) -> TaskRecord:
    return TaskRecord("counts", task, [], {}, {}, epoch, ended)


def parts(epoch: int, *, ended: tuple[int, ...] = ()) -> dict[int, TaskRecord]:
    return {task: part(task, epoch, ended=task in ended) for task in TASKS}


def store(controller: Controller, epoch: int, *tasks: int, ended: bool = False) -> None:
    for task in tasks:
        controller.stored(task, epoch, part(task, epoch, ended=ended))


def test_epoch_is_complete_when_all_have_stored_it() -> None:
    controller = Controller(TASKS)
    controller.request(4)
    assert controller.missing == [0, 1, 2]
    store(controller, 4, 0, 2)
    assert (controller.missing, controller.complete()) == ([1], None)
    store(controller, 4, 1)
    assert (controller.missing, controller.complete()) == ([], parts(4))


def test_nothing_is_complete_that_was_not_requested() -> None:
    controller = Controller(TASKS)
    assert controller.complete() is None
    store(controller, 4, *TASKS)
    assert controller.complete() is None
    controller.request(4)
    assert controller.missing == [0, 1, 2]


def test_committed_epoch_is_what_tasks_go_back_to() -> None:
    controller = Controller(TASKS)
    assert controller.record(0) is None
    controller.request(4)
    store(controller, 4, *TASKS)
    controller.commit(4, parts(4))
    assert (controller.committed, controller.requested) == (4, None)
    assert controller.record(1) == part(1, 4)
    assert controller.complete() is None
    controller.request(9)
    assert controller.missing == [0, 1, 2]


@pytest.mark.parametrize("when", ["before", "while"])
def test_end_counts_for_every_epoch_whose_mark_has_not_come(when: str) -> None:
    controller = Controller(TASKS)
    if when == "before":
        store(controller, 1, 0, ended=True)
    controller.request(4)
    if when == "while":
        store(controller, 1, 0, ended=True)
    store(controller, 4, 1, 2)
    complete = controller.complete()
    assert complete == {0: part(0, 1, ended=True), 1: part(1, 4), 2: part(2, 4)}
    controller.commit(4, complete)
    assert [controller.ended(task) for task in TASKS] == [True, False, False]
    controller.request(5)
    assert controller.missing == [1, 2]


def test_task_that_passed_the_mark_counts_as_it_was_there() -> None:
    controller = Controller(TASKS)
    controller.request(4)
    store(controller, 4, *TASKS)
    store(controller, 5, 0, ended=True)
    assert controller.complete() == parts(4)
    controller.commit(4, parts(4))
    assert not controller.ended(0)
    controller.request(9)
    assert controller.missing == [1, 2]


def test_all_ends_are_complete_without_a_request_until_they_are_committed() -> None:
    controller = Controller(TASKS)
    store(controller, 1, 0, 1, ended=True)
    assert controller.complete() is None
    store(controller, 1, 2, ended=True)
    complete = controller.complete()
    assert complete == {task: part(task, 1, ended=True) for task in TASKS}
    controller.commit(8, complete)
    assert controller.complete() is None


def test_what_was_said_before_going_back_is_forgotten_but_for_committed_ends() -> None:
    controller = Controller(TASKS)
    store(controller, 1, 0, ended=True)
    controller.request(4)
    store(controller, 4, 1, 2)
    controller.commit(4, controller.complete() or {})
    store(controller, 5, 1, ended=True)
    controller.request(6)
    store(controller, 6, 2)
    controller.forget([0, 1, 2])
    assert controller.missing == [1, 2]
    controller.forget([])
    assert controller.missing == [1, 2]


def test_ends_of_a_record_are_known_from_the_start() -> None:
    controller = Controller(TASKS, 7, parts(7, ended=(1,)))
    assert (controller.committed, controller.ended(1), controller.ended(0)) == (7, True, False)
    controller.request(8)
    assert controller.missing == [0, 2]
    store(controller, 8, 0, 2)
    assert controller.complete() == {0: part(0, 8), 1: part(1, 7, ended=True), 2: part(2, 8)}


def test_record_in_which_all_have_ended_has_nothing_left_to_complete() -> None:
    controller = Controller(TASKS, 7, parts(7, ended=(0, 1, 2)))
    assert controller.complete() is None


EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["store", "store", "store", "end", "forget", "request", "commit"]),
        st.sampled_from(TASKS),
    ),
    max_size=60,
)


@settings(max_examples=300)
@given(EVENTS)
def test_complete_is_what_each_task_said_last_at_the_mark(events: list[tuple[str, int]]) -> None:
    """Against a plain list of what was said and not taken back."""
    controller, epoch = Controller(TASKS), 0
    said: list[tuple[int, TaskRecord]] = []
    committed: dict[int, TaskRecord] = {}
    for kind, task in events:
        requested = controller.requested
        if kind == "request" and requested is None:
            epoch += 1
            controller.request(epoch)
        elif kind == "store" and requested is not None:
            said.append((task, part(task, requested)))
            store(controller, requested, task)
        elif kind == "end":
            said.append((task, part(task, epoch + 1, ended=True)))
            store(controller, epoch + 1, task, ended=True)
        elif kind == "forget" and not (task in committed and committed[task].ended):
            said = [(who, what) for who, what in said if who != task]
            controller.forget([task])
        expected = {who: what for who, what in said if what.ended}
        if controller.requested is not None:
            expected |= {
                who: what
                for who, what in said
                if not what.ended and what.progress == controller.requested
            }
        over = len(committed) == 3 and all(record.ended for record in committed.values())
        if expected.keys() < set(TASKS) or (controller.requested is None and over):
            assert controller.complete() is None
        else:
            assert controller.complete() == expected
            if kind == "commit":
                number = controller.requested or epoch + 1
                epoch = max(epoch, number)
                controller.commit(number, expected)
                committed = expected
        assert {task: controller.record(task) for task in committed} == committed
