"""Attempts: those who begin one are called together, are ready together and go together."""

from floodway.engine.driver.attempts import Attempts


def begun() -> Attempts:
    """Three tasks that have gone, after attempt 5 of an earlier run."""
    attempts = Attempts(range(3), 5)
    attempts.begin(range(3))
    attempts.call({0, 1, 2})
    for task in range(3):
        attempts.ready(task)
    attempts.go()
    return attempts


def test_attempts_are_numbered_after_those_of_earlier_runs() -> None:
    attempts = begun()
    assert (attempts.latest, attempts.numbers) == (6, [6, 6, 6])
    attempts.begin({1})
    assert (attempts.latest, attempts.numbers) == (7, [6, 7, 6])


def test_nobody_is_called_before_all_are_there_nor_twice() -> None:
    attempts = Attempts(range(3), 0)
    attempts.begin({0, 2})
    assert attempts.call({0, 1}) == []
    assert attempts.waiting == {0, 2}
    assert attempts.call({0, 2}) == [0, 2]
    assert attempts.waiting == set()
    assert attempts.call({0, 2}) == []


def test_all_go_when_the_last_is_ready() -> None:
    attempts = begun()
    assert not attempts.all_ready  # nobody begins
    attempts.begin({0, 1})
    attempts.ready(1)
    assert not attempts.all_ready
    attempts.ready(0)
    assert attempts.all_ready
    assert attempts.go() == {0, 1}
    assert attempts.beginning == set()


def test_those_who_were_about_to_begin_start_again_with_the_next_to_be_lost() -> None:
    attempts = begun()
    attempts.begin({0})
    attempts.call({0, 1, 2})
    attempts.ready(0)
    assert attempts.begin({2}) == {0, 2}
    assert attempts.numbers == [8, 6, 8]
    attempts.ready(2)
    assert not attempts.all_ready  # what the first said was of another attempt
    assert attempts.call({0, 1, 2}) == [0, 2]
