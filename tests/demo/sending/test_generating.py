"""Events are generated when they are due, whatever a system does, and none is left out."""

from hypothesis import given
from hypothesis import strategies as st

from floodway.demo.sending.generating import BEHIND_TICKS, TICK_US
from floodway.demo.sending.lines import Lines
from floodway.demo.sending.schedules import Recorded
from tests.demo.sending.clock import Clock
from tests.demo.sending.lines import T0, told

LOADS = st.builds(
    Recorded, st.lists(st.floats(1, 1e6), min_size=1).map(tuple), st.floats(0.02, 0.2)
)


@given(LOADS, st.lists(st.integers(1, 200_000), min_size=1, max_size=30))
def test_nobody_who_asks_late_misses_an_event(schedule: Recorded, waits: list[int]) -> None:
    clock, now_us = Clock(), 0
    generator = clock.generator(schedule, 0.2)
    for wait_us in [*waits, 10_000_000]:
        now_us += wait_us
        while generator.turn(now_us) <= now_us and not generator.over:
            pass
    assert generator.over
    assert clock.queue.put_in == int(schedule.due(0.2))
    clock.empty()
    assert clock.queue.taken == clock.queue.put_in
    assert sum(stretch.count for stretch in clock.lines.sent) == clock.queue.put_in


def test_events_have_the_time_at_which_they_were_due_however_late_it_is() -> None:
    clock = Clock()
    generator = clock.generator(Recorded((2_000,)), 1)
    generator.turn(10 * TICK_US)
    assert clock.lines.sent == []  # lines are made when somebody takes them
    clock.empty()
    assert {s.time_ms - T0 for s in clock.lines.sent} == set(range(11))


def test_what_was_missed_is_made_up_for_bit_by_bit() -> None:
    clock = Clock()
    generator = clock.generator(Recorded((1_000,)), 10)
    assert generator.turn(1_000_000) == 1_000_000  # there is more to do at once
    assert clock.queue.put_in == BEHIND_TICKS


@given(st.lists(st.integers(0, 40), max_size=20), st.integers(1, 7))
def test_stretches_tell_every_line_that_was_sent(takes: list[int], prepared: int) -> None:
    lines = Lines([b"%d,\x00;" % number for number in range(prepared)])
    sent = b"".join(lines.take(count, T0 + n) for n, count in enumerate(takes))
    assert sent == told(lines.sent)
