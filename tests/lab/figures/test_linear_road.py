"""Linear Road: its flow beside a plain fold over the same lines."""

from collections import defaultdict
from statistics import fmean

import pytest
from floodway_lab.cases.road import MINUTE_MS, MINUTES, toll
from floodway_lab.figures.linear_road import LINES, RoadSource, linear_road, made_up, read_report

from floodway.connectors.base import Split
from floodway.testing import Driver


def test_tolls_are_those_of_a_plain_fold() -> None:
    lines = made_up()
    timed = [(number * 3, lines[number % LINES]) for number in range(3_000)]
    speeds = defaultdict[tuple[int, int], list[int]](list)
    for at, line in timed:
        speed, segment = (int(line.split(",")[place]) for place in (3, 7))
        if speed >= 0:
            speeds[segment, at - at % MINUTE_MS].append(speed)
    minutes = defaultdict[tuple[int, int], list[float]](list)
    for (segment, minute), values in speeds.items():
        for back in range(MINUTES):
            minutes[segment, minute - back * MINUTE_MS].append(fmean(values))
    expected = sorted(toll(fmean(means)) for means in minutes.values())

    with Driver(linear_road(None, block="block", tolls="tolls")) as driver:
        driver.push_at("spout", *timed)
        driver.finish()
    assert sorted(record.value for record in driver.read("tolls")) == pytest.approx(expected)
    assert {(r.key, r.value.window.start): r.value.value.cars for r in driver.read("block")} == {
        place: len(values) for place, values in speeds.items()
    }


def test_one_line_of_a_hundred_is_not_valid() -> None:
    assert sum(not read_report(line) for line in made_up()) == LINES / 100
    assert read_report("2,7,44,61,0,2,0,36,190842,9,-1,-1,-1,-1,-1") == []  # not a position report
    assert read_report("0,7,44") == []


def test_tasks_take_turns_and_minutes_are_seconds_of_the_run() -> None:
    readers = [RoadSource(1_000_000).open(Split(index, 2), 1_000) for index in (0, 1)]
    polled = [reader.poll(1) or reader.poll(1) for reader in readers]
    assert [items[0][0] for items in polled if items] == [2, 2]  # the 2,000th, 1,000 each ms
    assert [reader.position() for reader in readers] == [1_001, 1_001]
