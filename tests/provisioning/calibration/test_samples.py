"""Samples are read without a trace, and go on in event time when they are repeated."""

import datetime as dt
import json
import re
import threading
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import pytest

import floodway as fw
from floodway.connectors import JsonLinesSource
from floodway.connectors.tcp import TcpSource
from floodway.core.errors import OptionError
from floodway.operators.source import Changelog, Source
from floodway.provisioning.calibration.repeating import repeated
from floodway.provisioning.calibration.replay import (
    ReplaySource,
    read_pieces,
    replayed,
    write_pieces,
)
from floodway.provisioning.calibration.sampling import SourceSample, sample_from, sample_of
from floodway.testing import At, ListSink, ListSource


class Seen(fw.Record):
    page: str
    at: int


class Dated(fw.Record):
    at: dt.datetime


LINES = b'{"page":"a","more":[1,2],"at":100}\n{"page":"b","more":[],"at":130}\n'


def source_of(connector: Any, schema: Any = Seen, timestamp: Any = "at") -> Source:
    flow = fw.Flow("sampled")
    flow.source("events", connector, schema=schema, timestamp=timestamp)
    (found,) = flow.operators
    assert isinstance(found, Source)
    return found


def test_sample_of_a_file_is_what_the_source_would_read(tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    file.write_bytes(LINES)
    sample = sample_of(source_of(JsonLinesSource(file)))
    assert (b"".join(sample.pieces), sample.records, sample.keyed) == (LINES, 2, False)  # type: ignore[arg-type]
    assert sample_from(file) == sample


def test_source_that_can_be_read_once_needs_a_sample() -> None:
    with pytest.raises(OptionError, match="is gone for the flow") as caught:
        sample_of(source_of(TcpSource("127.0.0.1", 9)))
    assert caught.value.operator == "events"
    assert "--sample events=FILE" in (caught.value.remedy or "")


def test_sample_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="cannot be read"):
        sample_from(tmp_path / "missing")


@pytest.mark.parametrize("timestamp", ["at", "at * 1000"])
def test_event_time_goes_on_from_lap_to_lap_and_all_else_stays(timestamp: str) -> None:
    source = source_of(JsonLinesSource("none"), timestamp=timestamp)
    laps = list(islice(repeated(source, SourceSample([LINES], False, 2)), 3))
    rows = [row for lap in laps for row in msgspec.json.Decoder().decode_lines(lap)]  # type: ignore[arg-type]
    assert [row["page"] for row in rows] == ["a", "b"] * 3
    assert rows[4]["more"] == [1, 2]  # though the flow does not know of it
    times = [row["at"] for row in rows]
    assert times == sorted(times)
    steps = {later - earlier for earlier, later in zip(times[::2], times[2::2], strict=False)}
    assert steps == {60}  # 30 for the sample, and as much until it begins again


def test_times_and_dates_and_items_with_times_of_their_own_are_moved() -> None:
    line = b'{"at":"2026-01-01T00:00:00Z"}\n{"at":"2026-01-01T00:00:10Z"}\n'
    source = source_of(JsonLinesSource("none"), schema=Dated)
    second = list(islice(repeated(source, SourceSample([line], False, 2)), 2))[1]
    assert b"00:00:20Z" in second  # type: ignore[operator]
    keyed = source_of(ListSource([]), schema=int, timestamp=None)
    pieces = islice(repeated(keyed, SourceSample([[(5, "k", 1), (9, None, 2)]], True, 2)), 2)
    assert list(pieces)[1] == [(13, "k", 1), (17, None, 2)]


def test_sample_without_event_times_is_repeated_as_it_is() -> None:
    source = source_of(JsonLinesSource("none"), timestamp=None)
    assert list(islice(repeated(source, SourceSample([LINES], False, 2)), 3)) == [LINES] * 3


