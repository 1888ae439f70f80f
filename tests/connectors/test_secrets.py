"""Secrets by reference: looked up where a connector is opened, and to be found nowhere else."""

import logging
import pickle
from pathlib import Path
from typing import Any

import pytest

import floodway as fw
from floodway.connectors.base import Split
from floodway.connectors.kafka import KafkaSink, KafkaSource
from floodway.connectors.kafka_client import Client
from floodway.connectors.redis import RedisSink
from floodway.core.errors import ConnectorError, OptionError
from floodway.core.schema import Schema
from floodway.engine.spark.shipping import pack, unpack
from floodway.plan import Plan, explain
from floodway.testing.servers import RedisServer, free_port
from tests.connectors.servers_fixtures import running

HIDDEN = "hunter2-do-not-show"


@pytest.fixture
def references(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Any]:
    """The secret, referred to in each way there is."""
    monkeypatch.setenv("FLOODWAY_TEST_PASSWORD", HIDDEN)
    file = tmp_path / "password"
    file.write_text(f"{HIDDEN}\n")
    return [fw.secret.env("FLOODWAY_TEST_PASSWORD"), fw.secret.file(file)]


def secured(password: Any) -> dict[str, Any]:
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "jane",
        "sasl.password": password,
    }


def test_reference_is_looked_up_when_it_is_needed(references: list[Any]) -> None:
    for reference in references:
        again = pickle.loads(pickle.dumps(reference))
        assert again == reference
        assert again.reveal() == HIDDEN
        assert HIDDEN.encode() not in pickle.dumps(reference)
        assert HIDDEN not in repr(reference) + str(reference)


def test_file_is_read_anew(tmp_path: Path) -> None:
    file = tmp_path / "password"
    reference = fw.secret.file(file)
    for written in ("first", "second\r\n", " with spaces \n"):
        file.write_bytes(written.encode())
        assert reference.reveal() == written.strip("\r\n")


def test_plan_and_what_is_shown_of_it_hold_no_secret(references: list[Any]) -> None:
    for password in references:
        flow = fw.Flow("secret")
        settings = secured(password)
        taps = flow.source(
            "taps", KafkaSource("taps", servers="a:1", settings=settings), schema=int
        )
        taps.to(KafkaSink("fares", servers="a:1", settings=settings), name="fares")
        taps.key_by("value").to(RedisSink(host="a", password=password, username="jane"), name="b")
        taps.key_by("value").to(RedisSink(password), name="c")
        plan = Plan.of(flow)
        assert HIDDEN.encode() not in pack(plan)
        assert HIDDEN not in explain(flow) + repr([vars(op.connector) for op in connected(plan)])
        source = connected(unpack(pack(plan)))[0].connector
        assert source.settings["sasl.password"].reveal() == HIDDEN


def connected(plan: Plan) -> list[Any]:
    return [op for op in plan.graph.operators if getattr(op, "connector", None) is not None]


@pytest.mark.parametrize("connector", [KafkaSource, KafkaSink])
def test_client_gets_the_secret_and_hides_it(connector: Any, references: list[Any]) -> None:
    for password in references:
        made = connector("taps", servers=f"127.0.0.1:{free_port()}", settings=secured(password))
        given: list[Any] = []

        def refuse(settings: Any, **_: Any) -> None:
            given.append(settings["sasl.password"])  # noqa: B023 - called at once
            raise ValueError(f"no entry for jane:{settings['sasl.password']}")

        client = Client(made)
        client.library = _Library(client.library, refuse)
        with pytest.raises(ConnectorError, match=r"no entry for jane:\*\*\*") as caught:
            client.producer()
        assert given == [HIDDEN]
        assert HIDDEN not in str(caught.value)


class _Library:
    """The client library with another producer."""

    def __init__(self, library: Any, producer: Any) -> None:
        self.KafkaException, self.KafkaError = library.KafkaException, library.KafkaError
        self.Producer = producer


def test_redis_takes_references(references: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    with running(RedisServer(password=HIDDEN)) as server:
        monkeypatch.setenv("FLOODWAY_TEST_URL", server.url)
        made = [RedisSink(fw.secret.env("FLOODWAY_TEST_URL"), prefix="p")]
        made += [RedisSink(port=server.port, prefix="p", password=secret) for secret in references]
        for sink in made:
            sink.check()
            writer = sink.open(Split(), Schema.of(int))
            writer.write([(1, "a", 1, None)])
            writer.close()
    for sink in made:  # nobody is there any more
        with pytest.raises(ConnectorError, match="no Redis answers") as caught:
            sink.check()
        assert HIDDEN not in str(caught.value) + repr(sink)


def test_address_by_reference_that_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLOODWAY_TEST_URL", f"{HIDDEN}@somewhere")
    with pytest.raises(OptionError, match="no known scheme") as caught:
        RedisSink(fw.secret.env("FLOODWAY_TEST_URL")).check()
    assert HIDDEN not in str(caught.value)


def test_variable_that_is_not_set_says_where_it_has_to_be() -> None:
    with pytest.raises(ConnectorError, match="FLOODWAY_TEST_MISSING is not set on") as caught:
        RedisSink(password=fw.secret.env("FLOODWAY_TEST_MISSING")).check()
    assert "executors" in caught.value.remedy


@pytest.mark.parametrize("content", [None, b"", b"\xff\n"])
def test_file_that_cannot_be_used_is_named(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "password"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ConnectorError, match=str(file)):
        fw.secret.file(file).reveal()


def test_reference_cannot_become_part_of_a_text() -> None:
    with pytest.raises(OptionError, match="cannot be made part of a text"):
        _ = f"redis://:{fw.secret.env('FLOODWAY_TEST_PASSWORD')}@127.0.0.1"


@pytest.mark.parametrize("name", ["", None, 7])
def test_reference_needs_a_name(name: Any) -> None:
    with pytest.raises(OptionError, match="takes a name"):
        fw.secret.env(name)


@pytest.mark.parametrize(
    ("make", "warned"),
    [
        (lambda secret: RedisSink(port=1, password=HIDDEN), "password"),
        (lambda secret: RedisSink(f"redis://:{HIDDEN}@127.0.0.1:1"), "url"),
        (lambda secret: RedisSink(port=1, password=secret), None),
        (lambda secret: RedisSink("redis://127.0.0.1:1"), None),
    ],
)
def test_plain_secrets_are_warned_of_when_a_flow_starts(
    make: Any, warned: str | None, references: list[Any], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING), pytest.raises(ConnectorError):
        make(references[0]).check()
    assert (f"plain text ({warned})" in caplog.text) == (warned is not None)
    assert HIDDEN not in caplog.text


@pytest.mark.parametrize("connector", [KafkaSource, KafkaSink])
def test_servers_are_no_secret(connector: Any) -> None:
    for servers in (fw.secret.env("SERVERS"), [fw.secret.env("SERVERS")]):
        with pytest.raises(OptionError, match="servers") as caught:
            connector("taps", servers=servers)
        assert "settings=" in str(caught.value)
