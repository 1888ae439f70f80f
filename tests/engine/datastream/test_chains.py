"""Chains: one generated function does what its operators do one by one, and counts it."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from floodway import Flow
from floodway.engine.datastream.task import Task
from floodway.model.tuning import Tuning
from floodway.operators.base import DEAD
from floodway.operators.stateless import ChainKernel, Stateless
from floodway.plan import Configuration, Plan
from floodway.testing import Driver
from tests.engine.datastream.chain_steps import STEPS, Fact

CHAINS = st.lists(
    st.tuples(st.sampled_from(sorted(STEPS)), st.integers(0, 4)), min_size=1, max_size=6
)
FACTS = st.lists(
    st.tuples(st.integers(0, 9), st.sampled_from(["k", "l"]), st.integers(-6, 12)), max_size=12
)


def simulated(
    steps: list[tuple[str, int]], facts: list[Fact]
) -> tuple[list[Fact], list[tuple[int, int, int]]]:
    """Return what leaves a chain, and for each operator what it took, passed and lost."""
    counts = []
    for name, n in steps:
        results: list[Fact] = []
        lost = 0
        for fact in facts:
            try:
                results += STEPS[name][1](n, fact)
            except (ArithmeticError, ValueError):
                lost += 1
        counts.append((len(facts), len(results), lost))
        facts = results
    return facts, counts


def chain(steps: list[tuple[str, int]], policy: str = "skip") -> tuple[Flow, list[Stateless]]:
    flow = Flow("chain")
    stream = flow.source("numbers", schema=int)
    for number, (name, n) in enumerate(steps):
        stream = STEPS[name][0](stream, n, name=f"step_{number}", on_error=policy)
    stream.to("out")
    operators = [op for op in flow.operators if op.name.startswith("step_")]
    return flow, [op for op in operators if isinstance(op, Stateless)]


@settings(max_examples=300)
@given(CHAINS, FACTS, st.integers(1, 5))
def test_chain_does_and_counts_what_its_operators_do(
    steps: list[tuple[str, int]], facts: list[Fact], piece: int
) -> None:
    _, operators = chain(steps)
    outputs: list[dict[str, list[Any]]] = [{name: [] for name in op.outputs} for op in operators]
    kernel = ChainKernel(operators, outputs)
    for start in range(0, len(facts), piece):
        kernel.process(0, facts[start : start + piece])
    expected, counts = simulated(steps, facts)
    assert outputs[-1]["main"] == expected
    assert kernel.counts(len(facts), len(expected)) == [counted[:2] for counted in counts]
    assert [handler.skipped for handler in kernel.handlers] == [lost for _, _, lost in counts]


@settings(max_examples=100)
@given(CHAINS, FACTS)
def test_fused_chain_is_the_same_as_one_alone(
    steps: list[tuple[str, int]], facts: list[Fact]
) -> None:
    """Each operator by itself, one after the other, through kernels of their own."""
    _, operators = chain(steps)
    rows: list[Any] = facts
    for operator in operators:
        own: dict[str, list[Any]] = {name: [] for name in operator.outputs}
        operator.kernel(own).process(0, rows)
        rows = own["main"]
    outputs: list[dict[str, list[Any]]] = [{name: [] for name in op.outputs} for op in operators]
    ChainKernel(operators, outputs).process(0, facts)
    assert outputs[-1]["main"] == rows


@settings(max_examples=60)
@given(CHAINS, FACTS, st.sets(st.integers(0, 5)))
def test_source_and_isolated_operators_count_the_same(
    steps: list[tuple[str, int]], facts: list[Fact], alone: set[int]
) -> None:
    """However a flow is cut into stages, what each operator took and passed stays the same."""
    flow, _ = chain(steps)
    values = [(time, value) for time, _, value in facts]
    expected, counts = simulated(steps, [(time, None, value) for time, value in values])
    isolated = {f"step_{n}": Tuning(isolate=True) for n in alone if n < len(steps)}
    driver = Driver(flow, engine="data", configuration=Configuration(operators=isolated))
    driver.push_at("numbers", *values)
    driver.finish()
    assert [(r.timestamp, r.key, r.value) for r in driver.read("out")] == expected
    for number, (taken, passed, lost) in enumerate(counts):
        found = driver.stats(f"step_{number}")
        assert (found.received, found.sent, found.skipped) == (taken, passed, lost)
    source = driver.stats("numbers")
    assert (source.received, source.sent) == (len(values), len(values))


@settings(max_examples=60)
@given(CHAINS, FACTS)
def test_dead_letters_of_a_fused_chain_are_those_that_failed(
    steps: list[tuple[str, int]], facts: list[Fact]
) -> None:
    _, operators = chain(steps, "dead_letter")
    outputs: list[dict[str, list[Any]]] = [{name: [] for name in op.outputs} for op in operators]
    ChainKernel(operators, outputs).process(0, facts)
    expected, counts = simulated(steps, facts)
    assert outputs[-1]["main"] == expected
    assert [len(own[DEAD]) for own in outputs] == [lost for _, _, lost in counts]
    for operator, own in zip(operators, outputs, strict=True):
        assert all(letter.operator == operator.name for _, _, letter in own[DEAD])


def test_results_of_one_record_start_with_its_key() -> None:
    flow = Flow("keys")
    stream = flow.source("numbers", schema=int).key_by("value * 100 AS hundred", name="first")
    many = stream.flat_map(lambda value: [value, value + 1], schema=int, name="many")
    many.map("hundred + value", name="sum").key_by("value * 2 AS twice", name="second").to("out")
    driver = Driver(flow, engine="data")
    driver.push_at("numbers", (1, 1), (2, 5))
    assert [(record.key, record.value) for record in driver.read("out")] == [
        (2 * 101, 101),
        (2 * 102, 102),
        (2 * 505, 505),
        (2 * 506, 506),
    ]


def test_chain_ends_at_a_fork_and_at_a_branch() -> None:
    flow = Flow("fork")
    stream = flow.source("numbers", schema=int).map("value + 1", name="more")
    stream.filter("value > 1", name="some").to("one")
    small, _ = stream.branch("value < 5", name="split")
    small.map("value", name="small").to("two")
    plan = Plan.of(flow)
    (stage,) = plan.stages
    task = Task(plan, stage, 0, lambda number, frame: None)
    chains = [[op.name for op in node.operators] for node in task.program.nodes]
    assert ["numbers", "more"] in chains
    assert ["split"] in chains
    assert sorted(name for names in chains for name in names) == sorted(
        operator.name for operator in flow.operators
    )


@given(FACTS)
def test_branch_at_the_end_of_a_chain_counts_all_arms(facts: list[Fact]) -> None:
    flow = Flow("arms")
    numbers = flow.source("numbers", schema=int).filter("value <> 3", name="kept")
    low, high = numbers.branch("value < 2", name="split")
    low.to("low")
    high.to("high")
    driver = Driver(flow, engine="data")
    driver.push_at("numbers", *((time, value) for time, _, value in facts))
    kept = [value for _, _, value in facts if value != 3]
    split = driver.stats("split")
    assert (split.received, split.sent) == (len(kept), len(kept))
    assert driver.stats("kept").received == len(facts)
    assert [r.value for r in driver.read("low")] == [v for v in kept if v < 2]
    assert [r.value for r in driver.read("high")] == [v for v in kept if v >= 2]
