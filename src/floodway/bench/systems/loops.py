"""A loop by hand, in several processes: what all cores together can do without an engine.

Tuning: one process reads and hands whole chunks to the others in turn; those decode and count, and
give back what has been added; the first adds that up and tells what has changed.
"""

import multiprocessing
import threading
from collections.abc import Iterable
from itertools import cycle
from multiprocessing.connection import Connection, wait

import msgspec

from floodway.bench import ads
from floodway.bench.systems.kit import Results, Row, Task, chunks, run

WAITING = 2
"""So many chunks a process may have that it has not answered."""


def count_chunks(link: Connection) -> None:
    """Count the views in chunks, each by itself."""
    decode = msgspec.json.Decoder(ads.AdSeen).decode_lines
    known = ads.campaigns()
    while lines := link.recv_bytes():
        added: dict[tuple[str, int], list[int]] = {}
        for event in decode(lines):
            if event.event_type == "view":
                campaign = known.get(event.ad_id)
                if campaign is not None:
                    time_ms = event.event_time
                    place = campaign, time_ms - time_ms % ads.WINDOW_MS
                    held = added.get(place)
                    if held is None:
                        added[place] = [1, time_ms]
                    else:
                        held[0] += 1
                        if time_ms > held[1]:
                            held[1] = time_ms
        link.send([(*place, *held) for place, held in added.items()])


class Adding:
    """Adds up what the others have counted."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, int], int] = {}

    def add(self, added: Iterable[tuple[str, int, int, int]]) -> list[Row]:
        """Add, and return what has changed."""
        rows: list[Row] = []
        for campaign, window, count, time_ms in added:
            place = campaign, window
            self._counts[place] = whole = self._counts.get(place, 0) + count
            rows.append((campaign, window, whole, time_ms))
        return rows


def start(task: Task) -> None:
    """Run the processes until all events have come."""
    results, adding = Results(task), Adding()
    context = multiprocessing.get_context("spawn")
    room: dict[Connection, threading.Semaphore] = {}
    for _ in range(max(task.dop, 2)):
        own, other = context.Pipe()
        context.Process(target=count_chunks, args=(other,), daemon=True).start()
        other.close()
        room[own] = threading.Semaphore(WAITING)
    threading.Thread(target=_share_out, args=(task, room), daemon=True).start()
    links = set(room)
    while links:
        for ready in wait(list(links)):
            assert isinstance(ready, Connection)
            try:
                results.put(adding.add(ready.recv()))
            except EOFError:
                links.remove(ready)
            else:
                room[ready].release()
    results.close()


def _share_out(task: Task, room: dict[Connection, threading.Semaphore]) -> None:
    """Hand chunks to the processes in turn."""
    turns = cycle(room)
    for lines in chunks(task.ports):
        link = next(turns)
        room[link].acquire()
        link.send_bytes(lines)
    for link in room:
        link.send_bytes(b"")


if __name__ == "__main__":
    run(start)
