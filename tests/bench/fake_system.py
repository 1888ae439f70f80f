"""A system whose capacity and latency are known, and that can be told to be wrong."""

import select
import time
from collections import deque

from floodway.bench.systems.kit import Link, Results, Row, Task, run
from floodway.bench.systems.loop import STEPS

STEP_S = 0.002


def start(task: Task) -> None:
    """Process so many events a second, and tell each result after a while."""
    options = task.options
    capacity, delay_s = options.get("capacity", 1e9), options.get("delay_ms", 0) / 1000
    step, results = STEPS[task.case](), Results(task)
    link, held = Link(task.ports[0], blocking=False), deque[tuple[float, list[Row]]]()
    began, done, over, buffered = time.monotonic(), 0, False, deque[bytes]()
    while not over or buffered or held:
        now = time.monotonic()
        while held and held[0][0] <= now:
            results.put(held.popleft()[1])
        if not over and len(buffered) < 1_000:
            lines = link.read()
            over = lines is None
            buffered.extend((lines or b"").splitlines(keepends=True))
        allowed = int((now - began) * capacity) - done
        if not buffered:
            done += max(allowed - int(capacity * STEP_S), 0)  # what nobody wanted is gone
        some = [buffered.popleft() for _ in range(min(allowed, len(buffered)))]
        if some:
            done += len(some)
            held.append((now + delay_s, list(step(b"".join(_changed(some, options.get("fault")))))))
        elif not buffered:
            select.select([] if over else [link.socket], [], [], STEP_S / 4)
    results.close()
    if options.get("fault") == "crash":
        raise SystemExit("it has broken down")


def _changed(lines: list[bytes], fault: str | None) -> list[bytes]:
    if fault == "drop":
        return lines[1:]
    if fault == "double":
        return [*lines, lines[0]]
    return lines


if __name__ == "__main__":
    run(start)
