"""Comparisons with systems that answer at once: what is run when, and what is made of it."""

from typing import Any

import msgspec
import pytest
from floodway_lab.figures.machine import Machine
from floodway_lab.runs.comparing import Comparison, compare
from floodway_lab.runs.experiment import Experiment, Latency, Run
from floodway_lab.runs.steady import steady
from floodway_lab.sending.generating import Jitter
from floodway_lab.systems.registry import with_tasks

from floodway.core.errors import EngineError, OptionError

GIVEN = Experiment(case="ads", system="loop", rate=1.0, most_foreign=1.0)
MACHINE = Machine.here()


def answer(given: Experiment, capacity: float, p99: float, **more: Any) -> Run:
    """Return what a system of a capacity would show."""
    fields: dict[str, Any] = {
        "experiment": given,
        "machine": MACHINE,
        "link": "tcp",
        "void": False,
        "why": "",
        "sustained": given.rate <= capacity,
        "correct": True,
        "generated": 10,
        "taken": 10,
        "per_s": min(given.rate, capacity),
        "latency_ms": Latency(p99 / 2, p99, p99, p99, p99, 100),
        "cdf_ms": [],
        "over_time": [],
        "paradigms": [],
        "jitter_ms": Jitter(0, 0, 0),
        "foreign": 0.0,
    }
    return Run(**{**fields, **more})


class Systems:
    """Systems of known capacity and latency; notes what is asked of them."""

    def __init__(self, **known: tuple[float, float]) -> None:
        self._known = {name.replace("_", "-"): value for name, value in known.items()}
        self.asked: list[Experiment] = []

    def __call__(self, given: Experiment) -> Run:
        self.asked.append(given)
        capacity, p99 = self._known[given.system]
        if not capacity:
            return answer(given, 0, p99, void=True, why="it does not start", per_s=0.0)
        parts = [
            answer(msgspec.structs.replace(given, rate=load * given.rate, loads=()), capacity, p99)
            for load in given.loads
        ]
        return answer(given, capacity, p99, parts=parts)


def test_rates_and_ratios_of_known_systems_are_found() -> None:
    systems = Systems(floodway_dual=(900_000, 3.0), loop=(300_000, 6.0))
    found = compare(["floodway-dual", "loop"], GIVEN, rounds=3, run=systems)
    assert found.complete
    own, loop = found.systems
    assert (own.starts_s, loop.starts_s) == (5.0, 0.0)
    assert own.sustainable_rate == pytest.approx(900_000, rel=0.05)
    assert loop.sustainable_rate == pytest.approx(300_000, rel=0.05)
    ratios = {ratio.what: ratio for ratio in found.ratios}
    assert ratios["sustainable rate"].value == pytest.approx(3.0, rel=0.1)
    assert ratios["p99 at 10 % load"].value == pytest.approx(0.5)
    assert [len(ratio.rounds) for ratio in found.ratios] == [3, 3]
    assert all(ratio.interval is not None for ratio in found.ratios)


def test_comparison_that_was_stopped_goes_on() -> None:
    kept: list[Comparison] = []
    systems = Systems(loop=(400_000, 1.0), loops=(500_000, 1.0), bytewax=(300_000, 1.0))
    compare(["loop", "loops"], GIVEN, rounds=1, run=systems, keep=kept.append)
    so_far = msgspec.json.decode(msgspec.json.encode(kept[-1]), type=Comparison)
    systems.asked.clear()
    names = ["loop", "bytewax", "loops"]
    found = compare(names, GIVEN, rounds=2, run=systems, so_far=so_far)
    assert found.complete
    assert [(each.system, len(each.rounds)) for each in found.systems] == [(n, 2) for n in names]
    first = [given.system for given in systems.asked if given.loads]
    assert first == ["bytewax", "loop", "bytewax", "loops"]  # the others' first round was there
    other = msgspec.structs.replace(GIVEN, seconds=99.0)
    with pytest.raises(OptionError, match="another seconds"):
        compare(names, other, rounds=2, run=systems, so_far=so_far)


