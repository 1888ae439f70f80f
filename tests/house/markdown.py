"""Read the fenced blocks of Markdown files and run the Python among them."""

import contextlib
import io
import json
import re
import sys
import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from tests.house.on_engine import NotingFlow, noting, run_once, run_the_rest

_FENCE = re.compile(r"^(?P<indent> *)(?P<ticks>`{3,})(?P<info>[^`]*)$")
_HEADING = re.compile(r"^#{1,6} ")
_STARTS = re.compile(r"\bflow\.(run|start)\(|^from floodway\.connectors\b", re.MULTILINE)
_BUILDS = re.compile(r"\bFlow\(")
_NEEDS = ("needs-kafka:", "needs-redis:", "needs-tcp:")
_MARKS = ("no-run:", "no-engine:", *_NEEDS)

Replacements = Mapping[str, str]
"""What to write instead of what a block says."""


@dataclass(frozen=True)
class Block:
    """A fenced block: its info words, its text and the number of its first line."""

    info: tuple[str, ...]
    text: str
    line: int
    section: int

    @property
    def is_python(self) -> bool:
        return self.info[:1] == ("python",)

    @property
    def runs(self) -> bool:
        return self.is_python and self.mark != "no-run:" and not self.needs

    @property
    def on_engine(self) -> bool:
        """Whether flows that the block builds are to run on the engine."""
        return self.runs and self.mark != "no-engine:"

    @property
    def needs(self) -> str | None:
        """The mark of the server that the block needs, if it needs one."""
        return self.mark if self.mark in _NEEDS else None

    @property
    def mark(self) -> str | None:
        """What the block is not for; the reason follows in the same line."""
        if not self.is_python or len(self.info) == 1:
            return None
        mark, *reason = self.info[1:]
        if mark not in _MARKS or not reason:
            raise ValueError(
                f"line {self.line - 1}: write one of {_MARKS} after python, and then the reason"
            )
        return mark


def read_blocks(text: str) -> list[Block]:
    """Return the fenced blocks of a Markdown text in order."""
    blocks: list[Block] = []
    section = 0
    lines = iter(enumerate(text.splitlines(), start=1))
    for number, line in lines:
        section += bool(_HEADING.match(line))
        fence = _FENCE.match(line)
        if not fence:
            continue
        body: list[str] = []
        for _, inner in lines:
            if inner.strip() == fence["ticks"]:
                break
            body.append(inner.removeprefix(fence["indent"]))
        else:
            raise ValueError(f"the block that starts on line {number} has no end")
        content = "".join(f"{inner}\n" for inner in body)
        blocks.append(Block(tuple(fence["info"].split()), content, number + 1, section))
    return blocks


def expected_output(blocks: list[Block], index: int) -> str | None:
    """Return the ``text`` block that follows a block in the same section, if one does."""
    for following in blocks[index + 1 : index + 2]:
        if following.info == ("text",) and following.section == blocks[index].section:
            return following.text
    return None


def compile_block(block: Block, file: Path) -> types.CodeType:
    """Compile a block so that tracebacks name the line of the Markdown file."""
    return compile("\n" * (block.line - 1) + block.text, str(file), "exec", dont_inherit=True)


def starts_flows(file: Path) -> bool:
    """Return whether a page's examples start Spark, or have flows with files in this folder."""
    blocks = read_blocks(file.read_text(encoding="utf-8"))
    return any(block.runs and _STARTS.search(block.text) for block in blocks)


def builds_flows(file: Path) -> bool:
    """Return whether a page's examples build flows."""
    blocks = read_blocks(file.read_text(encoding="utf-8"))
    return any(block.on_engine and _BUILDS.search(block.text) for block in blocks)


def needs(file: Path) -> set[str]:
    """Return the marks of the servers that a page's examples need."""
    blocks = read_blocks(file.read_text(encoding="utf-8"))
    return {block.needs for block in blocks if block.needs}


def run_file(
    file: Path, *, name: str = "__main__", servers: Mapping[str, Replacements] | None = None
) -> list[int]:
    """Run the Python blocks of a file, in order and in one namespace, and compare their output.

    A block marked ``no-run: reason`` has only to compile, and so has one that needs a server unless
    `servers` says, by its mark, what to write instead of the names of hosts in it. Then its flows
    run on the engine until all they do has been done once. What a block prints has to be exactly
    what the ``text`` block after it shows, if there is one. Flows that the page builds and does not
    start run on the engine afterwards, but for those of blocks that are marked
    ``no-engine: reason``. Their lines are returned.
    """
    blocks = read_blocks(file.read_text(encoding="utf-8"))
    with noting() as flows, _module(name) as module:
        for index, block in enumerate(blocks):
            if block.is_python and block.needs in (servers or {}):
                run_served(block, file, module, (servers or {})[str(block.needs)], flows)
            elif block.is_python:
                _run_block(blocks, index, file, module)
        elsewhere = [range(b.line, b.line + b.text.count("\n")) for b in blocks if not b.on_engine]
        return run_the_rest(
            flow for flow in flows if not any(flow.line in lines for lines in elsewhere)
        )


def _run_block(blocks: list[Block], index: int, file: Path, module: types.ModuleType) -> None:
    block = blocks[index]
    code = compile_block(block, file)
    if not block.runs:
        return
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, module.__dict__)
    expected = expected_output(blocks, index)
    if printed.getvalue() and expected is not None:
        assert printed.getvalue() == expected, f"{file.name}:{block.line}"


def run_served(
    block: Block,
    file: Path,
    module: types.ModuleType,
    replacements: Replacements,
    flows: list[NotingFlow],
) -> None:
    """Run a block with servers in place of those that it names, and the flows that it builds."""
    for named, there in replacements.items():
        block = replace(block, text=block.text.replace(named, there))
    assert ".local" not in block.text, f"{file.name}:{block.line} names a server of its own"
    known = len(flows)
    exec(compile_block(block, file), module.__dict__)
    for flow in flows[known:]:
        if not flow.started:
            run_once(flow)


@contextlib.contextmanager
def _module(name: str) -> Iterator[types.ModuleType]:
    # A real module, since classes look up the names of their annotations where they were made.
    module = types.ModuleType(name)
    before = sys.modules.get(name)
    sys.modules[name] = module
    try:
        yield module
    finally:
        if before is None:
            del sys.modules[name]
        else:
            sys.modules[name] = before


if __name__ == "__main__":  # a page in a process of its own, as if it were a script
    run_file(Path(sys.argv[1]), servers=json.loads(sys.argv[2]))
