"""Shipping: a flow written in a script works in a process that has never seen the script."""

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from floodway import Flow
from floodway.core.errors import EngineError
from floodway.engine.spark.shipping import pack, unpack
from floodway.plan import Plan
from floodway.testing import ListSink, ListSource
from tests.waiting import DEADLINE_S

SCRIPT = '''
import sys
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from floodway import Flow, Record, tumbling
from floodway.engine.spark.shipping import pack
from floodway.plan import Plan


class Thing(Record, rename="camel"):
    the_id: int
    RATE = 3
    LIMIT: ClassVar[int] = 100

    def limited(self) -> int:
        return min(self.the_id, self.LIMIT)


class Sale(Thing, kw_only=True, forbid_unknown_fields=True):
    """A sale."""

    shop_name: str = "main"
    tags: list[str] = msgspec.field(default_factory=lambda: ["new"])
    more: dict[str, int] = {}
    pieces: int

    def __post_init__(self) -> None:
        if self.pieces < 0:
            raise ValueError("too few")

    def __str__(self) -> str:
        return f"{self.shop_name}: {self.pieces}"

    @property
    def value(self) -> int:
        return self.pieces * self.RATE

    @staticmethod
    def unit() -> str:
        return "EUR"

    @classmethod
    def none(cls) -> "Sale":
        return cls(the_id=0, pieces=0)

    def doubled(self) -> "Sale":
        return Sale(the_id=self.the_id, shop_name=self.shop_name, pieces=2 * self.pieces)

    def limited(self) -> int:
        return super().limited() + 1


def helper(sale: Sale) -> int:
    return sale.doubled().value + offset


offset = 1000


def made(add: int):
    return lambda sale: helper(sale) + add


flow = Flow("script")
sales = flow.source("sales", schema=Sale)
sales.map(made(5), schema=int, name="mapped").to("out")
prices = flow.table("prices", schema=int, key=str)
wide = sales.select("shop_name", "pieces * 2 AS twice").key_by("shop_name")
wide.join(prices, select=["left.twice", "right AS price"], name="joined").to("rows")
sales.group_by("shop_name").window(tumbling(10)).count(name="counts").to("counts_out")
Path(sys.argv[1]).write_bytes(pack(Plan.of(flow)))
'''

READER = """
import sys
from pathlib import Path

import msgspec

from floodway.engine.spark.shipping import unpack
from floodway.model.tuning import Tuning
from floodway.plan import Plan
from floodway.testing.clock import VirtualClock
from floodway.testing.cluster import Cluster

plan = unpack(Path(sys.argv[1]).read_bytes())
Sale = next(op for op in plan.graph.operators if op.name == "sales").outputs["main"].schema.python
sale = msgspec.json.decode(b'{"theId": 7, "shopName": "east", "pieces": 4}', type=Sale)
print(sale, repr(sale))
print(sale.value, Sale.unit(), Sale.none(), sale.doubled(), type(sale.doubled()) is Sale)
print(sale.limited(), Sale.LIMIT, Sale.__doc__, Sale.__name__, Sale.__mro__[1].__name__)
print(Sale(the_id=1, pieces=1).tags is not Sale(the_id=1, pieces=1).tags)
for bad in (b'{"theId": 7, "pieces": -1}', b'{"theId": 7, "pieces": 1, "x": 2}', b'{"theId": 7}'):
    try:
        msgspec.json.decode(bad, type=Sale)
    except ValueError as error:
        print(error)
cluster = Cluster(plan, VirtualClock())
cluster.push(cluster.inlet("prices"), [(1, "east", 3)])
cluster.push(cluster.inlet("sales"), [(2, None, sale)])
cluster.finish()
for sink in ("out", "rows", "counts_out"):
    print([record.value for record in cluster.collected(sink)])
"""

EXPECTED = """\
east: 4 Sale(the_id=7, shop_name='east', tags=['new'], more={}, pieces=4)
12 EUR main: 0 east: 8 True
8 100 A sale. Sale Thing
True
too few
Object contains unknown field `x`
Object missing required field `pieces`
[1029]
[Joined(twice=8, price=3)]
[Change(key='east', window=Window(start=0, end=10), value=1, previous=None)]
"""


def run(code: str, *arguments: str, folder: Path) -> str:
    script = folder / "script.py"
    script.write_text(code)
    done = subprocess.run(
        [sys.executable, str(script), *arguments],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_flow_of_a_script_runs_in_another_process(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "other").mkdir()
    packed = tmp_path / "plan"
    run(SCRIPT, str(packed), folder=tmp_path / "one")
    assert run(READER, str(packed), folder=tmp_path / "other") == EXPECTED


def locked() -> Any:
    lock = threading.Lock()

    def guarded(value: int) -> int:
        with lock:
            return value

    return guarded


UNSHIPPABLE: dict[str, Any] = {
    "map": lambda stream: stream.map(locked(), schema=int, name="culprit"),
    "key": lambda stream: stream.key_by(locked(), name="culprit"),
    "aggregate": lambda stream: stream.group_by(locked()).count(name="culprit"),
    "process": lambda stream: stream.filter(locked(), name="culprit").map(
        "value + 1", name="innocent"
    ),
}


@pytest.mark.parametrize("build", UNSHIPPABLE.values(), ids=UNSHIPPABLE)
def test_function_that_cannot_be_shipped_names_its_operator(build: Any) -> None:
    flow = Flow("locked")
    stream = flow.source("numbers", schema=int).map("value + 1", name="before")
    build(stream)
    with pytest.raises(EngineError, match="cannot be shipped to the tasks") as caught:
        pack(Plan.of(flow))
    culprit = next(operator for operator in flow.operators if operator.name == "culprit")
    assert (caught.value.operator, caught.value.place) == ("culprit", culprit.place)
    assert "locks" in caught.value.remedy


def test_connectors_of_the_driver_stay_there() -> None:
    flow, sink = Flow("lists"), ListSink()
    sink.lock = threading.Lock()  # type: ignore[attr-defined]
    flow.source("numbers", ListSource([1]), schema=int).to(sink, name="out")
    plan = Plan.of(flow)
    shipped = unpack(pack(plan))
    assert [getattr(op, "connector", 0) for op in shipped.graph.operators] == [None, None]
    assert [stage.host for stage in shipped.stages] == ["driver", "driver"]


class Placed:
    """Has a `place` that says "driver", and one that no comparison is fit for."""

    def __init__(self, place: Any) -> None:
        self.place = place


class Many:
    """Compares to something that is neither true nor false, as columns of data frames do."""

    def __eq__(self, other: object) -> Any:
        raise ValueError("the truth of many is ambiguous")

    __hash__ = None  # type: ignore[assignment]


def test_values_with_a_place_of_their_own_are_shipped() -> None:
    """Only connectors stay at the driver; a table of places in a closure does not."""
    placed = Placed(Many())
    flow = Flow("placed")
    flow.source("numbers", schema=int).map(lambda value: (placed, value)[1], schema=int).to("out")
    assert unpack(pack(Plan.of(flow))).flow == "placed"


def test_plan_comes_back_as_it_was() -> None:
    flow = Flow("plan")
    flow.source("numbers", schema=int).group_by("value AS number").count(name="counts")
    plan = Plan.of(flow)
    shipped = unpack(pack(plan))
    assert [stage.name for stage in shipped.stages] == [stage.name for stage in plan.stages]
    assert shipped.exchanges[0].why == plan.exchanges[0].why
    assert shipped.tunings == plan.tunings
