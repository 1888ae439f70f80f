"""Draw which room of the engine imports which: ``python scripts/import_graph.py``.

It reads the imports of all files below ``src/floodway/engine``, also those within functions, but
for those that only a type checker sees. It writes ``docs/assets/engine-rooms.svg``, the same bytes
for the same imports, and fails if there is a cycle. A room stands below all that import it. An edge
is drawn if no longer way leads to the same room; what else a room imports is written beside it.
"""

import ast
import sys
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ENGINE = ROOT / "src" / "floodway" / "engine"
PICTURE = ROOT / "docs" / "assets" / "engine-rooms.svg"
PACKAGE = "floodway.engine"

WIDTH, TOP, STEP = 900, 30, 76
BOX_WIDTH, BOX_HEIGHT = 150, 36
MIDDLE, APART = 215, 200
BESIDE, BESIDE_CHARACTERS = 440, 64

_WITH_IMPORTS = (ast.stmt, ast.excepthandler, ast.match_case)

Edges = Mapping[tuple[str, str], int]
"""How many imports lead from a room to another."""


def imports(engine: Path) -> Counter[tuple[str, str]]:
    """Return how often a file of one room imports a module of another, by both rooms."""
    found: Counter[tuple[str, str]] = Counter()
    for file in sorted(engine.rglob("*.py")):
        room, *inside = file.relative_to(engine).with_suffix("").parts
        if inside:
            for module in _imported(ast.parse(file.read_text(encoding="utf-8"))):
                other = module.removeprefix(f"{PACKAGE}.").partition(".")[0]
                if module.startswith(f"{PACKAGE}.") and other != room:
                    found[room, other] += 1
    return found


