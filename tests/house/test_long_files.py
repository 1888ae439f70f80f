"""A file has one idea: those of more than 400 lines are known, and why each is one."""

from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("src", "lab")
MOST = 400


class Long(NamedTuple):
    """How long a file may be at the most, and which one idea needs that."""

    lines: int
    idea: str


LONG = {
    "lab/floodway_lab/systems/loop_steps.py": Long(420, "every workload, as a plain loop"),
    "src/floodway/engine/checkpoint/vault.py": Long(
        406, "files that are there whole or not at all"
    ),
    "src/floodway/engine/control/messages.py": Long(422, "what driver and tasks say to each other"),
    "src/floodway/engine/datastream/task.py": Long(569, "one partition of a stage: the task"),
    "src/floodway/engine/driver/coordinator.py": Long(537, "who is there, and what time it is"),
    "src/floodway/engine/metrics/board.py": Long(413, "from reports to the status of a flow"),
    "src/floodway/engine/opstream/batches.py": Long(592, "the micro-batch form of a task"),
    "src/floodway/engine/transport/batching.py": Long(407, "from rows to frames, in all schemes"),
    "src/floodway/engine/transport/links.py": Long(436, "frames that arrive once and in order"),
    "src/floodway/engine/worker/runner.py": Long(565, "the loop around a task"),
    "src/floodway/expressions/runtime/regexes.py": Long(436, "Java's regular expressions"),
    "src/floodway/testing/servers.py": Long(423, "real servers for tests"),
}
"""Lower a number when its file is shorter, take out what is below 400, and add nothing."""


def lines(root: Path) -> dict[str, int]:
    """Return how long each file is that is too long."""
    files = (file for folder in FOLDERS for file in sorted((root / folder).rglob("*.py")))
    counts = {file: len(file.read_text(encoding="utf-8").splitlines()) for file in files}
    return {str(file.relative_to(root)): n for file, n in counts.items() if n > MOST}


def test_no_file_is_longer_than_its_idea_needs() -> None:
    assert {
        file: n for file, n in lines(ROOT).items() if file not in LONG or n > LONG[file].lines
    } == {}


def test_list_of_long_files_has_none_that_became_shorter() -> None:
    assert set(LONG) <= set(lines(ROOT))


def test_long_file_is_seen(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/short.py").write_text("x = 1\n" * MOST, encoding="utf-8")
    (tmp_path / "src/long.py").write_text("x = 1\n" * (MOST + 1), encoding="utf-8")
    assert lines(tmp_path) == {"src/long.py": MOST + 1}
