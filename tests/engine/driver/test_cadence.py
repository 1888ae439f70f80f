"""The cadence of epochs: one interval after another, at once for those in a hurry."""

from floodway.engine.driver.cadence import SLOW_MS, Cadence


def test_an_epoch_ends_an_interval_after_the_one_before_was_due() -> None:
    cadence = Cadence(1000)
    cadence.start(500)
    assert [cadence.end(now) for now in (1499, 1700, 1800, 2699, 2700)] == [
        False,
        True,
        False,
        False,
        True,
    ]


def test_a_hastened_epoch_ends_at_once_and_the_next_an_interval_later() -> None:
    cadence = Cadence(1000)
    cadence.start(0)
    cadence.hasten()
    assert [cadence.end(now) for now in (10, 20, 1010)] == [True, False, True]


def test_a_slow_epoch_is_said_once_and_the_next_again() -> None:
    cadence = Cadence(1000)
    assert not cadence.slow(SLOW_MS)  # none has ended
    cadence.end(1000)
    times = (SLOW_MS + 999, SLOW_MS + 1000, SLOW_MS + 1001)
    assert [cadence.slow(now) for now in times] == [False, True, False]
    cadence.end(2 * SLOW_MS)
    assert cadence.slow(3 * SLOW_MS)
