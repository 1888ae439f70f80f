"""A trial ends when a system does not keep up, and can find out how much one takes."""

import pytest
from floodway_lab.sending.generating import AHEAD, TrialGenerator
from floodway_lab.sending.schedules import Constant, Schedule

from floodway.demo.sending.generating import TICK_US
from tests.demo.sending.clock import Clock


def trial(clock: Clock, schedule: Schedule, seconds: float, **options: float) -> TrialGenerator:
    return TrialGenerator(schedule, seconds, clock.queue, **clock.began, **options)


def test_it_is_told_how_late_events_were_generated() -> None:
    clock = Clock()
    generator = trial(clock, Constant(2_000), 1)
    generator.turn(10 * TICK_US)
    assert generator.jitter.most == pytest.approx(10, rel=0.02)
    assert generator.jitter.p50 == pytest.approx(5, rel=0.3)


def test_nothing_more_is_generated_for_a_system_that_does_not_keep_up() -> None:
    clock = Clock()
    generator = trial(clock, Constant(10_000), 10, acceptable=100, tolerated=500)
    for ms in range(1000):
        generator.turn(ms * 1000)
    assert generator.over
    assert not generator.drain_s
    assert not generator.noted["sustained"]
    assert clock.queue.put_in == pytest.approx(500, abs=10)


def test_from_a_moment_on_as_many_are_due_as_are_taken() -> None:
    clock = Clock()
    generator = trial(clock, Constant(1_000), 0.2, closed_s=0.1)
    generator.turn(99 * TICK_US)
    generator.turn(99 * TICK_US)
    assert clock.queue.put_in == 100
    generator.turn(100 * TICK_US)
    assert clock.queue.size == AHEAD
    clock.queue.gone(len(clock.queue.front(1)[0]))
    generator.turn(101 * TICK_US)
    assert clock.queue.taken == clock.queue.put_in - AHEAD > 0
