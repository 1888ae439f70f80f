"""Back-off: waits grow, vary, and start again."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from floodway.connectors.backoff import Backoff
from floodway.core.errors import OptionError


def test_waits_grow_up_to_the_longest() -> None:
    backoff = Backoff(first_ms=100, most_ms=350, factor=2, jitter=0)
    assert [backoff.next_ms() for _ in range(4)] == [100, 200, 350, 350]


def test_success_starts_again() -> None:
    backoff = Backoff(jitter=0)
    backoff.next_ms()
    backoff.next_ms()
    backoff.reset()
    assert backoff.next_ms() == 100


@given(st.floats(0, 0.9), st.integers())
def test_waits_vary_within_bounds(jitter: float, seed: int) -> None:
    backoff = Backoff(first_ms=100, most_ms=1_000, jitter=jitter, rng=random.Random(seed))
    plain = [100, 200, 400, 800, 1_000]
    for wait_ms in plain:
        varied = backoff.next_ms()
        assert wait_ms * (1 - jitter) - 1e-6 <= varied <= min(wait_ms * (1 + jitter), 1_000) + 1e-6


def test_same_seed_same_waits() -> None:
    first, second = (Backoff(rng=random.Random(7)) for _ in range(2))
    assert [first.next_ms() for _ in range(9)] == [second.next_ms() for _ in range(9)]


@pytest.mark.parametrize(
    "options",
    [
        {"first_ms": 0},
        {"first_ms": 5, "most_ms": 4},
        {"factor": 0.5},
        {"jitter": 1},
        {"jitter": -1},
    ],
)
def test_options_that_make_no_sense(options: dict[str, float]) -> None:
    with pytest.raises(OptionError, match="makes no sense"):
        Backoff(**options)
