"""What kernels say about their state: what is stored, where rows lie, how counting goes on."""

import importlib
import pkgutil
from collections.abc import Callable
from typing import Any

import pytest

import floodway as fw
import floodway.operators
from floodway import Flow
from floodway.engine.transport.hashing import partition
from floodway.model.tuning import Tuning
from floodway.operators.base import Kernel, beyond
from floodway.operators.history import Expiry
from floodway.operators.keyed import EVERYWHERE, Space, Windowed
from floodway.plan import Configuration
from floodway.testing import Driver
from floodway.testing.cluster import Cluster
from tests.behaviour.kernels import joined, key, pair, tables
from tests.operators.cases import (
    CASES,
    FACTS,
    LOOKUPS,
    OF_WINDOWS,
    ignoring,
    operator_of,
)


def kernel_of(write: Callable[[Flow], Any], *, versioned: bool = False) -> Kernel:
    operator = operator_of(write)
    return operator.kernel({port: [] for port in operator.outputs}, versioned=versioned)


def kernels() -> list[type[Kernel]]:
    for module in pkgutil.walk_packages(floodway.operators.__path__, "floodway.operators."):
        importlib.import_module(module.name)
    found, waiting = [], [Kernel]
    while waiting:
        kind = waiting.pop()
        found.append(kind)
        waiting.extend(kind.__subclasses__())
    return sorted(found, key=lambda kind: kind.__name__)


@pytest.mark.parametrize("kind", kernels(), ids=lambda kind: kind.__name__)
def test_everything_that_is_stored_or_derived_is_remembered(kind: type[Kernel]) -> None:
    roots = {name.partition(".")[0] for name in kind.keyed}
    assert roots | set(kind.derived) <= set(kind.remembers)
    assert not roots & set(kind.derived)


