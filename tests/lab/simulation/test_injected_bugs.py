"""The simulation notices when the engine is wrong: one subtle bug at a time."""

import pytest
from floodway_lab.simulation import simulate

from tests.lab.simulation import fault_bugs, idle_bugs, outer_bugs, server_bugs  # noqa: F401 - they add some
from tests.lab.simulation.bugs import BUGS

RARE = (283, 332, 467, 561, 682, 779)
"""Seeds that show the rarest bugs, which show in one of hundreds."""

SEEDS = (*RARE, *range(250))


@pytest.mark.slow
@pytest.mark.parametrize("name", BUGS)
def test_some_seed_notices_that(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    inject, scenario = BUGS[name]
    inject(monkeypatch)
    assert any(simulate(seed, scenario=scenario).problem for seed in SEEDS)
