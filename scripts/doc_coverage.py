"""Count how many of the public names of ``floodway`` and ``floodway_lab`` have a docstring.

Public is what a user can reach without touching an underscore: modules, classes, functions, and
the methods and properties of public classes. Left out is what has its documentation elsewhere:
magic methods, overloads, property setters, and methods marked ``@override``.

Run as a script, it lists the names without one and fails below the floor.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

SOURCES = ("src", "lab")
"""The folders that hold packages."""

FLOOR = 0.90
"""The least share of public names that must be documented."""

_DOCUMENTED_ELSEWHERE = frozenset({"overload", "override", "setter", "deleter"})

_Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


class Name(NamedTuple):
    """A public name, where it is, and whether it has a docstring."""

    dotted: str
    file: Path
    line: int
    documented: bool


def _decorators(node: _Definition) -> set[str]:
    """Return the last part of each decorator: ``typing.override`` counts as ``override``."""
    nodes = (item.func if isinstance(item, ast.Call) else item for item in node.decorator_list)
    return {ast.unparse(item).rpartition(".")[2] for item in nodes}


def _definitions(body: list[ast.stmt]) -> Iterator[_Definition]:
    """Yield the public definitions of a body, also those below ``if`` and ``try``."""
    for node in body:
        if isinstance(node, _Definition):
            if not node.name.startswith("_") and not _decorators(node) & _DOCUMENTED_ELSEWHERE:
                yield node
        elif isinstance(node, ast.If | ast.Try):
            yield from _definitions(node.body)
            yield from _definitions(node.orelse)


def _below(parent: str, file: Path, body: list[ast.stmt]) -> Iterator[Name]:
    for node in _definitions(body):
        dotted = f"{parent}.{node.name}"
        yield Name(dotted, file, node.lineno, ast.get_docstring(node) is not None)
        if isinstance(node, ast.ClassDef):
            yield from _below(dotted, file, node.body)


def module_name(source: Path, file: Path) -> str:
    """Return the dotted name of the module in ``file``, seen from the folder ``source``."""
    parts = file.relative_to(source).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def public_names(source: Path) -> list[Name]:
    """Return the public names of all modules below a source folder.

    Parameters
    ----------
    source
        The folder that holds the package's folder.
    """
    names: list[Name] = []
    for file in sorted(source.rglob("*.py")):
        dotted = module_name(source, file)
        if any(part.startswith("_") and part != "__main__" for part in dotted.split(".")):
            continue
        module = ast.parse(file.read_text(encoding="utf-8"))
        names.append(Name(dotted, file, 1, ast.get_docstring(module) is not None))
        names.extend(_below(dotted, file, module.body))
    return names


def main() -> int:
    """Print the coverage and return the exit code."""
    root = Path(__file__).resolve().parent.parent
    names = [name for source in SOURCES for name in public_names(root / source)]
    missing = [name for name in names if not name.documented]
    for name in missing:
        print(f"{name.file.relative_to(root)}:{name.line}: no docstring: {name.dotted}")
    share = 1 - len(missing) / len(names)
    print(f"{len(names) - len(missing)} of {len(names)} public names documented ({share:.1%})")
    return 0 if share >= FLOOR else 1


if __name__ == "__main__":
    sys.exit(main())
