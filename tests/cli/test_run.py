"""``floodway run``: flows that end, are drained, are stopped, are killed; and wrong arguments."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from typer.testing import CliRunner

from floodway.cli.main import app
from floodway.cli.run import settings_of
from tests.waiting import DEADLINE_S, wait_for

runner = CliRunner()
EXAMPLE = str(Path(__file__).parents[2] / "examples" / "heartbeats.py") + ":build"

TICKING = """\
import floodway as fw
from floodway.connectors.json_lines import JsonLinesSink
from floodway.connectors.rate import RateSource

flow = fw.Flow("ticking")
numbers = flow.source("numbers", RateSource(2000), schema=int)
numbers.map("value", name="same").isolate().to(JsonLinesSink({out!r}))
"""
COUNTED = """\
import floodway as fw
from floodway.connectors.json_lines import JsonLinesSink
from floodway.connectors.rate import RateSource

flow = fw.Flow("counted")
numbers = flow.source("numbers", RateSource(20000, count=3000), schema=int)
numbers.map("value", name="same").isolate().to(JsonLinesSink({out!r}))
"""
SLOW = """\
import time
import floodway as fw
from floodway.connectors.callback import CallbackSink
from floodway.connectors.rate import RateSource

def take(value):
    open({out!r}, "a").write(f"{{value}}\\n")
    time.sleep(0.2)

flow = fw.Flow("slow")
flow.source("numbers", RateSource(2000), schema=int).to(CallbackSink(take))
"""
PIPED = """\
import floodway as fw
from floodway.connectors.stdio import StdinSource, StdoutSink

class Number(fw.Record):
    n: int

flow = fw.Flow("piped")
numbers = flow.source("numbers", StdinSource(), schema=Number)
numbers.filter("n % 2 = 0").select("n * 10 AS n").to(StdoutSink())
"""


class Run:
    """A ``floodway run`` in a process of its own, with a file for what it says."""

    def __init__(self, folder: Path, text: str, *options: str) -> None:
        self.out = folder / "out.jsonl"
        self.status = folder / "status.json"
        (folder / "mine.py").write_text(text.format(out=str(self.out)))
        (folder / "tmp").mkdir(exist_ok=True)
        self.temporary = folder / "tmp"
        self._said = folder / "said"
        command = [sys.executable, "-m", "floodway", "run", str(folder / "mine.py")]
        with self._said.open("wb") as said:
            self.process = subprocess.Popen(
                [*command, "--json", str(self.status), *options],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=said,
                start_new_session=True,
                env={**os.environ, "XDG_RUNTIME_DIR": str(self.temporary)},
            )
        self.children: list[psutil.Process] = []

    @property
    def said(self) -> str:
        return self._said.read_text()

    @property
    def lines(self) -> list[int]:
        """The numbers that have come out, whole lines only."""
        text = self.out.read_text() if self.out.exists() else ""
        return [int(line) for line in text.split("\n")[:-1]]

    def wait_running(self) -> None:
        wait_for(lambda: len(self.lines) > 2 or self.process.poll() is not None, "output")
        assert self.process.poll() is None, self.said
        self.children = psutil.Process(self.process.pid).children(recursive=True)
        assert self.children

    def wait(self) -> int:
        return self.process.wait(DEADLINE_S)

    def check_gone(self) -> None:
        """Fail if a process is left, some seconds after the end."""
        wait_for(lambda: not any(map(_lives, self.children)), "the end of all processes")


def _lives(process: psutil.Process) -> bool:
    """Return whether a process does something; one that nobody has buried yet does not."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@contextlib.contextmanager
def running(folder: Path, text: str, *options: str) -> Iterator[Run]:
    run = Run(folder, text, *options)
    try:
        yield run
    finally:
        for process in run.children:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        run.process.kill()
        run.process.wait()


