"""Where marks come from to a task is known without its kernels."""

from floodway.engine.program.standing import LOCAL, channels_of
from floodway.engine.program.wiring import Wiring
from tests.engine.checkpoint.checkpoints import counting
from tests.engine.program.compiling import compiled


def test_channels_are_the_senders_of_every_exchange_and_the_own_sources() -> None:
    plan = counting(dop=2)
    source, counts = (plan.stage_of(name) for name in ("words", "counts"))
    (exchange,) = plan.inputs(counts)
    assert channels_of(plan, source, 1) == {LOCAL}
    assert channels_of(plan, counts, 1) == {(exchange.number, 0), (exchange.number, 1)}


def test_nothing_is_compiled_to_know_the_channels() -> None:
    plan = counting(dop=3)
    with compiled() as found:
        for stage in plan.stages:
            for index in range(stage.dop):
                channels_of(plan, stage, index)
    assert not found
    with compiled() as found:
        Wiring(plan, plan.stages[0], 0, lambda number, frame: None)
    assert found
