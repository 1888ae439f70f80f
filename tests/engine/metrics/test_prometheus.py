"""The exposition, read back with Prometheus's own parser, and what the documentation says of it."""

import json
import re
from pathlib import Path

import pytest
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from floodway.engine.control.report import BatchCounts
from floodway.engine.metrics.board import Board
from floodway.engine.metrics.prometheus import PREFIX, exposition
from floodway.engine.program.counts import OperatorCounts
from tests.engine.control.reports import STAGES, START, Said, busy_board, report

DOCS = Path(__file__).resolve().parents[3] / "docs"
LABELS = {"flow", "stage", "operator", "task", "quantile", "reason"}
UNITS = (
    "_seconds",
    "_bytes",
    "_total",
    "_records",
    "_keys",
    "_tasks",
    "_up",
    "_operation",
    "_health",
    "_reason",
)


def parsed(board: Board, at: float = 3.0) -> dict[str, Metric]:
    text = exposition(board.status(START + at)).decode()
    return {family.name: family for family in text_string_to_metric_families(text)}


def value(families: dict[str, Metric], sample: str, **labels: str) -> float:
    (found,) = (
        each.value
        for family in families.values()
        for each in family.samples
        if each.name == sample and each.labels == {"flow": "ads", **labels}
    )
    return found


def exposed(families: dict[str, Metric]) -> set[str]:
    """Return the names as they are scraped, where counters end in ``_total``."""
    return {
        f"{name}_total" if family.type == "counter" else name for name, family in families.items()
    }


def test_values_come_back() -> None:
    found = parsed(busy_board())
    assert value(found, "floodway_records_in_total", stage="events", task="0") == 3_000
    assert value(found, "floodway_records_processed_total", stage="views", task="1") == 450
    assert value(found, "floodway_in_bytes_total", stage="views", task="0") == 12_000
    assert value(found, "floodway_task_frames_sent_again_total", stage="events", task="0") == 12
    assert value(found, "floodway_busy_seconds_total", stage="views", task="0") == pytest.approx(
        2.7
    )
    assert value(
        found, "floodway_sampled_cpu_seconds_total", stage="views", task="0"
    ) == pytest.approx(60e-6)
    assert (
        value(found, "floodway_operator_late_records_total", stage="views", operator="views") == 14
    )
    assert value(found, "floodway_queue_records", stage="views", task="0") == 150
    assert value(found, "floodway_source_lag_seconds", stage="events", task="0") == 2.5
    assert value(found, "floodway_source_event_time_seconds", stage="events", task="0") == 7.0
    assert value(found, "floodway_stage_tasks", stage="views") == 2
    assert value(found, "floodway_flow_start_time_seconds") == START


def test_duplicates_are_counted() -> None:
    board = Board("ads", STAGES)
    board.take(report("views", at=1, operators=[OperatorCounts("views", 9, 3, duplicates=6)]))
    found = parsed(board, at=1)
    assert (
        value(found, "floodway_operator_duplicate_records_total", stage="views", operator="views")
        == 6
    )


def test_health_is_a_number_and_its_reasons() -> None:
    found = parsed(busy_board())
    assert value(found, "floodway_flow_health") == 1
    reasons = {("skipped", "only_views"), ("dead_letters", "only_views"), ("late", "views")}
    for reason, operator in reasons:
        assert value(found, "floodway_flow_health_reason", reason=reason, operator=operator) == 1
    assert len(found["floodway_flow_health_reason"].samples) == len(reasons)
    silent = parsed(busy_board(), at=20)
    assert value(silent, "floodway_flow_health") == 2


def test_times_are_gauges_with_quantiles_in_seconds() -> None:
    found = parsed(busy_board())
    family = found["floodway_latency_seconds"]
    assert family.type == "gauge"
    assert {each.labels["quantile"] for each in family.samples} == {"0.5", "0.9", "0.99", "1"}
    assert value(found, "floodway_latency_seconds", stage="views", quantile="0.5") == pytest.approx(
        0.02, rel=0.01
    )
    assert value(found, "floodway_latency_seconds", stage="views", quantile="1") == pytest.approx(
        0.09, rel=0.01
    )


def test_what_is_not_known_is_left_out() -> None:
    found = parsed(busy_board())
    lags = found["floodway_source_lag_seconds"].samples
    assert [each.labels["stage"] for each in lags] == ["events"]
    latencies = found["floodway_latency_seconds"].samples
    assert {each.labels["stage"] for each in latencies} == {"views"}


