"""Read the fenced blocks of Markdown files and run the Python among them."""

import contextlib
import io
import re
import sys
import types
from dataclasses import dataclass
from pathlib import Path

_FENCE = re.compile(r"^(?P<indent> *)(?P<ticks>`{3,})(?P<info>[^`]*)$")
_HEADING = re.compile(r"^#{1,6} ")
_STARTS = re.compile(r"\bflow\.(run|start)\(")


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
        return self.is_python and "no-run" not in self.info


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
    """Return whether a page's examples start Spark."""
    blocks = read_blocks(file.read_text(encoding="utf-8"))
    return any(block.runs and _STARTS.search(block.text) for block in blocks)


def run_file(file: Path, name: str = "example") -> None:
    """Run the Python blocks of a file, in order and in one namespace, and compare their output.

    A block marked ``no-run`` has only to compile. What a block prints has to be exactly what the
    ``text`` block after it shows, if there is one.
    """
    blocks = read_blocks(file.read_text(encoding="utf-8"))
    # A real module, since classes look up the names of their annotations where they were made.
    module = types.ModuleType(name)
    before = sys.modules.get(name)
    sys.modules[name] = module
    try:
        for index, block in enumerate(blocks):
            if not block.is_python:
                continue
            code = compile_block(block, file)
            if not block.runs:
                continue
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(code, module.__dict__)
            expected = expected_output(blocks, index)
            if printed.getvalue() and expected is not None:
                assert printed.getvalue() == expected, f"{file.name}:{block.line}"
    finally:
        if before is None:
            del sys.modules[name]
        else:
            sys.modules[name] = before


if __name__ == "__main__":  # a page in a process of its own, as if it were a script
    run_file(Path(sys.argv[1]), "__main__")
