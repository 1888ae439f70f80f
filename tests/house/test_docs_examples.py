"""Every Python example of the README and the documentation runs and prints what it shows."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.connectors.servers_fixtures import kafka
from tests.house.markdown import Replacements, builds_flows, read_blocks, run_file, starts_flows
from tests.house.served import REDIS_PASSWORD, served

__all__ = ["kafka"]  # a fixture

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "docs").rglob("*.md"))]

_GIVEN = filter(None, [os.environ.get("PYTHONPATH")])
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *_GIVEN])}


def named(page: Path) -> Any:
    marks = [pytest.mark.spark] if starts_flows(page) or builds_flows(page) else []
    return pytest.param(page, id=str(page.relative_to(ROOT)), marks=marks)


@pytest.mark.parametrize("page", [named(page) for page in PAGES])
def test_examples_of_page_run(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.chdir(tmp_path)
    if starts_flows(page):
        with served(page, request) as servers:
            run_alone(page, servers)
        return
    if builds_flows(page):
        request.getfixturevalue("spark")
    run_file(page)


def run_alone(page: Path, servers: Mapping[str, Replacements] | None = None) -> None:
    """Run a page in a process of its own: its flows need a Spark that other tests do not use.

    And where they have relative paths, the tasks have to be where the page is.
    """
    command = [sys.executable, "-W", "error", "-m", "tests.house.markdown", str(page)]
    done = subprocess.run(
        [*command, json.dumps(servers or {})],
        env={**ENVIRONMENT, "REDIS_PASSWORD": REDIS_PASSWORD},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
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
    run_file(page(tmp_path, "```python no-run: why\nraise RuntimeError\n```\n"))


def test_block_marked_no_run_must_compile(tmp_path: Path) -> None:
    with pytest.raises(SyntaxError):
        run_file(page(tmp_path, "```python no-run: why\nif\n```\n"))


def test_block_that_needs_a_server_does_not_run_without(tmp_path: Path) -> None:
    run_file(page(tmp_path, "```python needs-redis: why\nraise RuntimeError\n```\n"))


def test_block_that_needs_a_server_runs_with_it_in_place_of_its_own(tmp_path: Path) -> None:
    text = "```python needs-redis: why\nassert 'redis.local' == 'here'\n```\n"
    run_file(page(tmp_path, text), servers={"needs-redis:": {"redis.local": "here"}})
    with pytest.raises(AssertionError, match="names a server of its own"):
        run_file(page(tmp_path, text), servers={"needs-redis:": {"other.local": "here"}})


@pytest.mark.parametrize("mark", ["no-run", "no-run:", "no-engine", "needs-tcp", "slow: why"])
def test_mark_of_block_needs_a_reason(tmp_path: Path, mark: str) -> None:
    with pytest.raises(ValueError, match="line 1: write one of"):
        run_file(page(tmp_path, f"```python {mark}\nx = 1\n```\n"))


FLOW = """\
import floodway as fw
from floodway.testing import Driver, ListSink, ListSource

flow = fw.Flow("numbers")
flow.source("numbers", schema=int).map("10 / value", name="tenth").to("out")
"""
DRIVEN = "with Driver(flow) as driver:\n    driver.push('numbers', 1, 2, at=5)\n"


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_flow_that_a_page_builds_runs_on_the_engine(tmp_path: Path) -> None:
    assert run_file(page(tmp_path, f"```python\n{FLOW}```\n")) == [5]
    assert run_file(page(tmp_path, f"```python\n{FLOW}{DRIVEN}```\n")) == [5]
    assert run_file(page(tmp_path, f"```python no-engine: why\n{FLOW}```\n")) == []


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_flow_that_a_page_shows_failing_fails_on_the_engine(tmp_path: Path) -> None:
    failing = DRIVEN.replace("1, 2", "0")
    caught = (
        f"try:\n    {failing.replace(chr(10), chr(10) + '    ')}\nexcept fw.FloodwayError: ...\n"
    )
    assert run_file(page(tmp_path, f"```python\n{FLOW}{caught}```\n")) == [5]


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_flow_that_gives_something_else_on_the_engine_fails_the_page(tmp_path: Path) -> None:
    """Such as one that counts with what is not its state: it is another process that counts."""
    there = FLOW.replace('"10 / value"', "lambda n: n if here else -n, schema=int")
    different = f"import os\nhere = True\npid = os.getpid()\n{there}".replace(
        "if here", "if os.getpid() == pid"
    )
    with pytest.raises(AssertionError, match="line 8, out"):
        run_file(page(tmp_path, f"```python\n{different}{DRIVEN}```\n"))


def test_failure_names_line_of_page(tmp_path: Path) -> None:
    file = page(tmp_path, "# Title\n\n```python\nx = 1\nraise RuntimeError\n```\n")
    with pytest.raises(RuntimeError) as caught:
        run_file(file)
    last = caught.traceback[-1]
    assert (Path(last.path), last.lineno + 1) == (file, 5)


def test_page_that_starts_a_flow_is_known(tmp_path: Path) -> None:
    assert starts_flows(page(tmp_path, "```python\njob = flow.run(dop=2)\n```\n"))
    assert not starts_flows(page(tmp_path, "```python no-run: why\nflow.run()\n```\n"))


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


@pytest.mark.spark
def test_readme_may_be_tried_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a user tries first, he tries again; and then from the command line."""
    monkeypatch.chdir(tmp_path)
    example = next(block for block in read_blocks(README.read_text()) if block.runs)
    Path("ads.py").write_text(example.text)
    printed = [
        subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=False)
        for command in ([sys.executable, "ads.py"], [sys.executable, "ads.py"])
    ]
    assert [each.returncode for each in printed] == [0, 0], printed[-1].stderr
    assert printed[0].stdout == printed[1].stdout != ""
    report = Path("report.jsonl").read_text()
    command = [sys.executable, "-m", "floodway", "run", "ads.py", "--dop", "2"]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert Path("report.jsonl").read_text() == report
