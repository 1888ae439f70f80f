"""Data engines as benchmarks use them, in processes of their own."""

import socket

from floodway_lab.sending.engines import DataEngines
from floodway_lab.sending.generating import noted, trial
from floodway_lab.sending.schedules import Constant

from floodway.demo.sending.engine import GENERATED, Named, Orders
from floodway.demo.sending.engines import DataEngine
from tests.waiting import wait_for


def orders(rate: float, seconds: float, generator: Named = GENERATED) -> Orders:
    return Orders(
        supply=Named("floodway_lab.cases.registry:supply", {"case": "mean", "shape": {}}),
        schedule=Named.of(Constant(rate)),
        seconds=seconds,
        generator=generator,
    )


def test_a_system_that_does_not_keep_up_is_found_out() -> None:
    limited = orders(50_000, 30.0, trial(acceptable=5_000, tolerated=20_000))
    with (
        DataEngine(limited) as engine,
        socket.create_connection(("127.0.0.1", engine.port)),
    ):
        ending = engine.wait(20)
    assert not noted(ending).sustained
    assert "wait" in noted(ending).why
    # One look at 5,000 events, and one block of a millisecond, after too many have waited.
    assert 20_000 < ending.generated - ending.taken <= 25_050
    assert ending.generated < 50_000 * 30


def test_engines_that_nobody_wants_are_gone() -> None:
    with DataEngines([orders(10, 60.0)] * 2) as engines:
        processes = [engine._process for engine in engines.engines]  # noqa: SLF001
        with socket.create_connection(("127.0.0.1", engines.ports[0])):
            wait_for(lambda: engines.engines[0].history)
    assert all(process is not None and process.poll() is not None for process in processes)
