"""Connectors in flows that run: files, sockets, Redis and Kafka that are really there."""

import json
import logging
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest
import redis
from confluent_kafka import Producer

import floodway as fw
from floodway.connectors.csv import CsvSource
from floodway.connectors.json_lines import JsonLinesSink, JsonLinesSource
from floodway.connectors.kafka import KafkaSink, KafkaSource
from floodway.connectors.parquet import ParquetSink
from floodway.connectors.rate import RateSource
from floodway.connectors.redis import RedisSink
from floodway.connectors.tcp import TcpSink, TcpSource
from floodway.testing import ListSink, ListSource
from floodway.testing.servers import KafkaServer, RedisServer, Server, ServerUnavailable
from tests.waiting import wait_for

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("shared_spark", "clean")]


class Tap(fw.Record):
    gate: str
    fare: int
    at: int = 0


def lines_of(folder: Path) -> list[str]:
    return [
        line
        for file in sorted(folder.glob("part-*.jsonl"))
        for line in file.read_text().split("\n")[:-1]
    ]


@pytest.mark.parametrize("dop", [1, 3])
def test_a_folder_of_json_to_another(tmp_path: Path, dop: int) -> None:
    (tmp_path / "in").mkdir()
    for part in range(4):
        rows = [{"gate": "ab"[n % 2], "fare": part * 1000 + n} for n in range(500)]
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (tmp_path / "in" / f"{part}.jsonl").write_text(text)
    flow = fw.Flow("copy")
    taps = flow.source("taps", JsonLinesSource(tmp_path / "in"), schema=Tap)
    taps.filter("gate = 'a'").to(JsonLinesSink(tmp_path / "out"))
    job = flow.run(dop=dop)
    fares = [json.loads(line)["fare"] for line in lines_of(tmp_path / "out")]
    assert sorted(fares) == [part * 1000 + n for part in range(4) for n in range(0, 500, 2)]
    assert job.status.totals.records_in == 2000


def test_results_of_an_earlier_run_are_not_touched(tmp_path: Path) -> None:
    for number in range(2):
        flow = fw.Flow("again")
        numbers = flow.source("numbers", RateSource(1e6, count=3), schema=int)
        numbers.to(JsonLinesSink(tmp_path / "out.jsonl"), name="out")
        if number == 0:
            flow.run()
            continue
        with pytest.raises(fw.errors.ConnectorError, match="there already"):
            flow.run()
    assert (tmp_path / "out.jsonl").read_text() == "0\n1\n2\n"


@pytest.mark.parametrize("dop", [1, 2])
def test_csv_to_parquet(tmp_path: Path, dop: int) -> None:
    rows = "".join(f"{'ab'[n % 2]},{n},{n}\n" for n in range(300))
    (tmp_path / "taps.csv").write_text("gate,fare,at\n" + rows)
    flow = fw.Flow("columns")
    taps = flow.source("taps", CsvSource(tmp_path / "taps.csv"), schema=Tap)
    taps.with_columns(double="fare * 2").rebalance().to(ParquetSink(tmp_path / "out"))
    flow.run(dop=dop)
    table = pq.read_table(tmp_path / "out").to_pylist()
    assert sorted(row["double"] for row in table) == [2 * n for n in range(300)]
    assert set(table[0]) == {"gate", "fare", "at", "double"}