def test_systems_take_turns() -> None:
    systems = Systems(loop=(400_000, 1.0), loops=(500_000, 1.0))
    compare(["loop", "loops"], GIVEN, rounds=2, run=systems)
    turns = [given.system for given in systems.asked]
    changes = [name for name, before in zip(turns, [None, *turns], strict=False) if name != before]
    assert changes == ["loop", "loops", "loop", "loops"]


def test_latency_is_taken_at_parts_of_the_rate_that_was_found() -> None:
    systems = Systems(loop=(400_000, 1.0))
    found = compare(["loop"], GIVEN, rounds=2, run=systems)
    rounds = found.systems[0].rounds
    assert [each.loads for each in rounds] == [[0.1, 0.5, 0.9]] * 2
    for each in rounds:
        rates = [run.experiment.rate for run in each.runs]
        assert rates == [pytest.approx(load * (each.rate or 0)) for load in each.loads]
    assert not any(run.experiment.judged for each in rounds for run in each.runs)


def test_system_that_does_not_start_is_left_out_with_its_reason() -> None:
    systems = Systems(floodway_dual=(900_000, 3.0), bytewax=(0, 1.0))
    found = compare(["floodway-dual", "bytewax"], GIVEN, rounds=3, run=systems)
    assert found.systems[1].why == "it does not start"
    assert sum(given.system == "bytewax" for given in systems.asked) == 1
    assert found.ratios == []


def test_one_system_can_be_compared_with_itself_on_more_tasks() -> None:
    systems = Systems(floodway_dual=(900_000, 3.0), bytewax=(300_000, 1.0))
    names = ["floodway-dual", "bytewax", "bytewax@2"]
    found = compare(names, GIVEN, rounds=1, run=systems)
    assert [(of.system, of.dop) for of in found.systems] == [
        ("floodway-dual", 1),
        ("bytewax", 1),
        ("bytewax@2", 2),
    ]
    assert {given.dop for given in systems.asked if given.system == "bytewax"} == {1, 2}
    assert {ratio.against for ratio in found.ratios} == {"bytewax", "bytewax@2"}


@pytest.mark.parametrize("name", ["loops@", "loops@0", "loops@x", "loops@1000", "loops@2@2"])
def test_number_of_tasks_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(OptionError, match="does not say how many tasks loops is to have"):
        with_tasks(name)


def test_what_there_is_is_kept_after_every_step_and_marked() -> None:
    kept: list[tuple[bool, int]] = []

    def keep(found: Comparison) -> None:
        copy = msgspec.json.decode(msgspec.json.encode(found), type=Comparison)
        kept.append((copy.complete, sum(len(each.rounds) for each in copy.systems)))

    systems = Systems(loop=(400_000, 1.0), loops=(500_000, 1.0))
    compare(["loop", "loops"], GIVEN, rounds=1, run=systems, keep=keep)
    assert kept == [(False, 1), (False, 2), (True, 2)]


def test_run_that_others_disturbed_is_done_again() -> None:
    calls: list[Experiment] = []

    def disturbed_once(given: Experiment) -> Run:
        calls.append(given)
        return answer(given, 1e9, 1.0, foreign=0.4 if len(calls) == 1 else 0.1)

    given = msgspec.structs.replace(GIVEN, most_foreign=0.15)
    assert steady(disturbed_once, wait=lambda _: 0.0)(given).foreign == 0.1
    assert len(calls) == 2


@pytest.mark.parametrize(("before", "during"), [(0.0, 0.4), (0.4, 0.0)])
def test_machine_that_stays_loaded_is_refused(before: float, during: float) -> None:
    run = steady(lambda given: answer(given, 1e9, 1.0, foreign=during), wait=lambda _: before)
    with pytest.raises(EngineError, match="too loaded to measure: others have 40%"):
        run(msgspec.structs.replace(GIVEN, most_foreign=0.15))
