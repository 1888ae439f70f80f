"""The commands of ``floodway bench`` that measure systems, as a user meets them."""

import json
from pathlib import Path

import pytest
from floodway_lab.cli.bench import app
from floodway_lab.systems.registry import SYSTEMS
from typer.testing import CliRunner


def run(*arguments: str) -> tuple[int, str, BaseException | None]:
    result = CliRunner().invoke(app, arguments)
    return result.exit_code, result.stdout, result.exception


@pytest.mark.slow
def test_run_is_shown_and_written(tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    code, out, _ = run(
        *("run", "ads", "--sut", "loop", "--rate", "5000", "--seconds", "2", "--warm", "1"),
        *("--most-load", "1"),  # other tests run beside it
        *("--schedule", "sine", "--hot", "0.5", "--late", "0.1", "--json", str(file)),
    )
    told = json.loads(file.read_text())
    assert code == 0
    assert "answers right" in " ".join(out.split())
    assert (told["correct"], told["void"], told["sustained"]) == (True, False, True)
    assert 0 < told["latency_ms"]["p50"] <= told["latency_ms"]["p99"]
    assert told["generated"] == told["taken"]
    assert len(told["over_time"]) == 2
    assert told["experiment"]["shape"]["keys"] == {"count": 1000, "hot": 0.5, "zipf": 0.0}


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("run", "adz", "--sut", "loop", "--rate", "5"), "there is no workload 'adz'"),
        (("run", "ads", "--sut", "storm", "--rate", "5"), "there is no system 'storm'"),
        (("sustain", "join", "--sut", "spark-rtm"), "'join': Real-Time Mode has no joins of two"),
        (
            ("run", "ads", "--sut", "loop", "--rate", "5", "--link", "kafka"),
            "cannot read from kafka",
        ),
        (("compare", "ads", "--suts", "loop,storm"), "there is no system 'storm'"),
        (("compare", "ads", "--suts", "loop,loop"), "names no system, or one twice"),
        (("compare", "adz"), "there is no workload 'adz'"),
        (("table", "nowhere.json"), "nowhere.json is no comparison"),
        (("install", "storm"), "there is no system 'storm'"),
    ],
)
def test_what_there_is_not_is_refused(arguments: tuple[str, ...], problem: str) -> None:
    code, _, error = run(*arguments)
    assert code == 1
    assert problem in str(error)


def test_system_that_is_not_installed_says_how(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLOODWAY_BENCH_HOME", str(tmp_path))
    _, _, error = run("run", "ads", "--sut", "bytewax", "--rate", "5")
    assert "bytewax is not installed" in str(error)
    assert "floodway bench install bytewax" in str(getattr(error, "remedy", ""))


def test_what_cannot_be_installed_is_told_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import msgspec

    monkeypatch.setenv("FLOODWAY_BENCH_HOME", str(tmp_path))
    wrong = msgspec.structs.replace(SYSTEMS["bytewax"], requirements=("./nowhere",))
    monkeypatch.setitem(SYSTEMS, "bytewax", wrong)
    code, _, error = run("install", "bytewax")
    assert code == 1
    assert "bytewax cannot be installed" in str(error)
    assert list(tmp_path.iterdir()) == []


def test_what_needs_nothing_is_there() -> None:
    code, out, _ = run("install", "loop")
    assert (code, out) == (0, "loop needs nothing that is not there\n")


@pytest.mark.slow
def test_comparison_is_shown_and_written(tmp_path: Path) -> None:
    file, page = tmp_path / "found.json", tmp_path / "found.html"
    code, out, _ = run(
        *("compare", "grep", "--suts", "loop", "--rounds", "1", "--seconds", "2", "--warm", "1"),
        *("--most-load", "1", "--json", str(file), "--out", str(page)),
    )
    told = json.loads(file.read_text())
    assert told["complete"] is True
    (loop,) = told["systems"]
    assert [run["experiment"]["rate"] for run in loop["rounds"][0]["runs"]] == pytest.approx(
        [load * loop["rounds"][0]["rate"] for load in (0.1, 0.5, 0.9)], rel=1e-3
    )
    assert "<svg" in page.read_text()
    assert code == 0
    assert "loop" in out
    code, out, _ = run("table", str(file))
    assert code == 0
    assert "| `loop` |" in out


def test_what_there_is_is_listed() -> None:
    code, out, _ = run("list", "--json", "-")
    told = json.loads(out)
    assert code == 0
    assert "road" in told["workloads"]
    assert told["systems"]["loop"]["installed"] is True