@pytest.mark.spark
@pytest.mark.slow
def test_the_example_runs_for_some_seconds(tmp_path: Path) -> None:
    status = tmp_path / "status.json"
    command = [sys.executable, "-m", "floodway", "run", EXAMPLE]
    done = subprocess.run(
        [*command, "--seconds", "3", "--json", str(status), "--dop", "2"],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    totals = json.loads(status.read_text())["totals"]
    assert rows
    assert {row["machine"] for row in rows} == {"machine 0", "machine 1", "machine 2"}
    assert sum(row["beats"] for row in rows) <= totals["records_in"]
    assert "heartbeats ended" in done.stderr


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("how", ["SIGTERM", "SIGINT", "group"])
def test_a_signal_drains(tmp_path: Path, how: str) -> None:
    with running(tmp_path, TICKING) as run:
        run.wait_running()
        if how == "group":  # as a supervisor or a terminal sends it
            os.killpg(run.process.pid, signal.SIGTERM)
        else:
            run.process.send_signal(signal.Signals[how])
        assert run.wait() == 0, run.said
        totals = json.loads(run.status.read_text())["totals"]
        assert run.lines == list(range(totals["records_in"]))
        assert "draining" in run.said
        run.check_gone()
        assert "Traceback" not in run.said


@pytest.mark.spark
@pytest.mark.slow
def test_a_second_signal_stops_at_once(tmp_path: Path) -> None:
    with running(tmp_path, SLOW) as run:
        run.wait_running()
        run.process.send_signal(signal.SIGTERM)
        wait_for(lambda: "draining" in run.said, "the first signal's effect")
        assert run.process.poll() is None
        run.process.send_signal(signal.SIGTERM)
        assert run.wait() == 0, run.said
        run.check_gone()


@pytest.mark.spark
@pytest.mark.slow
def test_a_driver_that_is_killed_leaves_no_process(tmp_path: Path) -> None:
    with running(tmp_path, TICKING) as run:
        run.wait_running()
        run.process.kill()
        run.wait()
        run.check_gone()


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("how", ["SIGTERM", "SIGKILL"])
def test_a_flow_goes_on_from_its_checkpoint(tmp_path: Path, how: str) -> None:
    options = ("--checkpoint", str(tmp_path / "checkpoint"), "--epoch", "100ms")
    with running(tmp_path, TICKING, *options) as run:
        run.wait_running()
        run.process.send_signal(signal.Signals[how])
        assert run.wait() == (0 if how == "SIGTERM" else -signal.SIGKILL), run.said
        assert "from the beginning, with a new checkpoint" in run.said
        assert ("again to go on" in run.said) == (how == "SIGTERM")
        run.check_gone()
        before = len(run.lines)
    with running(tmp_path, TICKING, *options) as run:
        wait_for(lambda: len(run.lines) > before + 100 or run.process.poll() is not None, "more")
        run.process.send_signal(signal.SIGTERM)
        assert run.wait() == 0, run.said
        assert "going on from epoch" in run.said
        assert "committed up to epoch" in run.said
        assert run.lines == list(range(len(run.lines)))
        assert len(run.lines) > before


@pytest.mark.spark
@pytest.mark.slow
def test_a_flow_that_is_finished_stays_finished(tmp_path: Path) -> None:
    options = ("--checkpoint", str(tmp_path / "checkpoint"), "--state-memory", "64MB")
    for turn in range(2):
        with running(tmp_path, COUNTED, *options) as run:
            assert run.wait() == 0, run.said
            assert ("going on from epoch" in run.said) == (turn == 1)
            assert "finished at epoch" in run.said
            assert run.lines == list(range(3000))


@pytest.mark.parametrize("option", ["--epoch=1s", "--state-memory=1GB", "--checkpoint=x"])
def test_options_of_recovery_need_it(option: str) -> None:
    result = runner.invoke(app, ["run", EXAMPLE, option, "--no-recovery"])
    assert result.exit_code == 2
    assert "needs recovery" in result.stderr


def test_patience_is_a_duration() -> None:
    result = runner.invoke(app, ["run", EXAMPLE, "--patience=soon"])
    assert result.exit_code == 2
    assert "patience" in result.stderr


@pytest.mark.parametrize("size", ["much", "-1", "0", "5 TB", "1,5GB"])
def test_sizes_that_are_none(size: str, tmp_path: Path) -> None:
    options = [f"--checkpoint={tmp_path}", f"--state-memory={size}"]
    result = runner.invoke(app, ["run", EXAMPLE, *options])
    assert result.exit_code == 2
    assert "is not a size" in result.stderr


@pytest.mark.spark
@pytest.mark.slow
def test_standard_input_to_standard_output(tmp_path: Path) -> None:
    (tmp_path / "piped.py").write_text(PIPED)
    done = subprocess.run(
        [sys.executable, "-m", "floodway", "run", str(tmp_path / "piped.py")],
        input="".join(f'{{"n": {n}}}\n' for n in range(1000)),
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "".join(f'{{"n":{n * 10}}}\n' for n in range(0, 1000, 2))


@pytest.mark.spark
@pytest.mark.slow
def test_what_got_lost_is_said_at_the_end(tmp_path: Path) -> None:
    (tmp_path / "piped.py").write_text(
        PIPED.replace("schema=Number", "schema=Number, on_error='skip'")
    )
    done = subprocess.run(
        [sys.executable, "-m", "floodway", "run", str(tmp_path / "piped.py")],
        input='{"n": 1}\n{"n": "one"}\n{"n": 2}\n',
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "piped ended: 3 records in, 1 out, 1 skipped in " in done.stderr
    (told,) = (line for line in done.stderr.splitlines() if line.startswith("  skipped: numbers ("))
    assert "failed on 1 of 3 records and skipped them; the first: ValidationError: " in told
    assert "floodway: numbers (" in done.stderr  # the warning, when it happened


def test_too_few_slots(tmp_path: Path) -> None:
    with running(tmp_path, TICKING, "--master", "local[1]") as run:
        assert run.wait() == 2
        assert "needs 3 task slots" in run.said
        assert "--master 'local[5]'" in run.said
        assert not run.status.exists()


@pytest.mark.parametrize(
    ("where", "problem"),
    [
        ("no_such_module:flow", "there is no module 'no_such_module'"),
        ("nowhere/flows.py:flow", "there is no file nowhere/flows.py"),
        (EXAMPLE.replace(":build", ":flow"), "is nothing, not a flow"),
        (EXAMPLE.replace(":build", ":MACHINES"), "is a int, not a flow"),
        (EXAMPLE.replace(":build", ":main"), "is nothing, not a flow"),
        ("json.decoder.nothing:flow", "there is no module"),
    ],
)
def test_wrong_names(where: str, problem: str) -> None:
    result = runner.invoke(app, ["run", where])
    assert result.exit_code == 2, result.output
    assert problem in result.stderr
    assert "remedy" in result.stderr


@pytest.mark.parametrize("pair", ["spark.x", "=1", " =1"])
def test_settings_that_are_none(pair: str) -> None:
    result = runner.invoke(app, ["run", EXAMPLE, "--conf", pair])
    assert result.exit_code == 2
    assert "is not a setting" in result.stderr
    assert "--conf spark.some.key=value" in result.stderr


@pytest.mark.parametrize(
    "key",
    [
        "spark.authenticate.secret",
        "spark.ssl.keyStorePassword",
        "spark.hadoop.fs.s3a.access.key",
        "spark.hadoop.fs.azure.account.key.some.dfs.core",
        "spark.kubernetes.authenticate.oauthToken",
        "spark.executorEnv.AWS_SECRET_ACCESS_KEY",
        "spark.executorEnv.APIKEY",
        "spark.executorEnv.SOME_API_KEY",
        "spark.executorEnv.MY_PASS",
        "spark.kubernetes.driverEnv.DB_PW",
        "spark.hadoop.fs.azure.sas.container.account",
        "spark.driver.extraJavaOptions=-Xmx1g -Djavax.net.ssl.keyStorePassword",
    ],
)
def test_secret_on_the_command_line_is_refused_and_not_repeated(key: str) -> None:
    result = runner.invoke(app, ["run", EXAMPLE, "--conf", f"{key}=hunter2"])
    assert result.exit_code == 2
    assert "SPARK_CONF_DIR" in result.stderr
    assert "hunter2" not in result.stderr


def test_settings_about_secrets_are_no_secrets() -> None:
    about = ["spark.authenticate=true", "spark.authenticate.secretBitLength=512"]
    about.append("spark.kubernetes.authenticate.oauthTokenFile=/run/token")
    about.append("spark.driver.extraJavaOptions=-Dsome.bypass=true -Xss4m")
    about.append("spark.hadoop.fs.s3a.path.style.access=true")
    assert len(settings_of(about)) == 5


def test_paradigm_that_is_none() -> None:
    result = runner.invoke(app, ["run", EXAMPLE, "--paradigm", "both"])
    assert result.exit_code == 2
    assert "--paradigm 'both' is not a paradigm" in result.stderr
    assert "use one of: auto, data, operation" in result.stderr


@pytest.mark.spark
def test_a_pinned_flow_writes_its_story(tmp_path: Path) -> None:
    story = tmp_path / "story.jsonl"
    run = Run(tmp_path, TICKING, "--paradigm", "operation", "--story", str(story), "--seconds", "4")
    assert run.wait() == 0, run.said
    assert run.lines == list(range(len(run.lines)))
    told = runner.invoke(app, ["story", str(story), "--replay"])
    assert told.exit_code == 0, told.output
    assert "data → operation" in told.stdout
    assert "pinned to the operation paradigm" in told.stdout


def test_a_flow_file_that_fails_keeps_its_traceback(tmp_path: Path) -> None:
    (tmp_path / "broken_flow.py").write_text("1 / 0\n")
    result = runner.invoke(app, ["run", str(tmp_path / "broken_flow.py")])
    assert isinstance(result.exception, ZeroDivisionError)


@pytest.mark.parametrize("option", ["--dop=0", "--b-out=0", "--seconds=-1", "--metrics-port=70000"])
def test_options_out_of_range(option: str) -> None:
    assert runner.invoke(app, ["run", EXAMPLE, option]).exit_code == 2
