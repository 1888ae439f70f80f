"""What ``pyproject.toml`` declares is what the source uses."""

import ast
import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

NOT_IMPORTED_YET = {"pyspark"}  # the platform; the engine will import it


def names(requirements: list[str]) -> set[str]:
    return {re.split(r"[\[<>=!~ ]", requirement)[0] for requirement in requirements}


def imported() -> set[str]:
    """Return the top-level names of the third-party modules that the source imports."""
    found: set[str] = set()
    for file in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found.update(alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                found.add(node.module.partition(".")[0])
    return found - sys.stdlib_module_names - {"floodway"}


def test_imported_libraries_are_declared() -> None:
    extras = PROJECT["optional-dependencies"]["testing"]
    assert imported() - names(PROJECT["dependencies"]) - names(extras) == set()


def test_declared_libraries_are_imported() -> None:
    assert names(PROJECT["dependencies"]) - imported() - NOT_IMPORTED_YET == set()


def test_every_dependency_has_an_exact_version_and_a_reason() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = [line for line in lines if not line.startswith("#")]
    assert [line for line in pinned if not re.fullmatch(r"[\w.-]+==[\w.]+", line)] == []
    declared = names(PROJECT["dependencies"])
    for extra in PROJECT["optional-dependencies"].values():
        declared |= names(extra)
    assert declared - {line.partition("==")[0].lower() for line in pinned} == set()
    reasons = (ROOT / "docs/decisions/002-dependencies.md").read_text(encoding="utf-8")
    assert {name for name in declared if name not in reasons} == set()


def test_typed_marker_is_shipped() -> None:
    assert (ROOT / "src/floodway/py.typed").exists()
