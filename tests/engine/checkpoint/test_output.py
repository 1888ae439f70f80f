"""The output cache: what was sent after an epoch is sent again, all of it, in order, once."""

from pathlib import Path

import pytest

from floodway.engine.checkpoint.output import CHUNK_BYTES, OutputCache
from floodway.engine.transport.batching import Lane
from floodway.engine.transport.frame import EXCHANGE, SIZE, Header, Kind, make_frame, parse
from tests.engine.checkpoint.sending import BIG, FRAME, Sender, contents, stamps

# --------------------------------------------------------------------- keeping


def test_what_is_sent_goes_out_at_once_and_is_kept(tmp_path: Path) -> None:
    sender = Sender(tmp_path, 7)
    first = sender.send(7)
    assert contents(sender.fetch(7)) == [first]
    assert sender.lanes[7].outstanding == FRAME
    assert sender.cache.bytes == FRAME
    sender.cache.replay(7, 0, 2)
    assert not sender.cache.pump()
    assert contents(sender.fetch(7)) == [first]


@pytest.mark.parametrize("epoch", [0, 1, 2])
@pytest.mark.parametrize("where", ["memory", "files"])
def test_what_came_after_an_epoch_is_sent_again(tmp_path: Path, epoch: int, where: str) -> None:
    sender = Sender(tmp_path, 7, budget=BIG if where == "memory" else 0)
    sent = []
    for number in (1, 2, 3):
        sent += [(number, sender.send(7)) for _ in range(3)]
        sender.mark(number)
        sent.append((number, b"%d" % number))
        sender.cache.relieve()
    sender.fetch(7)
    sender.cache.replay(7, epoch, 2)
    assert not sender.cache.pump()
    assert contents(sender.fetch(7)) == [content for number, content in sent if number > epoch]


def test_only_the_target_that_goes_back_is_sent_to_again(tmp_path: Path) -> None:
    sender = Sender(tmp_path, 7, 8)
    for _ in range(3):
        sender.send(7)
        sender.send(8)
    for target in (7, 8):
        sender.fetch(target)
    sender.cache.replay(8, 0, 2)
    sender.cache.pump()
    assert (len(sender.fetch(7)), len(sender.fetch(8))) == (0, 3)


def test_task_with_two_ways_to_a_target_sends_both_again(tmp_path: Path) -> None:
    lanes = [Lane(number, 7, BIG, lambda target, frame: None) for number in (0, 1)]
    posted: list[bytes] = []
    cache = OutputCache(
        lanes, lambda _, frame: posted.append(frame), budget=BIG, folder=tmp_path, written=lambda: 0
    )
    for lane in lanes:
        lane.send(7, make_frame(Kind.DATA, b"x", exchange=lane.exchange))
    posted.clear()
    cache.replay(7, 0, 5)
    assert not cache.pump()
    assert [parse(frame)[EXCHANGE] for frame in posted] == [0, 1]


def test_task_that_ended_before_an_epoch_has_nothing_to_send_after_it(tmp_path: Path) -> None:
    sender = Sender(tmp_path, 7)
    sender.send(7)
    sender.mark(1)
    sender.send(7)  # then it ends, and epoch 2 is committed without a mark of this task
    sender.cache.drop(2)
    sender.fetch(7)
    sender.cache.replay(7, 2, 2)
    assert not sender.cache.pump()
    assert sender.fetch(7) == []


def test_attempt_that_began_at_an_epoch_sends_all_again_that_it_sent(tmp_path: Path) -> None:
    sender = Sender(tmp_path, 7, epoch=5)
    sent = [sender.send(7) for _ in range(3)]
    sender.fetch(7)
    sender.cache.replay(7, 5, 2)
    sender.cache.pump()
    assert contents(sender.fetch(7)) == sent


# --------------------------------------------------------------------- dropping


def test_committed_epoch_is_dropped_from_memory_and_from_files(tmp_path: Path) -> None:
    sender = Sender(tmp_path, 7, 8, budget=0)
    for epoch in (1, 2, 3):
        sender.send(7)
        sender.send(8)
        sender.mark(epoch)
        sender.spill()
    assert len(list(tmp_path.iterdir())) == 6
    sender.cache.drop(2)
    assert len(list(tmp_path.iterdir())) == 2
    last = [sender.send(7)]
    sender.fetch(7)
    sender.cache.replay(7, 2, 2)
    sender.cache.pump()
    assert contents(sender.fetch(7))[-1:] == last
    sender.cache.drop(3)
    assert list(tmp_path.iterdir()) == []


def test_file_that_is_needed_in_part_stays(tmp_path: Path) -> None:
    sender = Sender(tmp_path, 7, budget=0)
    sender.send(7)
    sender.mark(1)
    kept = sender.send(7)
    sender.spill()
    sender.cache.drop(1)
    sender.fetch(7)
    sender.cache.replay(7, 1, 2)
    sender.cache.pump()
    assert contents(sender.fetch(7)) == [kept]


def test_epoch_that_was_dropped_before_is_dropped_again_without_harm(tmp_path: Path) -> None:
    sender = Sender(tmp_path, 7)
    sender.send(7)
    sender.mark(1)
    kept = sender.send(7)
    for _ in range(2):
        sender.cache.drop(1)
        assert sender.cache.bytes == FRAME
    sender.fetch(7)
    sender.cache.replay(7, 1, 2)
    sender.cache.pump()
    assert contents(sender.fetch(7)) == [kept]


