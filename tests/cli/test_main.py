"""The command line as a whole: version, help, errors."""

import subprocess
import sys
from importlib.metadata import version

import pytest
import typer
from typer.testing import CliRunner

from floodway.cli.errors import ErrorReportingGroup
from floodway.cli.main import app, main
from floodway.core.errors import FloodwayError, FlowError
from floodway.core.place import Place

runner = CliRunner()


def test_version() -> None:
    result = runner.invoke(app, ["--version"])
    assert (result.exit_code, result.stdout) == (0, f"floodway {version('floodway')}\n")


def test_help_lists_commands() -> None:
    result = runner.invoke(app, ["--help"])
    assert result.exit_code == 0
    assert "doctor" in result.stdout


def test_module_runs_like_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "floodway", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"floodway {version('floodway')}\n"


def failing_app(error: Exception) -> typer.Typer:
    """Return an application with the real one's manners and a command that fails."""
    failing = typer.Typer(cls=ErrorReportingGroup, pretty_exceptions_enable=False)
    failing.callback()(main)

    @failing.command()
    def fail() -> None:
        raise error

    return failing


ERROR = FlowError(
    "there is no column 'knd'", remedy="use 'kind'", operator="views", place=Place("ads.py", 9)
)
BLOCK = """\
error: there is no column 'knd'
  operator  views
  place     ads.py:9
  remedy    use 'kind'
"""


def test_error_is_shown_as_block() -> None:
    result = runner.invoke(failing_app(ERROR), ["fail"])
    assert (result.exit_code, result.stdout, result.stderr) == (2, "", BLOCK)


def test_error_without_operator_leaves_it_out() -> None:
    result = runner.invoke(failing_app(FloodwayError("no", remedy="yes")), ["fail"])
    assert result.stderr == "error: no\n  remedy    yes\n"


def test_markup_in_errors_is_shown_as_it_is() -> None:
    result = runner.invoke(failing_app(FloodwayError("list[str] [red]", remedy="x")), ["fail"])
    assert "error: list[str] [red]\n" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "environment"), [(["--debug", "fail"], {}), (["fail"], {"FLOODWAY_DEBUG": "1"})]
)
def test_debug_adds_traceback(arguments: list[str], environment: dict[str, str]) -> None:
    result = runner.invoke(failing_app(ERROR), arguments, env=environment)
    assert result.exit_code == 2
    assert result.stderr.startswith("Traceback")
    assert result.stderr.endswith(BLOCK)


def test_other_exceptions_are_not_hidden() -> None:
    result = runner.invoke(failing_app(ZeroDivisionError()), ["fail"])
    assert isinstance(result.exception, ZeroDivisionError)
