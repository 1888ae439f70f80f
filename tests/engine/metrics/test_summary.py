"""What is said of a flow at its end."""

from floodway.engine.metrics.board import Board, StageInfo
from floodway.engine.metrics.summary import summarize
from tests.engine.control.reports import START, report

ONE = StageInfo("views", ("views",), dop=1, partitioning="hash")


def test_time_counts_from_the_start_of_the_flow_also_if_its_tasks_were_replaced() -> None:
    board = Board("ads", [ONE])
    board.take(report(at=5.0))
    board.take(report(at=12.0, attempt=1, started=START + 9.0, state="ended"))
    assert " in 12.0 s" in summarize(board.status(START + 30.0), "ended")


def test_flow_that_never_ran_took_no_time() -> None:
    assert " in 0.0 s" in summarize(Board("ads", [ONE]).status(START), "failed")
