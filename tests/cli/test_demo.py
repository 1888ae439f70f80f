"""``floodway demo`` shows what happens, and sums it up."""

import io
import json
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console
from typer.testing import CliRunner

from floodway.cli import demo
from floodway.cli.main import app
from floodway.demo.demonstration import FLOOD_SHARE, Demonstration
from floodway.demo.series import Phase, PhaseFigures
from floodway.engine.control.report import BatchCounts
from floodway.engine.metrics.board import Board, StageInfo
from floodway.engine.program.counts import OperatorCounts
from floodway.engine.scheduler.story import Entry
from tests.engine.control.reports import START, Said, report

SHORT = (Phase("calm", 1, 1_000), Phase("flood", 1, 20_000), Phase("calm again", 1, 1_000))


def printed(*parts: object, width: int = 80) -> list[str]:
    out = io.StringIO()
    console = Console(file=out, width=width, highlight=False)
    for part in parts:
        console.print(part)
    return out.getvalue().splitlines()


# ------------------------------------------------------------------ without Spark


def operating() -> Board:
    """Return a board with a source in micro-batches and a sink record by record."""
    board = Board(
        "ads",
        [
            StageInfo("campaigns", ("campaigns",), 1, "hash"),
            StageInfo("events", ("events", "views"), 1, "source", sources=("events",)),
            StageInfo("results", ("results",), 1, "hash", sinks=("results",)),
        ],
        paradigms=Said(events=["operation"]),
    )
    work = BatchCounts(2, 8_000, 500_000, 60_000, 400_000, 40_000, 500_000)
    counts = [OperatorCounts("events", 9_000, 9_000), OperatorCounts("views", 9_000, 3_000)]
    fields = {"operators": counts, "records_in": 9_000, "queue_records": 1_000}
    board.take(report("events", batches=work, **fields))
    board.take(report("results", service_us=[1_000], queue_wait_us=[500]))
    return board


def test_table_has_paradigm_rate_queue_and_times_of_every_operator() -> None:
    shown = [" ".join(line.split()) for line in printed(demo.table(operating().status(START + 1)))]
    assert shown == [
        "operator paradigm records/s queue p50 p99",
        "events data 9.00k 1.00k 375ms 498ms",
        "views operation 9.00k",
        "results data 0 0 1.5ms 1.5ms",
    ]


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.5, "calm: 1,000 ev"), (1.0, "flood: 20,000 ev"), (2.9, "calm again"), (3.1, "working off")],
)
def test_phase_is_that_of_the_clock(seconds: float, said: str) -> None:
    assert demo.phase_at(SHORT, seconds).startswith(said)


def told(*, correct: bool, files: dict[str, str], story: list[Entry]) -> Demonstration:
    latency = {"p50": 1.3, "p90": 2.0, "p99": 8.7, "max": 9.9}
    share = {"views": {"data": 0.25, "operation": 0.75}}
    phase = PhaseFigures("flood", 30, 1_500_000, 1_400_000.0, latency, 6_000, 4_000_000, share)
    return Demonstration(
        "ads", 2, 45_060_000, 15_000_000, 5_000, correct, [phase], [], [], story, 0, files
    )


def test_summary_fits_a_narrow_terminal_and_names_the_files() -> None:
    why = "events reads 900,000/s and there is always more: its queue is outside, and not seen"
    switch = Entry(
        time_ms=30_200, what="switch", stage="events", why=why, before="data", after="operation"
    )
    batch = Entry(
        time_ms=30_100, what="batch", stage="events", why="", operator="x", before=1, after=10
    )
    files = {"png": "/tmp/x/demo.png", "html": "/tmp/x/demo.html", "story": "/tmp/x/story.jsonl"}
    out = io.StringIO()
    result = told(correct=True, files=files, story=[batch, switch])
    demo.show(result, Console(file=out, width=80, highlight=False))
    text = " ".join(out.getvalue().split())
    assert max(map(cell_len, out.getvalue().splitlines())) <= 80
    assert "flood 1,500,000 1,400,000 1.3ms 8.7ms 4.00M 75%" in text
    assert "the same as a plain loop" in text
    assert "30.2 s events: data → operation events reads 900,000/s" in text
    assert "b_out" not in text
    assert "picture /tmp/x/demo.png page /tmp/x/demo.html story /tmp/x/story.jsonl" in text


def test_summary_says_what_is_wrong_or_missing() -> None:
    out = io.StringIO()
    demo.show(told(correct=False, files={}, story=[]), Console(file=out, width=80))
    text = " ".join(out.getvalue().split())
    assert "NOT the same as a plain loop" in text
    assert "The scheduler switched nothing." in text
    assert "pip install 'floodway[pictures]'" in text


def test_help_says_how_large_the_flood_is() -> None:
    said = CliRunner().invoke(app, ["demo", "--help"], env={"COLUMNS": "200"}).output
    assert f"by default {FLOOD_SHARE} of what a plain loop" in " ".join(said.split())


@pytest.mark.spark
def test_demo_writes_json(tmp_path: Path) -> None:
    file = tmp_path / "demo.json"
    command = ["demo", "--seconds", "3", "--flood", "20000", "--folder", str(tmp_path)]
    outcome = CliRunner().invoke(app, [*command, "--json", str(file)])
    assert outcome.exit_code == 0, outcome.output
    document = json.loads(file.read_text())
    assert document["correct"] is True
    assert document["files"]["png"] == str(tmp_path / "demo.png")
    assert str(tmp_path / "demo.html") in outcome.output
