"""Names mean one thing: a reader who has met a class knows it everywhere."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src/floodway"
ENGINE = SOURCE / "engine"

TWICE = {
    "AdEvent": ["demo/ads.py", "demo/walkthrough.py"],
    # Saved state calls the operator's entries by this name.
    "Entry": ["engine/scheduler/story.py", "operators/aggregate_versions.py"],
    "Kind": ["engine/transport/frame.py", "operators/base.py", "provisioning/cost/loads.py"],
    "Lag": ["connectors/base.py", "operators/lag.py"],
    "Outcome": [
        "demo/walkthrough.py",
        "engine/datastream/aside.py",
        "provisioning/cost/comparison.py",
    ],
    "Outlet": ["demo/sending/outlets.py", "engine/transport/batching.py"],
    "Part": ["cli/plan_output.py", "demo/sending/sent.py", "engine/state/delta.py"],
    "Partitioning": ["operators/partitioning.py", "provisioning/cost/graph.py"],
    "Progress": ["demo/sending/engine.py", "provisioning/calibration/calibrating.py"],
    "Reader": ["connectors/base.py", "plan/stages.py"],
    "Report": ["doctor/report.py", "engine/control/messages.py"],
    "Restoring": ["cli/restoring.py", "engine/control/messages.py"],
    "Schedule": ["connectors/rate.py", "demo/sending/schedules.py"],
    "Sent": ["demo/sending/sent.py", "engine/opstream/blocks.py"],
    "Settings": ["engine/datastream/settings.py", "provisioning/cost/settings.py"],
    "State": ["engine/metrics/status.py", "operators/facts.py"],
    "Status": ["doctor/checks.py", "engine/metrics/status.py"],
    "Step": [
        "demo/walkthrough.py",
        "provisioning/cost/minimizer.py",
        "provisioning/planning/answers.py",
    ],
    "Tell": ["demo/sending/engine.py", "engine/driver/actions.py"],
}
"""The names that still have several meanings. Take out what is gone, and add nothing."""


def named(tree: ast.Module) -> Iterator[str]:
    """Yield the public classes and the aliases of types that a module defines."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            if name[0].isupper() and not name.isupper():
                yield name


def meanings(folder: Path) -> dict[str, list[str]]:
    """Return where each public name of a class or type is defined."""
    found = defaultdict(list)
    for file in sorted(folder.rglob("*.py")):
        for name in named(ast.parse(file.read_text(encoding="utf-8"))):
            if not name.startswith("_"):
                found[name].append(str(file.relative_to(folder)))
    return found


def test_name_of_a_class_has_one_meaning() -> None:
    assert {name: files for name, files in meanings(SOURCE).items() if len(files) > 1} == TWICE


def test_name_of_a_class_has_one_meaning_within_the_engine() -> None:
    assert {name: files for name, files in meanings(ENGINE).items() if len(files) > 1} == {}


def test_two_meanings_are_seen(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text("class Step: ...\nclass _Own: ...\n", encoding="utf-8")
    (tmp_path / "two.py").write_text("Step = int | str\nclass _Own: ...\n", encoding="utf-8")
    assert meanings(tmp_path) == {"Step": ["one.py", "two.py"]}


NUMBERED = re.compile(
    r"\b(?:header|h|parse\([^()]*\))\[\d\]"  # a field of a header
    r"|\bframe\[[\d:-]"  # bytes of a frame
    r"|(?:\bentry|\bentries\[\d\]|\btaken\[\d\]|\[0\]\[0\])\[\d\]"  # parts of one that waits
)


def test_headers_are_read_by_the_names_of_their_fields() -> None:
    found = [
        f"{file.relative_to(ROOT)}:{number}"
        for file in sorted(ENGINE.rglob("*.py"))
        if file.name != "frame.py"  # which packs and unpacks them
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
        if NUMBERED.search(line)
    ]
    assert found == []


@pytest.mark.parametrize(
    "line",
    [
        "header[1]",
        "parse(frame)[2]",
        "frame[1] in CARRYING",
        "frame[:6] + attempt",
        "entries[0][0][KIND]",
        "entries[0][2]",
        "len(entry[1])",
        "waiting.entry[0]",
        "taken[0][0][EXCHANGE]",
    ],
)
def test_fields_that_are_read_by_number_are_seen(line: str) -> None:
    assert NUMBERED.search(line)


@pytest.mark.parametrize("line", ["header[KIND]", "entries[0]", "entry = ready[0]", "frames[0]"])
def test_fields_that_are_read_by_name_are_no_numbers(line: str) -> None:
    assert not NUMBERED.search(line)
