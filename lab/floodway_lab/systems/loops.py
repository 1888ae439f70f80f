"""A loop by hand, in several processes: what all cores together can do without an engine.

Tuning: one process reads and hands whole chunks to the others in turn; those decode them and add up
what is in each by itself; the first adds that to the whole, in the order in which chunks came, and
tells what has changed. The garbage collector is off, since nothing here refers to itself.
"""

import gc
import multiprocessing
import threading
from itertools import cycle
from multiprocessing.connection import Connection
from queue import SimpleQueue

from floodway_lab.systems.kit import Results, Task, run
from floodway_lab.systems.loop import STEPS, chunks_by_link, hand_over

WAITING = 2
"""So many chunks a process may have that it has not answered."""


def do_chunks(case: str, link: Connection) -> None:
    """Do the first half of the work, chunk by chunk."""
    gc.disable()
    part = STEPS[case]().part
    link.send("ready")
    while lines := link.recv_bytes():
        link.send(part(lines))


class Turns:
    """Hands chunks to processes in turn.

    Attributes
    ----------
    order
        Who has got a chunk, and the link that it came from; None at the end.
    room
        For how many more chunks each has room.
    """

    def __init__(self, workers: list[Connection]) -> None:
        self.order: SimpleQueue[tuple[Connection, int] | None] = SimpleQueue()
        self.room = {worker: threading.Semaphore(WAITING) for worker in workers}

    def share_out(self, task: Task) -> None:
        """Read until all events have come."""
        turns = cycle(self.room)
        for number, lines in chunks_by_link(task.ports):
            worker = next(turns)
            self.room[worker].acquire()
            worker.send_bytes(lines)
            self.order.put((worker, number))
        for worker in self.room:
            worker.send_bytes(b"")
        self.order.put(None)


def start(task: Task) -> None:
    """Run the processes until all events have come."""
    gc.disable()
    step, results = STEPS[task.case](len(task.ports)), Results(task)
    context = multiprocessing.get_context("spawn")
    workers = []
    for _ in range(max(task.dop, 2)):
        own, other = context.Pipe()
        context.Process(target=do_chunks, args=(task.case, other), daemon=True).start()
        other.close()
        workers.append(own)
    for worker in workers:
        worker.recv()  # events are due from the moment that somebody connects
    turns = Turns(workers)
    threading.Thread(target=turns.share_out, args=(task,), daemon=True).start()
    while (turn := turns.order.get()) is not None:
        worker, number = turn
        part = worker.recv()
        turns.room[worker].release()
        hand_over(results, step, step.add(part, number))
    hand_over(results, step, step.end())
    results.close()


if __name__ == "__main__":
    run(start)
