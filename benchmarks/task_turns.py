"""CPU time per record of one task, of two versions of Floodway in turns.

A task counts sales per article in windows of ten seconds. It is fed frames as they come from a
channel, of 1, 100 and 1,000 records, in a process of its own for each version. The processes take
turns of some milliseconds, so whatever else the machine does, it does to both. What is compared is
the time of the processor per record, pair by pair; a ratio above 1 says that this version takes
less than the former one.

    python benchmarks/task_turns.py --former ../former/src --pairs 30

``--former`` is the `src` folder of a checkout of the former version. Only this script is taken from
here, so it uses nothing that only one of the two has. ``--json FILE`` writes the figures.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

FRAMES = (1, 100, 1_000)
RECORDS = 20_000
"""So many records a turn takes: some tens of milliseconds."""

OWN = Path(__file__).resolve().parents[1] / "src"


class Fed:
    """A task, and the frames that it is fed."""

    def __init__(self, size: int) -> None:
        import floodway as fw
        from floodway.engine.datastream.task import Task
        from floodway.engine.transport.frame import parse
        from floodway.model.tuning import Tuning
        from floodway.plan import Configuration, Plan

        class Sale(fw.Record):
            article: int
            amount: int
            at: int

        flow = fw.Flow("sales")
        sales = flow.source("sales", schema=Sale, timestamp="at")
        dear = sales.filter("amount > 1").group_by("article")
        dear.window(fw.tumbling("10s")).agg(count=fw.count(), total=fw.sum("amount"), name="totals")
        plan = Plan.of(flow, Configuration(Tuning(dop=1, b_out=size)))
        first, second = plan.stages
        self.frames: list[Any] = []

        def post(number: int, frame: bytes) -> None:
            header = parse(frame)
            (tasks[number].receive if number == 0 else self._keep)(header, frame)

        wide = 2**40
        tasks = {
            number: Task(plan, stage, 0, post, window=wide, sampling=False)
            for number, stage in enumerate((first, second))
        }
        drawn = random.Random(7)
        rows = [
            (at, None, Sale(drawn.randrange(1_000), drawn.randrange(100), at))
            for at in range(RECORDS)
        ]
        for start in range(0, RECORDS, 1_000):
            tasks[0].feed("sales", rows[start : start + 1_000], 1)
        tasks[0].flush(10**15)
        self._task = tasks[1]

    def _keep(self, header: Any, frame: bytes) -> None:
        self.frames.append((header, frame))

    def turn(self) -> float:
        """Return the seconds of the processor that a record took."""
        task = self._task
        receive, step = task.receive, task.step
        before, began = task.records_in, time.process_time()
        for at in range(0, len(self.frames), 64):  # about what a task finds when it looks
            for header, frame in self.frames[at : at + 64]:
                receive(header, frame)
            while step(1):
                pass
        return (time.process_time() - began) / (task.records_in - before)


def serve() -> None:
    """Take turns as asked: a line with the size of frames in, the seconds per record out."""
    fed: dict[int, Fed] = {}
    for line in sys.stdin:
        size = int(line)
        if size not in fed:
            fed[size] = Fed(size)
            fed[size].turn()
        print(fed[size].turn(), flush=True)


class Version:
    """A process with a version of Floodway."""

    def __init__(self, source: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__, "--serve"],
            env={**os.environ, "PYTHONPATH": str(source), "PYTHONHASHSEED": "0"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def turn(self, size: int) -> float:
        """Return the seconds per record of one turn."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{size}\n")
        self._process.stdin.flush()
        return float(self._process.stdout.readline())

    def close(self) -> None:
        """Let the process end."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def measure(former: Path, pairs: int) -> dict[str, Any]:
    """Return the figures of each size of frames."""
    versions = {"former": Version(former), "this": Version(OWN)}
    found: dict[str, Any] = {}
    try:
        for size in FRAMES:
            ratios, taken = [], {name: [] for name in versions}
            for pair in range(-3, pairs):  # the first ones warm up
                order = list(versions)[:: 1 if pair % 2 else -1]  # who is first changes
                turn = {name: versions[name].turn(size) for name in order}
                if pair >= 0:
                    ratios.append(turn["former"] / turn["this"])
                    for name, seconds in turn.items():
                        taken[name].append(seconds * 1e9)
            found[str(size)] = {
                "former_ns": statistics.median(taken["former"]),
                "this_ns": statistics.median(taken["this"]),
                "ratio": statistics.median(ratios),
                "quartiles": statistics.quantiles(ratios, n=4)[::2],
            }
    finally:
        for version in versions.values():
            version.close()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--former", type=Path, help="the src folder of the former version")
    parser.add_argument("--pairs", type=int, default=30)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if options.serve:
        serve()
        return
    if options.former is None or not (options.former / "floodway").is_dir():
        parser.error("--former wants the src folder of a checkout of the former version")
    found = measure(options.former.resolve(), options.pairs)
    print(f"{'records a frame':>16} {'former ns':>10} {'this ns':>9} {'ratio':>7}   quartiles")
    for size, row in found.items():
        low, high = row["quartiles"]
        print(
            f"{size:>16} {row['former_ns']:10.0f} {row['this_ns']:9.0f} {row['ratio']:7.3f}"
            f"   {low:.3f} to {high:.3f}"
        )
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
