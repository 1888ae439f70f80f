"""Events are generated when they are due, whatever a system does, and none is left out."""

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from floodway.bench.data.generating import BEHIND_TICKS, TICK_US, Generator
from floodway.bench.data.judging import Sustaining
from floodway.bench.data.lines import Disorder, Lines, Stretch
from floodway.bench.data.queueing import Queue
from floodway.bench.data.schedules import (
    Bursts,
    Constant,
    Ramp,
    Recorded,
    Schedule,
    Sine,
    Step,
    read_rates,
    shaped,
)
from floodway.core.errors import OptionError

T0 = 1_700_000_000_000
RATES = st.floats(1, 1e6)
TIMES = st.floats(0.1, 100)

SCHEDULES: st.SearchStrategy[Schedule] = st.one_of(
    st.builds(Constant, RATES),
    st.builds(lambda a, b, s, n: Step(a, b, start_s=s, stop_s=s + n), RATES, RATES, TIMES, TIMES),
    st.builds(lambda a, b, t: Bursts(a, b, every_s=t, lasting_s=t / 3), RATES, RATES, TIMES),
    st.builds(lambda a, t: Sine(a, swing_per_s=a * 0.9, period_s=t), RATES, TIMES),
    st.builds(Ramp, RATES, RATES, TIMES),
    st.builds(Recorded, st.lists(RATES, min_size=1).map(tuple), TIMES),
)


@given(SCHEDULES, st.lists(st.floats(0, 300), min_size=2, max_size=2).map(sorted))
def test_what_is_due_grows(schedule: Schedule, times: list[float]) -> None:
    first, second = (schedule.due(t) for t in times)
    assert second >= first - 1e-6 * max(abs(first), 1)
    assert schedule.due(0) == pytest.approx(0, abs=1e-6)


@given(SCHEDULES)
def test_schedules_travel_as_json(schedule: Schedule) -> None:
    assert msgspec.json.decode(msgspec.json.encode(schedule), type=Schedule) == schedule


@given(SCHEDULES, st.floats(0.5, 200))
def test_rate_is_how_fast_it_grows(schedule: Schedule, t: float) -> None:
    """Summed up in small steps, what is due in each is what is due in all."""
    steps = 500
    parts = [schedule.due(t * (n + 1) / steps) - schedule.due(t * n / steps) for n in range(steps)]
    assert math.fsum(parts) == pytest.approx(schedule.due(t), rel=1e-6)


class Clock:
    """Time as a test wants it."""

    def __init__(self) -> None:
        self.lines = Lines([b"%d,\x00" % number for number in range(100)])
        self.queue = Queue(self.lines)

    def generator(self, schedule: Schedule, seconds: float, **options: Sustaining) -> Generator:
        return Generator(schedule, seconds, self.queue, began_us=0, began_ms=T0, **options)

    def empty(self) -> None:
        """Let everything leave the queue."""
        while blocks := self.queue.front(7):
            self.queue.gone(sum(map(len, blocks)))


@given(SCHEDULES, st.lists(st.integers(1, 200_000), min_size=1, max_size=30))
def test_nobody_who_asks_late_misses_an_event(schedule: Schedule, waits: list[int]) -> None:
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
    generator = clock.generator(Constant(2_000), 1)
    generator.turn(10 * TICK_US)
    assert clock.lines.sent == []  # lines are made when somebody takes them
    clock.empty()
    assert {s.time_ms - T0 for s in clock.lines.sent} == set(range(11))
    assert generator.jitter.most == pytest.approx(10, rel=0.02)
    assert generator.jitter.p50 == pytest.approx(5, rel=0.3)


def test_what_was_missed_is_made_up_for_bit_by_bit() -> None:
    clock = Clock()
    generator = clock.generator(Constant(1_000), 10)
    assert generator.turn(1_000_000) == 1_000_000  # there is more to do at once
    assert clock.queue.put_in == BEHIND_TICKS


def test_nothing_more_is_generated_for_a_system_that_does_not_keep_up() -> None:
    clock = Clock()
    generator = clock.generator(Constant(10_000), 10, judge=Sustaining(100, 500))
    for ms in range(1000):
        generator.turn(ms * 1000)
    assert generator.over
    assert clock.queue.put_in == pytest.approx(500, abs=10)


# --------------------------------------------------------------------------- Algorithm 1


