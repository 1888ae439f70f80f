"""Loads have a shape, and what is due adds up, however often one asks."""

import math
from pathlib import Path

import msgspec
import pytest
from floodway_lab.sending.schedules import Schedule, Step, read_rates, shaped
from hypothesis import given
from hypothesis import strategies as st

from floodway.core.errors import OptionError
from floodway.demo.sending.engine import Named
from floodway.demo.sending.schedules import Recorded
from tests.lab.sending.shapes import SCHEDULES


@given(SCHEDULES, st.lists(st.floats(0, 300), min_size=2, max_size=2).map(sorted))
def test_what_is_due_grows(schedule: Schedule, times: list[float]) -> None:
    first, second = (schedule.due(t) for t in times)
    assert second >= first - 1e-6 * max(abs(first), 1)
    assert schedule.due(0) == pytest.approx(0, abs=1e-6)


@given(SCHEDULES)
def test_schedules_travel_as_json(schedule: Schedule) -> None:
    assert msgspec.json.decode(msgspec.json.encode(schedule), type=Schedule) == schedule


@given(st.one_of(SCHEDULES, st.just(Step(1, 5, start_s=2))), st.floats(0, 200))
def test_schedules_are_made_again_in_another_process(schedule: Schedule, t: float) -> None:
    named = msgspec.json.decode(msgspec.json.encode(Named.of(schedule)), type=Named)
    assert named.make().due(t) == schedule.due(t)


@given(SCHEDULES, st.floats(0.5, 200))
def test_rate_is_how_fast_it_grows(schedule: Schedule, t: float) -> None:
    """Summed up in small steps, what is due in each is what is due in all."""
    steps = 500
    parts = [schedule.due(t * (n + 1) / steps) - schedule.due(t * n / steps) for n in range(steps)]
    assert math.fsum(parts) == pytest.approx(schedule.due(t), rel=1e-6)


def test_rates_of_a_file_are_fitted_to_a_rate(tmp_path: Path) -> None:
    file = tmp_path / "rates"
    file.write_text("# requests\n10\n\n30\n")
    assert read_rates(file) == Recorded((10.0, 30.0))
    assert shaped(str(file), 1000, 60) == Recorded((500.0, 1500.0))


@pytest.mark.parametrize(
    ("text", "problem"), [("10\nmany\n", "line 2: 'many'"), ("-1", "line 1"), ("0\n", "above 0")]
)
def test_a_file_without_rates_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    file = tmp_path / "rates"
    file.write_text(text)
    with pytest.raises(OptionError, match=problem):
        read_rates(file)


def test_a_shape_that_there_is_not_is_refused() -> None:
    with pytest.raises(OptionError, match="no shape 'square'"):
        shaped("square", 1, 1)
