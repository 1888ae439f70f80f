"""Draining: what sources are told, and what has to be committed and shown before the flow stops."""

from floodway.engine.control.messages import Drain, PauseReading
from floodway.engine.driver.draining import Draining


def test_without_a_checkpoint_sources_end_and_nobody_waits_for_epochs() -> None:
    draining = Draining(lasting=False)
    assert draining.order == Drain()
    draining.begin(3)
    draining.applied(0, 9)
    assert draining.begun
    assert not draining.shown({0}, 9)


def test_with_a_checkpoint_sources_pause_and_an_epoch_from_after_that_has_to_be_out() -> None:
    draining = Draining(lasting=True)
    assert draining.order == PauseReading()
    draining.applied(0, 2)
    draining.applied(1, 2)
    assert not draining.shown({0, 1}, 2)  # not begun
    draining.begin(3)
    assert not draining.shown({0, 1}, 2)
    draining.applied(0, 4)
    assert not draining.shown({0, 1}, 4)
    draining.applied(1, 4)
    assert draining.shown({0, 1}, 4)
    draining.again({1})
    assert not draining.shown({0, 1}, 4)
    assert draining.shown({0}, 4)  # the other has left


def test_it_takes_one_more_epoch_and_no_second() -> None:
    draining = Draining(lasting=True)
    draining.begin(3)
    draining.applied(0, 4)
    assert draining.once_more(6)
    assert not draining.shown({0}, 4)
    draining.applied(0, 7)
    assert draining.shown({0}, 7)
    assert not draining.once_more(8)
