"""A checkpoint that an earlier version has written can be read: the flow goes on from there."""

import itertools
import json
import tarfile
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from tests.engine.spark.former import Event, build, events

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("shared_spark")]

LEFT = Path(__file__).with_name("former.tar.xz")


def test_flow_goes_on_from_a_checkpoint_of_an_earlier_version(tmp_path: Path) -> None:
    with tarfile.open(LEFT) as packed:
        packed.extractall(tmp_path, filter="data")
    before = {path.name: path.read_text() for path in tmp_path.glob("*.jsonl")}
    job = build(tmp_path).run(checkpoint=tmp_path / "checkpoint", dop=2)
    assert job.start_epoch > 0
    assert all((tmp_path / name).read_text().startswith(text) for name, text in before.items())
    assert 0 < len(before["sums.jsonl"].splitlines()) < len(events())
    assert rows(tmp_path / "windows.jsonl") == windows()
    assert rows(tmp_path / "sessions.jsonl") == sessions()
    assert rows(tmp_path / "labels.jsonl") == labels()
    assert sorted(rows(tmp_path / "sums.jsonl")) == sums()


def rows(path: Path) -> Any:
    """Return what is in a file: values as they are, results of a table by key, window and value."""
    found = [json.loads(line) for line in path.read_text().splitlines()]
    if not isinstance(found[0], dict):
        return found
    return Counter(text([row["key"], row.get("window"), row["value"]]) for row in found)


def text(result: Any) -> str:
    return json.dumps(result, sort_keys=True)


def windows() -> Counter[str]:
    found: dict[tuple[str, int], list[int]] = defaultdict(list)
    for event in events():
        found[event.kind, event.at - event.at % 10_000].append(event.amount)
    return Counter(
        text(
            [
                kind,
                [at, at + 10_000],
                {"n": len(amounts), "total": sum(amounts), "most": max(amounts)},
            ]
        )
        for (kind, at), amounts in found.items()
    )


def sessions() -> Counter[str]:
    found: Counter[str] = Counter()
    for user, seen in by_user().items():
        times = [event.at for event in seen]
        cuts = [at for at, (a, b) in enumerate(itertools.pairwise(times), 1) if b - a > 30_000]
        for first, last in itertools.pairwise([0, *cuts, len(times)]):
            window = [times[first], times[last - 1] + 30_000]
            found[text([user, window, last - first])] += 1
    return found


def labels() -> Counter[str]:
    found: Counter[str] = Counter()
    running: Counter[tuple[str, str]] = Counter()
    for event in events():
        label = (event.kind, f"user {event.user}")
        running[label] += 1
        found[text([list(label), None, running[label]])] += 1
    return found


def sums() -> list[int]:
    return sorted(
        total
        for seen in by_user().values()
        for total in itertools.accumulate(event.amount for event in seen)
    )


def by_user() -> dict[int, list[Event]]:
    found: dict[int, list[Event]] = defaultdict(list)
    for event in events():
        found[event.user].append(event)
    return found
