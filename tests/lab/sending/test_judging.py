"""Whether a system keeps up is judged as Algorithm 1 is printed."""

import pytest
from floodway_lab.sending.judging import Sustaining
from hypothesis import given
from hypothesis import strategies as st

from floodway.core.errors import OptionError


def printed(limits: tuple[int, int], sizes: list[int]) -> bool:
    """Algorithm 1, line by line: `sizes` are those of the queue, once per c_a events."""
    acceptable, tolerated = limits
    bp_index = 0
    for size in sizes:
        if size > tolerated:
            return False
        if size < acceptable:
            bp_index = 0
            continue
        bp_index += 1
        if bp_index == tolerated // acceptable:
            return False
    return True


@given(
    st.tuples(st.integers(1, 20), st.integers(1, 8)).map(lambda c: (c[0], c[0] * c[1])),
    st.lists(st.integers(0, 200), max_size=40),
)
def test_it_is_judged_as_the_paper_says(limits: tuple[int, int], sizes: list[int]) -> None:
    judge = Sustaining(*limits)
    found = [judge.look(number * limits[0], size) for number, size in enumerate(sizes)]
    assert (found[-1] if found else True) == printed(limits, sizes)
    assert bool(judge.why) == (not judge.sustained)


@given(st.lists(st.integers(1, 99), min_size=1, max_size=50))
def test_it_looks_once_per_so_many_events(blocks: list[int]) -> None:
    judge, generated = Sustaining(100, 1000), 0
    looks = 0
    for block in blocks:
        before = generated // 100
        generated += block
        looks += generated // 100 > before
    judge, generated = Sustaining(100, 100 * (looks + 2)), 0
    for block in blocks:
        generated += block
        assert judge.look(generated, 100)  # one look less than would be too many


@pytest.mark.parametrize("limits", [(0, 5), (6, 5), (-1, 1)])
def test_limits_that_make_no_sense_are_refused(limits: tuple[int, int]) -> None:
    with pytest.raises(OptionError, match="limits of the queue"):
        Sustaining(*limits)
