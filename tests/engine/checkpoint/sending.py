"""A task that sends, and keeps what it has sent."""

from pathlib import Path

from floodway.engine.checkpoint.output import OutputCache
from floodway.engine.transport.batching import Lane
from floodway.engine.transport.frame import SIZE, Kind, make_frame, parse

FRAME = SIZE + 10
"""How long the frames of data are that `Task.send` makes unless told otherwise."""

BIG = 2**40


class Sender:
    """A task with lanes and an output cache; what is sent is kept, target by target."""

    def __init__(
        self, folder: Path, *targets: int, window: int = BIG, budget: int = BIG, epoch: int = 0
    ) -> None:
        self.posted: dict[int, list[bytes]] = {target: [] for target in targets}
        self.folder = folder
        self.written = 0
        self._count = 0
        self.lanes = {
            target: Lane(number, target, window, self._post, attempt=1)
            for number, target in enumerate(targets)
        }
        self.cache = OutputCache(
            self.lanes.values(),
            self._post,
            budget=budget,
            folder=folder,
            written=lambda: self.written,
            epoch=epoch,
        )

    def _post(self, target: int, frame: bytes) -> None:
        self.posted[target].append(frame)

    def send(self, target: int, *, size: int = 10) -> bytes:
        """Send data as an outlet does; return what makes it recognisable."""
        self._count += 1
        lane = self.lanes[target]
        content = b"%0*d" % (size, self._count)
        frame = make_frame(
            Kind.DATA, content, exchange=lane.exchange, sender=3, attempt=lane.attempt, records=1
        )
        lane.outstanding += len(frame)
        self.written += len(frame)
        lane.send(target, frame)
        return content

    def mark(self, epoch: int) -> None:
        """Send a mark to all, and end an epoch there."""
        for lane in self.lanes.values():
            frame = make_frame(Kind.MARK, b"%d" % epoch, attempt=lane.attempt, epoch=epoch)
            lane.send(lane.target, frame)
        self.cache.cut(epoch)

    def fetch(self, target: int) -> list[bytes]:
        """Return what has come to a target since the last time."""
        frames, self.posted[target] = self.posted[target], []
        return frames

    def credit(self, target: int, size: int) -> None:
        lane = self.lanes[target]
        lane.outstanding = max(lane.outstanding - size, 0)

    def spill(self) -> None:
        self.cache.relieve()
        assert self.cache.bytes == 0, "it was to be moved to files"


def contents(frames: list[bytes]) -> list[bytes]:
    return [frame[SIZE:] for frame in frames]


def stamps(frames: list[bytes]) -> set[int]:
    return {parse(frame)[4] for frame in frames}
