"""What a micro-batch on Spark costs beyond its work, and where that comes from.

A job with nothing to do is run in several ways: in the JVM alone, with Python tasks and a new RDD
each time, with an RDD that is kept, and as micro-batches are run. Then blocks of the ad workload
are offered as a task offers them: a small one, and one of 100 000 events; `cold` is the very first
job after Spark has started. With ``--prepared`` processes get ready before the first block.

Times are those of the clock, from the call to its answer. Figures from one machine are only
comparable as ratios. ``--json FILE`` writes them.
"""

import argparse
import json
import platform
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from floodway.connectors.tcp import TcpSource
from floodway.demo.ads import build, campaigns, make_events, to_lines
from floodway.engine.control.messages import Made, Offer
from floodway.engine.opstream.blocks import LINES, BlockWriter, Unit
from floodway.engine.opstream.remote import Context, encode_context
from floodway.engine.program.wiring import classes_of
from floodway.engine.spark.batches import Operations
from floodway.engine.spark.context import SPARE_SLOTS, Lease
from floodway.engine.spark.shipping import pack
from floodway.engine.state.pickling import Pickling
from floodway.plan import Plan
from floodway.testing import ListSink

READ = 1000
"""So many events are one read of the source, which is what blocks are cut between."""


class Waiter:
    """Offers blocks, one after the other, and waits for each."""

    def __init__(self, lease: Lease, folder: Path) -> None:
        self.plan = Plan.of(build(TcpSource("127.0.0.1", 9999), ListSink()))
        self.stage = self.plan.stage_of("views")
        task = sum(s.dop for s in self.plan.stages[: self.plan.stages.index(self.stage)])
        self.task, self.batch = task, 0
        self.folder = folder
        self.made: list[Made] = []
        self.operations = Operations.on_spark(
            self.plan,
            pack(self.plan),
            lease.context,
            folder / "made",
            slots=lambda: lease.spare,
            alive=lambda: lease.alive,
        )
        self.events = to_lines(make_events(100_000)).splitlines(keepends=True)
        table = folder / "campaigns"
        rows = [(ad, ([0], [campaign])) for ad, campaign in campaigns().items()]
        table.write_bytes(Pickling(classes_of(self.plan)).dumps(rows))
        self.context = encode_context(Context([None], {"with_campaign": str(table)}))

    def offer(self, count: int) -> Offer:
        """Write a block of so many events."""
        self.batch += 1
        path = self.folder / f"{self.batch}.block"
        lines = self.events[:count]
        writer = BlockWriter(path)
        for start in range(0, count, READ):
            read = lines[start : start + READ]
            if writer.add(Unit(LINES, self.place, 0, len(read), 1, b"".join(read))):
                writer.flush()
        return Offer(self.task, 1, self.batch, str(path), writer.close(), self.context)

    @property
    def place(self) -> int:
        """The source's place in its stage."""
        return [source.name for source in self.stage.sources].index("events")

    def run(self, offer: Offer) -> None:
        """Have a block processed, and fetch the results."""
        self.batch += 1  # the same one again would not count
        self.operations.offer(msgspec.structs.replace(offer, batch=self.batch))
        bell = threading.Event()
        while not self.made:
            bell.wait(0.0002)
            self.operations.turn(lambda _, made: self.made.append(made))
        made = self.made.pop()
        if made.problem:
            raise SystemExit(made.problem)
        for path in made.results:
            Path(path).unlink()


def nothing(partition: int, rows: Any) -> Any:
    return iter(list(rows))


def timed(call: Callable[[], object], count: int) -> list[float]:
    """Return how many milliseconds each of some calls took."""
    took = []
    for _ in range(count):
        began = time.perf_counter()
        call()
        took.append((time.perf_counter() - began) * 1000)
    return sorted(took)


def measure(runs: int, *, prepared: bool) -> list[tuple[str, list[float]]]:
    rows: list[tuple[str, list[float]]] = []
    lease = Lease.take("overhead", 0, master=f"local[{SPARE_SLOTS}]", conf={})
    with tempfile.TemporaryDirectory(prefix="floodway-") as scratch:
        waiter = Waiter(lease, Path(scratch))
        try:
            rows += _measure(lease.context, waiter, runs, prepared=prepared)
        finally:
            waiter.operations.close()
            lease.release()
    return rows


def _measure(
    context: Any, waiter: Waiter, runs: int, *, prepared: bool
) -> list[tuple[str, list[float]]]:
    large, small = waiter.offer(100_000), waiter.offer(100)
    if prepared:
        waiter.operations.prepare(waiter.stage.name)
        rows = [("getting ready and 100 events, cold", timed(lambda: waiter.run(small), 1))]
        rows.append(("100 000 events, the first", timed(lambda: waiter.run(large), 1)))
    else:
        rows = [("100 000 events, cold", timed(lambda: waiter.run(large), 1))]
    for _ in range(5):  # the JVM compiles what it runs often
        waiter.run(large)

    empty = context.parallelize([], 2)
    kept = empty.mapPartitionsWithIndex(nothing)
    jvm = kept._jrdd  # noqa: SLF001 - what micro-batches use
    waiting = {
        "empty, 2 tasks, in the JVM alone": lambda: empty._jrdd.count(),  # noqa: SLF001
        "empty, 2 tasks, new RDD, collected": lambda: (
            context.parallelize([], 2).mapPartitionsWithIndex(nothing).collect()
        ),
        "empty, 2 tasks, kept RDD, collected": lambda: kept.collect(),
        "empty, 2 tasks, kept RDD, counted in the JVM": lambda: jvm.count(),
        "100 events, as offered": lambda: waiter.run(small),
        "100 000 events, as offered": lambda: waiter.run(large),
    }
    for name, call in waiting.items():
        timed(call, 20)
        count = runs if "100 000" not in name else max(runs // 5, 10)
        rows.append((name, timed(call, count)))
    return rows


def percentile(values: list[float], share: float) -> float:
    return values[min(int(len(values) * share), len(values) - 1)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--prepared", action="store_true", help="let processes get ready first")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    rows = measure(given.runs, prepared=given.prepared)
    print(f"{'job':48} {'n':>5} {'p50 ms':>8} {'p90 ms':>8} {'p99 ms':>8}")
    found = {}
    for name, took in rows:
        shown = [percentile(took, share) for share in (0.5, 0.9, 0.99)]
        print(f"{name:48} {len(took):5} " + " ".join(f"{value:8.1f}" for value in shown))
        found[name] = dict(zip(("p50_ms", "p90_ms", "p99_ms"), shown, strict=True))
    if given.json:
        machine = {"processor": platform.processor(), "python": platform.python_version()}
        given.json.write_text(json.dumps({"machine": machine, "jobs": found}, indent=2))


if __name__ == "__main__":
    main()
