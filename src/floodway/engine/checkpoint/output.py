"""The output cache: what a task has sent since the last committed epoch, lane by lane.

When a receiver is built anew it starts from the last committed epoch, and everything that came
after it is sent again from here: nobody above has to process anything twice. What is kept is
dropped when an epoch is committed. Beyond a budget it is moved to files, which need not be durable:
if this task dies, it goes back itself and makes its output again.
"""

import os
import struct
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from floodway.engine.host.failpoints import reach
from floodway.engine.transport.batching import Lane, Send
from floodway.engine.transport.frame import Kind, kind_of, stamp, with_attempt

CARRYING = (int(Kind.DATA), int(Kind.PARTIAL), int(Kind.END))
"""Frames that count as long as they are on their way."""

_LENGTH = struct.Struct("<I")

CHUNK_BYTES = 4 * 1024 * 1024
"""About so many bytes go into one file; a file is read whole when it is sent again."""


class Chunk:
    """Frames that were moved to a file: numbers `first` up to, not including, `stop`."""

    def __init__(self, path: Path, first: int, frames: list[bytes]) -> None:
        self.path, self.first, self.stop = path, first, first + len(frames)
        try:
            with path.open("wb") as file:
                file.writelines(part for frame in frames for part in (_size(frame), frame))
        except OSError:
            path.unlink(missing_ok=True)
            raise

    def frames(self) -> Iterator[bytes]:
        """Return the frames, in order."""
        data, at = self.path.read_bytes(), 0
        while at < len(data):
            (size,) = _LENGTH.unpack_from(data, at)
            at += _LENGTH.size
            yield data[at : at + size]
            at += size

    def remove(self) -> None:
        """Delete the file."""
        self.path.unlink(missing_ok=True)


def _size(frame: bytes) -> bytes:
    return _LENGTH.pack(len(frame))


class Kept:
    """The frames of one lane, numbered from the first that was ever sent."""

    def __init__(self, lane: Lane, post: Send, epoch: int) -> None:
        self.lane = lane
        self._post = post
        self.frames: list[bytes] = []
        self._first = 0
        self._chunks: list[Chunk] = []
        self._cuts = {epoch: 0}
        self._ahead: Iterator[bytes] | None = None
        self._sent = 0
        lane.send = self._keep_and_send()

    def _keep_and_send(self) -> Send:
        keep, post = self.frames.append, self._post

        def send(target: int, frame: bytes) -> None:
            keep(frame)
            post(target, frame)

        return send

    def _keep_only(self, target: int, frame: bytes) -> None:
        """Keep a frame that has to wait for its turn; it is not on its way yet."""
        if kind_of(frame) in CARRYING:
            self.lane.outstanding -= len(frame)
        self.frames.append(frame)

    @property
    def _next(self) -> int:
        return self._first + len(self.frames)

    def cut(self, epoch: int) -> None:
        """Note that an epoch ends here."""
        self._cuts[epoch] = self._next

    def drop(self, epoch: int) -> None:
        """Forget what was sent up to the end of an epoch."""
        start = self._cuts.get(epoch)
        if start is None:
            return
        self._cuts = {e: at for e, at in self._cuts.items() if e >= epoch}
        while self._chunks and self._chunks[0].stop <= start:
            self._chunks.pop(0).remove()
        if start > self._first:
            del self.frames[: start - self._first]
            self._first = start

    def spill(self, folder: Path, name: str) -> None:
        """Move all frames that are in memory to files."""
        self._ahead = None  # what is sent again is looked for anew: it is elsewhere now
        while self.frames:
            count = size = 0
            for frame in self.frames:
                count, size = count + 1, size + len(frame)
                if size >= CHUNK_BYTES:
                    break
            path = folder / f"{name}-{self._first}.frames"
            self._chunks.append(Chunk(path, self._first, self.frames[:count]))
            reach("spill.middle")
            del self.frames[:count]
            self._first += count

    # ------------------------------------------------------------------ sending again

    def replay(self, epoch: int, attempt: int) -> None:
        """Send again what came after an epoch, to the receiver's new attempt."""
        self.lane.attempt = stamp(attempt)
        self.lane.outstanding = 0
        self.lane.send = self._keep_only
        # A task that ended before the epoch did has nothing that came after it.
        self._sent = self._cuts.get(epoch, self._next)
        self._ahead = self._from(self._sent)

    def pump(self) -> bool:
        """Send what the receiver has room for; return whether everything has been sent."""
        lane = self.lane
        while lane.outstanding <= lane.window:
            frame = next(self._ahead, None) if self._ahead is not None else None
            if frame is None:
                # Frames that were kept meanwhile are behind what the iterator had seen.
                if self._sent == self._next:
                    self._ahead = None
                    lane.send = self._keep_and_send()
                    return True
                self._ahead = self._from(self._sent)
                continue
            self._sent += 1
            if kind_of(frame) in CARRYING:
                lane.outstanding += len(frame)
            self._post(lane.target, with_attempt(frame, lane.attempt))
        return False

    def _from(self, number: int) -> Iterator[bytes]:
        """Return the frames from a number on, as they are now: first those in files."""
        for chunk in list(self._chunks):
            if chunk.stop <= number:
                continue
            for at, frame in enumerate(chunk.frames(), chunk.first):
                if at >= number:
                    yield frame
            number = chunk.stop
        yield from self.frames[max(number - self._first, 0) :]

    def close(self) -> None:
        """Remove the files."""
        for chunk in self._chunks:
            chunk.remove()


