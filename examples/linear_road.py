"""Tolls: cars report where they are and how fast; crowded, slow segments of the road cost a toll.

A small part of the Linear Road benchmark. Shows: an aggregate of one's own (how many different
cars) beside a built-in one, a function over the rows of a windowed table, and a report at the end
of each five minutes.

Run it: ``python examples/linear_road.py``
"""

from random import Random
from typing import Any

import floodway as fw
from floodway.testing import Driver

MINUTE = 60_000


class Report(fw.Record):
    car: int
    segment: int
    speed: float
    at: int


class Toll(fw.Record):
    cars: int
    speed: float
    toll: int


def one_car(report: Report) -> frozenset[int]:
    return frozenset({report.car})


def both(some: frozenset[int], more: frozenset[int]) -> frozenset[int]:
    return some | more


def how_many(cars: frozenset[int]) -> int:
    return len(cars)


def charge(traffic: Any) -> Toll:
    """Return no toll if traffic flows, and one that grows with every car if it does not."""
    crowd = max(traffic.cars - 5, 0)
    toll = 0 if traffic.speed >= 40 else 2 * crowd**2
    return Toll(traffic.cars, traffic.speed, toll)


def build() -> fw.Flow:
    flow = fw.Flow("linear_road", retention="1m")
    reports = flow.source("reports", schema=Report, timestamp="at")
    traffic = (
        reports.group_by("segment")
        .window(fw.tumbling("5m"))
        .agg(
            name="traffic",
            cars=fw.aggregate(one_car, both, how_many, holistic=True),
            speed=fw.mean("speed"),
        )
    )
    tolls = traffic.map_values(charge, name="tolls")
    tolls.changes(emit=fw.emit.after_window_end()).to("toll_report")
    return flow


def made_up(minutes: int) -> list[Report]:
    """Return reports of two segments: the second one fills up and slows down."""
    random = Random(7)
    return [
        Report(car, segment, round(random.gauss(speed, 3), 1), minute * MINUTE + car)
        for minute in range(minutes)
        for segment, cars, speed in ((1, 6, 80), (2, 4 + minute, 60 - 4 * minute))
        for car in range(cars)
    ]


def main() -> None:
    with Driver(build()) as driver:
        driver.push("reports", *made_up(minutes=10))
    print("minutes  segment  cars  speed  toll")
    for record in driver.read("toll_report"):
        window, row = record.value.window, record.value.value
        minutes = f"{window.start // MINUTE}-{window.end // MINUTE}"
        print(f"{minutes:<7}{record.key:>9}{row.cars:>6}{row.speed:>7.1f}{row.toll:>6}")


if __name__ == "__main__":
    main()
