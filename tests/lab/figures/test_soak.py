"""The soak: it looks at a real flow, and its verdict follows from what it saw."""

import json
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from floodway_lab.cli.soak import code_of
from floodway_lab.figures.machine import Machine
from floodway_lab.figures.soak import (
    LEAST,
    MOST,
    Sample,
    Soak,
    files,
    growths,
    own_pages,
    picture,
    soak,
    visits,
)

from floodway.core.errors import OptionError
from floodway.engine.host.scratch import make_scratch, remove_scratch
from floodway.plan import Plan
from tests.commands import floodway

DUE = 1000


def soaked(*files: float, records: int = DUE) -> Soak:
    """A soak with one sample a minute, settled after two."""
    samples = [Sample(60.0 * at, {"files": count}) for at, count in enumerate(files, 1)]
    found = growths(samples, 120.0)
    return Soak(Machine.here(), 1.0, "1m", 120.0, samples, found, records, DUE)


def test_what_stays_within_bounds_is_steady_and_what_exceeds_them_once_is_not() -> None:
    assert soaked(10, 100, 100 * MOST, 90).steady
    assert not soaked(10, 100, 100 * MOST + 1, 90).steady
    assert soaked(500, 100, 100).growths[0].then == 500  # in the minute before it had settled


def test_what_swings_by_design_is_judged_by_its_mean_over_a_minute() -> None:
    def swinging(*means: float) -> list[Sample]:
        """Three looks in each minute, at a mean that is a third of the highest."""
        looks = [look for mean in means for look in (0.0, 0.0, 3 * mean)]
        return [Sample(20.0 * at, {"files, MB": size}) for at, size in enumerate(looks, 1)]

    (same,) = growths(swinging(10, 10, 10, 10), 120.0)
    assert (same.then, same.ratio) == (10.0, 1.0)
    (grown,) = growths(swinging(10, 10, 10, 11), 120.0)
    assert grown.ratio == pytest.approx(1.1)
    (peak,) = growths(
        [Sample(s.at_s, {"files": 1 + s.needs["files, MB"]}) for s in swinging(1, 1, 9)], 120.0
    )
    assert peak.ratio == 7.0  # what does not swing is judged moment by moment


def test_something_out_of_nothing_is_growth() -> None:
    assert not soaked(0, 0, 1).steady
    assert soaked(0, 0, 0).steady


def test_what_is_too_short_to_say_is_no_success() -> None:
    short = soaked(10, 100)
    assert not short.steady
    assert code_of(short) == 2
    assert picture(short).startswith("<svg")


def test_a_flow_that_did_not_take_what_was_due_is_no_success() -> None:
    assert code_of(soaked(100, 100, 100, records=int(DUE * LEAST))) == 0
    stalled = soaked(100, 100, 100, records=int(DUE * LEAST) - 1)
    assert stalled.steady
    assert not stalled.kept_up
    assert code_of(stalled) == 1


@pytest.mark.parametrize(("minutes", "settle"), [(3.0, 5.0), (5.0, 5.0), (1.0, 0.0)])
def test_a_soak_that_cannot_say_anything_is_refused_before_it_begins(
    minutes: float, settle: float
) -> None:
    with pytest.raises(OptionError, match="too short"):
        soak(lambda *_: None, minutes=minutes, settle_minutes=settle)


def test_files_outside_of_the_checkpoint_count_too(tmp_path: Path) -> None:
    scratch = make_scratch()
    try:
        before = files(tmp_path)
        (tmp_path / "state").write_bytes(bytes(10))
        (scratch / "blocks").mkdir()
        (scratch / "blocks" / "one").write_bytes(bytes(100))
        after = files(tmp_path)
        assert (after[0] - before[0], after[1] - before[1]) == (2, 110)
    finally:
        remove_scratch(scratch)


def test_the_flow_has_windows_sessions_a_join_and_an_aggregate_of_a_windowed_table() -> None:
    stages = {stage.name: stage for stage in Plan.of(visits(100.0, "1m")).stages}
    kinds = {
        "counts": "Aggregate",
        "stays": "Aggregate",
        "pairs": "StreamJoin",
        "busy": "TableAggregate",
    }
    assert {name: type(stages[name].operators[0]).__name__ for name in kinds} == kinds


@pytest.mark.spark
@pytest.mark.slow
def test_soak_looks_at_a_running_flow_and_draws_what_it_saw(tmp_path: Path) -> None:
    file, svg = tmp_path / "soak.json", tmp_path / "soak.svg"
    options = ("--minutes", "0.25", "--settle", "0.12", "--rate", "300")
    done = floodway("bench", "soak", *options, "--json", str(file), "--svg", str(svg))
    assert done.returncode in (0, 1), done.stderr
    found = json.loads(file.read_text())
    assert found["records"] > 0
    assert {growth["what"] for growth in found["growths"]} == set(found["samples"][0]["needs"])
    assert all(growth["then"] > 0 for growth in found["growths"])
    grew = any(growth["most"] > MOST * growth["then"] for growth in found["growths"])
    stalled = found["records"] < LEAST * found["due"]
    assert done.returncode == (grew or stalled)
    assert svg.read_text().startswith("<svg")


def test_process_that_ends_while_it_is_looked_at_needs_nothing() -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    process = psutil.Process(ended.pid)
    os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)  # a zombie: it has a folder, no pages
    assert own_pages(process) == 0
    ended.wait()
    with pytest.raises(psutil.Error):
        own_pages(process)
