"""The simulation notices when the engine is wrong: one subtle bug at a time."""

import pytest

from floodway.testing.simulation import simulate
from tests.simulation.bugs import BUGS

SEEDS = range(250)  # the rarest bug shows in one of sixty


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", BUGS)
def test_some_seed_notices_that(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    inject, scenario = BUGS[name]
    inject(monkeypatch)
    assert any(simulate(seed, scenario=scenario).problem for seed in SEEDS)