class OutputCache:
    """Everything a task has sent since the last committed epoch.

    Parameters
    ----------
    lanes
        The task's lanes.
    post
        Hands a frame to the task of a number.
    budget
        How many bytes are kept in memory.
    folder
        Where to move what is beyond; made when it is needed.
    written
        Returns how many bytes the task has sent so far.
    epoch
        The epoch that the task goes on from.
    """

    def __init__(
        self,
        lanes: Iterable[Lane],
        post: Send,
        *,
        budget: int,
        folder: Path,
        written: Callable[[], int],
        epoch: int = 0,
    ) -> None:
        self._kept = [Kept(lane, post, epoch) for lane in lanes]
        self._budget = budget
        self._folder = folder
        self._written = written
        self._in_files = 0
        self._at: dict[int, int] = {}
        self._behind: list[Kept] = []
        self.full: OSError | None = None
        """What went wrong when the cache was to be moved to files; nothing more may be made."""

    def cut(self, epoch: int) -> None:
        """Note that an epoch ends here."""
        self._at[epoch] = self._written()
        for kept in self._kept:
            kept.cut(epoch)

    def drop(self, epoch: int) -> None:
        """Forget what was sent up to the end of a committed epoch."""
        self._in_files = max(self._in_files, self._at.get(epoch, 0))
        self._at = {e: at for e, at in self._at.items() if e > epoch}
        self.full = None
        for kept in self._kept:
            kept.drop(epoch)

    def relieve(self) -> None:
        """Move what is kept to files if it is beyond the budget."""
        written = self._written()
        if written - self._in_files <= self._budget:
            return
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            for number, kept in enumerate(self._kept):
                kept.spill(self._folder, str(number))
        except OSError as error:
            self.full = error  # tried again: while it is so the task waits, and so does its epoch
            return
        self.full = None
        self._in_files = written

    def replay(self, target: int, epoch: int, attempt: int) -> None:
        """Send again to a task what came after an epoch."""
        for kept in self._kept:
            if kept.lane.target == target:
                kept.replay(epoch, attempt)
                if kept not in self._behind:
                    self._behind.append(kept)

    def pump(self) -> bool:
        """Go on sending again; return whether somebody is still behind."""
        if self._behind:
            self._behind = [kept for kept in self._behind if not kept.pump()]
        return bool(self._behind)

    @property
    def bytes(self) -> int:
        """How many bytes are kept in memory."""
        return self._written() - self._in_files

    def close(self) -> None:
        """Remove the files."""
        for kept in self._kept:
            kept.close()
        if self._folder.is_dir() and not os.listdir(self._folder):
            self._folder.rmdir()
