"""As many events are late as should be, and all of them are told."""

import pytest
from floodway_lab.sending.lines import CaseLines, Disorder
from hypothesis import given
from hypothesis import strategies as st

from tests.demo.sending.lines import T0, told


@given(st.lists(st.integers(0, 400), max_size=20), st.floats(0, 1), st.integers(0, 500))
def test_late_events_are_told_too(takes: list[int], share: float, most_ms: int) -> None:
    lines = CaseLines([b"%d,\x00;" % n for n in range(7)], disorder=Disorder(share, most_ms))
    sent = b"".join(lines.take(count, T0) for count in takes)
    assert sent == told(lines.sent)
    assert sent.count(b"\n") == sum(takes)
    late = [T0 - stretch.time_ms for stretch in lines.sent]
    assert all(0 <= by <= most_ms for by in late)


def test_as_many_are_late_as_should_be() -> None:
    lines = CaseLines([b"\x00"] * 100, disorder=Disorder(0.01, 100))
    for _ in range(5000):
        lines.take(20, T0)
    late = sum(stretch.count for stretch in lines.sent if stretch.time_ms < T0)
    assert late == pytest.approx(1000, rel=0.15)
