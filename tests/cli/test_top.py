"""``floodway top`` as a user meets it, against a real endpoint with made-up reports."""

import json
import socket
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import pytest
import typer
from rich.cells import cell_len
from rich.console import Console
from typer.testing import CliRunner

from floodway.cli.errors import ErrorReportingGroup
from floodway.cli.main import main
from floodway.cli.top import TOLD, render, top
from floodway.engine.control.report import BatchCounts
from floodway.engine.metrics.board import Board, StageInfo
from floodway.engine.metrics.endpoint import Endpoint
from floodway.engine.metrics.status import Status
from floodway.engine.program.counts import OperatorCounts
from floodway.engine.scheduler.story import Entry
from tests.engine.control.reports import STAGES, START, Said, busy_board, report

app = typer.Typer(cls=ErrorReportingGroup, pretty_exceptions_enable=False)
app.callback()(main)
app.command()(top)


@pytest.fixture(autouse=True)
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with Endpoint(busy_board(), clock=lambda: START + 3) as endpoint:
        yield endpoint


def run(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["top", *arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result.exit_code, result.stdout, result.stderr


def lines(status: Status, *, width: int, story: Sequence[Entry] = ()) -> list[str]:
    console = Console(width=width, highlight=False)
    with console.capture() as capture:
        console.print(render(status, story))
    return capture.get().splitlines()


def squeezed(line: str) -> str:
    """Return a line with single spaces, so that tests do not depend on widths."""
    return " ".join(line.split())


def stage_row(shown: list[str], name: str) -> str:
    """Return what the row of a stage says after its name."""
    start = f"● {name} "
    (row,) = (line for line in map(squeezed, shown) if line.startswith(start))
    return row.removeprefix(start)


def test_running_flow_is_found(endpoint: Endpoint) -> None:
    code, out, _ = run("--once")
    assert code == 0
    assert "ads  running" in out
    assert "views" in out


def test_json_is_the_status(endpoint: Endpoint) -> None:
    code, out, _ = run("--once", "--json", "-")
    assert code == 0
    status = msgspec.json.decode(out.encode(), type=Status)
    assert status == busy_board().status(START + 3)


def test_json_in_file_comes_beside_the_table(endpoint: Endpoint, tmp_path: Path) -> None:
    file = tmp_path / "status.json"
    code, out, _ = run("--json", str(file))
    assert code == 0
    assert "latency" in out
    assert json.loads(file.read_text())["flow"] == "ads"


def test_address_can_be_given() -> None:
    with Endpoint(busy_board(), announced=False) as endpoint:
        assert run("--once")[0] == 1
        assert run("--once", "--url", endpoint.url + "/")[0] == 0


def test_no_flow_is_said_and_exits_with_one() -> None:
    code, out, err = run()
    assert (code, out) == (1, "")
    assert "No flow is running here" in err


def test_no_flow_of_that_name(endpoint: Endpoint) -> None:
    code, _, err = run("--flow", "clicks")
    assert code == 1
    assert "No flow 'clicks' is running here." in err


def test_nothing_at_the_address() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    code, _, err = run("--url", f"http://127.0.0.1:{port}")
    assert code == 1
    assert f"Nothing answers at http://127.0.0.1:{port}." in err


def test_other_server_is_an_error(endpoint: Endpoint) -> None:
    code, _, err = run("--url", endpoint.url + "/metrics")
    assert code == 2
    assert "is no endpoint of this version of Floodway" in err


def test_one_of_several_flows_has_to_be_chosen(endpoint: Endpoint) -> None:
    with Endpoint(Board("clicks", STAGES)):
        code, _, err = run("--once")
        assert code == 2
        assert "several flows are running: ads, clicks" in err
        code, out, _ = run("--once", "--flow", "clicks")
        assert code == 0
        assert "clicks  starting" in out


class EndingBoard(Board):
    """A board whose flow ends after a few looks."""

    looks = 0

    def status(self, now: float) -> Status:
        self.looks += 1
        if self.looks == 3:
            self.take(report("views", at=2, records_in=777, state="ended"))
        return super().status(now)


ONE = StageInfo("views", ("views",), dop=1, partitioning="hash")


def test_live_table_stays_until_the_flow_ends() -> None:
    board = EndingBoard("ads", [ONE])
    board.take(report("views", at=1))
    with Endpoint(board, clock=lambda: START + 1):
        code, out, _ = run("--interval", "0.1")
    assert (code, board.looks) == (0, 3)
    assert "ads  ended" in out
    assert "Flow 'ads' has ended." in out


class ClosingBoard(Board):
    """A board whose endpoint closes after the first look."""

    endpoint: Endpoint

    def status(self, now: float) -> Status:
        threading.Thread(target=self.endpoint.close).start()
        return super().status(now)


def test_live_table_ends_when_nobody_answers_any_more() -> None:
    board = ClosingBoard("ads", [ONE])
    with Endpoint(board) as board.endpoint:
        code, out, _ = run("--interval", "0.5")
    assert code == 0
    assert "Flow 'ads' no longer answers at http://127.0.0.1:" in out


@pytest.mark.parametrize("width", [80, 90, 100, 140])
def test_table_fits(width: int) -> None:
    shown = lines(busy_board().status(START + 3), width=width)
    assert max(map(cell_len, shown)) <= width
    # Headline, titles, two stages with operators, latency, three reasons to worry.
    assert len(shown) == 1 + 1 + 6 + 1 + 3
    assert not any("…" in line for line in shown[:-3])


def test_table_at_80_columns_has_all_that_matters() -> None:
    shown = lines(busy_board().status(START + 3), width=80)
    assert squeezed(shown[0]) == ("ads running up 3s in 3.00k out 900 late 14 failed 3 restarts 0")
    assert squeezed(shown[1]) == "stage mode dop in/s out/s queue busy p99 lag late/fail"
    assert stage_row(shown, "events") == "data 1 1.00k 334 0 ██▒▒·· 401µs 2.5s 0/3"
    assert stage_row(shown, "views") == "data 2 400 300 300 █████▒ 6.0ms - 14/0"
    assert squeezed(shown[-4]) == "latency at views p50 20ms p90 20ms p99 90ms max 90ms"
    assert squeezed(shown[-1]).startswith("degraded views took 14 of 900 records for late and")


def test_wide_table_shows_more() -> None:
    shown = lines(busy_board().status(START + 3), width=100)
    assert "351µs/401µs 1.50k 2.5s" in stage_row(shown, "events")


def test_operators_have_rows_below_their_stage() -> None:
    shown = lines(busy_board().status(START + 3), width=100)
    assert [line.split()[-1] for line in shown if line.startswith("   only_views")] == ["0/3"]


def test_stage_of_one_operator_of_the_same_name_is_one_row() -> None:
    board = Board("ads", [ONE])
    board.take(report("views", operators=[OperatorCounts("views", 1, 1)]))
    assert sum("views" in line for line in lines(board.status(START + 1), width=80)) == 1


SWITCH = Entry(
    time_ms=int(START * 1000) + 1_200,
    what="switch",
    stage="views",
    before="data",
    after="operation",
    why="views holds 9,000 records (L_up 1,044) at 5,012/s of 1,000/s it can",
)


def operating_board() -> Board:
    """Return a board whose stage works in micro-batches of 2000 records, two a second."""
    info = StageInfo("views", ("views", "out"), 1, "hash", sinks=("out",))
    board = Board("ads", [info], paradigms=Said(views=["operation"]))
    for half in range(1, 7):
        work = (half * each for each in (1, 2_000, 500_000, 30_000, 200_000, 20_000))
        counts = BatchCounts(*work, 500_000)
        board.take(report("views", at=half / 2, batches=counts))
    return board


@pytest.mark.parametrize(("width", "word"), [(80, "oper"), (100, "operation")])
def test_paradigm_of_each_stage_and_operator_is_shown(width: int, word: str) -> None:
    shown = [squeezed(line) for line in lines(operating_board().status(START + 3), width=width)]
    assert shown[2].startswith(f"● views {word} 1 ")
    assert shown[3].startswith(f"views {word} ")
    assert shown[4].startswith("out data ")


def test_micro_batches_are_told_below_the_table() -> None:
    shown = lines(operating_board().status(START + 3), width=100)
    assert squeezed(shown[-1]) == (
        "batches at views 2/s of 2.00k collected 500ms scheduled 30ms processed 200ms merged 20ms"
    )


def test_duplicates_are_told_below_the_table() -> None:
    board = operating_board()
    board.take(
        report("views", at=4, operators=[OperatorCounts("views", 9_000, 3_000, duplicates=6_000)])
    )
    shown = [squeezed(line) for line in lines(board.status(START + 4), width=100)]
    assert "duplicates at views 6.00k of 9.00k records" in shown


@pytest.mark.parametrize("width", [80, 100])
def test_last_decisions_are_told_in_a_line_each(width: int) -> None:
    shown = lines(busy_board().status(START + 3), width=width, story=[SWITCH] * 9)
    assert len(shown) == 1 + 1 + 6 + 1 + 3 + TOLD
    assert max(map(cell_len, shown)) <= width
    assert squeezed(shown[-1]).startswith("1.2 s views: data → operation views holds 9,000 rec")


def test_decisions_come_from_the_endpoint() -> None:
    with Endpoint(busy_board(), clock=lambda: START + 3, story=lambda: [SWITCH]):
        code, out, _ = run("--once")
    assert code == 0
    assert "views: data → operation" in out


def test_troubles_are_told_below_the_table() -> None:
    board = Board("ads", STAGES)
    board.take(report("views", 0, state="failed", reason="killed\nTraceback"))
    board.take(report("views", 1))
    shown = lines(board.status(START + 4), width=80)
    assert shown[-2:] == ["task views/0 failed: killed", "task views/1 is silent for 3.0s"]


def test_flow_without_reports_can_be_shown() -> None:
    shown = lines(Board("ads", STAGES).status(START), width=80)
    assert shown[0].startswith("ads  starting")
    assert sum("○" in line for line in shown) == 2


def test_names_too_long_are_cut() -> None:
    board = Board("f" * 200, [StageInfo("s" * 50, ("o" * 50,), 1, "hash")])
    shown = lines(board.status(START), width=80)
    assert max(map(cell_len, shown)) <= 80
    assert sum("…" in line for line in shown) == 3


def test_markup_in_names_is_shown_as_it_is() -> None:
    board = Board("[red]ads[/red]", [StageInfo("[bold]x[/]", ("y",), 1, "hash")])
    shown = "\n".join(lines(board.status(START), width=100))
    assert "[red]ads[/red]" in shown
    assert "[bold]x[/]" in shown


def test_documentation_shows_the_table_as_it_is() -> None:
    page = Path(__file__).resolve().parents[2] / "docs" / "metrics.md"
    shown = "\n".join(line.rstrip() for line in lines(busy_board().status(START + 3), width=100))
    assert shown in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("busy", "planned", "told"),
    [
        (0.9, 4000.0, "a record costs 4,500 ns, planned 4,000 ns: +12%"),
        (0.2, 4000.0, "a record costs 1,000 ns, planned 4,000 ns: -75% (mostly waiting)"),
        (0.9, None, ""),
    ],
)
def test_stage_is_compared_with_its_plan(busy: float, planned: float | None, told: str) -> None:
    stage = StageInfo("views", ("views",), dop=1, partitioning="hash", planned_ns=planned)
    board = Board("ads", [stage])
    for at in (1.0, 2.0):
        done = int(200_000 * at)
        board.take(report(at=at, records_in=done, busy_s=busy * at, idle_s=(1 - busy) * at))
    shown = " ".join(squeezed(line) for line in lines(board.status(START + 2), width=120))
    assert told in shown
    assert ("plan of views" in shown) == bool(told)


def test_micro_batches_are_not_compared_with_a_plan() -> None:
    stage = StageInfo("views", ("views",), dop=1, partitioning="hash", planned_ns=1000.0)
    board = Board("ads", [stage], paradigms=Said(views=["operation"]))
    for at in (1.0, 2.0):
        board.take(report(at=at, records_in=int(1e5 * at), busy_s=at))
    assert board.status(START + 2).stages[0].off_plan is None
