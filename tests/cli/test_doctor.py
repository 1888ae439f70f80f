"""``floodway doctor`` as a user meets it."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from floodway.cli.main import app
from floodway.doctor.checks import diagnose
from floodway.doctor.probes import Probes
from tests.doctor.machines import GOOD, good_probes

ONE_MIB = 1024**2


def doctor(probes: Probes, *arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["doctor", *arguments], obj=probes)
    return result.exit_code, result.stdout, result.stderr


def test_good_machine_is_ready() -> None:
    code, out, _ = doctor(good_probes())
    assert code == 0
    assert "Everything is in order." in out


def test_warning_keeps_exit_code() -> None:
    code, out, _ = doctor(good_probes(load=lambda: 9.0))
    assert code == 0
    assert "Ready, with 1 warning." in out
    assert "stop other work" in out


def test_missing_java_is_wrong() -> None:
    code, out, _ = doctor(good_probes(which=lambda command: None))
    assert code == 1
    assert "Not ready: 1 wrong, 0 warnings." in out
    assert "install Java 17 or newer" in out


@pytest.mark.parametrize("library", ["google-re2", "rocksdict"])
def test_missing_library_is_named(library: str) -> None:
    versions = {**GOOD.libraries, library: None}
    code, out, _ = doctor(good_probes(installed_version=versions.get))
    assert code == 1
    assert f"{library} missing" in out
    assert f"pip install {library}" in out


def test_little_memory_is_wrong() -> None:
    code, out, _ = doctor(good_probes(memory=lambda: (512 * ONE_MIB, 100 * ONE_MIB)))
    assert code == 1
    assert "0.1 GiB of 0.5 GiB available" in out


def test_json_on_standard_output_is_all_there_is() -> None:
    code, out, _ = doctor(good_probes(), "--json", "-")
    report = json.loads(out)
    assert code == 0
    assert set(report) == {"format", "floodway", "status", "findings"}
    assert (report["format"], report["status"]) == (1, "ok")
    for finding in report["findings"]:
        assert set(finding) == {"check", "title", "status", "detail", "remedy", "facts"}


def test_json_in_file_comes_beside_the_report(tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    code, out, _ = doctor(good_probes(which=lambda command: None), "--json", str(file))
    assert code == 1
    assert "Not ready" in out
    assert json.loads(file.read_text())["status"] == "wrong"


def test_json_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    code, _, err = doctor(good_probes(), "--json", str(tmp_path / "missing" / "report.json"))
    assert code == 2
    assert "error: cannot write" in err
    assert "Traceback" not in err


@pytest.mark.parametrize("check", [finding.check for finding in diagnose(GOOD)])
def test_documented_facts_are_the_facts(check: str) -> None:
    """The table of facts in ``docs/cli.md`` names exactly the fields of the report."""
    page = (Path(__file__).resolve().parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
    _, out, _ = doctor(good_probes(), "--json", "-")
    (finding,) = (each for each in json.loads(out)["findings"] if each["check"] == check)
    (row,) = (line for line in page.splitlines() if line.startswith(f"| `{check}` |"))
    documented = row.split("|")[2]
    assert {name.strip(" `") for name in documented.split(",")} == set(finding["facts"])