def test_files_that_appear_while_it_runs(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    flow = fw.Flow("watching")
    taps = flow.source("taps", JsonLinesSource(tmp_path / "in", watch=True), schema=Tap)
    taps.map("fare", name="fares").to(JsonLinesSink(tmp_path / "out"))
    with flow.start(dop=2) as job:
        assert job.wait_running(60)
        for number in range(5):
            file = tmp_path / "in" / f".{number}"
            file.write_text(json.dumps({"gate": "a", "fare": number}))  # no line end
            file.rename(tmp_path / "in" / f"{number}.jsonl")
            wait_for(lambda: len(lines_of(tmp_path / "out")) == number + 1, "output")  # noqa: B023
        job.drain()
        assert job.wait(60)
    assert sorted(lines_of(tmp_path / "out")) == [str(number) for number in range(5)]


def test_from_one_connection_to_another() -> None:
    received = bytearray()
    with (
        socket.create_server(("127.0.0.1", 0)) as giver,
        socket.create_server(("127.0.0.1", 0)) as taker,
    ):

        def give() -> None:
            peer, _ = giver.accept()
            with peer:
                peer.sendall(b"".join(b"%d\n" % n for n in range(5000)))

        def take() -> None:
            peer, _ = taker.accept()
            with peer:
                while chunk := peer.recv(65_536):
                    received.extend(chunk)

        threads = [threading.Thread(target=work) for work in (give, take)]
        for thread in threads:
            thread.start()
        flow = fw.Flow("sockets")
        numbers = flow.source("numbers", TcpSource(*giver.getsockname()), schema=int)
        numbers.map("value + 1", name="next").isolate().to(TcpSink(*taker.getsockname()))
        flow.run()
        for thread in threads:
            thread.join(30)
    assert [int(line) for line in received.split()] == list(range(1, 5001))


Some = TypeVar("Some", bound=Server)


@contextmanager
def running(server: Some) -> Iterator[Some]:
    """Run a server; skip if there is none, except where CI has promised one."""
    try:
        server.start()
    except ServerUnavailable as missing:
        server.close()
        if os.environ.get("FLOODWAY_REQUIRE_SERVERS") == "1":
            raise
        pytest.skip(missing.reason)
    with server:
        yield server


def test_a_redis_that_is_restarted(tmp_path: Path) -> None:
    with running(RedisServer(keep=True)) as server, redis.Redis.from_url(server.url) as client:
        flow = fw.Flow("restarted")
        numbers = flow.source("numbers", RateSource(500), schema=int)
        keyed = numbers.key_by("value % 10 AS digit")
        keyed.to(RedisSink(server.url, prefix="all", kind="list"), name="redis")
        others = flow.source("others", RateSource(500), schema=int)
        others.to(JsonLinesSink(tmp_path / "out"), name="file")
        with flow.start() as job:
            wait_for(lambda: client.llen("all") > 50, "rows in Redis")
            server.stop()
            wait_for(lambda: job.status.state == "paused", "the sink to notice")
            assert job.state == "running"
            there = len(lines_of(tmp_path / "out"))
            wait_for(lambda: len(lines_of(tmp_path / "out")) > there + 100, "more elsewhere")
            server.start()
            wait_for(lambda: job.status.state == "running", "the sink to go on")
            job.drain()
            assert job.wait(60)
        rows = [int(row) for row in client.lrange("all", 0, -1)]
    read = {stage.name: stage.counters.records_in for stage in job.status.stages}
    # A list takes rows at least once: those of the call that failed may be there twice.
    assert list(dict.fromkeys(rows)) == list(range(read["numbers"]))
    assert lines_of(tmp_path / "out") == [str(number) for number in range(read["others"])]


@pytest.mark.slow
def test_kafka_to_windows_to_kafka() -> None:
    with running(KafkaServer()) as kafka:
        count_windows(kafka)


def count_windows(kafka: KafkaServer) -> None:
    for_ever = {"retention.ms": "-1"}  # whatever the age of what is written
    kafka.create_topic("taps", partitions=3, settings=for_ever)
    kafka.create_topic("counts", partitions=2, settings=for_ever)
    producer = Producer({"bootstrap.servers": kafka.servers})
    for number in range(3000):
        tap = {"gate": "abc"[number % 3], "fare": 1, "at": 1000 + number * 10}
        producer.produce("taps", key=tap["gate"], value=json.dumps(tap))
    assert producer.flush(30) == 0
    flow = fw.Flow("counting", retention="1s")
    source = KafkaSource("taps", servers=kafka.servers, end="current")
    taps = flow.source("taps", source, schema=Tap, timestamp="at")
    counts = taps.group_by("gate").window(fw.tumbling("10s")).count(name="counts", retention="1h")
    finals = counts.changes(emit=fw.emit.final())
    finals.map("value", name="numbers").to(KafkaSink("counts", servers=kafka.servers))
    job = flow.run(dop=3)
    assert job.status.totals.records_in == 3000
    reader = KafkaSource("counts", servers=kafka.servers, end="current")
    back = fw.Flow("back")
    sink = ListSink()
    back.source("counts", reader, schema=int).to(sink)
    back.run()
    assert sum(sink.values) == 3000
    # 1 s to 31 s: four windows of three gates.
    assert len(sink.values) == 12


def test_secret_by_reference_is_nowhere_but_in_the_task(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    hidden = "hunter2-do-not-show"
    password, story, checkpoint = (tmp_path / name for name in ("password", "story", "checkpoint"))
    password.write_text(hidden)
    with running(RedisServer(password=hidden)) as server:
        sink = RedisSink(port=server.port, prefix="n:", password=fw.secret.file(password))
        flow = fw.Flow("secret")
        numbers = flow.source("numbers", ListSource(range(5)), schema=int)
        numbers.key_by("value").to(sink, name="out")
        with caplog.at_level(logging.DEBUG, "floodway"):
            job = flow.run(story=str(story), checkpoint=str(checkpoint))
        with redis.Redis(port=server.port, password=hidden) as found:
            assert sorted(found.keys("n:*")) == [b"n:%d" % n for n in range(5)]
    written = [file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()]
    assert sum(hidden.encode() in data for data in written) == 1, "in its own file alone"
    assert hidden not in caplog.text + repr(job.status)
