"""Commands that other packages bring join the command line, and cannot break it."""

from importlib.metadata import EntryPoint

import typer
from typer.testing import CliRunner

from floodway.cli.errors import ErrorReportingGroup
from floodway.cli.extensions import GROUP, LAB, add_commands

RUN = CliRunner()


def hello() -> None:
    """Say hello."""
    typer.echo("hello from elsewhere")


inner = typer.Typer()
inner.command("greet")(hello)


def own() -> None:
    """Do what Floodway does itself."""
    typer.echo("our own")


def application(*points: EntryPoint) -> typer.Typer:
    app = typer.Typer(cls=ErrorReportingGroup)
    app.command()(own)
    add_commands(app, points)
    return app


def point(name: str, value: str) -> EntryPoint:
    return EntryPoint(name, f"{__name__}:{value}", GROUP)


def test_function_becomes_a_command() -> None:
    result = RUN.invoke(application(point("hello", "hello")), ["hello"])
    assert result.stdout == "hello from elsewhere\n"


def test_application_becomes_a_group() -> None:
    app = application(point("bench", "inner"))
    inner.callback()(lambda: None)
    assert RUN.invoke(app, ["bench", "greet"]).stdout == "hello from elsewhere\n"


def test_nobody_takes_a_command_of_ours() -> None:
    result = RUN.invoke(application(point("own", "hello")), ["own"])
    assert result.stdout == "our own\n"


def test_package_that_cannot_be_loaded_breaks_its_command_only() -> None:
    app = application(EntryPoint("broken", "no_such_package.commands:go", GROUP))
    assert RUN.invoke(app, ["own"]).exit_code == 0
    result = RUN.invoke(app, ["broken", "--any", "thing"])
    assert result.exit_code == 2
    assert "cannot be loaded: No module named 'no_such_package'" in result.stderr


def test_commands_of_the_laboratory_say_that_it_is_missing() -> None:
    app = application()
    for name in LAB:
        result = RUN.invoke(app, [name, "compare", "--json", "x"])
        assert result.exit_code == 2
        assert f"`floodway {name}` is part of floodway-lab" in result.stderr
    assert "needs floodway-lab" in RUN.invoke(app, ["--help"]).stdout
