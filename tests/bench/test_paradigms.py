"""The comparison of paradigms: its loads and figures, and a short run with right answers."""

import json
import socket
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner

from floodway.bench import flooding, judging, paradigms
from floodway.bench.flooding import TAKEN, Phase, Progress, Sender
from floodway.bench.judging import Outcome, aims
from floodway.bench.paradigms import Limits, Run, phases_of, plan
from floodway.bench.supplies import PREPARED, Supply
from floodway.bench.timing import Timed
from floodway.bench.tracing import MODES, Trace, trace, tuning
from floodway.bench.words import SOUGHT, HotWords, Line, Matches, TallySink, Words, tallied
from floodway.bench.workloads import WORKLOADS
from floodway.cli.main import app
from floodway.connectors.base import Split
from floodway.core.schema import Schema
from floodway.engine.scheduler.story import Entry

T0 = 1_700_000_000_000
decode = msgspec.json.Decoder(Line).decode_lines


# ---------------------------------------------------------------- events


def sent_by(supply: Supply) -> list[str]:
    sent = b"".join(supply.due(ms, 700, T0 + ms) for ms in range(40))
    texts = [line.text for line in decode(sent)]
    assert len(texts) > PREPARED
    return texts


def test_words_are_counted_as_a_plain_loop_does() -> None:
    supply = Words()
    words = Counter(word for text in sent_by(supply) for word in text.split(" "))
    assert supply.counts() == {(word, 0): n for word, n in words.items()}
    assert words["probe-0003"] == 1


def test_half_of_all_words_are_hot() -> None:
    supply = HotWords()
    sent_by(supply)
    counts = supply.counts()
    assert counts["hot", 0] == pytest.approx(counts.total() / 2, rel=0.01)


def test_half_of_all_lines_match_and_every_probe() -> None:
    supply = Matches()
    texts = sent_by(supply)
    matching = Counter(text for text in texts if SOUGHT in text)
    assert supply.counts() == {(text, 0): n for text, n in matching.items()}
    assert matching.total() == pytest.approx(len(texts) / 2, rel=0.01)
    assert sum(text.startswith("probe-") for text in matching) == 8


class Clock:
    """Stands for the module `time`; only sleep, and whoever takes something, moves it on."""

    def __init__(self) -> None:
        self.now_ms = 0

    def monotonic(self) -> float:
        return self.now_ms / 1000

    def time_ns(self) -> int:
        return (T0 + self.now_ms) * 1_000_000

    def sleep(self, seconds: float) -> None:
        self.now_ms += max(round(seconds * 1000), 1)


class Taker:
    """Stands for a socket: takes whatever it is sent, after so many milliseconds."""

    def __init__(self, clock: Clock, takes_ms: int) -> None:
        self._clock, self._takes_ms = clock, takes_ms
        self.received: list[bytes] = []

    def sendall(self, lines: bytes) -> None:
        self._clock.now_ms += self._takes_ms
        self.received.append(lines)


