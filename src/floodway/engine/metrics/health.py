"""How a flow is: healthy, degraded or unhealthy, and why.

A flow is *unhealthy* while one of its tasks does not work. It is *degraded* if it works and yet
something does not come out that people may expect: records that are late, that fail, that have no
time, that find no partner, that a queue dropped, a source that came back behind stream time, or a
system outside that is away. Each reason has the operator, numbers, what the cause may be, and a
remedy.

All of it is a judgement of counters that tasks report anyway. What got lost counts for
`LATELY_S`, so that a flow is not degraded for ever because of one bad record, and that a bad hour
is seen after a good month; when a flow is over, its whole run counts.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Literal, NamedTuple

from floodway.engine.metrics.status import (
    Health,
    OperatorStatus,
    Reason,
    TaskStatus,
)
from floodway.engine.program.counts import OperatorCounts

UNHEALTHY_SILENT_S = 5.0  # fifty reports
UNHEALTHY_STALLED_S = 30.0  # longer than any sane record takes, so not a slow sink
UNHEALTHY_MISSING_S = 60.0  # Spark starts a task in a second, a cluster under load in tens

LATELY_S = 600.0
"""For so long what got lost makes a flow degraded."""

NOTE_S = 60.0
"""How often it is noted what was counted so far."""

LATE_SHARE, LATE_RECORDS = 0.01, 10
"""More than this share, and at least so many records, have to be late to be worth a word.

