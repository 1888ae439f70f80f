"""What a flow that loses records says about it, while it runs and at its end."""

import json
import logging
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from typer.testing import CliRunner

import floodway as fw
from floodway.cli.main import app
from floodway.connectors import CallbackSink, JsonLinesSource
from floodway.engine.driver.job import Job
from floodway.engine.metrics.status import Reason
from floodway.model.tuning import Paradigm
from floodway.testing import At, ListSink, ListSource
from tests.engine.spark.recovering import stage_of, until

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("shared_spark", "clean")]

SECRET = "4111-1111"


class Event(fw.Record):
    kind: str
    at: int


class User(fw.Record):
    id: str


def parse(text: str) -> int:
    return int(text)


def reasons(job: Job) -> dict[tuple[str, str], Reason]:
    return {(reason.kind, reason.operator): reason for reason in job.status.health.reasons}


def losing() -> fw.Flow:
    """Return a flow that loses records in four ways."""
    flow = fw.Flow("losing")
    known = [At(number, "1") for number in range(1200)]
    texts = flow.source(
        "texts", ListSource([*known, "2", At(3, SECRET), At(4, SECRET)]), schema=str
    )
    numbers = texts.map(parse, name="numbers", on_error="skip")
    numbers.to(ListSink(), name="out")
    casts = texts.map("CAST(value AS INT)", name="casts", on_error="dead_letter")
    casts.dead_letters.to(CallbackSink(print), name="dead")
    users = flow.table("users", ListSource([At(0, User("2"))]), schema=User, key="id", preload=True)
    joined = texts.join(users, on="concat('x', value)", late_updates="ignore", name="joined")
    joined.to(ListSink(), name="found")
    return flow


@pytest.mark.parametrize("paradigm", ["data", "operation"])
def test_a_flow_says_at_its_end_what_it_has_lost(
    paradigm: Paradigm, caplog: pytest.LogCaptureFixture
) -> None:
    job = losing().run(paradigm=paradigm)
    found = reasons(job)
    assert {about: reason.records for about, reason in found.items()} == {
        ("undated", "texts"): 1,
        ("skipped", "numbers"): 2,
        ("dead_letters", "casts"): 2,
        ("no_match", "joined"): 1203,
    }
    skipped, dead = found["skipped", "numbers"], found["dead_letters", "casts"]
    place = f"ValueError in parse at {Path(__file__).relative_to(Path.cwd())}:"
    assert place in skipped.problem
    assert "ExpressionError: '…' cannot be cast to INT" in dead.problem
    assert "records of texts and 1 records of users" in found["no_match", "joined"].problem
    warned = [record.message for record in caplog.records if record.levelno == logging.WARNING]
    assert len([text for text in warned if text == str(skipped)]) == 1
    assert warned[-1] == job.summary
    first, *rest = job.summary.splitlines()
    assert first.startswith("losing ended: 1,204 records in, ")
    assert "2 skipped, 2 to dead letters in " in first
    assert first.endswith("; degraded:")
    assert len(rest) == 4
    told = json.dumps([reason.problem for reason in found.values()]) + job.summary + caplog.text
    assert SECRET not in told  # who may see how a flow is need not be one who may see its records


def test_a_flow_that_loses_nothing_says_nothing(caplog: pytest.LogCaptureFixture) -> None:
    flow, sink = fw.Flow("well"), ListSink()
    flow.source("numbers", ListSource([1, 2, 3]), schema=int).to(sink)
    with caplog.at_level(logging.INFO, "floodway"):
        job = flow.run()
    assert job.status.health.state == "healthy"
    assert [r.message for r in caplog.records if r.levelno >= logging.WARNING] == []
    assert "well ended: 3 records in, 3 out in " in job.summary
    assert job.summary in caplog.text


def write(file: Path, *events: Event) -> None:
    lines = [json.dumps({"kind": event.kind, "at": event.at}) for event in events]
    unfinished = file.with_suffix(".tmp")
    unfinished.write_text("".join(f"{line}\n" for line in lines))
    unfinished.rename(file)


def asked(job: Job, path: str) -> Any:
    with urlopen(f"{job.url}{path}", timeout=10) as answer:
        assert answer.status == 200
        return answer.read().decode()


def test_late_records_are_told_of_while_a_flow_runs(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    source = JsonLinesSource(tmp_path, watch=True)
    flow = fw.Flow("slow", retention="1s")
    events = flow.source("events", source, schema=Event, timestamp="at", idle="1h")
    views = events.group_by("kind").window(fw.tumbling("10s")).count(name="views")
    views.changes().to(ListSink())
    write(tmp_path / "1.jsonl", Event("view", 1_000_000))
    with flow.start() as job:
        until(job, lambda: stage_of(job, "views").stream_time == 1_000_000, "time")
        write(tmp_path / "2.jsonl", *[Event("view", 1000)] * 50)
        until(job, lambda: job.status.health.state == "degraded", "health")
        until(job, lambda: "views" in caplog.text, "the warning")
        health = json.loads(asked(job, "/healthz"))
        assert (health["health"], health["healthy"]) == ("degraded", True)
        (told,) = health["degraded"]
        assert "took 50 of 51 records for late" in told
        assert caplog.text.count(told) == 1
        (shown,) = json.loads(asked(job, "/status.json"))["health"]["reasons"]
        assert (shown["kind"], shown["operator"], shown["records"]) == ("late", "views", 50)
        assert "floodway_flow_health{" in asked(job, "/metrics")
        top = CliRunner().invoke(app, ["top", "--once", "--url", str(job.url)])
        assert "degraded views (" in top.stdout
        job.drain()
        job.wait()
        assert "50 late" in job.summary
