"""The output cache beyond its budget: in files, on disks that are full, and in any order."""

import errno
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.checkpoint.making import small_disk
from tests.engine.checkpoint.sending import FRAME, Sender, contents, stamps

# --------------------------------------------------------------------- the budget


def test_nothing_is_moved_within_the_budget(tmp_path: Path) -> None:
    folder = tmp_path / "output"
    sender = Sender(folder, 7, budget=3 * FRAME)
    for _ in range(3):
        sender.send(7)
        sender.cache.relieve()
    assert not folder.exists()
    sender.send(7)
    sender.cache.relieve()
    assert sender.cache.bytes == 0
    assert sum(file.stat().st_size for file in folder.iterdir()) >= 4 * FRAME


def test_what_is_committed_makes_room_within_the_budget(tmp_path: Path) -> None:
    folder = tmp_path / "output"
    sender = Sender(folder, 7, budget=3 * FRAME)
    for epoch in range(1, 10):
        for _ in range(3):
            sender.send(7)
        sender.mark(epoch)
        sender.cache.relieve()
        sender.cache.drop(epoch)
    assert not folder.exists()


def block(folder: Path, name: str = "0-0.frames") -> Path:
    """Let a file not be written; return what is in its way."""
    (folder / name).mkdir(parents=True)
    return folder / name


def test_full_disk_is_noticed_and_nothing_is_lost(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        sender = Sender(disk / "output", 7, budget=0)
        sent = [sender.send(7, size=10_000) for _ in range(10)]
        sender.cache.relieve()
        assert sender.cache.full is not None
        assert sender.cache.full.errno == errno.ENOSPC
        assert list((disk / "output").iterdir()) == []  # no half file
        assert sender.cache.bytes == sender.written
        sender.fetch(7)
        sender.cache.replay(7, 0, 2)
        sender.cache.pump()
        assert contents(sender.fetch(7)) == sent


def test_folder_that_cannot_be_made_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    sender = Sender(tmp_path / "file" / "output", 7, budget=0)
    sender.send(7)
    sender.cache.relieve()
    assert isinstance(sender.cache.full, OSError)


def test_disk_that_has_room_again_is_written_to_again(tmp_path: Path) -> None:
    """The task is held meanwhile, so no epoch can end that would make room in the cache."""
    sender = Sender(tmp_path, 7, budget=0)
    obstacle = block(tmp_path)
    sent = [sender.send(7) for _ in range(3)]
    for _ in range(2):
        sender.cache.relieve()
        assert sender.cache.full is not None
    obstacle.rmdir()
    sender.cache.relieve()
    assert sender.cache.full is None
    assert sender.cache.bytes == 0
    sender.fetch(7)
    sender.cache.replay(7, 0, 2)
    sender.cache.pump()
    assert contents(sender.fetch(7)) == sent


def test_disk_that_is_full_after_some_files_loses_nothing(tmp_path: Path) -> None:
    sender = Sender(tmp_path, 7, 8, budget=0)
    block(tmp_path, "1-0.frames")  # the second lane's
    sent = {7: [sender.send(7) for _ in range(3)], 8: [sender.send(8) for _ in range(3)]}
    sender.cache.relieve()
    assert sender.cache.full is not None
    for target in (7, 8):
        sent[target].append(sender.send(target))
        sender.fetch(target)
        sender.cache.replay(target, 0, 2)
    sender.cache.pump()
    assert {target: contents(sender.fetch(target)) for target in (7, 8)} == sent


def test_commit_makes_room_in_a_cache_that_was_full(tmp_path: Path) -> None:
    sender = Sender(tmp_path, 7, budget=0)
    block(tmp_path)
    sender.send(7)
    sender.mark(1)
    sender.cache.relieve()
    assert sender.cache.full is not None
    sender.cache.drop(1)
    assert sender.cache.full is None
    sender.cache.relieve()
    assert sender.cache.full is None  # nothing is left to be moved


# --------------------------------------------------------------------- any order

EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("send"), st.integers(0, 1)),
        st.tuples(st.just("send"), st.integers(0, 1)),
        st.tuples(st.just("mark"), st.just(0)),
        st.tuples(st.just("commit"), st.integers(0, 3)),
        st.tuples(st.just("relieve"), st.just(0)),
        st.tuples(st.just("replay"), st.integers(0, 1)),
        st.tuples(st.just("pump"), st.just(0)),
        st.tuples(st.just("credit"), st.integers(0, 1)),
        st.tuples(st.just("block"), st.integers(0, 1)),
        st.tuples(st.just("unblock"), st.just(0)),
    ),
    max_size=60,
)


class Receiver:
    """A task that gets frames: what came to its present attempt, beginning at an epoch."""

    def __init__(self) -> None:
        self.attempt = 1
        self.expected: list[tuple[int, bytes]] = []
        """Everything that was ever sent to it, each with the epoch that it is part of."""
        self.began = 0
        self.got: list[bytes] = []

    def take(self, frames: list[bytes]) -> None:
        assert stamps(frames) <= {self.attempt}
        self.got += contents(frames)

    @property
    def passed(self) -> int:
        """The last epoch all of which has come."""
        after = [entry for entry in self.expected if entry[0] > self.began][: len(self.got)]
        return max((n for n, content in after if content == b"%d" % n), default=self.began)


@settings(max_examples=300)
@given(EVENTS, st.integers(0, 4), st.integers(0, 5))
def test_receivers_get_all_after_their_epoch_in_order_and_once(
    tmp_path_factory: pytest.TempPathFactory, events: list[Any], window: int, budget: int
) -> None:
    folder = tmp_path_factory.mktemp("cache")
    sender = Sender(folder, 0, 1, window=window * FRAME, budget=budget * FRAME)
    receivers = [Receiver(), Receiver()]
    obstacles: list[Path] = []
    epoch, committed, attempt = 1, 0, 1

    def deliver() -> None:
        for target, receiver in enumerate(receivers):
            receiver.take(sender.fetch(target))

    for kind, number in events:
        match kind:
            case "send":
                receivers[number].expected.append((epoch, sender.send(number)))
            case "mark":
                for receiver in receivers:
                    receiver.expected.append((epoch, b"%d" % epoch))
                sender.mark(epoch)
                epoch += 1
            case "commit":
                # An epoch is committed when all have passed its mark.
                passed = min(receiver.passed for receiver in receivers)
                if committed < passed - number:
                    committed = passed - number
                    sender.cache.drop(committed)
            case "relieve":
                sender.cache.relieve()
            case "replay":
                attempt += 1
                deliver()
                receivers[number].attempt, receivers[number].began = attempt, committed
                receivers[number].got = []
                sender.cache.replay(number, committed, attempt)
            case "pump":
                sender.cache.pump()
            case "credit":
                sender.credit(number, sender.lanes[number].outstanding)
            case "block":
                name = f"{number}-{len(receivers[number].expected)}.frames"
                if not (folder / name).exists():
                    obstacles.append(block(folder, name))
            case "unblock" if obstacles:
                obstacles.pop().rmdir()
        deliver()
    while sender.cache.pump():
        for target in (0, 1):
            sender.credit(target, sender.lanes[target].outstanding)
    deliver()
    for receiver in receivers:
        assert receiver.got == [c for number, c in receiver.expected if number > receiver.began]
    sender.cache.close()
