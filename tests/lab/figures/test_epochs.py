"""The cost of epochs: taken in turns, and of results that are right."""

from pathlib import Path
from typing import Any

import pytest
from floodway_lab.figures import epochs, micro


def test_rounds_change_their_order_and_the_middle_counts() -> None:
    calls: list[bool] = []
    figures = iter([100.0, 90.0, 80.0, 100.0, 100.0, 50.0])  # off on, on off, off on

    def measure(options: dict[str, Any]) -> float:
        calls.append(options != {"recovery": False})
        assert not calls[-1] or Path(options["checkpoint"]).is_dir()
        return next(figures)

    told: list[str] = []
    found = epochs.compare("count", measure, told.append, rounds=3)
    assert calls == [False, True, True, False, False, True]
    assert [each.ratio for each in found.rounds] == [0.9, 0.8, 0.5]
    assert (found.off, found.on, found.ratio) == (100.0, 80.0, 0.8)
    assert told == [f"count, round {number} of 3" for number in (1, 2, 3)]


def test_default_recovery_is_compared_with_none() -> None:
    asked: list[dict[str, Any]] = []

    def measure(options: dict[str, Any]) -> float:
        asked.append(options)
        return 1.0

    epochs.compare("count", measure, lambda _: None, rounds=1, kept="recovery")
    assert asked == [{"recovery": False}, {}]


@pytest.mark.spark
@pytest.mark.slow
def test_measurements_are_right_with_epochs(tmp_path: Path) -> None:
    found = micro.measure_count(50_001, dop=1, keys=100, checkpoint=str(tmp_path / "count"))
    assert found.exact
    assert list((tmp_path / "count" / "commits").iterdir())
    ads = micro.measure_ads(seconds=0.5, checkpoint=str(tmp_path / "ads"))
    assert ads.correct
    late = micro.measure_latency(per_second=200, seconds=2, checkpoint=str(tmp_path / "latency"))
    assert late.count == 300  # of 400 that were due, but for a quarter to warm up
