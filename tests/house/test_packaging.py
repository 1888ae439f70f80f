"""What ``pyproject.toml`` declares is what the source uses."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from floodway import connectors

ROOT = Path(__file__).resolve().parents[2]
PROJECTS = {
    source: tomllib.loads((ROOT / file).read_text(encoding="utf-8"))["project"]
    for source, file in (("src", "pyproject.toml"), ("lab", "lab/pyproject.toml"))
}
"""What each distribution declares, by the folder of its source."""

IMPORTED_AS = {"google-re2": "re2", "hdrhistogram": "hdrh", "pyzmq": "zmq"}
"""The distributions that are imported under a name of their own."""

EXTRAS = ("kafka", "redis", "testing", "pictures")
"""The extras that the source imports, where somebody has asked for them."""


def normal(name: str) -> str:
    """Return a distribution's name as packagers compare it: case and separators do not count."""
    return re.sub(r"[-_.]+", "-", name).lower()


def names(requirements: list[str]) -> set[str]:
    return {normal(re.split(r"[\[<>=!~ ]", requirement)[0]) for requirement in requirements}


def modules(distributions: set[str]) -> set[str]:
    """Return the top-level modules of distributions."""
    return {IMPORTED_AS.get(name, name.replace("-", "_")) for name in distributions}


def declared(project: dict[str, Any]) -> set[str]:
    """Return what a distribution declares, as the names of distributions."""
    extras = project.get("optional-dependencies", {})
    asked = [extras[extra] for extra in EXTRAS if extra in extras]
    return set().union(*map(names, [project["dependencies"], *asked]))


def imported(source: str) -> set[str]:
    """Return the top-level names of the modules of others that a source folder imports.

    Systems that others have made run in environments of their own, with what is declared there.
    """
    found: set[str] = set()
    own = {folder.name for folder in (ROOT / source).iterdir()}
    for file in (ROOT / source).rglob("*.py"):
        if file.parent.name == "peers":
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found.update(alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                found.add(node.module.partition(".")[0])
    return found - sys.stdlib_module_names - own


@pytest.mark.parametrize(("source", "project"), PROJECTS.items())
def test_imported_libraries_are_declared(source: str, project: dict[str, Any]) -> None:
    assert imported(source) - modules(declared(project)) == set()


@pytest.mark.parametrize(("source", "project"), PROJECTS.items())
def test_declared_libraries_are_imported(source: str, project: dict[str, Any]) -> None:
    assert modules(declared(project)) - imported(source) == set()


def test_both_distributions_have_one_version() -> None:
    version = PROJECTS["src"]["version"]
    assert PROJECTS["lab"]["version"] == version
    assert f"floodway[pictures]=={version}" in PROJECTS["lab"]["dependencies"]


def test_names_of_distributions_become_names_of_modules() -> None:
    declared = names(["PyZMQ>=27", "confluent-kafka>=2", "prometheus_client==1.*"])
    assert modules(declared) == {"zmq", "confluent_kafka", "prometheus_client"}


def test_every_dependency_has_an_exact_version_and_a_reason() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = [line for line in lines if not line.startswith("#")]
    assert [line for line in pinned if not re.fullmatch(r"[\w.-]+==[\w.]+", line)] == []
    wanted: set[str] = set()
    for project in PROJECTS.values():
        for asked in (project["dependencies"], *project.get("optional-dependencies", {}).values()):
            wanted |= names(asked)
    wanted -= {project["name"] for project in PROJECTS.values()}
    assert wanted - {normal(line.partition("==")[0]) for line in pinned} == set()
    reasons = (ROOT / "docs/decisions/002-dependencies.md").read_text(encoding="utf-8")
    assert {name for name in wanted if name not in reasons} == set()


def test_typed_marker_is_shipped() -> None:
    assert (ROOT / "src/floodway/py.typed").exists()


HEAVY = ("confluent_kafka", "pyarrow", "pyspark", "redis", "zmq")
"""What a program that only builds a flow should not have to load."""


def loaded_by(statement: str) -> set[str]:
    code = f"import sys; {statement}; print(*(m for m in {HEAVY!r} if m in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize(
    ("statement", "loaded"),
    [
        ("import floodway", set()),
        ("from floodway.connectors import JsonLinesSource, KafkaSource, RedisSink", set()),
        ("from floodway.connectors import ParquetSource", {"pyarrow"}),
    ],
)
def test_import_loads_only_what_it_needs(statement: str, loaded: set[str]) -> None:
    assert loaded_by(statement) == loaded


def test_every_connector_is_exported() -> None:
    bases = {"SourceConnector", "SinkConnector", "FilesSource", "Format"}
    inner = {"FilesSource", "Exact", "Values", "CsvRow", "Columns"}  # bases, and a source's own
    found = {
        node.name
        for file in (ROOT / "src/floodway/connectors").glob("*.py")
        for node in ast.parse(file.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef) and {ast.unparse(base) for base in node.bases} & bases
    }
    assert found - inner == set(connectors.__all__)


def test_unknown_connector_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'FaxSink'"):
        _ = connectors.FaxSink
    assert set(connectors.__all__) <= set(dir(connectors))