def test_closed_cache_leaves_no_files(tmp_path: Path) -> None:
    folder = tmp_path / "output"
    sender = Sender(folder, 7, budget=0)
    sender.cache.relieve()
    assert not folder.exists()  # made when it is needed
    sender.send(7)
    sender.spill()
    assert list(folder.iterdir())
    sender.cache.close()
    assert not folder.exists()


# --------------------------------------------------------------------- sending again


def test_stamps_are_those_of_the_new_attempt_and_nothing_else_changes(tmp_path: Path) -> None:
    sender = Sender(tmp_path, 7, budget=0)
    sender.send(7)
    sender.mark(1)
    sender.spill()
    sender.send(7)
    before = sender.fetch(7)
    assert stamps(before) == {1}
    sender.cache.replay(7, 0, 0x1_0005)  # as much of it as a header has room for
    sender.send(7)  # meanwhile
    sender.cache.pump()
    again = sender.fetch(7)
    assert stamps(again) == {5}

    def rest(frame: bytes) -> tuple[Header, bytes]:
        header = parse(frame)
        return (*header[:4], 0, *header[5:]), frame[SIZE:]

    assert [rest(frame) for frame in again[:3]] == [rest(frame) for frame in before]
    sender.send(7)
    assert stamps(sender.fetch(7)) == {5}


@pytest.mark.parametrize("where", ["memory", "files"])
def test_window_is_respected_while_sending_again(tmp_path: Path, where: str) -> None:
    sender = Sender(tmp_path, 7, window=2 * FRAME, budget=BIG if where == "memory" else 0)
    sent = [sender.send(7) for _ in range(10)]
    sender.cache.relieve()
    sender.fetch(7)
    sender.lanes[7].outstanding = 99 * FRAME  # of the attempt that is gone
    sender.cache.replay(7, 0, 2)
    got: list[bytes] = []
    for _ in range(20):
        behind = sender.cache.pump()
        got += sender.fetch(7)
        assert sender.lanes[7].outstanding <= 3 * FRAME  # one frame may go beyond
        if not behind:
            break
        assert sender.lanes[7].full
        assert sender.cache.pump()  # nothing more without credit
        assert sender.fetch(7) == []
        sender.credit(7, FRAME)
    assert contents(got) == sent


def test_marks_need_no_room(tmp_path: Path) -> None:
    sender = Sender(tmp_path, 7, window=0)
    for epoch in range(1, 6):
        sender.mark(epoch)
    sender.fetch(7)
    sender.cache.replay(7, 0, 2)
    assert not sender.cache.pump()
    assert len(sender.fetch(7)) == 5


def test_what_is_made_meanwhile_comes_afterwards_and_is_not_on_its_way_before(
    tmp_path: Path,
) -> None:
    sender = Sender(tmp_path, 7, window=FRAME)
    sent = [sender.send(7) for _ in range(6)]
    sender.fetch(7)
    sender.cache.replay(7, 0, 2)
    assert sender.cache.pump()
    got = sender.fetch(7)
    outstanding = sender.lanes[7].outstanding
    sent += [sender.send(7) for _ in range(2)]
    sender.mark(1)
    sent.append(b"1")
    assert sender.fetch(7) == []
    assert sender.lanes[7].outstanding == outstanding
    while sender.cache.pump():
        got += sender.fetch(7)
        sender.credit(7, FRAME)
    sent.append(sender.send(7))
    got += sender.fetch(7)
    assert contents(got) == sent
    assert stamps(got) == {2}


def test_receiver_that_goes_back_again_gets_all_again(tmp_path: Path) -> None:
    sender = Sender(tmp_path, 7, window=FRAME)
    sent = [sender.send(7) for _ in range(6)]
    sender.cache.replay(7, 0, 2)
    sender.cache.pump()
    sent.append(sender.send(7))
    sender.fetch(7)
    sender.cache.replay(7, 0, 3)
    got: list[bytes] = []
    while sender.cache.pump():
        got += sender.fetch(7)
        sender.credit(7, FRAME)
    got += sender.fetch(7)
    assert contents(got) == sent
    assert stamps(got) == {3}


def test_what_is_moved_to_files_while_it_is_sent_again_is_not_forgotten(tmp_path: Path) -> None:
    sender = Sender(tmp_path, 7, window=FRAME, budget=0)
    sent = [sender.send(7) for _ in range(4)]
    sender.spill()
    sent += [sender.send(7) for _ in range(4)]
    sender.fetch(7)
    sender.cache.replay(7, 0, 2)
    assert sender.cache.pump()  # has begun with the first file
    sender.spill()
    got = sender.fetch(7)
    sent += [sender.send(7) for _ in range(2)]
    while sender.cache.pump():
        got += sender.fetch(7)
        sender.credit(7, FRAME)
    got += sender.fetch(7)
    assert contents(got) == sent


def test_large_output_becomes_several_files(tmp_path: Path) -> None:
    sender = Sender(tmp_path, 7, budget=0)
    sent = [sender.send(7, size=CHUNK_BYTES // 3) for _ in range(7)]
    sender.spill()
    sizes = [path.stat().st_size for path in tmp_path.iterdir()]
    assert len(sizes) == 3
    assert max(sizes) <= 1.5 * CHUNK_BYTES
    sender.fetch(7)
    sender.cache.replay(7, 0, 2)
    sender.cache.pump()
    assert contents(sender.fetch(7)) == sent