@pytest.mark.parametrize(("takes_ms", "blocks"), [(1, 300), (10, 30), (150, 2)])
def test_sender_sends_as_fast_as_is_taken(
    takes_ms: int, blocks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, told = Clock(), list[Progress]()
    monkeypatch.setattr(flooding, "time", clock)
    taker: Any = Taker(clock, takes_ms)
    flooding.send((Phase("flood", 0.3, TAKEN),), taker, Matches(), told.append)
    assert len(taker.received) == blocks
    assert told[-1].sent == b"".join(taker.received).count(b"\n") == blocks * flooding.BLOCK


def test_sender_keeps_to_a_rate_and_then_sends_what_is_taken() -> None:
    phases = (Phase("calm", 0.2, 1_000), Phase("flood", 0.3, TAKEN))
    with Sender(phases, WORKLOADS["grep"].supply) as sender:
        with socket.create_connection(("127.0.0.1", sender.port)) as client:
            received = b""
            while chunk := client.recv(1 << 20):
                received += chunk
        expected = sender.counts()
        history = sender.history
    assert history[-1].sent == received.count(b"\n") >= 200 + flooding.BLOCK
    texts = Counter(line.text for line in decode(received) if SOUGHT in line.text)
    assert expected == {(text, 0): n for text, n in texts.items()}
    times = [line.event_time for line in decode(received)]
    assert times == sorted(times)


def test_tallies_are_those_of_all_tasks(tmp_path: Path) -> None:
    for index, texts in enumerate((["a", "probe-1 b", "a"], ["a"])):
        writer = TallySink(str(tmp_path), lines=True).open(Split(index, 2), Schema.of(Line))
        writer.write([(T0, None, Line(T0, text), None) for text in texts])
        writer.close()
    assert tallied(tmp_path) == {("a", 0): 3, ("probe-1 b", 0): 1}


# ---------------------------------------------------------------- loads


def test_modes_take_turns() -> None:
    runs = plan(["low"], ["ads"], 2)
    assert [run.mode for run in runs[:4]] == list(MODES)
    assert [run.mode for run in runs[4:]] == [*MODES[1:], MODES[0]]


def test_everything_takes_less_than_twenty_minutes() -> None:
    runs = plan(paradigms.WHATS, list(WORKLOADS), 1)
    assert {run.what for run in runs} == set(paradigms.WHATS)
    assert sum(paradigms.lasts(run, paradigms.SECONDS) for run in runs) < 20 * 60


def test_a_step_is_five_times_the_calm_and_above_what_data_carries() -> None:
    limits = Limits.of(100_000, 300_000)
    before, flood, after = phases_of(Run("step", "ads", "dual", 0), 4, limits)
    assert flood.per_second == 5 * before.per_second == 5 * after.per_second
    assert limits.data < flood.per_second < limits.dual


def test_only_dual_is_left_to_the_scheduler() -> None:
    assert [mode for mode in MODES if tuning(mode, 1).paradigm is None] == ["dual"]
    assert tuning("data_unbatched", 1).isolate
    assert tuning("data_unbatched", 1).b_out == 1


# ---------------------------------------------------------------- figures


def made_trace(**changes: object) -> Trace:
    """Return a flow that carries 1,000 events a second, each after half a second."""
    timed = tuple(Timed(T0 + 10 * n, 500.0) for n in range(600))
    sent = tuple(Progress(T0, 100 * n, T0 + 100 * n) for n in range(61))
    return Trace(
        "dual",
        (Phase("calm", 2, 1_000), Phase("flood", 4, 1_000)),
        began_ms=T0,
        seconds=7.0,
        timed=timed,
        sent=sent,
        **changes,  # type: ignore[arg-type]
    )


def test_rates_are_those_of_results() -> None:
    assert made_trace().rate(2, 5) == pytest.approx(1_000, rel=0.01)


def test_rates_of_what_comes_late_count_the_time_until_it_has_come() -> None:
    # Whatever was sent in six seconds comes at once, at the tenth second.
    timed = (Timed(T0, 0.0), *(Timed(T0 + 10 * n, 10_000.0 - 10 * n) for n in range(601)))
    sent = tuple(Progress(T0, 100 * n, T0 + 100 * n) for n in range(61))
    traced = Trace("dual", (), began_ms=T0, timed=timed, sent=sent)
    assert traced.rate(2, 5) == pytest.approx(600, rel=0.01)


def test_rates_count_whole_micro_batches_and_nothing_that_was_put_off() -> None:
    # For two seconds nothing comes, then all of it; from then on a batch each half second, of
    # half a second. 1,000 events a second are carried, though 3,000 came within the third.
    due = range(T0, T0 + 6_000, 10)
    came = [T0 + 2_500 if at < T0 + 2_000 else at - at % 500 + 1_000 for at in due]
    timed = tuple(Timed(at, float(when - at)) for at, when in zip(due, came, strict=True))
    sent = tuple(Progress(T0, 100 * n, T0 + 100 * n) for n in range(61))
    traced = Trace("dual", (), began_ms=T0, timed=timed, sent=sent)
    assert traced.rate(2, 5) == pytest.approx(1_000, rel=0.01)
    assert traced.rate(2.3, 5.2) == pytest.approx(1_000, rel=0.01)


def test_the_area_is_latency_times_time() -> None:
    assert made_trace().area() == pytest.approx(3.0)


def test_a_step_tells_when_it_was_seen_and_how_long_stages_paused() -> None:
    story = (
        Entry(time_ms=T0 + 500, what="batch", stage="a", why="", operator="a", before=1, after=10),
        Entry(
            time_ms=T0 + 2_200, what="batch", stage="a", why="", operator="a", before=1, after=10
        ),
        Entry(
            time_ms=T0 + 2_400, what="switch", stage="a", why="", before="data", after="operation"
        ),
        Entry(time_ms=T0 + 2_500, what="switched", stage="a", why="", pause_us=40_000),
    )
    found = judging.outcome(
        "step", 0, "low", made_trace(story=story), WORKLOADS["ads"], (2.0, 6.0), "file"
    )
    assert found.error is None
    assert found.figures["detection_ms"] == 200
    assert found.figures["switch_ms"] == 400
    assert found.figures["pause_ms"] == 40
    assert found.figures["area"] == pytest.approx(3.0)


def outcome(what: str, mode: str, error: str | None = None, **figures: float) -> Outcome:
    return Outcome(what, "low", "ads", mode, 0, error, 1.0, 1, figures)


def test_aims_are_met_or_not_or_not_measured() -> None:
    found = aims(
        [
            outcome("flood", "dual", per_s=300.0),
            outcome("flood", "data", per_s=200.0),
            outcome("flood", "operation", "it failed"),
            outcome("flood", "data_unbatched", per_s=110.0),
        ]
    )
    assert [(aim.value, aim.met) for aim in found] == [(2.727, False), (1.5, True), (None, None)]


def test_a_stage_that_is_switched_once_is_not_switched_too_often() -> None:
    (aim,) = aims([outcome("sine", "dual", switches=1.0)])
    assert aim.met
    (aim,) = aims([outcome("sine", "dual", switches=2.0, shortest_s=4.0)])
    assert aim.met is False


# ---------------------------------------------------------------- on Spark


@pytest.mark.spark
def test_a_flow_that_fails_is_told_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("floodway.bench.tracing.START_S", 0.0)
    found = trace(WORKLOADS["grep"], "data", [Phase("low", 0.5, 100)])
    assert found.error is not None
    assert "did not start" in found.error


@pytest.mark.spark
def test_the_command_compares_words_and_writes_json(tmp_path: Path) -> None:
    file = tmp_path / "found.json"
    arguments = ["--workload", "words", "--what", "low", "--seconds", "1"]
    options = ["--json", str(file), "--folder", str(tmp_path / "stories")]
    result = CliRunner().invoke(app, ["bench", "paradigms", *arguments, *options])
    document = json.loads(file.read_text())
    assert [(each["mode"], each["error"]) for each in document["outcomes"]] == [
        (mode, None) for mode in MODES
    ]
    assert result.exit_code == 0, result.output
    assert all(each["figures"]["p50"] > 0 for each in document["outcomes"])
    assert all(each["events"] > 0 for each in document["outcomes"])
    assert len(document["aims"]) == 2
    assert document["machine"]["cores"] > 0
    assert list((tmp_path / "stories").iterdir())
    assert "Low rate" in result.stdout
