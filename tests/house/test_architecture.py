"""The page about the architecture is true: its files, its names, its tables and its pictures."""

import ast
import doctest
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import pytest

from scripts import import_graph
from scripts.import_graph import PICTURE, imports, main, rooms

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "architecture.md"
FOLDERS = (ROOT / "src" / "floodway" / "engine", ROOT / "src" / "floodway", ROOT)
"""Where a file of the page may be; the first in which there is one counts."""

WALKS = (
    "A record in the data paradigm",
    "A record in the operation paradigm",
    "A switch",
    "An epoch",
    "A loss",
)

_FILE = re.compile(r"(?:[a-z_]+/)+[a-z_]+\.py")
_REFERENCE = re.compile(rf"`({_FILE.pattern})`((?:,?\s+`[A-Za-z_.]+`)*)")
_CODE = re.compile(r"`([^`]+)`")
_STEP = re.compile(r"^(\d+)\. (.*?)(?=^\d+\. |\Z)", re.MULTILINE | re.DOTALL)
_IMAGE = re.compile(r"!\[[^]]*\]\(([^)]+)\)")
_SVG = "{http://www.w3.org/2000/svg}"

Definition = ast.ClassDef | ast.FunctionDef


class Reference(NamedTuple):
    """A file, and what the page says is in it."""

    file: str
    names: tuple[str, ...]


def references(text: str) -> list[Reference]:
    return [Reference(file, tuple(_CODE.findall(rest))) for file, rest in _REFERENCE.findall(text)]


def section(title: str) -> str:
    """Return the text of the page below a heading, up to the next."""
    text = PAGE.read_text(encoding="utf-8")
    _, found, after = text.partition(f"\n## {title}\n")
    assert found, title
    return after.partition("\n## ")[0]


def steps(walk: str) -> dict[int, str]:
    return {int(number): text for number, text in _STEP.findall(section(walk))}


def picture(walk: str) -> Path:
    (image,) = _IMAGE.findall(section(walk))
    return PAGE.parent / str(image)


def boxes(file: Path) -> Iterator[tuple[set[int], set[str]]]:
    """Yield the steps and the files of every box of a picture."""
    for group in ElementTree.parse(file).getroot().iter(f"{_SVG}g"):
        texts = [text.text or "" for text in group.iter(f"{_SVG}text")]
        yield (
            {int(text) for text in texts if text.isdigit()},
            {text for text in texts if _FILE.fullmatch(text)},
        )


def found(file: str) -> Path | None:
    return next((folder / file for folder in FOLDERS if (folder / file).is_file()), None)


def defines(body: list[ast.stmt], name: str) -> bool:
    """Return whether a dotted name of a class, function or method is defined in a body."""
    first, _, rest = name.partition(".")
    if not rest and first in assigned(body):
        return True
    own = [node for node in body if isinstance(node, Definition) and node.name == first]
    return any(not rest or defines(node.body, rest) for node in own)


def assigned(body: list[ast.stmt]) -> set[str]:
    """Return the names that a body gives to what was made elsewhere, such as a bound method."""
    targets = [target for node in body if isinstance(node, ast.Assign) for target in node.targets]
    return {target.id for target in targets if isinstance(target, ast.Name)}


@cache
def parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def wrong(text: str) -> list[str]:
    """Return what a text names that is not there."""
    missing = []
    for file, names in references(text):
        path = found(file)
        if path is None:
            missing.append(file)
            continue
        missing += [f"{file} {name}" for name in names if not defines(parsed(path).body, name)]
    return missing


def table(title: str) -> list[str]:
    """Return the first column of the table below a heading."""
    return re.findall(r"^\| `([a-z]+)` \|", section(title), re.MULTILINE)


def contract(name: str) -> list[str]:
    """Return the layers of a contract of import-linter."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    (found,) = (each["layers"] for each in contracts if each["id"] == name)
    return list(found)


def test_files_and_names_of_page_exist() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert references(text)
    assert wrong(text) == []


def test_what_is_not_there_is_found() -> None:
    text = "`datastream/task.py` `Task.receive`, `Task.forget`, and `datastream/former.py` `Task`"
    assert wrong(text) == ["datastream/task.py Task.forget", "datastream/former.py"]


@pytest.mark.parametrize("walk", WALKS)
def test_every_step_of_walk_names_file_and_what_does_it(walk: str) -> None:
    """All code words of a walk are files, or names that follow their file: so all are checked."""
    found = steps(walk)
    assert list(found) == list(range(1, len(found) + 1))
    for text in found.values():
        assert all(reference.names for reference in references(text)), text
        assert references(text), text
        assert _CODE.findall(_REFERENCE.sub("", text)) == []


@pytest.mark.parametrize("walk", WALKS)
def test_picture_of_walk_shows_its_steps_and_their_files(walk: str) -> None:
    texts = steps(walk)
    shown: set[int] = set()
    for numbers, files in boxes(picture(walk)):
        shown |= numbers
        named = {r.file for number in numbers for r in references(texts[number])}
        assert files <= named, (numbers, files - named)
    assert shown == set(texts)


def test_tables_are_contracts_of_import_linter() -> None:
    assert table("Layers") == contract("layers")
    assert table("Rooms of the engine") == contract("engine")


def test_picture_of_rooms_is_as_imports_are(tmp_path: Path) -> None:
    drawn = tmp_path / PICTURE.name
    assert main(file=drawn) == 0
    assert drawn.read_bytes() == PICTURE.read_bytes(), "run python scripts/import_graph.py"
    assert f"assets/{PICTURE.name}" in _IMAGE.findall(section("Rooms of the engine"))


def made(folder: Path, **files: str) -> Path:
    """Return an engine with a file in each of some rooms."""
    for room, text in files.items():
        (folder / room).mkdir()
        (folder / room / "__init__.py").touch()
        (folder / room / "file.py").write_text(text, encoding="utf-8")
    return folder


def test_rooms_that_import_each_other_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    engine = made(
        tmp_path,
        upper="from floodway.engine.lower.file import thing",
        lower="def late():\n    import floodway.engine.upper.file",
    )
    assert main(engine, tmp_path / "picture.svg") == 1
    assert "lower -> upper -> lower" in capsys.readouterr().out
    assert not (tmp_path / "picture.svg").exists()


def test_imports_for_type_checkers_alone_are_no_edges(tmp_path: Path) -> None:
    engine = made(
        tmp_path,
        upper="from floodway.engine import lower\nfrom floodway.engine.upper import other",
        lower="if TYPE_CHECKING:\n    from floodway.engine.upper.file import Thing\n"
        "else:\n    from floodway.engine.lowest import thing",
        lowest="",
    )
    assert rooms(engine) == ["lower", "lowest", "upper"]
    assert imports(engine) == {("upper", "lower"): 1, ("lower", "lowest"): 1}


def test_examples_of_script_print_what_they_show() -> None:
    result = doctest.testmod(import_graph)
    assert result.attempted
    assert not result.failed
