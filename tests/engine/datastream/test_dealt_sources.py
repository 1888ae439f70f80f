"""Sources whose parts are dealt out to other tasks: how far the new tasks have come."""

from typing import Any

import pytest

from floodway import Flow
from floodway.engine.program.intake import NEVER, Intake
from floodway.operators.source import Source


def intake() -> Intake:
    stream = Flow("dealt").source("rows", schema=str)
    (operator,) = stream.flow.operators
    assert isinstance(operator, Source)
    return Intake([operator], [{"main": []}])


def saved(latest: int = NEVER, arrived: int = NEVER) -> dict[str, Any]:
    return {"latest": latest, "arrived": arrived}


@pytest.mark.parametrize(
    ("former", "come_to"),
    [
        ([saved(100)], 100),
        # What the slower one had not read may be at any of the new tasks, and must not be late.
        ([saved(100), saved(900)], 100),
        ([saved(900), saved()], None),
        ([saved(arrived=5000), saved(arrived=4000)], 4000),
        ([saved(900), saved(arrived=5000)], None),
        ([{"latest": 100}, {"latest": 900}], 100),  # from before there was another figure
        ([saved()], None),
    ],
)
def test_new_task_has_come_as_far_as_the_one_that_had_come_least_far(
    former: list[dict[str, Any]], come_to: int | None
) -> None:
    dealt = intake()
    dealt.adopt(former)
    assert dealt.come_to == come_to
