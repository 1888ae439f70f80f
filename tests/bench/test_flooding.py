"""The flood: every event when it is due, from a process of its own, and what it should lead to."""

import socket
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest

from floodway.bench import ads
from floodway.bench.flooding import (
    PREPARED,
    PROBE_MS,
    PROBES,
    Events,
    Lines,
    Phase,
    Progress,
    Sender,
    due_by,
    lookup,
    schedule,
    send,
)
from floodway.bench.timing import Timings, TimingSink
from floodway.connectors.base import Split
from floodway.core.schema import Schema

T0 = 1_700_000_000_000
decode = msgspec.json.Decoder(ads.AdEvent).decode_lines


def test_schedule_adds_up_to_what_is_due() -> None:
    phases = (Phase("calm", 1.5, 333), Phase("flood", 0.25, 100_001))
    planned = list(schedule(phases))
    assert [ms for ms, _ in planned] == list(range(1750))
    assert sum(due for _, due in planned) == due_by(phases, 1.75)


def test_lines_are_the_events_with_another_time() -> None:
    events = ads.make_events(7)
    found = decode(Lines(events).stamped(7, T0))
    assert found == [msgspec.structs.replace(event, event_time=T0) for event in events]


def test_lines_begin_again_when_they_are_used_up() -> None:
    lines = Lines(ads.make_events(3))
    first = [event.user_id for event in decode(lines.stamped(2, T0))]
    rest = [event.user_id for event in decode(lines.stamped(8, T0))]
    users = [event.user_id for event in ads.make_events(3)]
    assert first + rest == (users * 4)[:10]


def test_counts_are_those_of_a_plain_loop_over_all_that_was_sent() -> None:
    events = Events()
    sent = b"".join(events.due(ms, 700, T0 + 40 * ms) for ms in range(600))
    assert sent.count(b"\n") > 2 * PREPARED
    assert events.counts() == ads.plain_count(sent, lookup())


def test_probes_come_at_all_times_and_alone_in_their_window() -> None:
    assert PROBES * PROBE_MS > ads.WINDOW_MS
    events = Events()
    sent = b"".join(events.due(ms, 3, T0 + ms) for ms in range(ads.WINDOW_MS))
    probes = [event for event in decode(sent) if event.ad_id.startswith("probe")]
    assert len(probes) == ads.WINDOW_MS // PROBE_MS
    assert len({probe.ad_id for probe in probes}) == len(probes)
    assert {probe.event_type for probe in probes} == {"view"}
    assert [probe.event_time for probe in probes[:3]] == [T0, T0 + PROBE_MS, T0 + 2 * PROBE_MS]


def test_what_is_late_is_sent_with_the_time_at_which_it_was_due() -> None:
    ours, theirs = socket.socketpair()
    told: list[Any] = []
    phases = (Phase("flood", 0.2, 50_000),)
    arguments = (phases, theirs, Events(), told.append)
    with ours, theirs:
        thread = threading.Thread(target=send, args=arguments)
        thread.start()
        ours.settimeout(10)
        received = b""
        while received.count(b"\n") < 10_000:
            received += ours.recv(1 << 16)
        thread.join()
    times = [event.event_time for event in decode(received)]
    assert len(times) == 10_000
    began = told[0].began_ms
    # However late the reader was: fifty in each of the 200 milliseconds.
    assert times == [began + ms for ms in range(200) for _ in range(50)]


def test_sender_is_a_process_that_tells_how_far_it_is_and_what_to_expect() -> None:
    phases = (Phase("calm", 0.3, 1_000), Phase("flood", 0.3, 20_000))
    with Sender(phases) as sender, socket.create_connection(("127.0.0.1", sender.port)) as client:
        received = b""
        while chunk := client.recv(1 << 16):
            received += chunk
        expected = sender.counts()
        progress = sender.progress
    assert isinstance(progress, Progress)
    assert progress.sent == received.count(b"\n") == 6_300
    assert expected == ads.plain_count(received, lookup())


def test_sender_ends_with_whoever_wanted_it() -> None:
    with Sender((Phase("calm", 60, 1_000),)) as sender:
        client = socket.create_connection(("127.0.0.1", sender.port))
        client.recv(1)
    with client:
        client.settimeout(10)
        while client.recv(1 << 16):
            pass


def test_timings_are_read_while_they_are_written(tmp_path: Path) -> None:
    timings = Timings(tmp_path)
    assert timings.new() == []
    writer = TimingSink(str(tmp_path)).open(Split(), Schema.of(int))
    writer.write([(T0, "probe-0001", 1, None), (T0, "campaign-01", 1, None)])
    (first,) = timings.new()
    assert first.due_ms == T0
    assert first.took_ms > 0
    with (tmp_path / "timings-0").open("ab") as half:
        half.write(b"1234")
    assert timings.new() == []
    writer.close()


@pytest.mark.parametrize("count", [0, 1, 4])
def test_few_events_are_fine_too(count: int) -> None:
    events = Events()
    assert events.due(0, count, T0).count(b"\n") == count
