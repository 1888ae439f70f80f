"""Whether what came out is what had to come out: nothing lost, nothing doubled, nothing wrong."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from floodway_lab.chaos.outside import echoed, pushed
from floodway_lab.chaos.workload import Workload, item, plain_fold, plain_windows

MOST_EXAMPLES = 5
"""So many faults of a branch are told in words."""


class Branch(msgspec.Struct):
    """What is wrong with the results of one branch.

    Attributes
    ----------
    lines
        How many results there are.
    lost
        Results that are missing.
    duplicated
        Results that are there again.
    wrong
        Results that should not be there at all, or in another order.
    examples
        Some of the faults, in words.
    """

    lines: int = 0
    lost: int = 0
    duplicated: int = 0
    wrong: int = 0
    examples: list[str] = msgspec.field(default_factory=list)

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong."""
        return not (self.lost or self.duplicated or self.wrong)

    def tell(self, fault: str) -> None:
        """Keep a fault as an example, unless there are enough."""
        if len(self.examples) < MOST_EXAMPLES:
            self.examples.append(fault)


class _Seen(msgspec.Struct, gc=False):
    number: int
    key: int
    doubled: int


class _Change(msgspec.Struct, gc=False):
    key: int
    value: int | None
    previous: int | None


class _Closed(msgspec.Struct, gc=False):
    key: int
    window: tuple[int, int]
    value: int


def judge(workload: Workload) -> dict[str, Branch]:
    """Compare all results with a plain loop over the same items."""
    counts, sums = plain_fold(workload.records)
    branches = {
        "seen": judge_seen(_written(workload.out("seen")), workload.records),
        "counts": judge_counts(_written(workload.out("counts")), counts),
        "sums": judge_sums(_written(workload.out("sums")), counts, sums),
        "windows": judge_windows(
            _written(workload.out("windows")), plain_windows(workload.records)
        ),
    }
    if workload.switches:
        branches["totals"] = judge_totals(_written(workload.out("totals")), sums)
    if workload.redis:
        branches["in Redis"] = judge_counts(pushed(workload.redis), counts)
    if workload.kafka:
        branches["in Kafka"] = judge_seen(echoed(workload.kafka), workload.letters)
    return branches


def _written(folder: Path) -> Iterator[bytes]:
    for file in sorted(folder.glob("part-*.jsonl")):
        with file.open("rb") as lines:
            yield from lines


def judge_seen(lines: Iterable[bytes], records: int) -> Branch:
    """Look for every number, once, and for what was made of its item."""
    branch = Branch()
    times = bytearray(records)
    for seen in _rows(lines, _Seen, branch):
        given = item(seen.number)
        if not 0 <= seen.number < records or (seen.key, seen.doubled) != (
            given.key,
            2 * given.amount,
        ):
            branch.wrong += 1
            branch.tell(f"{seen} was never made")
        elif times[seen.number]:
            branch.duplicated += 1
            branch.tell(f"number {seen.number} is there again")
        else:
            times[seen.number] = 1
    branch.lost = records - sum(times)
    if branch.lost:
        branch.tell(f"number {times.index(0)} is missing")
    return branch


def judge_counts(lines: Iterable[bytes], counts: Counter[int]) -> Branch:
    """Look for the row 1, 2, 3 and so on, for every key."""
    branch = Branch()
    found = _by_key(lines, branch)
    for key in sorted(counts.keys() | found.keys()):
        _judge_row(branch, key, found.get(key, []), counts[key])
    return branch


def _judge_row(branch: Branch, key: int, changes: list[_Change], wanted: int) -> None:
    values = Counter(change.value for change in changes)
    _repeated(branch, key, values)
    _chained(branch, key, changes)
    strange = sum(1 for value in values if value is None or not 1 <= value <= wanted)
    missing = wanted - (len(values) - strange)
    branch.wrong += strange
    branch.lost += missing
    if strange:
        branch.tell(f"key {key} has counts that are too large, {wanted} is right")
    if missing:
        branch.tell(f"key {key} lacks {missing} of its {wanted} counts")