def test_event_time_that_is_made_of_two_fields_is_refused() -> None:
    class Two(fw.Record):
        day: int
        ms: int

    source = source_of(JsonLinesSource("none"), schema=Two, timestamp="day * 86400000 + ms")
    with pytest.raises(OptionError, match="cannot be repeated: its event time"):
        next(repeated(source, SourceSample([b'{"day":1,"ms":5}\n'], False, 1)))


def test_pieces_come_back_as_they_were_written(tmp_path: Path) -> None:
    pieces = [b"a\nb\n", [1, ("x", None)], b"c\n"]
    assert write_pieces(tmp_path / "pieces", pieces) == 5
    assert list(read_pieces(tmp_path / "pieces")) == pieces


def test_flow_that_is_replayed_reads_elsewhere_and_keeps_no_results() -> None:
    flow, out = fw.Flow("kept"), ListSink()
    table = ListSource([At(0, "x", "k")])
    events = flow.source("events", JsonLinesSource("none"), schema=Seen, timestamp="at")
    names = flow.table("names", table, schema=str, key=str, preload=True)
    events.join(names, on="page", select=["right AS name"]).to(out, name="out")
    instead = ReplaySource("file", JsonLinesSource("none").format, keyed=False)
    other = {op.name: op for op in replayed(flow, {"events": instead}).operators}
    assert other["events"].connector is instead  # type: ignore[attr-defined]
    assert type(other["out"].connector).__name__ == "DiscardSink"  # type: ignore[attr-defined]
    tables = [op.connector for op in other.values() if isinstance(op, Changelog)]
    assert [type(connector) for connector in tables] == [ListSource]
    own = {op.name: op for op in flow.operators}
    assert own["out"].connector is out  # type: ignore[attr-defined]


class Holding:
    """A function that keeps something: a module can be kept, a lock cannot be copied."""

    def __init__(self, held: object) -> None:
        self.held = held

    def __call__(self, seen: Seen) -> str:
        return str(self.held)


def holding(held: object) -> fw.Flow:
    flow = fw.Flow("holding")
    events = flow.source("events", JsonLinesSource("none"), schema=Seen, timestamp="at")
    events.map(Holding(held), schema=str, name="shown").to(ListSink(), name="out")
    return flow


def test_flow_whose_functions_hold_modules_can_be_replayed() -> None:
    instead = ReplaySource("file", JsonLinesSource("none").format, keyed=False)
    assert replayed(holding(json), {"events": instead}).operators


@dataclass(frozen=True)
class HoldingSource(JsonLinesSource):
    """A connector that keeps something."""

    held: Any = None


def test_flow_whose_connectors_hold_what_cannot_be_copied_can_be_replayed() -> None:
    flow = fw.Flow("connected")
    held = (json, threading.Lock())
    events = flow.source("events", HoldingSource("none", held=held), schema=Seen, timestamp="at")
    names = flow.table("names", HoldingSource("some", held=held), schema=Seen, key="page")
    events.join(names, on="page", select=["right.at AS at"]).to(ListSink(), name="out")
    instead = ReplaySource("file", JsonLinesSource("none").format, keyed=False)
    assert replayed(flow, {"events": instead}).operators


class Stubborn:
    """A client that does not let itself be copied, and says so in its own way."""

    def __deepcopy__(self, memo: object) -> "Stubborn":
        raise RuntimeError("no copies of me")


@pytest.mark.parametrize(
    ("held", "said"),
    [
        (threading.Lock(), "TypeError: cannot pickle '_thread.lock'"),
        (Stubborn(), "RuntimeError: no copies of me"),
    ],
)
def test_flow_that_cannot_be_copied_says_where_and_what_to_do(held: object, said: str) -> None:
    instead = ReplaySource("file", JsonLinesSource("none").format, keyed=False)
    flow = holding(held)
    with pytest.raises(OptionError, match=f"cannot be copied: {re.escape(said)}") as caught:
        replayed(flow, {"events": instead})
    shown = next(operator for operator in flow.operators if operator.name == "shown")
    assert (caught.value.operator, caught.value.place) == ("shown", shown.place)
    assert "when they are first called" in caught.value.remedy
