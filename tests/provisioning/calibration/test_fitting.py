"""Costs are found again from the times that follow from them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from floodway.provisioning.calibration.fitting import Fitted, WorkStretch, fit
from floodway.provisioning.calibration.running import SIZES, size_at

COSTS = st.floats(100, 50_000)


def stretches(
    cpu: float, fetch: float, emit: float, *, wake: float = 0.0, noise: list[float] | None = None
) -> list[WorkStretch]:
    """Return what a task with known costs does in each step of a measured run."""
    found = []
    for step in range(16):
        b_in, b_out = size_at(step, 0), size_at(step, 1)
        records, sleeps = 5120, 0 if step % 3 else 200
        frames_in, frames_out = records // b_in, records // 2 // b_out
        busy = (cpu * records + fetch * frames_in + emit * frames_out + wake * sleeps) / 1e9
        factor = noise[step % len(noise)] if noise else 1.0
        found.append(
            WorkStretch(
                busy * factor, records, records // 2, records * 10, frames_in, frames_out, sleeps
            )
        )
    return found


def known(found: Fitted | None) -> Fitted:
    assert found is not None
    return found


@given(COSTS, COSTS, COSTS, st.floats(0, 50_000))
def test_costs_that_times_are_made_of_are_found(
    cpu: float, fetch: float, emit: float, wake: float
) -> None:
    found = known(fit(stretches(cpu, fetch, emit, wake=wake), fetches=True, emits=True))
    assert found.c_cpu_ns.value == pytest.approx(cpu, rel=1e-3)
    assert found.c_fetch_ns.value == pytest.approx(fetch, rel=1e-3)
    assert found.c_emit_ns.value == pytest.approx(emit, rel=1e-3)
    assert found.selectivity.value == pytest.approx(0.5)
    assert found.record_bytes == pytest.approx(20)
    assert found.error < 1e-6


@given(st.lists(st.floats(0.9, 1.1), min_size=5, max_size=16), st.integers(0, 9))
def test_what_a_record_costs_in_all_is_hardly_changed_by_noise(
    noise: list[float], seed: int
) -> None:
    found = known(
        fit(stretches(1000, 4000, 2000, noise=noise), fetches=True, emits=True, seed=seed)
    )
    for b in SIZES:
        true = 1000 + 4000 / b + 0.5 * 2000 / b
        costs = found.c_cpu_ns.value, found.c_fetch_ns.value, found.c_emit_ns.value
        assert costs[0] + costs[1] / b + 0.5 * costs[2] / b == pytest.approx(true, rel=0.25)
    for estimate in (found.c_cpu_ns, found.c_fetch_ns, found.c_emit_ns, found.selectivity):
        assert 0 <= estimate.low <= estimate.value <= estimate.high


def test_source_fetches_nothing_and_sink_emits_nothing() -> None:
    source = known(fit(stretches(1000, 0, 2000), fetches=False, emits=True))
    sink = known(fit(stretches(1000, 2000, 0), fetches=True, emits=False))
    assert (source.c_fetch_ns.value, sink.c_emit_ns.value) == (0, 0)


def test_record_costs_something_even_if_noise_says_it_does_not() -> None:
    # On a loaded machine, the time of large batches once came out as if records were free.
    odd = [WorkStretch(0.1, 1000 * n, 500, 10, 0, 1000 * n + 50, 0) for n in (1, 2, 3, 4, 5)]
    wild = [WorkStretch(0.2 / n, 100 * n, 100 * n, 10, 0, 300 // n, 0) for n in (1, 2, 3, 4)]
    for stretches_ in (odd, wild):
        found = known(fit(stretches_, fetches=False, emits=True))
        assert found.c_cpu_ns.low > 0


def test_interval_is_wider_where_times_differ_more() -> None:
    calm = known(fit(stretches(1000, 4000, 2000, noise=[1.0, 1.01]), fetches=True, emits=True))
    wild = known(fit(stretches(1000, 4000, 2000, noise=[0.7, 1.4, 1]), fetches=True, emits=True))
    assert wild.c_cpu_ns.high - wild.c_cpu_ns.low > calm.c_cpu_ns.high - calm.c_cpu_ns.low


def test_batch_that_takes_several_stretches_has_all_their_time() -> None:
    """A stretch in which no batch ended was work as well; seen with records of a millisecond."""
    waits, ends = WorkStretch(0.2, 0, 0, 0, 0, 0, 0), WorkStretch(0.1, 500, 500, 0, 1, 1, 0)
    found = known(fit([waits, waits, ends] * 8, fetches=False, emits=False))
    assert found.c_cpu_ns.value == pytest.approx(1e6)
    assert found.selectivity.value == 1


def test_nothing_follows_from_too_little() -> None:
    idle = WorkStretch(0.0, 0, 0, 0, 0, 0, 5)
    assert fit([*stretches(1000, 1, 1)[:3], idle, idle], fetches=True, emits=True) is None


def test_neighbours_have_every_pair_of_sizes() -> None:
    pairs = {(size_at(step, 2), size_at(step, 3)) for step in range(16)}
    assert len(pairs) == len(SIZES) ** 2
