"""Ad events: as lines without end, what a flow has to find in them, and when results came."""

from pathlib import Path

import msgspec

from floodway.connectors.base import Split
from floodway.core.schema import Schema
from floodway.demo import ads
from floodway.demo.sending.lines import PREPARED
from floodway.demo.sending.sent import Part, Sent
from floodway.demo.timing import Timings, TimingSink

T0 = 1_700_000_000_000
decode = msgspec.json.Decoder(ads.AdEvent).decode_lines


def test_lines_are_the_events_with_another_time() -> None:
    found = decode(ads.supply().take(7, T0))
    events = ads.make_events(PREPARED)[:7]
    assert found == [msgspec.structs.replace(event, event_time=T0) for event in events]


def test_lines_are_about_the_ads_that_were_drawn_and_end_as_wanted() -> None:
    (line, *_) = ads.lines([3] * PREPARED, end=b',"payload":"x"}')
    event = msgspec.json.decode(line.replace(b"\x00", b"5"))
    assert (event["ad_id"], event["event_time"], event["payload"]) == (ads.ad_name(3), 5, "x")


def test_expected_is_what_a_plain_loop_counts_in_all_that_was_sent() -> None:
    supply = ads.supply()
    sent = b"".join(supply.take(700, T0 + 40 * ms) for ms in range(600))
    assert sent.count(b"\n") > 2 * PREPARED
    expected = ads.expected(Sent([Part(ads.lines(), supply.sent)]))
    assert expected == ads.plain_count(sent, ads.campaigns())


def test_timings_are_read_while_they_are_written(tmp_path: Path) -> None:
    timings = Timings(tmp_path)
    assert timings.new() == []
    writer = TimingSink(str(tmp_path)).open(Split(), Schema.of(int))
    writer.write([(T0, "campaign-01", 1, None)])
    (first,) = timings.new()
    assert first.due_ms == T0
    assert first.took_ms > 0
    with (tmp_path / "times-0").open("ab") as half:
        half.write(b"1234")
    assert timings.new() == []
    writer.close()


def test_results_of_one_millisecond_that_come_together_are_timed_once(tmp_path: Path) -> None:
    writer = TimingSink(str(tmp_path)).open(Split(), Schema.of(int))
    writer.write([(T0 + 1, "b", 1, None), (T0, "a", 1, None), (T0 + 1, "c", 1, None)])
    writer.close()
    assert [timed.due_ms - T0 for timed in Timings(tmp_path).new()] == [0, 1]
