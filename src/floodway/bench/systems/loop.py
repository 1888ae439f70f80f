"""A loop by hand, in one process: what an engine in Python cannot beat without more cores.

Tuning: lines are decoded with msgspec into structs of the fields that are needed, whole chunks at
a time; counts are in one dictionary; what has changed is told once per chunk.
"""

from collections.abc import Callable, Iterable

import msgspec

from floodway.bench import ads
from floodway.bench.cases import mean
from floodway.bench.systems.kit import Results, Row, Task, chunks, run

Step = Callable[[bytes], Iterable[Row]]
"""Takes whole lines, and gives the results that have changed."""


def count_views() -> Step:
    """Return the step of ad analytics."""
    decode = msgspec.json.Decoder(ads.AdSeen).decode_lines
    known = ads.campaigns()
    counts: dict[tuple[str, int], int] = {}

    def step(lines: bytes) -> Iterable[Row]:
        latest: dict[tuple[str, int], int] = {}
        for event in decode(lines):
            if event.event_type == "view":
                campaign = known.get(event.ad_id)
                if campaign is not None:
                    time_ms = event.event_time
                    place = campaign, time_ms - time_ms % ads.WINDOW_MS
                    counts[place] = counts.get(place, 0) + 1
                    if time_ms > latest.get(place, 0):
                        latest[place] = time_ms
        return [(*place, counts[place], time_ms) for place, time_ms in latest.items()]

    return step


class SessionSeen(msgspec.Struct):
    """An event of windowed aggregation."""

    time: int
    geo: int
    seconds: int


def mean_sessions() -> Step:
    """Return the step of windowed aggregation."""
    decode = msgspec.json.Decoder(SessionSeen).decode_lines
    sums: dict[tuple[int, int], list[int]] = {}

    def step(lines: bytes) -> Iterable[Row]:
        latest: dict[tuple[int, int], int] = {}
        for event in decode(lines):
            hop, geo = event.time - event.time % mean.HOP_MS, event.geo
            for start in range(hop - mean.SIZE_MS + mean.HOP_MS, hop + 1, mean.HOP_MS):
                place = geo, start
                held = sums.get(place)
                if held is None:
                    held = sums[place] = [0, 0]
                held[0] += event.seconds
                held[1] += 1
                if event.time > latest.get(place, 0):
                    latest[place] = event.time
        return [
            (*place, sums[place][0] / sums[place][1], time_ms) for place, time_ms in latest.items()
        ]

    return step


STEPS: dict[str, Callable[[], Step]] = {"ads": count_views, "mean": mean_sessions}
"""The step of each workload."""


def start(task: Task) -> None:
    """Run the loop until all events have come."""
    step, results = STEPS[task.case](), Results(task)
    for lines in chunks(task.ports):
        results.put(step(lines))
    results.close()


if __name__ == "__main__":
    run(start)