def judge_sums(lines: Iterable[bytes], counts: Counter[int], sums: Counter[int]) -> Branch:
    """Look for as many changes as items, each from the one before, up to the right sum."""
    branch = Branch()
    found = _by_key(lines, branch)
    for key in sorted(counts.keys() | found.keys()):
        _judge_sum(branch, key, found.get(key, []), counts[key], sums[key])
    return branch


def _judge_sum(branch: Branch, key: int, changes: list[_Change], wanted: int, right: int) -> None:
    values = Counter(change.value for change in changes)
    _repeated(branch, key, values)
    _chained(branch, key, changes)
    branch.lost += max(wanted - len(values), 0)
    last = changes[-1].value if changes else None
    if last != right or len(values) != wanted:
        branch.wrong += 1
        branch.tell(
            f"key {key} has {len(values)} sums up to {last}; {wanted} up to {right} is right"
        )


def judge_totals(lines: Iterable[bytes], sums: Counter[int]) -> Branch:
    """Look for changes, each from the one before, up to the right sum; there may be few."""
    branch = Branch()
    found = _by_key(lines, branch)
    for key in sorted(sums.keys() | found.keys()):
        changes = found.get(key, [])
        _repeated(branch, key, Counter(change.value for change in changes))
        _chained(branch, key, changes)
        last = changes[-1].value if changes else None
        if last is None or last < sums[key]:
            branch.lost += 1
            branch.tell(f"key {key} has the total {last}; {sums[key]} is right")
        elif last > sums[key]:
            branch.wrong += 1
            branch.tell(f"key {key} has the total {last}; {sums[key]} is right")
    return branch


def judge_windows(lines: Iterable[bytes], counts: Counter[tuple[int, int]]) -> Branch:
    """Look for every window, once, and for all that came in it: nothing may have been late."""
    branch = Branch()
    found: Counter[tuple[int, int]] = Counter()
    for row in _rows(lines, _Closed, branch):
        place = row.key, row.window[0]
        if place in found:
            branch.duplicated += 1
            branch.tell(f"the window {place} is there again")
        found[place] += row.value
    for place in sorted(counts.keys() | found.keys()):
        missing = counts[place] - found[place]
        branch.lost += max(missing, 0)
        branch.wrong += max(-missing, 0)
        if missing:
            branch.tell(f"the window {place} has {found[place]}; {counts[place]} is right")
    return branch


def _repeated(branch: Branch, key: int, found: Counter[int | None]) -> None:
    """Count values that are there again; amounts are above zero, so none comes twice."""
    again = found.total() - len(found)
    branch.duplicated += again
    if again:
        branch.tell(f"key {key} has the value {found.most_common(1)[0][0]} again")


def _chained(branch: Branch, key: int, changes: list[_Change]) -> None:
    """Count changes that do not follow from the one before."""
    before: int | None = None
    for change in changes:
        if change.previous != before:
            branch.wrong += 1
            branch.tell(f"key {key} goes from {before} on to {change.previous} -> {change.value}")
        before = change.value


def _by_key(lines: Iterable[bytes], branch: Branch) -> dict[int, list[_Change]]:
    """Return the changes of each key in their order; a key is in one file alone."""
    found: dict[int, list[_Change]] = {}
    for change in _rows(lines, _Change, branch):
        found.setdefault(change.key, []).append(change)
    return found


def _rows(lines: Iterable[bytes], kind: Callable[..., Any], branch: Branch) -> Iterator[Any]:
    """Return what lines say; those that cannot be read are wrong."""
    decode = msgspec.json.Decoder(kind).decode
    for line in lines:
        branch.lines += 1
        try:
            yield decode(line)
        except msgspec.MsgspecError as error:
            branch.wrong += 1
            branch.tell(f"{line[:60]!r} is no line of a result: {error}")