@pytest.mark.parametrize("versioned", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_scalars_are_plain_data_and_the_rest_are_spaces(case: str, versioned: bool) -> None:
    kernel = kernel_of(CASES[case], versioned=versioned)
    assert all(isinstance(space, Space | Windowed) for space in kernel.spaces().values())
    for value in kernel.scalars().values():
        assert isinstance(value, int | list | None)
    for name in kernel.derived:
        value = getattr(kernel, name)
        parts = value if type(value) is tuple else [value]
        assert all(isinstance(part, Expiry) for part in parts)


def test_forgotten_changes_are_not_stored() -> None:
    kernel = kernel_of(FACTS["tumbling"])
    kernel.process(0, [(1, "a", ("a", 1))])
    kernel.forget_changes()
    (windows,) = kernel.spaces().values()
    assert windows.take() == ({}, set())


# ----------------------------------------------------------------------------- counting


def test_counting_goes_on_beyond_all_numbers_with_the_own_remainder() -> None:
    assert beyond([7], 1, 2) == 7
    assert beyond([7, 8], 1, 2) == 9
    assert beyond([7, 8], 0, 3) == 9
    assert beyond([2], 5, 3) == 5


def revisions(flow: Flow) -> Any:
    return joined(flow, how="full", emit="eager", name="op")


def merged(flow: Flow) -> Any:
    return joined(flow, how="full", emit="eager").merge(flow.source("x", schema=tuple), name="op")


COUNTING: dict[str, tuple[Callable[[Flow], Any], int]] = {
    "stream_join": (revisions, 0),
    "lookup_join": (LOOKUPS["corrects"], 0),
    "merge": (merged, 1),
}


@pytest.mark.parametrize("case", COUNTING)
@pytest.mark.parametrize(("before", "after"), [(2, 2), (2, 3), (3, 1)])
def test_results_have_names_of_their_own_after_another_dop(
    case: str, before: int, after: int
) -> None:
    write, port = COUNTING[case]
    operator = operator_of(lambda f: write(f) if case != "lookup_join" else outer(f))
    names: list[Any] = []

    def run(index: int, dop: int, saved: list[Any], records: int) -> dict[str, Any]:
        out: dict[str, list[Any]] = {p: [] for p in operator.outputs}
        kernel = operator.kernel(out)
        kernel.number(index, dop)
        if saved:
            kernel.adopt(saved)
        kernel.process(port, [(1, f"{index}", ("a", n)) for n in range(records)])
        names.extend(row[0] for row in out["main"])
        return kernel.scalars()

    saved = [run(index, before, [], records=index + 2) for index in range(before)]
    for index in range(after):
        given = [saved[index]] if before == after else saved
        run(index, after, given, records=3)
    assert len(names) == len(set(names)) > 0


def outer(flow: Flow) -> Any:
    orders = flow.source("in", schema=tuple)
    return orders.join(tables(flow)[1], on=key, how="left", joiner=pair, name="op")


def test_largest_scalar_that_there_is_holds() -> None:
    kernel = kernel_of(OF_WINDOWS["ends"])
    kernel.adopt([{"_closed": None}, {"_closed": 7}, {"_closed": 5}])
    assert kernel.scalars() == {"_closed": 7}
    kernel.adopt([{"_closed": None}])
    assert kernel.scalars() == {"_closed": 7}


# ----------------------------------------------------------------------------- where rows lie


def placed(flow: Flow, dop: int) -> Cluster:
    """Run a flow that has been given records, and return its tasks."""
    driver = Driver(flow, engine="data", configuration=Configuration(Tuning(dop=dop)))
    for source in driver.sources():
        rows = [(time, (name, time % 4)) for time in range(0, 20, 3) for name in "abcdefgh"]
        if source in ("in", "other", "more"):
            driver.push_at(source, *rows)
        else:
            for time, value in rows:
                driver.update(source, value[0], value, at=time)
    machine = driver._machine  # noqa: SLF001 - the tests look at where rows lie
    assert isinstance(machine, Cluster)
    return machine


@pytest.mark.parametrize("case", CASES)
def test_rows_lie_in_the_task_that_their_key_leads_to(case: str) -> None:
    flow = Flow("stored", retention=50)
    CASES[case](flow)
    cluster, rows = placed(flow, 3), 0
    for task in cluster._of("op"):  # noqa: SLF001
        kernel = task.program.node("op").kernel
        for name, found in kernel.spaces().items():
            spaces = list(found.values()) if isinstance(found, Windowed) else [found]
            for row in (each for space in spaces for each in space):
                rows += 1
                place = partition(kernel.route(name, row), flow.key_groups, task.stage.dop)
                assert place == task.index
    assert rows or case in ("log", "consistent")  # which remember nothing, or not for long


def test_copied_table_lies_everywhere() -> None:
    for write in (copied, lambda flow: ignoring(flow, broadcast=True)):
        kernel = kernel_of(write)
        assert kernel.route("_table.histories", "a") is EVERYWHERE
    assert kernel_of(copied).route("_kept", "a") == "a"


def copied(flow: Flow) -> Any:
    orders = flow.source("in", schema=tuple)
    return orders.join(tables(flow)[1], on=key, joiner=pair, broadcast=True, name="op")


def test_rows_of_joined_windows_lie_with_their_own_key() -> None:
    """Two tables with windows meet by the whole key, so each window goes its own way."""

    def changes_of_pairs(flow: Flow) -> Any:
        return OF_WINDOWS["pairs"](flow).changes(emit=fw.emit.final(), name="log")

    flow = Flow("pairs", retention=50)
    changes_of_pairs(flow)
    operators = {op.name: op for op in flow.operators}
    out: dict[str, list[Any]] = {port: [] for port in operators["log"].outputs}
    assert operators["log"].kernel(out).route("_held", ("a", 0, 5)) == ("a", 0, 5)
    assert kernel_of(OF_WINDOWS["final"]).route("_held", ("a", 0, 5)) == "a"
    assert kernel_of(OF_WINDOWS["interval"]).route("_held", (("a", 0, 5), None)) == "a"
