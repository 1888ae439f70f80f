"""The scheduler's rules, one by one; `test_river` shows them at work."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floodway.core.errors import EngineError
from floodway.engine.scheduler.decisions import Decision, SetBatch, SwitchTo
from floodway.engine.scheduler.loads import Link, OutletLoad, StageLoad, Topology
from floodway.engine.scheduler.replay import replay
from floodway.engine.scheduler.scheduler import Scheduler
from floodway.engine.scheduler.settings import SchedulerSettings
from floodway.engine.scheduler.story import Story

ALONE = Topology(("a",), (), frozenset("a"))
CHAIN = Topology(("a", "b", "c"), (Link("a", "b", "a"), Link("b", "c", "b")), frozenset("a"))
THERE = SwitchTo("a", "operation")
BACK = SwitchTo("a", "data")


def calm(stage: str = "a", **fields: Any) -> StageLoad:
    return StageLoad(**{"stage": stage, "arrival_per_s": 500.0, "data_per_s": 1000.0, **fields})


def flood(stage: str = "a", **fields: Any) -> StageLoad:
    return calm(stage, **{"arrival_per_s": 5000.0, "queue_records": 9000, **fields})


class Time:
    """Shows a scheduler loads every 100 ms, and answers at once unless told otherwise."""

    def __init__(self, topology: Topology = ALONE, **options: Any) -> None:
        self.lines: list[bytes] = []
        story = Story(self.lines.append)
        self.scheduler = Scheduler(topology, SchedulerSettings(**{"warm_ms": 0, **options}), story)
        self.now_ms = 0

    def show(self, *loads: StageLoad, times: int = 1, answer: bool = True) -> list[Decision]:
        made: list[Decision] = []
        for _ in range(times):
            self.now_ms += 100
            now = self.scheduler.observe(loads, self.now_ms)
            for decision in now:
                if answer and isinstance(decision, SwitchTo):
                    self.scheduler.switched(decision.stage, self.now_ms, 2000)
            made += now
        return made

    def flooded(self) -> "Time":
        assert self.show(flood(), times=2) == [THERE]
        return self

    @property
    def told(self) -> list[str]:
        return [entry.what for entry in self.scheduler.story.entries]


def there(**fields: Any) -> StageLoad:
    return calm(paradigm="operation", **fields)


# --------------------------------------------------------------------- confirmation


def test_flood_has_to_be_seen_twice_in_a_row() -> None:
    time = Time()
    assert time.show(flood()) == []
    assert time.show(calm()) == []
    assert time.show(flood()) == []
    assert time.show(flood()) == [THERE]


def test_two_looks_at_the_same_moment_are_one() -> None:
    scheduler = Scheduler(ALONE, SchedulerSettings(warm_ms=0))
    assert scheduler.observe([flood()], 100) == []
    assert scheduler.observe([flood()], 110) == []
    assert scheduler.observe([flood()], 200) == [THERE]


def test_calm_has_to_last() -> None:
    time = Time().flooded()
    assert time.show(there(arrival_per_s=900.0), times=60) == []
    assert time.show(there(), times=20) == []
    assert time.show(there(arrival_per_s=5000.0), times=2) == []
    assert BACK not in time.show(there(), times=20)
    assert time.show(there(), times=10) == [BACK]


def test_stage_is_not_calm_while_the_data_paradigm_could_not_carry_the_load() -> None:
    time = Time().flooded()
    assert time.show(there(arrival_per_s=900.0, queue_records=0), times=600) == []


def test_rate_of_the_data_paradigm_is_remembered_through_a_flood() -> None:
    time = Time().flooded()
    assert time.show(there(data_per_s=None), times=60) == [BACK]
    assert time.scheduler.points()["a"].data_per_s == 1000


def test_one_bad_measurement_is_not_what_is_remembered() -> None:
    time = Time()
    time.show(calm(), times=5)
    time.show(flood())
    assert time.show(flood(data_per_s=20.0)) == [THERE]
    assert time.show(there(data_per_s=None), times=60) == [BACK]


# --------------------------------------------------------------------- swinging


def test_stage_that_has_switched_stays_so_for_five_seconds() -> None:
    time = Time(calm_ms=0).flooded()
    switched = time.now_ms
    assert time.show(there(), times=49) == []
    assert time.show(there()) == [BACK]
    assert time.now_ms - switched == 5_000
    assert time.show(flood(), times=49) == []
    assert time.show(flood()) == [THERE]


def test_stage_that_floods_again_soon_has_to_be_calm_for_longer() -> None:
    time = Time(most_calm_ms=8_000)
    took = []
    for _ in range(4):
        time.show(flood(), times=60)
        time.show(flood(paradigm="operation"), times=60)
        began = time.now_ms
        while BACK not in time.show(there()):
            pass
        took.append(time.now_ms - began)
    # The arrival rate is smoothed over a second, so it is calm a little later.
    assert [round(ms / 1000) - 1 for ms in took] == [2, 4, 8, 8]


def test_stage_that_floods_again_after_long_begins_anew() -> None:
    time = Time()
    for _ in range(3):
        time.show(flood(), times=2)
        time.show(there(), times=55)
        assert time.scheduler.phases() == {"a": "calm"}
        time.show(calm(), times=400)
    assert time.told == ["switch", "switched"] * 6


# --------------------------------------------------------------------- answers


def test_stage_is_not_told_twice() -> None:
    time = Time()
    assert time.show(flood(), times=100, answer=False) == [THERE]
    assert time.scheduler.phases() == {"a": "switch"}


def test_switch_that_failed_is_tried_again_later() -> None:
    time = Time()
    time.show(flood(), times=2, answer=False)
    time.scheduler.failed("a", "there is no Spark")
    assert time.show(flood(), times=299) == []
    assert time.show(flood()) == [THERE]
    (failed,) = (entry for entry in time.scheduler.story.entries if entry.what == "failed")
    assert "there is no Spark" in failed.why


def test_switch_that_is_not_answered_has_failed() -> None:
    time = Time()
    assert time.show(flood(), times=301, answer=False) == [THERE]
    assert time.told == ["switch"]
    time.show(flood(), answer=False)
    assert time.told == ["switch", "failed"]


def test_switch_whose_answer_was_lost_is_seen() -> None:
    time = Time()
    time.show(flood(), times=2, answer=False)
    time.show(flood(paradigm="operation"), times=301, answer=False)
    assert time.scheduler.phases() == {"a": "run"}
    assert time.told == ["switch", "switched"]


def test_stage_that_was_told_otherwise_meanwhile_has_not_done_what_was_ordered() -> None:
    # The answer to a user's order was taken for that to the scheduler's own.
    time = Time()
    time.show(flood(), times=2, answer=False)
    assert time.scheduler.phases() == {"a": "switch"}
    time.scheduler.switched("a", time.now_ms, 10, "data")
    assert time.scheduler.phases() == {"a": "calm"}
    assert "told otherwise" in time.scheduler.story.entries[-1].why


def test_answer_to_nothing_changes_nothing() -> None:
    time = Time()
    time.scheduler.switched("a", 0, 0)
    time.scheduler.failed("b", "who?")
    assert time.told == []


def test_report_that_is_older_than_the_switch_does_not_count() -> None:
    time = Time().flooded()
    time.show(flood(), times=3)
    assert time.scheduler.phases() == {"a": "run"}


def test_stage_that_began_anew_is_what_it_says() -> None:
    time = Time().flooded()
    assert time.show(flood(), times=49) == []
    assert time.scheduler.phases() == {"a": "prepare"}
    assert time.show(flood()) == [THERE]


# --------------------------------------------------------------------- pins and stages that stay


def test_pinned_stage_is_switched_and_stays() -> None:
    time = Time()
    assert time.show(calm(pin="operation")) == [THERE]
    assert time.show(there(pin="operation"), times=300) == []
    assert time.show(there(pin="data")) == [BACK]
    assert time.show(flood(pin="data"), times=300) == []
    assert time.told[-1] == "stay"
    assert "pinned" in time.scheduler.story.entries[-1].why


def test_pin_that_is_taken_away_leaves_it_to_the_load() -> None:
    time = Time()
    time.show(calm(pin="operation"))
    assert time.show(there(), times=55) == [BACK]


def test_stage_of_sinks_is_left_alone() -> None:
    time = Time(Topology(("a",), (), frozenset(), frozenset("a")))
    assert time.show(flood(), times=10) == []
    assert "only sinks" in time.scheduler.story.entries[-1].why


def test_why_a_stage_stays_is_not_told_all_the_time() -> None:
    time = Time()
    time.show(flood(able=False, why_not="it has a side effect"), times=500)
    assert time.told == ["stay"]
    assert "it has a side effect" in time.scheduler.story.entries[0].why


def test_stage_that_is_not_there_is_refused() -> None:
    with pytest.raises(EngineError, match="no stage 'z'"):
        Time().show(calm("z"))


def test_stages_without_a_load_wait() -> None:
    time = Time(CHAIN)
    assert time.show(flood("b"), times=2) == [SwitchTo("b", "operation")]


# --------------------------------------------------------------------- where it floods


def test_stage_that_waits_is_not_flooded_but_the_one_it_waits_for() -> None:
    time = Time(CHAIN)
    waits = {"busy": 0.3, "blocked": 0.7}
    made = time.show(
        flood("a", saturated=True, **waits), flood("b", **waits), calm("c", busy=1.0), times=3
    )
    assert made == [SwitchTo("c", "operation")]
    assert "b waits for c" in time.scheduler.story.entries[0].why


def test_stage_that_is_blocked_at_times_but_idle_for_longer_tells_of_no_flood() -> None:
    time = Time(CHAIN)
    made = time.show(calm("a", busy=0.3, blocked=0.2), calm("b", busy=0.9), calm("c"), times=50)
    assert made == []


def test_longest_queue_is_what_is_waited_for_if_nobody_is_busy_all_the_time() -> None:
    fork = Topology(("a", "b", "c"), (Link("a", "b", "a"), Link("a", "c", "a")), frozenset("a"))
    time = Time(fork)
    made = time.show(
        calm("a", busy=0.5, blocked=0.5),
        calm("b", busy=0.5, queue_records=10),
        calm("c", busy=0.5, queue_records=20),
        times=2,
    )
    assert made == [SwitchTo("c", "operation")]


def test_stage_in_a_range_stays_as_long_as_the_flood_before_it() -> None:
    time = Time(CHAIN)
    before = flood("a"), calm("b", out_per_in=0.1), calm("c")
    assert time.show(*before, times=2) == [THERE, SwitchTo("b", "operation")]
    b = calm("b", paradigm="operation", out_per_in=0.1)
    assert time.show(flood(paradigm="operation"), b, calm("c"), times=200) == []
    assert time.show(there(), b, calm("c"), times=40) == [BACK, SwitchTo("b", "data")]


def test_stage_in_a_range_that_floods_itself_stays_when_the_flood_before_it_has_passed() -> None:
    time = Time(CHAIN)
    time.show(flood("a"), calm("b", out_per_in=0.1), calm("c"), times=2)
    b = flood("b", paradigm="operation")
    assert time.show(there(), b, calm("c"), times=55) == [BACK]


def test_flood_that_has_passed_holds_nobody_even_if_its_stage_is_pinned() -> None:
    time = Time(CHAIN)
    time.show(flood("a"), calm("b", out_per_in=0.1), calm("c"), times=2)
    b = calm("b", paradigm="operation")
    assert time.show(there(pin="operation"), b, calm("c"), times=55) == [SwitchTo("b", "data")]


def test_stage_for_which_it_does_not_pay_is_no_part_of_a_range() -> None:
    time = Time(CHAIN)
    made = time.show(flood("a"), calm("b", operation_per_s=500.0), calm("c"), times=2)
    assert made == [THERE]


# --------------------------------------------------------------------- anything


@st.composite
def loads(draw: st.DrawFn, stage: str) -> StageLoad:
    rate = st.sampled_from([10.0, 300.0, 1000.0, 7000.0])
    busy = draw(st.sampled_from([0.0, 0.3, 0.9]))
    return StageLoad(
        stage=stage,
        paradigm=draw(st.sampled_from(["data", "operation"])),
        pin=draw(st.sampled_from(["auto"] * 8 + ["data", "operation"])),
        able=draw(st.integers(0, 9)) > 0,
        arrival_per_s=draw(rate) * 1.23456789,
        queue_records=draw(st.sampled_from([0, 100, 2_000, 50_000])),
        saturated=draw(st.integers(0, 9)) == 0,
        data_per_s=draw(st.none() | rate),
        operation_per_s=draw(st.none() | rate),
        out_per_in=draw(st.none() | st.sampled_from([0.1, 1.0, 3.0])),
        fetch_ns=draw(st.sampled_from([0.0, 500.0])),
        cpu_ns=700.0,
        emit_ns=draw(st.sampled_from([0.0, 900.0])),
        busy=busy,
        blocked=draw(st.sampled_from([0.0, 1 - busy])),
        outlets=(OutletLoad(stage, draw(st.sampled_from([1, 10, 100])), 100.0, 1.0),),
    )


moments = st.lists(
    st.tuples(
        st.integers(1, 30),
        st.tuples(loads("a"), loads("b"), loads("c")),
        st.sampled_from(["switched", "switched", "failed", "silent"]),
    ),
    max_size=12,
)


@settings(max_examples=40)
@given(moments)
def test_whatever_is_shown_the_rules_hold_and_the_story_can_be_replayed(
    shown: list[tuple[int, tuple[StageLoad, StageLoad, StageLoad], str]],
) -> None:
    time = Time(CHAIN, failed_ms=6_000)
    made: list[tuple[int, Decision]] = []
    last: dict[str, int] = {}
    for times, seen, answer in shown:
        by_stage = {load.stage: load for load in seen}
        for _ in range(times):
            decisions = time.show(*seen, answer=False)
            made += [(time.now_ms, decision) for decision in decisions]
            for decision in decisions:
                if isinstance(decision, SetBatch):
                    assert 1 <= decision.b_out <= 1000
                    continue
                load = by_stage[decision.stage]
                assert load.able
                assert load.pin in ("auto", decision.paradigm)
                assert time.now_ms - last.get(decision.stage, -5_000) >= 5_000
                last[decision.stage] = time.now_ms
                if answer == "switched":
                    time.scheduler.switched(decision.stage, time.now_ms, 10)
                elif answer == "failed":
                    time.scheduler.failed(decision.stage, "no")
    assert replay(time.lines) == made


# --------------------------------------------------------------------- what those after it can do

LINES = Topology(("a", "b"), (Link("a", "b", "a"),), frozenset("a"))
COMBINING = Topology(("a", "b"), (Link("a", "b", "a", combines=True),), frozenset("a"))


@pytest.mark.parametrize(
    ("topology", "words", "slower"),
    [
        (COMBINING, 10.0, False),  # 500 lines/s would be all whose words could be counted
        (COMBINING, 1.0, True),
        (LINES, 10.0, True),  # micro-batches send as many words: nothing is spared
    ],
)
def test_stage_whose_batches_spare_the_next_one_is_not_called_slower(
    topology: Topology, words: float, slower: bool
) -> None:
    time = Time(topology)
    counts = calm("b", arrival_per_s=4_000.0, data_per_s=5_000.0)
    lines = flood(data_per_s=1_000.0, out_per_in=words, saturated=True)
    assert THERE in time.show(lines, counts, times=3)
    batched = flood(paradigm="operation", operation_per_s=800.0, out_per_in=0.1, saturated=True)
    assert (BACK in time.show(batched, counts, times=100)) is slower


@pytest.mark.parametrize("data_per_s", [2e6, 8e5])  # K 2.0; 0.92, which is not much of a promise
def test_stage_is_not_switched_if_the_guess_is_that_nothing_is_gained(data_per_s: float) -> None:
    time = Time()
    cheap = flood(
        arrival_per_s=5e6, data_per_s=data_per_s, queue_records=9_000_000, returned=0.5, slots=2
    )
    assert time.show(cheap, times=5) == []
    (entry,) = time.scheduler.story.entries
    assert entry.what == "stay"
    assert "the operation paradigm would do" in entry.why
    assert "(guessed)" in entry.why


def test_sender_that_can_combine_is_switched_with_the_stage_that_it_floods() -> None:
    # Lines were switched 0.3 to 0.9 s after their words: they were held back until then.
    lines = calm("a", out_per_in=10.0, blocked=0.6, busy=0.4)
    time = Time(COMBINING)
    assert time.show(lines, flood("b"), times=2) == [THERE, SwitchTo("b", "operation")]
    assert [entry.range for entry in time.scheduler.story.entries][:2] == [("a", "b")] * 2


def test_sender_that_cannot_combine_stays() -> None:
    time = Time(LINES)
    lines = calm("a", out_per_in=10.0, blocked=0.6, busy=0.4)
    assert time.show(lines, flood("b"), times=2) == [SwitchTo("b", "operation")]


def test_stage_goes_back_although_the_one_after_it_seems_to_be_slow() -> None:
    # A sink that took little was thought to be able to take no more: nobody ever went back.
    time = Time(LINES)
    sink = calm("b", arrival_per_s=4.0, data_per_s=5.0)
    assert THERE in time.show(flood(out_per_in=0.5), sink, times=3)
    assert BACK in time.show(there(out_per_in=0.5), sink, times=100)


def test_what_a_stage_does_with_combined_records_is_not_what_it_does_with_single_ones() -> None:
    # Few and dear ones came, so it seemed to be slow, and the stage before it never went back.
    time = Time(COMBINING)
    counts = calm("b", arrival_per_s=4_000.0, data_per_s=9_000.0)
    assert THERE in time.show(flood(out_per_in=10.0), counts, times=3)
    combined = calm("b", arrival_per_s=4.0, data_per_s=5.0)
    assert BACK in time.show(there(out_per_in=0.01), combined, times=100)
