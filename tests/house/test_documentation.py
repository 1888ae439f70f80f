"""The source keeps its promises: documented names, true ``__all__``, nothing left open."""

import ast
import importlib
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import floodway
from scripts.doc_coverage import FLOOR, public_names

ROOT = Path(__file__).resolve().parents[2]


def packages() -> Iterator[str]:
    yield "floodway"
    for module in pkgutil.walk_packages(floodway.__path__, "floodway."):
        if module.ispkg:
            yield module.name


def parsed(folder: str) -> list[tuple[str, ast.Module]]:
    return [
        (str(file.relative_to(ROOT)), ast.parse(file.read_text(encoding="utf-8")))
        for file in sorted((ROOT / folder).rglob("*.py"))
    ]


def test_public_names_are_documented() -> None:
    names = public_names(ROOT / "src")
    missing = [name.dotted for name in names if not name.documented]
    assert len(missing) <= (1 - FLOOR) * len(names), missing


def test_coverage_sees_what_is_missing(tmp_path: Path) -> None:
    source = '''
def documented():
    """Do it."""

def bare(): ...

class Thing:
    """A thing."""

    def method(self): ...
    def _private(self): ...
    def __str__(self): ...
    @typing.override
    def inherited(self): ...
'''
    (tmp_path / "module.py").write_text(source, encoding="utf-8")
    names = public_names(tmp_path)
    assert [name.dotted for name in names if not name.documented] == [
        "module",
        "module.bare",
        "module.Thing.method",
    ]
    assert len(names) == 5


@pytest.mark.parametrize("package", list(packages()))
def test_all_lists_what_package_offers(package: str) -> None:
    """Everything in ``__all__`` exists, once, and nothing public that it imports is left out."""
    module = importlib.import_module(package)
    tree = ast.parse(Path(module.__file__ or "").read_text(encoding="utf-8"))
    listed = list(getattr(module, "__all__", []))
    assert [name for name in listed if not hasattr(module, name)] == []
    assert len(listed) == len(set(listed))
    assert sorted(offered(tree, module) - set(listed)) == []


def offered(tree: ast.Module, module: ModuleType) -> set[str]:
    """Return the public names a package takes from Floodway's modules or defines itself."""
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("floodway"):
            names.update(alias.asname or alias.name for alias in node.names)
        elif isinstance(node, ast.ClassDef | ast.FunctionDef):
            names.add(node.name)
    return {name for name in names if not name.startswith("_") and hasattr(module, name)}


def test_nothing_is_left_unimplemented() -> None:
    found = [
        f"{file}:{node.lineno}"
        for file, tree in parsed("src")
        for node in ast.walk(tree)
        if isinstance(node, ast.Raise) and "NotImplementedError" in ast.unparse(node)
    ]
    assert found == []


def test_tests_do_not_sleep() -> None:
    """What takes its time is waited for: `tests.waiting.wait_for` looks until it is so."""
    found = [
        f"{file}:{node.lineno}"
        for file, tree in parsed("tests")
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {"time.sleep", "sleep"}
    ]
    assert found == []
