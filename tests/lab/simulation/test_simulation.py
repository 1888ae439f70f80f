"""A cluster where everything fails, and flows whose results are right all the same."""

import os
import subprocess
import sys

import msgspec
import pytest
from floodway_lab.simulation import SCENARIOS, Summary, simulate
from floodway_lab.simulation.conditions import Conditions, Fault, conditions
from floodway_lab.simulation.streams import Stateless
from floodway_lab.simulation.timeline import Timeline

from floodway.engine.host.failpoints import FAIL_POINTS

SEEDS = range(200)

HASHES = """
from floodway_lab.simulation import simulate
print(*(simulate(seed).trace_hash for seed in map(int, "{seeds}".split())))
"""


@pytest.mark.slow
def test_flows_give_the_right_results_whatever_fails_and_all_of_it_does() -> None:
    outcomes, summary = [simulate(seed) for seed in SEEDS], Summary()
    for outcome in outcomes:
        summary.add(outcome)
    assert summary.failures == []
    assert summary.unhit == []
    assert {outcome.scenario for outcome in outcomes} == {s.name for s in SCENARIOS}
    assert summary.kills > 500
    assert summary.pauses > 100
    assert summary.driver_kills > 50
    assert summary.power_losses > 50
    assert summary.rescales > 50
    assert summary.full_disks > 50
    assert summary.resets > 500
    assert summary.cuts > 20
    assert summary.unreached > 10
    assert summary.daemons > 20
    assert summary.hosts > 20
    assert summary.clock_jumps > 50
    assert summary.bad_sectors > 50
    assert summary.restored > 0
    assert summary.broker_kills > 50
    assert summary.redis_kills > 50
    assert summary.lost_answers > 50
    assert summary.seeds == len(SEEDS) == len(outcomes)


@pytest.mark.slow
@pytest.mark.parametrize("hash_seed", ["1", "4711"])
def test_trace_of_a_seed_is_the_same_in_another_process(hash_seed: str) -> None:
    seeds = range(9, 200, 19)
    here = [simulate(seed).trace_hash for seed in seeds]
    code = HASHES.format(seeds=" ".join(map(str, seeds)))
    there = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=True,
    )
    assert there.stdout.split() == here


def test_trace_of_a_seed_is_the_same_after_other_simulations() -> None:
    before = simulate(3)
    simulate(4)
    assert simulate(3) == before


def test_seeds_differ() -> None:
    assert simulate(1).trace_hash != simulate(2).trace_hash


def test_every_flow_comes_to_its_end_on_a_day_when_nothing_fails() -> None:
    for scenario in SCENARIOS:
        outcome = simulate(_calm(), scenario=scenario)
        assert (outcome.scenario, outcome.problem) == (scenario.name, None)


def _calm() -> int:
    """Return a seed that lets little go wrong."""
    return min(range(300), key=lambda s: len(conditions(s, Timeline(s).random).faults))


def test_what_a_server_has_done_and_not_answered_is_there_once() -> None:
    faults = tuple(Fault(after, "broker", 300_000) for after in range(100_000, 2_000_000, 400_000))

    def under(given: Conditions) -> Conditions:
        return msgspec.structs.replace(given, faults=faults, traps=(), redis=(), epoch_ms=20)

    outcomes = [simulate(seed, scenario=Stateless(), under=under) for seed in range(4)]
    assert [outcome.problem for outcome in outcomes] == [None] * 4
    assert sum(outcome.lost_answers for outcome in outcomes) > 4


def test_what_happens_is_told() -> None:
    told: list[str] = []
    outcome = simulate(7, tell=told.append)
    assert "driver 0 starts" in told[0]
    assert sum(" is killed " in line for line in told) >= outcome.kills


def test_fail_points_of_a_seed_are_known() -> None:
    for seed in range(len(FAIL_POINTS)):
        (first, *_) = conditions(seed, Timeline(seed).random).traps
        assert first.point == sorted(FAIL_POINTS)[seed]
