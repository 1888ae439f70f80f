"""A loop by hand, in one process: what an engine in Python cannot beat without more cores.

Tuning: lines are decoded with msgspec into structs of the fields that are needed, whole chunks at
a time; what is kept is in dictionaries; what has changed is told once per chunk; the garbage
collector is off, since nothing here refers to itself.
"""

import gc
import selectors
from collections.abc import Iterable, Iterator
from typing import Any

from floodway_lab.systems.kit import Link, Results, Task, run
from floodway_lab.systems.loop_steps import STEPS, Step

__all__ = ["STEPS", "chunks_by_link", "hand_over"]


def chunks_by_link(ports: list[int]) -> Iterator[tuple[int, bytes]]:
    """Return the lines of data engines as they come, and the number of the link each."""
    with selectors.DefaultSelector() as selector:
        for number, port in enumerate(ports):
            link = Link(port, blocking=False)
            selector.register(link.socket, selectors.EVENT_READ, (number, link))
        while selector.get_map():
            for ready, _ in selector.select():
                number, link = ready.data
                lines = link.read()
                if lines:
                    yield number, lines
                elif lines is None:
                    selector.unregister(ready.fileobj)


def hand_over(results: Results, step: Step[Any], rows: Iterable[Any]) -> None:
    """Hand over what a step has found."""
    if step.tallied:
        results.tally(rows)
    else:
        results.put(rows)


def start(task: Task) -> None:
    """Run the loop until all events have come."""
    gc.disable()
    step, results = STEPS[task.case](len(task.ports)), Results(task)
    for number, lines in chunks_by_link(task.ports):
        hand_over(results, step, step(lines, number))
    hand_over(results, step, step.end())
    results.close()


if __name__ == "__main__":
    run(start)
