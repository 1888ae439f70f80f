"""Equations 4 to 7, with numbers computed by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from floodway.core.errors import OptionError
from floodway.engine.scheduler.loads import StageLoad
from floodway.engine.scheduler.settings import SchedulerSettings
from floodway.engine.scheduler.switch_point import switch_point

MEASURED = StageLoad(
    stage="count",
    arrival_per_s=20_000,
    queue_records=9_000,
    data_per_s=10_000,
    operation_per_s=40_000,
    transmit_data_s=0.01,
    transmit_operation_s=0.06,
    schedule_s=0.1,
    interval_s=0.5,
)
rates = st.floats(1, 1e6)
times = st.floats(0, 1)


def changed(**fields: object) -> StageLoad:
    known = {name: getattr(MEASURED, name) for name in MEASURED.__struct_fields__}
    return StageLoad(**{**known, **fields})


def test_switch_point_is_that_of_the_equations() -> None:
    point = switch_point(MEASURED, SchedulerSettings(delta=0.1))
    assert point.k == 0.25
    assert point.c_s == pytest.approx(0.25 + 0.1 + 0.06 - 0.01)  # 0.4
    assert point.l_switch == pytest.approx(0.25 * 20_000 * 0.5 + 0.4 * 10_000)  # 2500 + 4000
    assert point.l_up == pytest.approx(7150)
    assert point.l_down == pytest.approx(5850)
    assert point.latency_data_s == pytest.approx(0.91)  # 9000 / 10000 + 0.01
    assert point.latency_operation_s == pytest.approx(0.66)  # 0.25 + 0.1 + 0.25 + 0.06
    assert point.guessed == ()


@given(v=rates, p_d=rates, p_o=rates, t=times, t_s=times, t_dt=times, t_ot=times)
def test_both_paradigms_take_the_same_at_the_switch_point(
    v: float, p_d: float, p_o: float, t: float, t_s: float, t_dt: float, t_ot: float
) -> None:
    load = changed(
        arrival_per_s=v,
        data_per_s=p_d,
        operation_per_s=p_o,
        interval_s=t,
        schedule_s=t_s,
        transmit_data_s=t_dt,
        transmit_operation_s=t_ot,
    )
    point = switch_point(load, SchedulerSettings())
    if point.l_switch > 0:
        data = point.l_switch / p_d + t_dt
        assert data == pytest.approx(point.latency_operation_s, rel=1e-6, abs=1e-9)


def test_what_is_not_measured_is_guessed_and_said_to_be() -> None:
    point = switch_point(StageLoad(stage="new", arrival_per_s=1000), SchedulerSettings())
    assert (point.data_per_s, point.operation_per_s) == (100_000, pytest.approx(1.9 / 10.2e-6))
    assert point.k == pytest.approx(10.2 / 19)
    assert (point.interval_s, point.schedule_s) == (0.1, 0.05)
    assert (point.transmit_data_s, point.transmit_operation_s) == (0.001, 0.01)
    assert set(point.guessed) == {
        "data_per_s",
        "operation_per_s",
        "interval_s",
        "schedule_s",
        "transmit_data_s",
        "transmit_operation_s",
    }


def test_operation_rate_is_guessed_from_the_measured_data_rate() -> None:
    point = switch_point(changed(operation_per_s=None, slots=2), SchedulerSettings())
    assert point.operation_per_s == pytest.approx(1.9 / 100.2e-6)
    assert point.guessed == ("operation_per_s",)


def test_what_comes_back_and_the_owners_part_count_in_the_guess() -> None:
    settings = SchedulerSettings(collect_ns=1_000, return_ns=4_000, usable=0.5)
    slow = changed(operation_per_s=None, slots=8, tasks=2, returned=0.5)  # 200 us of work
    assert switch_point(slow, settings).operation_per_s == pytest.approx(0.5 * 8 / 203e-6)
    many = changed(operation_per_s=None, slots=800, returned=0.5)  # more than the owner can take
    assert switch_point(many, settings).operation_per_s == pytest.approx(1 / 3e-6)


def test_what_was_measured_before_the_switch_counts_after_it() -> None:
    point = switch_point(changed(data_per_s=7.0), SchedulerSettings(), data_per_s=10_000.0)
    assert point.data_per_s == 10_000


@pytest.mark.parametrize(
    ("queue", "arrival", "above"),
    [
        (7_801, 10_000, True),  # L_up is 1.2 * (1250 + 4000) = 6300
        (6_301, 10_000, True),
        (6_299, 10_000, False),
        (2_000, 20_000, False),  # L_up 7800, L_down / 4 1300; in T it will be 7000
        (2_801, 20_000, True),  # in T it will be 7801
        (1_000, 40_000, False),  # L_down / 4 is 1800: it has hardly begun
    ],
)
def test_queue_is_above_when_it_is_or_is_about_to_be(
    queue: int, arrival: float, above: bool
) -> None:
    load = changed(queue_records=queue, arrival_per_s=arrival)
    assert switch_point(load, SchedulerSettings()).above is above


def test_queue_is_not_foreseen_from_a_guessed_rate() -> None:
    load = changed(queue_records=40_000, arrival_per_s=200_000, data_per_s=None)
    assert not switch_point(load, SchedulerSettings()).above


def test_queue_that_cannot_be_seen_is_above() -> None:
    assert switch_point(changed(queue_records=0, saturated=True), SchedulerSettings()).above
    assert not switch_point(
        changed(queue_records=0, saturated=True), SchedulerSettings(), unbounded=False
    ).above


@pytest.mark.parametrize(
    ("arrival", "queue", "below"),
    [
        (8_000, 8_000, True),  # standing 8000 * (0.41 + 0.1 + 0.25) = 6080, L_down 4000
        (8_000, 10_000, True),
        (8_000, 10_100, False),
        (8_100, 0, False),  # more than 0.8 * P_D
        (0, 0, True),
    ],
)
def test_calm_is_what_the_data_paradigm_can_carry(arrival: float, queue: int, below: bool) -> None:
    load = changed(arrival_per_s=arrival, queue_records=queue)
    assert switch_point(load, SchedulerSettings()).below is below


def test_operation_paradigm_that_is_slower_does_not_pay() -> None:
    slow = changed(operation_per_s=5_000)
    point = switch_point(slow, SchedulerSettings())
    assert point.k == 2
    assert not point.pays
    assert point.worse
    assert not switch_point(
        changed(operation_per_s=5_000, arrival_per_s=3_000), SchedulerSettings()
    ).worse


def test_hop_that_takes_longer_than_a_batch_leaves_no_room_for_a_queue() -> None:
    point = switch_point(changed(transmit_data_s=9.0, arrival_per_s=0), SchedulerSettings())
    assert point.c_s < 0
    assert point.l_switch == 0
    assert point.above


def test_stage_that_stands_still_divides_nothing_by_zero() -> None:
    point = switch_point(changed(data_per_s=0.0, operation_per_s=0.0), SchedulerSettings())
    assert point.latency_data_s > 1e6


@pytest.mark.parametrize("delta", [0.0, 1.0, -0.2])
def test_delta_is_a_share(delta: float) -> None:
    with pytest.raises(OptionError):
        SchedulerSettings(delta=delta)


def test_batches_grow_by_a_factor() -> None:
    with pytest.raises(OptionError):
        SchedulerSettings(factor=1)
