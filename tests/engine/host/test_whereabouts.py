"""Processes that are told apart, and only the right one is killed."""

import subprocess
from collections.abc import Iterator

import msgspec
import pytest

from floodway.engine.host.whereabouts import Whereabouts
from tests.engine.beside import Beside, process_beside


@pytest.fixture
def other() -> Iterator[Beside]:
    with process_beside() as found:
        yield found


def test_process_of_this_machine_is_killed(
    other: Beside,
) -> None:
    process, found = other
    assert found.near
    found.kill()
    assert process.wait(30) < 0
    found.kill()  # which is gone already


def test_other_process_with_the_same_number_is_left_alone(
    other: Beside,
) -> None:
    """The number was given away again, or is that of another host of the same name."""
    process, found = other
    msgspec.structs.replace(found, began=found.began - 1).kill()
    msgspec.structs.replace(found, machine="another").kill()
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.2)


def test_nobody_kills_himself() -> None:
    own = Whereabouts.here()
    assert not own.near
    own.kill()