At the end, when no more can come, one record is enough.
"""

LATE_LARGE_SHARE = 0.1
"""Of more than this share even a single late record is worth a word at once."""

JOIN_RECORDS, JOIN_S = 1000, 10.0
"""So many records, and so much time, a join has to give a first result."""

AWAY_S = 30.0
"""For so long a system outside may be away before that is more than a hiccup."""

WORSE = 10
"""What has been told is told again when it is so many times as much."""

Rule = Callable[[OperatorStatus, OperatorCounts], Reason | None]


class StageFacts(NamedTuple):
    """What has to be known of a stage to judge it."""

    name: str
    operators: list[OperatorStatus]
    tasks: list[TaskStatus]


def judge(
    stages: Iterable[StageFacts],
    before: Mapping[str, OperatorCounts],
    *,
    running_s: float,
    over: bool,
    waiting: Iterable[str] = (),
) -> Health:
    """Return how a flow is.

    Parameters
    ----------
    stages
        Its stages.
    before
        The counts of its operators some time ago, by name; those that are missing were 0.
    running_s
        For how long it has been running.
    over
        Whether it is over: then no task is missed, and all records had their chance.
    waiting
        The tasks that wait for a free slot of Spark, by name.
    """
    stages = list(stages)
    unwell = [] if over else [reason for stage in stages for reason in _tasks(stage)]
    unwell += [] if over else map(_slotless, waiting)
    operators = [operator for stage in stages for operator in stage.operators]
    timed = [op.counts.name for op in operators if op.timed and not _all_undated(op.counts)]
    undated = partial(_undated, beside=timed)
    late = partial(_late, over=over)
    rules: tuple[Rule, ...] = (late, _skipped, _dead, undated, _returned, _dropped)
    found = [
        rule(operator, _since(operator.counts, before)) for operator in operators for rule in rules
    ]
    if over or running_s >= JOIN_S:
        found += map(_unmatched, operators)
    lost = [reason for reason in found if reason is not None]
    away = [] if over else [reason for stage in stages for reason in _away(stage)]
    reasons = [*unwell, *away, *lost]
    return Health("unhealthy" if unwell else "degraded" if reasons else "healthy", reasons)


class Lately:
    """What operators had counted some minutes ago, to tell what they have counted since then.

    Examples
    --------
    >>> lately = Lately()
    >>> for minute in range(30):
    ...     lately.note(60.0 * minute, [OperatorCounts("views", minute)])
    >>> lately.before["views"].records_in
    19
    """

    def __init__(self) -> None:
        # At the beginning there was nothing, whenever that was.
        self._notes: deque[tuple[float, dict[str, OperatorCounts]]] = deque([(float("-inf"), {})])

    def due(self, now: float) -> bool:
        """Return whether it is time to take note of the counts."""
        return now - self._notes[-1][0] >= NOTE_S

    def note(self, now: float, counts: Iterable[OperatorCounts]) -> None:
        """Take note of the counts of all operators."""
        self._notes.append((now, {each.name: each for each in counts}))
        while self._notes[1][0] <= now - LATELY_S:
            self._notes.popleft()

    @property
    def before(self) -> Mapping[str, OperatorCounts]:
        """The counts of `LATELY_S` ago, or a little earlier."""
        return self._notes[0][1]


class Telling:
    """What of a flow's health has been told already: each thing is told once.

    It is told again when it has become ten times as much, or when it comes back after a while.

    Examples
    --------
    >>> telling = Telling()
    >>> def late(records):
    ...     reason = Reason("late", "views", "came too late", "keep more", records)
    ...     return Health("degraded", [reason])
    >>> [len(telling.fresh(late(n), now=0.0)) for n in (10, 11, 99, 100, 101)]
    [1, 0, 0, 1, 0]
    >>> [len(telling.fresh(late(10), now=now)) for now in (500, 1000, 1700)]
    [0, 0, 1]
    """

    def __init__(self) -> None:
        self._told: dict[tuple[str, str], tuple[int, float]] = {}

    def fresh(self, health: Health, now: float) -> list[Reason]:
        """Return the reasons why a flow is degraded that should be told now."""
        found = []
        for reason in health.reasons:
            if reason.kind in ("task", "returned"):
                continue  # tasks come and go while a flow recovers; both are told as they happen
            about = (reason.kind, reason.operator)
            told, seen = self._told.get(about, (0, now - 2 * LATELY_S))
            anew = now - seen >= LATELY_S
            worse = reason.records >= max(told, 1) * WORSE
            if anew or worse:
                found.append(reason)
                told = reason.records
            self._told[about] = (told, now)
        return found


def problems(health: Health) -> list[str]:
    """Return which tasks do not work, in words."""
    return [reason.problem for reason in health.reasons if reason.kind == "task"]


# ---------------------------------------------------------------------- tasks


def _tasks(stage: StageFacts) -> Iterator[Reason]:
    for task in stage.tasks:
        problem = _problem(task)
        if problem is not None:
            name = f"{stage.name}/{task.index}"
            yield Reason("task", name, f"task {name} {problem}", "look at it with floodway top")


def _slotless(name: str) -> Reason:
    return Reason(
        "task",
        name,
        f"task {name} waits for a free slot of Spark",
        "give Spark more slots, or end what uses them",
    )


def _problem(task: TaskStatus) -> str | None:
    silent_s = task.silent_s or 0.0
    if task.state == "failed":
        return f"failed: {task.reason}" if task.reason else "failed"
    if task.state == "silent" and silent_s > UNHEALTHY_SILENT_S:
        return f"has been silent for {silent_s:.0f} s"
    if task.state == "missing" and silent_s > UNHEALTHY_MISSING_S:
        return f"has not started within {silent_s:.0f} s"
    if task.stalled_s > UNHEALTHY_STALLED_S:
        return f"has had input for {task.stalled_s:.0f} s and does not process it"
    return None


def _away(stage: StageFacts) -> Iterator[Reason]:
    for task in stage.tasks:
        if task.state == "paused" and task.paused_s > AWAY_S:
            name = f"{stage.name}/{task.index}"
            yield Reason(
                "away",
                name,
                f"task {name} has been waiting for {task.paused_s:.0f} s: {task.reason}",
                "see that what it waits for is up and can be reached; the task goes on by itself",
            )


# ---------------------------------------------------------------------- records


def _since(counts: OperatorCounts, before: Mapping[str, OperatorCounts]) -> OperatorCounts:
    then = before.get(counts.name)
    if then is None:
        return counts
    return OperatorCounts(
        counts.name,
        counts.records_in - then.records_in,
        counts.records_out - then.records_out,
        counts.late - then.late,
        counts.skipped - then.skipped,
        counts.dead_letters - then.dead_letters,
        counts.undated - then.undated,
        first_error=counts.first_error,
        returns=counts.returns - then.returns,
        duplicates=counts.duplicates - then.duplicates,
        dropped=counts.dropped - then.dropped,
    )


def _late(operator: OperatorStatus, lately: OperatorCounts, *, over: bool) -> Reason | None:
    late, taken = lately.late, lately.records_in
    enough = over or late >= LATE_RECORDS or late > LATE_LARGE_SHARE * taken
    if not enough or late <= LATE_SHARE * taken:
        return None
    return Reason(
        "late",
        lately.name,
        f"{operator.label} took {late:,} of {taken:,} records for late and left them out: stream "
        "time was further than they by more than the retention",
        f"give it or the flow a longer retention=, or keep them: {lately.name}.late.to(...); if "
        "they are in order, ask which source is ahead of the others: event_time of its stage in "
        "floodway top --json -",
        late,
        taken,
    )


def _unmatched(operator: OperatorStatus) -> Reason | None:
    counts = operator.counts
    if operator.join is None or counts.records_out or not operator.inputs:
        return None
    asking = operator.inputs[:1] if operator.join == "lookup" else operator.inputs
    taken = sum(each.records for each in asking) - counts.late - counts.skipped
    if taken - counts.dead_letters < JOIN_RECORDS:
        return None
    took = " and ".join(f"{each.records:,} records of {each.name}" for each in operator.inputs)
    empty = next((each.name for each in operator.inputs if not each.records), None)
    cause = (
        f"nothing has come from {empty}"
        if empty is not None
        else "their keys never meet, or never at a time at which both are there"
    )
    static = (
        "a table whose rows hold for events of any time is to be static=True; "
        if operator.join == "lookup"
        else ""
    )
    return Reason(
        "no_match",
        counts.name,
        f"{operator.label} has taken {took} and given nothing: {cause}",
        "compare keys (their values, spelling and types) and timestamps of both inputs; "
        f"{static}with how='left' records come through without a partner",
        taken,
        counts.records_in,
    )


def _skipped(operator: OperatorStatus, lately: OperatorCounts) -> Reason | None:
    return _failed(
        operator,
        lately,
        "skipped",
        "skipped them",
        f"keep them: on_error='dead_letter' and {lately.name}.dead_letters.to(...)",
    )


def _dead(operator: OperatorStatus, lately: OperatorCounts) -> Reason | None:
    return _failed(
        operator,
        lately,
        "dead_letters",
        "sent them to its dead letters",
        f"read them where {lately.name}.dead_letters goes: each has its error",
    )


def _failed(
    operator: OperatorStatus,
    lately: OperatorCounts,
    kind: Literal["skipped", "dead_letters"],
    fate: str,
    remedy: str,
) -> Reason | None:
    lost: int = getattr(lately, kind)
    if not lost:
        return None
    problem = f"{operator.label} failed on {lost:,} of {lately.records_in:,} records and {fate}"
    first = f"; the first: {lately.first_error}" if lately.first_error else ""
    return Reason(kind, lately.name, problem + first, remedy, lost, lately.records_in)


def _all_undated(counts: OperatorCounts) -> bool:
    return counts.undated == counts.records_in > 0


def _undated(
    operator: OperatorStatus, lately: OperatorCounts, *, beside: list[str]
) -> Reason | None:
    # If nothing at all has a timestamp, the flow is one of ingestion time, and meant to be.
    none_has = _all_undated(operator.counts)
    if not lately.undated or (none_has and not beside):
        return None
    got = (
        f"they got the time at which they came in, while {beside[0]} has event times"
        if none_has
        else "they got the time to which the source had come, beside others with a time of their "
        "own"
    )
    return Reason(
        "undated",
        lately.name,
        f"{operator.label} brought {lately.undated:,} of {lately.records_in:,} records without a "
        f"timestamp: {got}",
        "see that whoever writes them gives each a timestamp, or take it from the value: "
        "timestamp='column'; a table whose rows hold for events of any time is to be static=True",
        lately.undated,
        lately.records_in,
    )


def _returned(operator: OperatorStatus, lately: OperatorCounts) -> Reason | None:
    if not lately.returns:
        return None
    times = "once" if lately.returns == 1 else f"{lately.returns:,} times"
    return Reason(
        "returned",
        lately.name,
        f"{operator.label} was idle and came back {times}, behind stream time, which had not "
        "waited for it: what it brought is late where the retention is shorter",
        "give it a longer idle=, so that stream time waits, or the flow a longer retention=",
        lately.returns,
    )


def _dropped(operator: OperatorStatus, lately: OperatorCounts) -> Reason | None:
    if not lately.dropped:
        return None
    came = lately.records_in + lately.dropped
    return Reason(
        "dropped",
        lately.name,
        f"{operator.label} was not given {lately.dropped:,} of {came:,} records: the policy of its "
        "queue dropped them",
        "let it have more tasks, or less to do; without a policy of its own a queue drops nothing",
        lately.dropped,
        came,
    )
