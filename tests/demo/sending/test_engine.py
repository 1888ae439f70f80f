"""A data engine in a process of its own: idle until somebody comes, and never late."""

import socket
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from floodway.core.errors import EngineError
from floodway.demo import ads
from floodway.demo.sending.engine import Named, Orders
from floodway.demo.sending.engines import DataEngine
from floodway.demo.sending.lines import Stretch
from floodway.demo.sending.schedules import Recorded
from tests.waiting import wait_for


def orders(rate: float, seconds: float, *, log: str | None = None) -> Orders:
    return Orders(
        supply=Named("floodway.demo.ads:supply"),
        schedule=Named.of(Recorded((rate,))),
        seconds=seconds,
        log=log,
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
    assert ending.drained
    sent = msgspec.msgpack.decode(log.read_bytes(), type=list[Stretch])
    prepared = ads.lines()
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
    times = [msgspec.json.decode(line)["event_time"] for line in lines]
    assert times == sorted(times)
    assert times[-1] - times[0] == pytest.approx(1000, abs=2)  # as if nobody had been slow
    assert max(each.generated - each.taken for each in engine.history) > 10_000
    assert ending.drained


def test_a_system_that_goes_away_is_told() -> None:
    with DataEngine(orders(50_000, 30.0)) as engine:
        socket.create_connection(("127.0.0.1", engine.port)).close()
        with pytest.raises(EngineError, match="has not come to its end"):
            engine.wait(20)


def test_an_engine_that_nobody_wants_is_gone() -> None:
    with DataEngine(orders(10, 60.0)) as engine:
        process = engine._process  # noqa: SLF001
        with socket.create_connection(("127.0.0.1", engine.port)):
            wait_for(lambda: engine.history)
    assert process is not None
    assert process.poll() is not None


def test_supply_that_there_is_not_is_told(capfd: pytest.CaptureFixture[str]) -> None:
    wrong = msgspec.structs.replace(orders(1, 1), supply=Named("floodway.demo.ads:nothing"))
    with pytest.raises(EngineError, match="did not start"), DataEngine(wrong):
        pass
    assert "no attribute 'nothing'" in capfd.readouterr().err