def test_silent_and_missing_tasks_are_down() -> None:
    board = Board("ads", STAGES)
    board.take(report("views", 0, at=1))
    assert value(parsed(board, at=1), "floodway_task_up", stage="views", task="0") == 1
    later = parsed(board, at=10)
    assert value(later, "floodway_task_up", stage="views", task="0") == 0
    assert value(later, "floodway_task_up", stage="views", task="1") == 0
    assert value(later, "floodway_task_silent_seconds", stage="views", task="0") == 9


def test_counters_go_on_after_a_restart() -> None:
    board = Board("ads", STAGES)
    board.take(report("views", 1, at=1, records_in=10))
    board.take(report("views", 1, at=2, attempt=1, started=START + 2, records_in=1))
    found = parsed(board, at=2)
    assert value(found, "floodway_records_in_total", stage="views", task="1") == 11
    assert value(found, "floodway_task_restarts_total", stage="views", task="1") == 1


def test_paradigm_and_micro_batches_are_told() -> None:
    board = Board("ads", STAGES, paradigms=Said(views=["operation", "data"]))
    work = BatchCounts(4, 8_000, 2_000_000, 120_000, 1_600_000, 80_000, 500_000)
    board.take(report("views", 0, at=1, batches=work))
    board.take(report("views", 1, at=1))
    found = parsed(board, at=1)
    operate = [
        value(found, "floodway_task_operation", stage="views", task=task) for task in ("0", "1")
    ]
    assert operate == [1, 0]
    labels = {"stage": "views", "task": "0"}
    assert value(found, "floodway_batches_total", **labels) == 4
    assert value(found, "floodway_batch_records_total", **labels) == 8_000
    times = [
        value(found, f"floodway_batch_{part}_seconds_total", **labels)
        for part in ("waited", "scheduled", "processed", "merged")
    ]
    assert times == [2.0, 0.12, 1.6, 0.08]


def test_state_is_told_of_tasks_that_keep_some() -> None:
    board = Board("ads", STAGES)
    sizes = {"state_keys": 70, "state_bytes": 9_000, "state_aside": 20}
    board.take(report("views", 0, at=1, **sizes))
    board.take(report("views", 1, at=1))
    found = parsed(board, at=1)
    told = {
        name: [(each.labels["task"], each.value) for each in found[f"floodway_{name}"].samples]
        for name in ("state_keys", "state_bytes", "state_aside_keys")
    }
    assert told == {
        "state_keys": [("0", 70)],
        "state_bytes": [("0", 9_000)],
        "state_aside_keys": [("0", 20)],
    }


def test_names_and_labels_follow_the_rules() -> None:
    found = parsed(busy_board())
    assert [name for name in found if not name.startswith(PREFIX)] == []
    assert [name for name in exposed(found) if not name.endswith(UNITS)] == []
    assert {
        label for family in found.values() for each in family.samples for label in each.labels
    } == (LABELS)


def test_odd_names_come_back() -> None:
    name = 'a "flow"\nin two lines \\'
    board = Board(name, STAGES)
    families = text_string_to_metric_families(exposition(board.status(START)).decode())
    assert {each.labels["flow"] for family in families for each in family.samples} == {name}


def test_documentation_lists_exactly_the_metrics() -> None:
    page = (DOCS / "metrics.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(floodway_\w+)` \| (\w+) \| ([^|]*) \|", page, flags=re.MULTILINE)
    found = parsed(busy_board())
    assert {name for name, _, _ in rows} == exposed(found)
    for name, kind, labels in rows:
        family = found[name.removesuffix("_total") if kind == "counter" else name]
        assert (name, family.type) == (name, kind)
        assert set(re.findall(r"\w+", labels)) == set(family.samples[0].labels), name


def test_dashboard_asks_for_metrics_that_exist() -> None:
    dashboard = json.loads((DOCS / "grafana" / "floodway.json").read_text(encoding="utf-8"))
    asked = {
        name
        for panel in dashboard["panels"]
        for target in panel.get("targets", [])
        for name in re.findall(r"floodway_\w+", target["expr"])
    }
    assert asked
    assert asked - exposed(parsed(busy_board())) == set()
