"""The source keeps its promises: documented names, true ``__all__``, nothing left open."""

import ast
import importlib
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import floodway_lab
import pytest

import floodway
from scripts.doc_coverage import FLOOR, SOURCES, public_names

ROOT = Path(__file__).resolve().parents[2]


def packages() -> Iterator[str]:
    for root in (floodway, floodway_lab):
        yield root.__name__
        for module in pkgutil.walk_packages(root.__path__, f"{root.__name__}."):
            if module.ispkg and not module.name.endswith(".peers"):  # in environments of their own
                yield module.name


def parsed(folder: str) -> list[tuple[str, ast.Module]]:
    return [
        (str(file.relative_to(ROOT)), ast.parse(file.read_text(encoding="utf-8")))
        for file in sorted((ROOT / folder).rglob("*.py"))
    ]


def test_public_names_are_documented() -> None:
    names = [name for source in SOURCES for name in public_names(ROOT / source)]
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
        for source in SOURCES
        for file, tree in parsed(source)
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


def imported(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the line and the dotted name of all that is imported, which may be a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            yield from ((node.lineno, f"{module}.{alias.name}") for alias in node.names)


def of_tests(tree: ast.Module) -> list[int]:
    """Return the lines that import a module of tests, or something from one."""
    return [
        line
        for line, name in imported(tree)
        if any(part.startswith("test_") for part in name.split("."))
    ]


def test_tests_share_what_is_in_helpers_and_not_in_other_tests() -> None:
    """A module of tests can be changed, or go, without a look at who else lives on it."""
    found = [f"{file}:{line}" for file, tree in parsed("tests") for line in of_tests(tree)]
    assert found == []


@pytest.mark.parametrize(
    "statement",
    [
        "from tests.operators.test_facts import found",
        "from tests.operators import cases, test_facts",
        "import tests.operators.test_facts as facts",
        "def late():\n    from .test_facts import found",
        "def late():\n    from . import test_facts",
    ],
)
def test_import_from_a_test_is_found(statement: str) -> None:
    assert of_tests(ast.parse(statement))
    assert not of_tests(ast.parse(statement.replace("test_facts", "latest_facts")))