def _imported(node: ast.AST) -> Iterator[str]:
    """Yield the modules that are imported at a node, and below it, when the program runs."""
    below = ast.iter_child_nodes(node)
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module == PACKAGE:
        yield from (f"{PACKAGE}.{alias.name}" for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        yield node.module or ""
    elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
        below = iter(node.orelse)
    for other in below:
        if isinstance(other, _WITH_IMPORTS):
            yield from _imported(other)


def rooms(engine: Path) -> list[str]:
    """Return the names of the rooms."""
    return sorted(file.parent.name for file in engine.glob("*/__init__.py"))


def cycle(edges: Edges) -> list[str] | None:
    """Return rooms of which each imports the next and the last is the first; None if none do.

    >>> cycle({("a", "b"): 1, ("b", "c"): 2, ("c", "b"): 1})
    ['b', 'c', 'b']
    >>> cycle({("a", "b"): 1, ("a", "c"): 1, ("b", "c"): 1})
    """
    done: set[str] = set()

    def search(way: list[str]) -> list[str] | None:
        for other in _below(edges, way[-1]):
            if other in way:
                return [*way[way.index(other) :], other]
            if other not in done and (found := search([*way, other])):
                return found
        done.add(way[-1])
        return None

    starts = sorted({room for room, _ in edges})
    return next((found for room in starts if (found := search([room]))), None)


def _below(edges: Edges, room: str) -> list[str]:
    return sorted(other for importer, other in edges if importer == room)


def heights(names: Sequence[str], edges: Edges) -> dict[str, int]:
    """Return how many rooms lie below each on the longest way down; there must be no cycle.

    >>> heights(["a", "b", "c"], {("a", "b"): 1, ("a", "c"): 1, ("b", "c"): 1})
    {'a': 2, 'b': 1, 'c': 0}
    """

    def height(room: str) -> int:
        return max((1 + height(other) for other in _below(edges, room)), default=0)

    return {room: height(room) for room in names}


def direct(edges: Edges) -> list[tuple[str, str]]:
    """Return the edges to whose end no longer way leads.

    >>> direct({("a", "b"): 1, ("a", "c"): 1, ("b", "c"): 1})
    [('a', 'b'), ('b', 'c')]
    """

    def reached(room: str) -> set[str]:
        return {room}.union(*(reached(other) for other in _below(edges, room)))

    return [
        (room, other)
        for room, other in sorted(edges)
        if not any(other in reached(way) for way in _below(edges, room) if way != other)
    ]


def layout(names: Sequence[str], edges: Edges) -> dict[str, tuple[int, int]]:
    """Return the middle of every room's box: its height says how far up, its importers where."""
    found = heights(names, edges)
    drawn = direct(edges)
    top = max(found.values())
    places: dict[str, tuple[int, int]] = {}
    for height in range(top, -1, -1):

        def lean(room: str) -> float:
            above = [places[a][0] for a, b in drawn if b == room]
            return sum(above) / len(above) if above else MIDDLE

        row = sorted((room for room in names if found[room] == height), key=lambda r: (lean(r), r))
        for number, room in enumerate(row):
            x = MIDDLE + round((number - (len(row) - 1) / 2) * APART)
            places[room] = x, TOP + BOX_HEIGHT // 2 + (top - height) * STEP
    return places


def picture(names: Sequence[str], edges: Edges) -> str:
    """Return the picture."""
    places, drawn = layout(names, edges), direct(edges)
    lowest = max(y for _, y in places.values())
    height = lowest + BOX_HEIGHT // 2 + TOP
    parts = [_HEAD.format(width=WIDTH, height=height, rooms=len(names), edges=len(edges))]
    parts += [_edge(places, edge, edges[edge]) for edge in drawn]
    parts += [_box(room, *places[room]) for room in names]
    for y in sorted({y for _, y in places.values()}):
        row = sorted((room for room in names if places[room][1] == y), key=lambda r: places[r])
        parts += _also(row, y, edges, drawn)
    return "\n".join([*parts, "</svg>\n"])


def _box(room: str, x: int, y: int) -> str:
    left, top = x - BOX_WIDTH // 2, y - BOX_HEIGHT // 2
    return (
        f'  <rect class="box" x="{left}" y="{top}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" '
        f'rx="6"/>\n  <text class="name" x="{x}" y="{y + 5}">{room}</text>'
    )


def _edge(places: Mapping[str, tuple[int, int]], edge: tuple[str, str], count: int) -> str:
    """Draw an edge: straight to the next row, and around the boxes in between to others."""
    (x, y), (to, under) = places[edge[0]], places[edge[1]]
    if under - y <= STEP:
        start, end = y + BOX_HEIGHT // 2, under - BOX_HEIGHT // 2 - 2
        path, at = f"M{x} {start} L{to} {end}", ((x + to) // 2, (start + end) // 2 + 4)
    elif to != x:
        side = x + (BOX_WIDTH // 2 if to > x else -BOX_WIDTH // 2)
        path = f"M{side} {y} Q{to} {y} {to} {y + STEP} L{to} {under - BOX_HEIGHT // 2 - 2}"
        at = to, (y + under) // 2 + 4
    else:
        side, bow = x + BOX_WIDTH // 2, x + BOX_WIDTH // 2 + 50
        path = f"M{side} {y} C{bow} {y} {bow} {under} {side + 2} {under}"
        at = bow - 12, (y + under) // 2 + 4
    return (
        f'  <path class="line" d="{path}" marker-end="url(#arrow)"/>\n'
        f'  <text class="count" x="{at[0]}" y="{at[1]}">{count}</text>'
    )


def _also(
    row: Sequence[str], y: int, edges: Edges, drawn: Sequence[tuple[str, str]]
) -> Iterator[str]:
    """Write beside a row what its rooms import that no edge shows."""
    lines = []
    for room in row:
        others = [edge for edge in sorted(edges) if edge[0] == room and edge not in drawn]
        if others:
            start = f"{room} also: " if len(row) > 1 else "also: "
            said = ", ".join(f"{other}\u00a0{edges[room, other]}" for _, other in others)
            lines += textwrap.wrap(start + said, BESIDE_CHARACTERS)
    first = y + 4 - (len(lines) - 1) * 9
    for number, line in enumerate(lines):
        yield f'  <text class="note" x="{BESIDE}" y="{first + number * 18}">{line}</text>'


_HEAD = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" \
aria-labelledby="title desc" font-family="ui-sans-serif, system-ui, 'Helvetica Neue', Arial, \
sans-serif" font-size="14">
  <!-- made by scripts/import_graph.py -->
  <title id="title">Which room of the engine imports which</title>
  <desc id="desc">The {rooms} rooms of the engine, each below all that import it. All {edges} \
edges lead down. Numbers say how many imports an edge stands for.</desc>
  <style>
    .back {{ fill: #ffffff; }}
    .line {{ stroke: #57606a; stroke-width: 1; fill: none; }}
    .head {{ fill: #57606a; }}
    .box {{ fill: #f6f8fa; stroke: #0969da; stroke-width: 1.5; }}
    .name {{ fill: #1f2328; font-weight: 600; text-anchor: middle; }}
    .count {{ fill: #0969da; font-size: 12px; text-anchor: middle; paint-order: stroke; \
stroke: #ffffff; stroke-width: 5px; }}
    .note {{ fill: #57606a; font-size: 12px; }}
    @media (prefers-color-scheme: dark) {{
      .back {{ fill: #0d1117; }}
      .line {{ stroke: #9198a1; }}
      .head {{ fill: #9198a1; }}
      .box {{ fill: #151b23; stroke: #4493f8; }}
      .name {{ fill: #f0f6fc; }}
      .count {{ fill: #4493f8; stroke: #0d1117; }}
      .note {{ fill: #9198a1; }}
    }}
  </style>
  <defs>
    <marker id="arrow" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8" \
orient="auto" markerUnits="userSpaceOnUse">
      <path class="head" d="M0 0 L10 5 L0 10 z"/>
    </marker>
  </defs>
  <rect class="back" x="0" y="0" width="{width}" height="{height}" rx="8"/>
"""


def main(engine: Path = ENGINE, file: Path = PICTURE) -> int:
    """Draw the picture of an engine into a file, unless there is a cycle; return the exit code."""
    names, edges = rooms(engine), imports(engine)
    found = cycle(edges)
    if found is not None:
        print(f"the rooms of the engine import each other in a circle: {' -> '.join(found)}")
        return 1
    file.write_text(picture(names, edges), encoding="utf-8")
    print(f"{len(edges)} edges between {len(names)} rooms, {sum(edges.values())} imports")
    return 0


if __name__ == "__main__":
    sys.exit(main())
