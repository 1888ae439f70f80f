"""The scheduler leads a flow through calm, floods, waves and noise."""

from collections.abc import Callable
from itertools import pairwise
from math import pi, sin
from random import Random

import pytest

from floodway.engine.scheduler.replay import recorded, replay
from floodway.engine.scheduler.settings import SchedulerSettings
from tests.engine.scheduler.river import Pool, River, gaps

CAN = 100_000  # records a second, of a pool with a cost of 10 us
Arrival = Callable[[float], float]


def one(**options: object) -> River:
    return River([Pool("count", cpu_ns=10_000, **options)])  # type: ignore[arg-type]


def flat_map() -> River:
    """The source is fast, the next stage makes eight of each record, the third has to count."""
    return River(
        [
            Pool("read", cpu_ns=2_000, room=50_000),
            Pool("split", cpu_ns=10_000, out_per_in=8, room=5_000),
            Pool("count", cpu_ns=5_000, out_per_in=0.01, operation_per_s=2e6, room=5_000),
            Pool("store", cpu_ns=5_000, room=5_000, able=False),
        ]
    )


def flood(calm: float, high: float, begin: float, end: float) -> Arrival:
    return lambda second: high if begin <= second < end else calm


def sine(mean: float, swing: float, period: float) -> Arrival:
    return lambda second: mean + swing * sin(2 * pi * second / period)


def noise(mean: float, spread: float, every_s: float, seed: int) -> Arrival:
    values: dict[int, float] = {}
    random = Random(seed)

    def arrival(second: float) -> float:
        return values.setdefault(int(second / every_s), max(0.0, random.gauss(mean, spread)))

    return arrival


# --------------------------------------------------------------------- calm and floods


@pytest.mark.parametrize("share", [0.01, 0.5, 0.9])
def test_nothing_is_decided_while_it_is_calm(share: float) -> None:
    river = one()
    river.run(60, lambda _: share * CAN)
    assert river.decided == []
    assert set(river.scheduler.phases().values()) == {"calm"}


@pytest.mark.parametrize("share", [0.3, 0.5, 0.8])
def test_flood_of_five_times_the_load_is_found_in_300_ms(share: float) -> None:
    river = one()
    river.run(60, flood(share * CAN, 5 * share * CAN, 10, 30))
    (found, _, there), *_ = river.switches
    assert there == "operation"
    if share >= 0.5:
        assert found - 10_000 <= 300
    else:  # half as much again as it can carry: there is no flood before the queue is long
        assert found - 10_000 <= 1_000


def test_stage_goes_back_after_the_flood_and_stays() -> None:
    river = one()
    river.run(90, flood(0.5 * CAN, 2.5 * CAN, 10, 30))
    (_, _, there), (back, _, home) = river.switches
    assert (there, home) == ("operation", "data")
    assert 32_000 <= back <= 36_000
    assert river.pools[0].queue < 0.1 * CAN


def test_flood_that_cannot_be_seen_is_found_and_passes() -> None:
    river = one(hidden=True)
    river.run(60, flood(0.5 * CAN, 2.5 * CAN, 10, 30))
    (found, _, _), (back, _, home) = river.switches
    assert found - 10_000 <= 300
    assert home == "data"
    assert back > 30_000


def test_short_burst_is_no_flood() -> None:
    river = one()
    river.run(30, flood(0.5 * CAN, 2.5 * CAN, 10, 10.1))
    assert river.decided == []


def test_backlog_is_worked_off_in_the_faster_paradigm() -> None:
    river = one()
    river.pools[0].queue = 5.0 * CAN
    river.run(30, lambda _: 0.5 * CAN)
    assert [paradigm for _, _, paradigm in river.switches] == ["operation", "data"]


def test_new_stage_is_not_judged_at_once() -> None:
    river = one()
    river.run(0.9, lambda _: 5 * CAN)
    assert river.switches == []


# --------------------------------------------------------------------- waves and noise


@pytest.mark.parametrize("period", [2, 7, 20, 45])
@pytest.mark.parametrize("mean", [0.7, 1.0, 1.3])
def test_waves_do_not_make_it_swing(mean: float, period: float) -> None:
    river = one()
    river.run(180, sine(mean * CAN, 0.6 * CAN, period))
    assert all(gap >= 5_000 for gap in gaps(river.switches))
    # A wave has one flood at most. Each that comes soon after the last makes the stage wait longer
    # before it goes back: 2 s, 4 s, 8 s and so on, until it stays through the next one.
    assert len(river.switches) <= 10
    assert river.longest["count"] < 2.5 * CAN


