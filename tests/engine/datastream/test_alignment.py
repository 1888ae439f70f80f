"""Marks are aligned: a mark is complete when all channels that are open have brought it."""

from hypothesis import given
from hypothesis import strategies as st

from floodway.engine.datastream.alignment import Alignment, Channel

A, B, C = (0, 0), (0, 1), (1, 0)


def test_mark_is_complete_when_the_last_channel_brings_it() -> None:
    alignment = Alignment([A, B, C])
    assert [alignment.marked(channel) for channel in (B, A, C)] == [False, False, True]


def test_channel_is_held_from_its_mark_until_all_have_brought_it() -> None:
    alignment = Alignment([A, B])
    alignment.marked(A)
    assert (alignment.holds(A), alignment.holds(B)) == (True, False)
    alignment.marked(B)
    assert alignment.release() == [A, B]
    assert not alignment.holds(A)
    assert not alignment.held


def test_end_completes_a_mark_that_the_others_have_brought() -> None:
    alignment = Alignment([A, B])
    alignment.marked(A)
    assert alignment.ended(B)
    alignment.release()
    assert not alignment.ended(A)  # no mark waits
    assert not alignment.open


def test_only_channel_completes_each_mark_at_once() -> None:
    alignment = Alignment([A])
    for _ in range(3):
        assert alignment.marked(A)
        alignment.release()


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=60))
def test_mark_is_never_complete_early_and_never_late(moves: list[tuple[int, bool]]) -> None:
    """Against a count for each channel: as many marks are complete as the last one has brought."""
    channels: list[Channel] = [(0, 0), (0, 1), (1, 0), (1, 1)]
    alignment, brought, complete = Alignment(channels), dict.fromkeys(channels, 0), 0
    for number, ends in moves:
        channel = channels[number]
        if channel not in brought or alignment.holds(channel):
            continue
        if ends:
            del brought[channel]
            done = alignment.ended(channel)
        else:
            brought[channel] += 1
            done = alignment.marked(channel)
        assert done == (bool(brought) and min(brought.values()) > complete)
        if done:
            complete += 1
            assert set(alignment.release()) == set(brought)
        assert alignment.open == set(brought)
        assert set(alignment.held) == {c for c, marks in brought.items() if marks > complete}
