"""How many records per second the reference driver takes, beside a plain Python loop.

The flow is filter, map and a windowed count over ad events; the loop does the same by hand. Both
run in one process on the same records, in turn, several times. Figures from one machine are only
comparable as ratios. ``--json FILE`` writes them (``-`` for standard output).
"""

import argparse
import json
import platform
import random
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable

import floodway as fw
from floodway.testing import Driver

SIZE_MS = 10_000


class Event(fw.Record):
    ad: str
    kind: str
    price: int
    at: int


class Priced(fw.Record):
    ad: str
    cents: int


def events(count: int) -> list[Event]:
    choose = random.Random(7)
    kinds = ["view", "click", "purchase"]
    return [
        Event(f"ad-{choose.randrange(100)}", choose.choice(kinds), choose.randrange(1000), at)
        for at in range(count)
    ]


def build(how: str) -> fw.Flow:
    flow = fw.Flow("benchmark")
    source = flow.source("events", schema=Event, timestamp="at")
    match how:
        case "expressions":
            priced = source.filter("kind <> 'click'").select("ad", "price * 100 AS cents")
        case "functions":
            priced = source.filter(lambda e: e.kind != "click").map(to_cents)
        case _:
            priced = source.flat_map(none_or_cents)
    priced.group_by("ad").window(fw.tumbling(SIZE_MS)).count(name="counts")
    return flow


def to_cents(event: Event) -> Priced:
    return Priced(event.ad, event.price * 100)


def none_or_cents(event: Event) -> list[Priced]:
    return [] if event.kind == "click" else [to_cents(event)]


def with_driver(rows: list[Event], how: str) -> Counter[tuple[str, int]]:
    driver = Driver(build(how))
    for start in range(0, len(rows), 1000):
        driver.push("events", *rows[start : start + 1000])
    found = driver.table("counts").values()
    return Counter({(key, window.start): count for (key, window), count in found.items()})


def by_hand(rows: list[Event]) -> Counter[tuple[str, int]]:
    counts: Counter[tuple[str, int]] = Counter()
    for event in rows:
        if event.kind != "click":
            priced = Priced(event.ad, event.price * 100)
            counts[priced.ad, event.at - event.at % SIZE_MS] += 1
    return counts


def rate(work: Callable[[], object], count: int) -> float:
    start = time.perf_counter()
    work()
    return count / (time.perf_counter() - start)


def measure(count: int, rounds: int) -> dict[str, float]:
    rows = events(count)
    expected = by_hand(rows)
    cases: dict[str, Callable[[], object]] = {
        "driver, expressions": lambda: with_driver(rows, "expressions"),
        "driver, functions": lambda: with_driver(rows, "functions"),
        "driver, flat_map": lambda: with_driver(rows, "flat_map"),
        "plain loop": lambda: by_hand(rows),
    }
    for name, work in cases.items():
        if work() != expected:
            raise SystemExit(f"{name} gives a wrong answer")
    taken: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(rounds):
        for name, work in cases.items():
            taken[name].append(rate(work, count))
    return {name: statistics.median(rates) for name, rates in taken.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    rates = measure(options.records, options.rounds)
    loop = rates["plain loop"]
    if options.json != "-":
        print(f"records/s, median of {options.rounds} rounds of {options.records:,} records")
        for name, value in rates.items():
            print(f"  {name:<20} {value:>12,.0f}   {value / loop:6.2f} of the plain loop")
    if options.json:
        report = {
            "records": options.records,
            "rounds": options.rounds,
            "python": platform.python_version(),
            "machine": platform.machine(),
            "records_per_second": rates,
            "ratio_to_plain_loop": {name: value / loop for name, value in rates.items()},
        }
        text = json.dumps(report, indent=2)
        if options.json == "-":
            sys.stdout.write(text + "\n")
        else:
            with open(options.json, "w", encoding="utf-8") as file:
                file.write(text + "\n")


if __name__ == "__main__":
    main()
