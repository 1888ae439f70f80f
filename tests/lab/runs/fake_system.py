"""A system whose capacity and latency are known, and that can be told to be wrong."""

import select
import time
from collections import deque
from typing import Any

from floodway_lab.systems.kit import Link, Results, Task, run
from floodway_lab.systems.loop import hand_over
from floodway_lab.systems.loop_steps import STEPS

STEP_S = 0.002
BUFFERED = 1_000


def start(task: Task) -> None:
    """Process so many events a second, and tell each result after a while."""
    options = task.options
    capacity, delay_s = options.get("capacity", 1e9), options.get("delay_ms", 0) / 1000
    fault = options.get("fault")
    step, results = STEPS[task.case](1), Results(task)
    link, held = Link(task.ports[0], blocking=False), deque[tuple[float, list[Any]]]()
    began, done, over, buffered = time.monotonic(), 0, False, deque[bytes]()
    while not over or buffered or held:
        now = time.monotonic()
        while held and held[0][0] <= now:
            hand_over(results, step, held.popleft()[1])
        if not over and len(buffered) < BUFFERED:
            lines = link.read()
            over = lines is None
            buffered.extend((lines or b"").splitlines(keepends=True))
        allowed = int((now - began) * capacity) - done
        if not buffered:
            done += max(allowed - int(capacity * STEP_S), 0)  # what nobody wanted is gone
        some = [buffered.popleft() for _ in range(min(allowed, len(buffered)))]
        if some:
            done += len(some)
            held.append((now + delay_s, list(step(b"".join(_changed(some, fault))))))
        elif not buffered:
            select.select([] if over else [link.socket], [], [], STEP_S / 4)
    hand_over(results, step, step.end())
    results.close()
    if fault == "crash":
        raise SystemExit("it has broken down")


def _changed(lines: list[bytes], fault: str | None) -> list[bytes]:
    if fault == "drop":
        return lines[1:]
    if fault == "double":
        return [*lines, lines[0]]
    return lines


if __name__ == "__main__":
    run(start)