def printed(limits: tuple[int, int], sizes: list[int]) -> bool:
    """Algorithm 1, line by line: `sizes` are those of the queue, once per c_a events."""
    acceptable, tolerated = limits
    bp_index = 0
    for size in sizes:
        if size > tolerated:
            return False
        if size < acceptable:
            bp_index = 0
            continue
        bp_index += 1
        if bp_index == tolerated // acceptable:
            return False
    return True


@given(
    st.tuples(st.integers(1, 20), st.integers(1, 8)).map(lambda c: (c[0], c[0] * c[1])),
    st.lists(st.integers(0, 200), max_size=40),
)
def test_it_is_judged_as_the_paper_says(limits: tuple[int, int], sizes: list[int]) -> None:
    judge = Sustaining(*limits)
    found = [judge.look(number * limits[0], size) for number, size in enumerate(sizes)]
    assert (found[-1] if found else True) == printed(limits, sizes)
    assert bool(judge.why) == (not judge.sustained)


@given(st.lists(st.integers(1, 99), min_size=1, max_size=50))
def test_it_looks_once_per_so_many_events(blocks: list[int]) -> None:
    judge, generated = Sustaining(100, 1000), 0
    looks = 0
    for block in blocks:
        before = generated // 100
        generated += block
        looks += generated // 100 > before
    judge, generated = Sustaining(100, 100 * (looks + 2)), 0
    for block in blocks:
        generated += block
        assert judge.look(generated, 100)  # one look less than would be too many


@pytest.mark.parametrize("limits", [(0, 5), (6, 5), (-1, 1)])
def test_limits_that_make_no_sense_are_refused(limits: tuple[int, int]) -> None:
    with pytest.raises(OptionError, match="limits of the queue"):
        Sustaining(*limits)


# --------------------------------------------------------------------------- lines


@given(st.lists(st.integers(0, 40), max_size=20), st.integers(1, 7))
def test_stretches_tell_every_line_that_was_sent(takes: list[int], prepared: int) -> None:
    lines = Lines([b"%d,\x00;" % number for number in range(prepared)])
    sent = b"".join(lines.take(count, T0 + n) for n, count in enumerate(takes))
    assert sent == told(lines.sent)


@given(st.lists(st.integers(0, 400), max_size=20), st.floats(0, 1), st.integers(0, 500))
def test_late_events_are_told_too(takes: list[int], share: float, most_ms: int) -> None:
    lines = Lines([b"%d,\x00;" % n for n in range(7)], disorder=Disorder(share, most_ms))
    sent = b"".join(lines.take(count, T0) for count in takes)
    assert sent == told(lines.sent)
    assert sent.count(b"\n") == sum(takes)
    late = [T0 - stretch.time_ms for stretch in lines.sent]
    assert all(0 <= by <= most_ms for by in late)


def test_as_many_are_late_as_should_be() -> None:
    lines = Lines([b"\x00"] * 100, disorder=Disorder(0.01, 100))
    for _ in range(5000):
        lines.take(20, T0)
    late = sum(stretch.count for stretch in lines.sent if stretch.time_ms < T0)
    assert late == pytest.approx(1000, rel=0.15)


def told(sent: list[Stretch]) -> bytes:
    return b"".join(
        b"%d,%d;\n" % (number, stretch.time_ms)
        for stretch in sent
        for number in range(stretch.first, stretch.first + stretch.count)
    )


# --------------------------------------------------------------------------- files of rates


def test_rates_of_a_file_are_fitted_to_a_rate(tmp_path) -> None:  # type: ignore[no-untyped-def]
    file = tmp_path / "rates"
    file.write_text("# requests\n10\n\n30\n")
    assert read_rates(file) == Recorded((10.0, 30.0))
    assert shaped(str(file), 1000, 60) == Recorded((500.0, 1500.0))


@pytest.mark.parametrize(
    ("text", "problem"), [("10\nmany\n", "line 2: 'many'"), ("-1", "line 1"), ("0\n", "above 0")]
)
def test_a_file_without_rates_is_refused(tmp_path, text: str, problem: str) -> None:  # type: ignore[no-untyped-def]
    file = tmp_path / "rates"
    file.write_text(text)
    with pytest.raises(OptionError, match=problem):
        read_rates(file)


def test_a_shape_that_there_is_not_is_refused() -> None:
    with pytest.raises(OptionError, match="no shape 'square'"):
        shaped("square", 1, 1)
