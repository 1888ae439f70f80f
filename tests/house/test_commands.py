"""Every command that the documentation shows exists, with the options it shows."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from floodway.cli.main import app
from tests.house.markdown import read_blocks

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
TARGETS = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))


def commands(text: str) -> Iterator[list[str]]:
    """Return the commands in the shell blocks of a page, cut into words."""
    for block in read_blocks(text):
        if block.info[:1] == ("sh",):
            for line in block.text.replace("\\\n", " ").splitlines():
                words = shlex.split(line, comments=True)
                if words:
                    yield words


def problem(words: list[str]) -> str | None:
    """Return what is wrong with a command, if anything is."""
    if words[0] == "make":
        return None if set(words[1:]) <= TARGETS else f"no such target: {words[1:]}"
    if words[0] != "floodway":
        return None
    command = typer.main.get_command(app)
    for word in words[1:]:
        if word in ("|", "&&"):
            break
        if word.startswith("-") and word != "-":
            known = {name for option in command.params for name in option.opts} | {"--help"}
            if word.partition("=")[0] not in known:
                return f"{command.name} has no option {word}"
        elif hasattr(command, "commands"):
            if word not in command.commands:
                return f"no such command: {word}"
            command = command.commands[word]
    return None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_of_page_exist(page: Path) -> None:
    found = [(words, problem(words)) for words in commands(page.read_text(encoding="utf-8"))]
    assert [one for one in found if one[1]] == []


def test_commands_named_in_text_exist() -> None:
    named = {
        match[1]
        for page in PAGES
        for match in re.finditer(r"`floodway ([a-z-]+)", page.read_text(encoding="utf-8"))
    }
    assert {"run", "explain", "top", "doctor"} <= named
    assert {name for name in named if problem(["floodway", name])} == set()


@pytest.mark.parametrize(
    "line",
    [
        "floodway rnu flows/ads.py",
        "floodway run flows/ads.py --dpo 2",
        "floodway bench mikro",
        "make coffee",
    ],
)
def test_command_that_does_not_exist_is_found(line: str) -> None:
    (words,) = commands(f"```sh\n{line}\n```\n")
    assert problem(words)


def test_command_over_two_lines_is_one() -> None:
    (words,) = commands("```sh\nfloodway run ads.py \\\n    --dop 2  # two\n```\n")
    assert words == ["floodway", "run", "ads.py", "--dop", "2"]


MISSPELT = '''\
"""Views of each ad."""

import floodway as fw


class Event(fw.Record):
    kind: str
    ad: str


flow = fw.Flow("ads")
flow.source("events", schema=Event).filter("knd = 'view'", name="views").to("out")
'''


def test_error_that_the_page_shows_is_what_a_command_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("flows").mkdir()
    Path("flows/ads.py").write_text(MISSPELT, encoding="utf-8")
    printed = CliRunner().invoke(app, ["run", "flows/ads.py"]).stderr
    shown = [b.text for b in read_blocks((ROOT / "docs" / "cli.md").read_text(encoding="utf-8"))]
    assert printed in shown
