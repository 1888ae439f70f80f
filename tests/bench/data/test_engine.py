"""A data engine in a process of its own: idle until somebody comes, and never late."""

import socket
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from floodway.bench.cases.base import Shape
from floodway.bench.cases.registry import CASES
from floodway.bench.data.engine import Orders
from floodway.bench.data.engines import DataEngine, DataEngines
from floodway.bench.data.lines import Stretch
from floodway.bench.data.schedules import Constant
from floodway.core.errors import EngineError
from tests.waiting import wait_for

SUPPLY = "floodway.bench.cases.registry:supply"


def orders(rate: float, seconds: float, **options: object) -> Orders:
    return Orders(
        supply=SUPPLY,
        options={"case": "mean", "shape": {}},
        schedule=Constant(rate),
        seconds=seconds,
        **options,  # type: ignore[arg-type]
    )


def pull(port: int, *, when: Callable[[], object] = lambda: True) -> bytes:
    """Take everything, but nothing before it is time."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as link:
        wait_for(when)
        parts = []
        while data := link.recv(1 << 20):
            parts.append(data)
    return b"".join(parts)


def test_what_is_taken_is_what_was_written_down(tmp_path: Path) -> None:
    log = tmp_path / "sent"
    with DataEngine(orders(5_000, 0.5, log=str(log))) as engine:
        assert engine.history == []  # idle until somebody comes
        lines = pull(engine.port).splitlines()
        ending = engine.wait(10)
    assert ending.generated == ending.taken == len(lines) == 2_500
    assert (ending.sustained, ending.drained) == (True, True)
    sent = msgspec.msgpack.decode(log.read_bytes(), type=list[Stretch])
    prepared = CASES["mean"].lines(Shape())
    assert lines == [
        prepared[number].replace(b"\x00", b"%d" % stretch.time_ms)
        for stretch in sent
        for number in range(stretch.first, stretch.first + stretch.count)
    ]


def test_a_slow_system_does_not_slow_it_down() -> None:
    with DataEngine(orders(50_000, 1.0)) as engine:
        lines = pull(
            engine.port, when=lambda: engine.history and engine.history[-1].generated > 35_000
        ).splitlines()
        ending = engine.wait(10)
    assert len(lines) == 50_000
    times = [msgspec.json.decode(line)["time"] for line in lines]
    assert times == sorted(times)
    assert times[-1] - times[0] == pytest.approx(1000, abs=2)  # as if nobody had been slow
    assert max(each.generated - each.taken for each in engine.history) > 10_000
    assert ending.drained


def test_a_system_that_does_not_keep_up_is_found_out() -> None:
    limited = orders(50_000, 30.0, acceptable=5_000, tolerated=20_000)
    with (
        DataEngine(limited) as engine,
        socket.create_connection(("127.0.0.1", engine.port)),
    ):
        ending = engine.wait(20)
    assert not ending.sustained
    assert "wait" in ending.why
    # One look at 5,000 events, and one block of a millisecond, after too many have waited.
    assert 20_000 < ending.generated - ending.taken <= 25_050
    assert ending.generated < 50_000 * 30


def test_a_system_that_goes_away_is_told() -> None:
    with DataEngine(orders(50_000, 30.0)) as engine:
        socket.create_connection(("127.0.0.1", engine.port)).close()
        with pytest.raises(EngineError, match="has not come to its end"):
            engine.wait(20)


def test_an_engine_that_nobody_wants_is_gone() -> None:
    with DataEngines([orders(10, 60.0)] * 2) as engines:
        processes = [engine._process for engine in engines.engines]  # noqa: SLF001
        with socket.create_connection(("127.0.0.1", engines.ports[0])):
            wait_for(lambda: engines.engines[0].history)
    assert all(process is not None and process.poll() is not None for process in processes)


def test_supply_that_there_is_not_is_told(capfd: pytest.CaptureFixture[str]) -> None:
    wrong = msgspec.structs.replace(orders(1, 1), options={"case": "nothing", "shape": {}})
    with pytest.raises(EngineError, match="did not start"), DataEngine(wrong):
        pass
    assert "no workload 'nothing'" in capfd.readouterr().err
