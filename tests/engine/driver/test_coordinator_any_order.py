"""The coordinator, whatever happens in whatever order: what it commits is right, and it goes on."""

from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.driver.leading import forked, preloading, simple
from tests.engine.flow_model import Model

PLANS = {"simple": simple(), "wide": simple(2), "forked": forked(), "preloading": preloading()}
FLOWS = st.sampled_from(sorted(PLANS))

ROUNDS = 400
"""In so many rounds, in each of which everybody may do one thing, a flow without losses gets on."""


def settle(model: Model, done: Callable[[], bool]) -> None:
    """Let everybody do what there is to do, until it is done; fail if that never happens."""
    for _ in range(ROUNDS):
        if done():
            return
        for move in model.moves():
            move()
    waiting = [(p.task, p.attempt, p.passed, p.ended, p.left) for p in model.processes.values()]
    raise AssertionError(f"{model.lead.state} at {model.lead.committed}: nothing moves: {waiting}")


def disturb(model: Model, choice: int) -> None:
    """Let something happen that nobody has waited for."""
    task = choice // 8 % len(model.processes)
    process = model.processes[task]
    match choice % 8:
        case 0 | 1 if model.may_lose():
            model.lose(task)
        case 2 if model.may_lose():
            model.replace(task)
        case 3 if process.may_close():
            process.close()
        case 4 if choice // 8 % 16 == 0:
            model.start()
        case _:
            model.tick()


EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("go"), st.integers(0, 63)),
        st.tuples(st.just("go"), st.integers(0, 63)),
        st.tuples(st.just("all"), st.integers(1, 12)),
        st.tuples(st.just("disturb"), st.integers(0, 1023)),
    ),
    min_size=5,
    max_size=60,
)


def live(model: Model, events: list[tuple[str, int]]) -> None:
    for kind, number in events:
        if kind == "disturb":
            disturb(model, number)
        elif kind == "go":
            moves = model.moves()
            moves[number % len(moves)]()
        else:
            for _ in range(number):
                for move in model.moves():
                    move()
        assert model.lead.state != "failed", model.lead.failure


@settings(max_examples=200)
@given(EVENTS, FLOWS)
def test_epochs_go_on_being_committed_whatever_was_lost(
    events: list[tuple[str, int]], flow: str
) -> None:
    model = Model(PLANS[flow])
    live(model, events)
    before = model.record.epoch if model.record else 0
    settle(model, lambda: model.lead.over or model.lead.committed > before)
    assert model.record is not None


@settings(max_examples=200)
@given(EVENTS, FLOWS, EVENTS)
def test_flow_stops_in_order_whatever_was_lost(
    events: list[tuple[str, int]], flow: str, more: list[tuple[str, int]]
) -> None:
    model = Model(PLANS[flow])
    live(model, events)
    settle(model, lambda: model.lead.over or model.lead.state == "running")
    epoch = model.lead.epoch
    model.carry_out(model.lead.drain())
    live(model, [event for event in more if event[1] % 8 != 4])  # the driver stays
    settle(model, lambda: model.lead.state in ("stopping", "ended"))
    assert model.record is not None
    assert model.record.epoch > epoch or model.record.finished


@settings(max_examples=200)
@given(EVENTS, FLOWS)
def test_flow_ends_when_its_sources_have_whatever_was_lost(
    events: list[tuple[str, int]], flow: str
) -> None:
    model = Model(PLANS[flow])
    live(model, events)

    def ended() -> bool:
        for process in model.processes.values():
            if process.may_close():
                process.close()
        return model.lead.over

    settle(model, ended)
    assert model.lead.state == "ended"
    assert model.record is not None
    assert model.record.finished
    assert all(part.ended for part in model.record.tasks)
