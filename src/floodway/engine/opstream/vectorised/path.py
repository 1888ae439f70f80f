"""Which nodes of a remote half are fused, and how rows go through them.

A path begins at a source, or where rows enter, and goes on as long as all rows of a node go to one
other node, or to the first half of an aggregate. What leaves it on the way, late records and the
like, is handed on as always.
"""

from collections.abc import Sequence
from typing import Any

from floodway.engine.datastream.intake import Head, Intake
from floodway.engine.datastream.program import Node, Port
from floodway.engine.opstream.blocks import KEYED, ROWS
from floodway.engine.opstream.outlets import Combining
from floodway.engine.opstream.vectorised.fusing import FusedLoop, Loop, NotFusable, fuse
from floodway.operators.base import MAIN
from floodway.operators.code import CodeWriter
from floodway.operators.lookup_facts import LookupFactsKernel
from floodway.operators.lookup_join import LookupJoin
from floodway.operators.on_error import ErrorHandler
from floodway.operators.stateless import ChainKernel


class Fused:
    """Nodes that run as one loop; stands for the first of them.

    A record that would stop the flow, or become a dead letter, raises instead: whoever runs this
    then does everything again, node by node, so that it fails, or is described, as it always is.
    """

    def __init__(self, nodes: Sequence[Node], combining: Combining | None) -> None:
        self.nodes = tuple(nodes)
        self._combining = combining
        self._loops: dict[Head | None, FusedLoop] = {}

    @property
    def name(self) -> str:
        """The name of the first node."""
        return self.nodes[0].name

    def source(self, head: Head | None = None) -> str:
        """Return the generated code; `head` says for what input of a source."""
        return self.loop(head).source

    def loop(self, head: Head | None) -> FusedLoop:
        """Return the loop for one kind of input."""
        loop = self._loops.get(head)
        if loop is None:
            loops = [_loop(node, _code(node, head)) for node in self.nodes]
            if self._combining is not None:
                code = self._combining.combiner.code
                loops.append(Loop(code.source, code.names, ""))
            loop = self._loops[head] = fuse(loops)
        return loop

    def take(self, kind: int, raw: list[Any] | bytes | memoryview, born: int) -> int:
        """Take a unit that a source has read, of a kind; return how many records that was."""
        first = self.nodes[0]
        assert isinstance(first.kernel, Intake)
        head: Head = "rows"
        if kind != ROWS:
            head, raw = first.kernel.opened(raw, keyed=kind == KEYED)
        assert isinstance(raw, list)
        first.received += len(raw)
        now = 0 if kind == ROWS else born // 1000
        self._run(self.loop(head), raw, (now, first.kernel.latest), born)
        return len(raw)

    def work(self, born: int, now: int) -> None:
        """Process what waits for the first node."""
        first, loop = self.nodes[0], self.loop(None)
        for _, rows in first.waiting:
            first.received += len(rows)
            self._run(loop, rows, _given(first), born)
        first.waiting.clear()

    def _run(self, loop: FusedLoop, rows: list[Any], given: tuple[Any, ...], born: int) -> None:
        left: list[Any] = []
        for node in self.nodes[1:]:
            given += _given(node)
        if self._combining is not None:
            given += self._combining.given(left.append)
        self._done(loop, loop.run(rows, *given))
        if left and self._combining is not None:
            self._combining.leave(left, born, born)
        for node in self.nodes:
            node.hand_on(born, born)

    def _done(self, loop: FusedLoop, result: tuple[Any, ...]) -> None:
        """Count what was done."""
        for node, count in zip(self.nodes, loop.returns, strict=False):
            if isinstance(node.kernel, Intake):
                node.kernel.done(result[:count])
            elif isinstance(node.kernel, ChainKernel):
                node.kernel.add(result[:count])
            result = result[count:]
        for number, count in enumerate(result):
            port = _main(self.nodes[number])
            assert port is not None
            port.sent += count
            if number + 1 < len(self.nodes):
                self.nodes[number + 1].received += count


def paths(nodes: Sequence[Node]) -> dict[str, Fused]:
    """Return all paths among the nodes of a remote half, by the name of the first node."""
    found: dict[str, Fused] = {}
    inside: set[str] = set()
    for node in nodes:
        path = None if node.name in inside else _path(node, nodes)
        if path is not None:
            found[node.name] = path
            inside |= {other.name for other in path.nodes}
    return found


def _path(first: Node, among: Sequence[Node]) -> Fused | None:
    """Return the path that begins at a node, or None if it ends there."""
    if not _fits(first):
        return None
    nodes = [first]
    while (following := _next(nodes[-1])) is not None and following in among:
        nodes.append(following)
    combining = _combining(nodes[-1])
    if len(nodes) == 1 and combining is None:
        return None
    found = Fused(nodes, combining)
    try:
        found.loop("values" if isinstance(first.kernel, Intake) else None)
    except NotFusable:
        return None
    return found


def _next(node: Node) -> Node | None:
    """Return the node that takes all rows of a node, if there is one that can be fused with it."""
    port = _main(node)
    if port is None or port.outlets or len(port.readers) != 1:
        return None
    ((following, _),) = port.readers
    return following if _fits(following) else None


def _combining(node: Node) -> Combining | None:
    """Return the first half of an aggregate that takes all rows of a node, if there is one."""
    port = _main(node)
    if port is None or port.readers or len(port.outlets) != 1:
        return None
    (outlet,) = port.outlets
    return outlet if isinstance(outlet, Combining) else None


def _main(node: Node) -> Port | None:
    """Return the port that most rows of a node leave by; one with several arms has none."""
    last = node.operators[-1].name
    return next((p for p in node.ports if (p.operator, p.name) == (last, MAIN)), None)


def _fits(node: Node) -> bool:
    return isinstance(node.kernel, ChainKernel | LookupFactsKernel)


def _given(node: Node) -> tuple[Any, ...]:
    """Return what a node's code takes besides rows."""
    return node.kernel.given() if isinstance(node.kernel, LookupFactsKernel) else ()


def _code(node: Node, head: Head | None) -> CodeWriter:
    kernel = node.kernel
    if isinstance(kernel, Intake) and head is not None:
        return kernel.writer(head)
    assert isinstance(kernel, ChainKernel | LookupFactsKernel)
    return kernel.code


def _loop(node: Node, code: CodeWriter) -> Loop:
    """Return a node's code, in which only those failures are dealt with that may be."""
    kernel = node.kernel
    handlers: Sequence[ErrorHandler] = getattr(kernel, "handlers", ())
    skips = {
        id(handler)
        for handler, operator in zip(handlers, node.operators, strict=True)
        if getattr(operator, "on_error", "fail") == "skip"
    }
    names = {
        name: _raise if isinstance(value, ErrorHandler) and id(value) not in skips else value
        for name, value in code.names.items()
    }
    if not isinstance(kernel, LookupFactsKernel):
        return Loop(code.source, names, f"emit_{MAIN}")
    (operator,) = node.operators
    assert isinstance(operator, LookupJoin)
    joined = operator.joiner.code
    return Loop(code.source, names, "emit", {} if joined is None else {"join": joined})


def _raise(error: Exception, timestamp: int, key: Any, value: Any) -> None:
    raise error
