"""Every Python example of the README and the documentation runs and prints what it shows."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.house.markdown import read_blocks, run_file, starts_flows

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def named(page: Path) -> Any:
    marks = [pytest.mark.spark] if starts_flows(page) else []
    return pytest.param(page, id=str(page.relative_to(ROOT)), marks=marks)


@pytest.mark.parametrize("page", [named(page) for page in PAGES])
def test_examples_of_page_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    if starts_flows(page):
        run_alone(page)
    else:
        run_file(page)


def run_alone(page: Path) -> None:
    """Run a page in a process of its own: its flows need a Spark that other tests do not use."""
    command = [sys.executable, "-W", "error", "-m", "tests.house.markdown", str(page)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def page(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "page.md"
    file.write_text(text, encoding="utf-8")
    return file


def test_blocks_share_one_namespace(tmp_path: Path) -> None:
    run_file(page(tmp_path, "```python\nx = 1\n```\n\n```python\nassert x == 1\n```\n"))


def test_classes_find_the_names_of_their_annotations(tmp_path: Path) -> None:
    text = """\
```python
from msgspec import Struct, convert

class Inner(Struct):
    x: int

class Outer(Struct):
    inner: "Inner"

assert convert({"inner": {"x": 1}}, Outer).inner.x == 1
```
"""
    run_file(page(tmp_path, text))


def test_output_that_differs_fails(tmp_path: Path) -> None:
    text = "```python\nprint(1)\n```\n\nprints\n\n```text\n2\n```\n"
    with pytest.raises(AssertionError):
        run_file(page(tmp_path, text))


def test_output_that_agrees_passes(tmp_path: Path) -> None:
    run_file(page(tmp_path, "```python\nprint(1)\n```\n\n```text\n1\n```\n"))


def test_text_of_another_section_is_no_output(tmp_path: Path) -> None:
    run_file(page(tmp_path, "```python\nprint(1)\n```\n\n## Layout\n\n```text\nsrc/\n```\n"))


def test_block_marked_no_run_does_not_run(tmp_path: Path) -> None:
    run_file(page(tmp_path, "```python no-run\nraise RuntimeError\n```\n"))


def test_block_marked_no_run_must_compile(tmp_path: Path) -> None:
    with pytest.raises(SyntaxError):
        run_file(page(tmp_path, "```python no-run\nif\n```\n"))


def test_failure_names_line_of_page(tmp_path: Path) -> None:
    file = page(tmp_path, "# Title\n\n```python\nx = 1\nraise RuntimeError\n```\n")
    with pytest.raises(RuntimeError) as caught:
        run_file(file)
    last = caught.traceback[-1]
    assert (Path(last.path), last.lineno + 1) == (file, 5)


def test_page_that_starts_a_flow_is_known(tmp_path: Path) -> None:
    assert starts_flows(page(tmp_path, "```python\njob = flow.run(dop=2)\n```\n"))
    assert not starts_flows(page(tmp_path, "```python no-run\nflow.run()\n```\n"))


def test_page_alone_is_a_script(tmp_path: Path) -> None:
    run_alone(page(tmp_path, "```python\nclass A: ...\nprint(A.__module__)\n```\n" + MAIN))
    with pytest.raises(AssertionError, match="ZeroDivisionError"):
        run_alone(page(tmp_path, "```python\n1 / 0\n```\n"))


MAIN = "\n```text\n__main__\n```\n"


def test_block_in_list_loses_its_indent() -> None:
    (block,) = read_blocks("- item\n\n  ```python\n  x = 1\n  ```\n")
    assert block.text == "x = 1\n"


def test_block_without_end_is_an_error() -> None:
    with pytest.raises(ValueError, match="line 1 has no end"):
        read_blocks("```python\nx = 1\n")
