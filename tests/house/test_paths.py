"""Files that the guides and the decisions name are there."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    page for folder in ("extending", "decisions") for page in (ROOT / "docs" / folder).glob("*.md")
)
FOLDERS = ("benchmarks", "docs", "examples", "lab", "scripts", "src", "tests")

FENCED = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
FILE = re.compile(r"`(?P<path>[\w./-]+\.(?:md|py|toml))`(?P<history>\s*<!-- history -->)?")
"""A file, and whether it is marked as one of a past version, which need not be there any more."""


@pytest.fixture(scope="module")
def there() -> set[str]:
    """Return all files of the repository, with a slash before each."""
    files = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.*")]
    return {f"/{path.relative_to(ROOT)}" for path in [*files, *ROOT.glob("*.*")]}


def missing(text: str, there: set[str]) -> Iterator[str]:
    """Yield the files that a page names and that are nowhere; the first folders may be left out."""
    for found in FILE.finditer(FENCED.sub("", text)):
        path = found["path"]
        if not found["history"] and not any(file.endswith(f"/{path}") for file in there):
            yield path


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}/{page.stem}")
def test_files_that_are_named_are_there(page: Path, there: set[str]) -> None:
    assert list(missing(page.read_text(encoding="utf-8"), there)) == []


def test_file_that_is_gone_is_found_unless_it_is_history() -> None:
    text = "In `engine/new.py`, once in `engine/old.py` <!-- history -->, and `engine/older.py`."
    assert list(missing(text, {"/src/engine/new.py"})) == ["engine/older.py"]


def test_end_of_a_name_is_no_name() -> None:
    assert list(missing("`kit.py`", {"/src/toolkit.py"})) == ["kit.py"]
