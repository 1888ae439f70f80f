"""What the tests of ``floodway plan`` share: running it, and the example."""

import json
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from floodway.cli.main import app

ROOT = Path(__file__).parents[2]
ROAD = str(ROOT / "examples" / "linear_road.toml")

runner = CliRunner(env={"COLUMNS": "100"})


def plan(*options: str, file: str = ROAD) -> Result:
    return runner.invoke(app, ["plan", file, *options])


def planned(*options: str, file: str = ROAD) -> dict[str, Any]:
    result = plan(*options, "--json", "-", file=file)
    assert result.exit_code == 0, result.stderr
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def refused(*options: str, file: str = ROAD) -> str:
    result = plan(*options, file=file)
    assert result.exit_code == 2, result.output
    assert result.stderr.count("error: ") == 1
    assert "remedy" in result.stderr
    assert "Traceback" not in result.stderr
    return result.stderr