@pytest.mark.parametrize("every_s", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_noise_does_not_make_it_swing(seed: int, every_s: float) -> None:
    river = one()
    river.run(180, noise(0.9 * CAN, 0.4 * CAN, every_s, seed))
    assert all(gap >= 5_000 for gap in gaps(river.switches))
    assert len(river.switches) <= 14
    # At worst the flood comes right after a stage went back, and has it to itself for 5 s.
    assert river.longest["count"] < 6 * CAN


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_noise_that_can_be_carried_changes_nothing(seed: int) -> None:
    river = one()
    river.run(180, noise(0.6 * CAN, 0.2 * CAN, 0.1, seed))
    assert river.decided == []


# --------------------------------------------------------------------- where it floods


def test_flood_inside_is_found_where_it_arises() -> None:
    river = flat_map()
    river.run(60, flood(10_000, 50_000, 10, 30))  # 400,000 records a second to be counted
    assert {stage for _, stage, _ in river.switches} == {"count"}
    (found, _, _), (back, _, home) = river.switches
    assert found - 10_000 <= 400  # the caches between have to fill
    assert home == "data"
    assert 32_000 <= back <= 40_000


def test_range_goes_back_together() -> None:
    river = River(
        [
            Pool("read", cpu_ns=10_000),
            Pool("parse", cpu_ns=5_000, room=5_000),
            Pool("count", cpu_ns=5_000, out_per_in=0.01, room=5_000),
            Pool("store", cpu_ns=5_000, room=5_000),
        ]
    )
    river.run(60, flood(0.5 * CAN, 2.5 * CAN, 10, 30))
    there = [(stage, paradigm) for at, stage, paradigm in river.switches if at < 30_000]
    assert there == [("read", "operation"), ("parse", "operation"), ("count", "operation")]
    back = [(stage, paradigm) for at, stage, paradigm in river.switches if at > 30_000]
    assert sorted(back) == [("count", "data"), ("parse", "data"), ("read", "data")]


def test_stage_that_cannot_switch_is_said_to_hold_the_others_back() -> None:
    river = River([Pool("read", cpu_ns=2_000), Pool("store", room=5_000, able=False)])
    river.run(20, lambda _: 2 * CAN)
    assert river.switches == []
    stay, *_ = river.scheduler.story.entries
    assert (stay.what, stay.stage) == ("stay", "store")
    assert "no remote half" in stay.why
    assert "read waits for store" in stay.why


# --------------------------------------------------------------------- batches first


def costly_frames(**options: object) -> River:
    """A record costs 10 us, 6 of them for its frame."""
    return River([Pool("count", cpu_ns=4_000, frame_ns=6_000, **options)])  # type: ignore[arg-type]


def test_larger_batches_may_be_enough() -> None:
    river = costly_frames()
    river.run(60, flood(0.5 * CAN, 1.9 * CAN, 10, 30))
    assert river.switches == []
    raised, lowered = river.batches
    assert raised[0] - 10_000 <= 300
    assert raised[1:] == ("count", 10)
    assert lowered[0] >= 35_000
    assert lowered[1:] == ("count", 1)
    assert river.pools[0].queue < 0.1 * CAN


def test_batches_are_raised_before_a_stage_is_switched_and_lowered_step_by_step() -> None:
    river = costly_frames()
    river.run(90, flood(0.5 * CAN, 5 * CAN, 10, 30))
    raised, *lowered = river.batches
    switched, back = river.switches
    assert raised[1:] == ("count", 1000)  # no batch size is enough: then all there is
    assert raised[0] - 10_000 <= 300
    assert switched[0] - raised[0] == 300
    assert [b_out for _, _, b_out in lowered] == [100, 10, 1]
    assert all(at >= back[0] + 5_000 for at, _, _ in lowered)
    assert [b - a for (a, *_), (b, *_) in pairwise(lowered)] == [5_000] * 2


def test_batches_stay_large_while_the_load_needs_them() -> None:
    river = costly_frames()
    river.run(120, flood(0.5 * CAN, 1.5 * CAN, 10, 120))
    assert [b_out for _, _, b_out in river.batches] == [10]
    assert river.switches == []


# --------------------------------------------------------------------- when it does not pay


def test_operation_paradigm_that_is_known_to_be_slower_is_never_chosen() -> None:
    river = one(operation_per_s=0.8 * CAN, known=True)
    river.run(180, sine(1.3 * CAN, 1.0 * CAN, 20))
    assert river.switches == []
    stays = [entry for entry in river.scheduler.story.entries if entry.what == "stay"]
    assert stays
    assert "K 1.25" in stays[0].why
    assert len(stays) <= 3  # one a minute


def test_operation_paradigm_that_proves_slower_is_left_and_not_tried_again() -> None:
    river = one(operation_per_s=0.5 * CAN)
    river.run(180, lambda _: 1.5 * CAN)
    (tried, _, _), (left, _, home) = river.switches
    assert home == "data"
    assert left - tried <= 10_000
    assert "slower" in river.scheduler.story.entries[2].why


def test_old_verdict_is_tried_again() -> None:
    river = River(
        [Pool("count", 10_000, operation_per_s=0.5 * CAN)], SchedulerSettings(doubt_ms=60_000)
    )
    river.run(180, lambda _: 1.5 * CAN)
    tries = [at for at, _, paradigm in river.switches if paradigm == "operation"]
    assert len(tries) in (2, 3)
    assert all(b - a >= 60_000 for a, b in pairwise(tries))


# --------------------------------------------------------------------- replay


SCENES: dict[str, tuple[Callable[[], River], Arrival]] = {
    "flood": (one, flood(0.5 * CAN, 2.5 * CAN, 5, 15)),
    "hidden": (lambda: one(hidden=True), flood(0.5 * CAN, 2.5 * CAN, 5, 15)),
    "sine": (one, sine(CAN, 0.6 * CAN, 7)),
    "noise": (one, noise(0.9 * CAN, 0.4 * CAN, 1.0, 5)),
    "flat map": (flat_map, flood(10_000, 50_000, 5, 15)),
    "batches": (costly_frames, flood(0.5 * CAN, 5 * CAN, 5, 15)),
}


@pytest.mark.parametrize("scene", SCENES)
def test_story_lived_through_again_is_the_same(scene: str) -> None:
    build, arrival = SCENES[scene]
    river = build()
    river.run(40, arrival)
    assert river.decided
    again = replay(river.lines)
    assert again == river.decided == recorded(river.lines)
    assert replay(river.lines, river.topology, river.settings) == again


def test_other_settings_decide_otherwise() -> None:
    river = one()
    river.run(40, flood(0.5 * CAN, 2.5 * CAN, 5, 15))
    slow = replay(river.lines, settings=SchedulerSettings(confirm=10))
    assert slow != river.decided
