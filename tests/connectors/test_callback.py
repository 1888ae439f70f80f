"""Results to a function."""

from typing import Any

import pytest

from floodway.connectors.base import Row, Split, Unavailable
from floodway.connectors.callback import CallbackSink
from floodway.core.errors import ConnectorError
from floodway.core.schema import Schema
from floodway.testing.conformance import check_sink

ROWS: list[Row] = [(n, f"key {n}", n * 10, None) for n in range(6)]
SEEN: list[Any] = []


def remember(value: Any) -> None:
    SEEN.append(value)


def remember_all(rows: list[Row]) -> None:
    SEEN.extend(rows)


@pytest.fixture(autouse=True)
def _nothing_seen() -> None:
    SEEN.clear()


def test_promises() -> None:
    check_sink(CallbackSink(remember), int, ROWS, lambda: SEEN)


def test_promises_of_batches() -> None:
    sink = CallbackSink(remember_all, batches=True)
    check_sink(sink, int, ROWS, lambda: SEEN, expected=ROWS)


def test_callback_that_fails_is_named_with_its_record() -> None:
    def choke(value: int) -> None:
        if value == 20:
            raise ValueError("too much")
        SEEN.append(value)

    writer = CallbackSink(choke).open(Split(), Schema.of(int))
    with pytest.raises(ConnectorError, match="choke failed on 20: ValueError: too much"):
        writer.write(ROWS)
    assert SEEN == [0, 10]


def test_callback_of_batches_that_fails_is_named() -> None:
    def choke(rows: list[Row]) -> None:
        raise ValueError("too much")

    writer = CallbackSink(choke, batches=True).open(Split(), Schema.of(int))
    with pytest.raises(
        ConnectorError, match=r"choke failed on 6 rows, the first of which is .*key"
    ):
        writer.write(ROWS)


def test_callback_that_is_not_able_now_says_what_was_taken() -> None:
    def busy(value: int) -> None:
        if value == 20:
            raise Unavailable("come back later")

    writer = CallbackSink(busy).open(Split(), Schema.of(int))
    with pytest.raises(Unavailable, match="come back later") as caught:
        writer.write(ROWS)
    assert caught.value.taken == 2


def test_updates_need_batches() -> None:
    update = (1, "key", None, 7)
    with pytest.raises(ConnectorError, match="update of a record") as caught:
        CallbackSink(remember).open(Split(), Schema.of(int)).write([update])
    assert "batches=True" in caught.value.remedy
    CallbackSink(remember_all, batches=True).open(Split(), Schema.of(int)).write([update])
    assert list(SEEN) == [update]


def test_long_values_are_shortened_in_errors() -> None:
    writer = CallbackSink(len).open(Split(), Schema.of(int))
    with pytest.raises(ConnectorError, match="len failed") as caught:
        writer.write([(1, None, 10**1000, None)])
    assert len(caught.value.problem) < 400
