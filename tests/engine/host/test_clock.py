"""The clock that processes go by, when somebody sets the wall clock."""

from hypothesis import given
from hypothesis import strategies as st

from floodway.engine.host.clock import SteadyClock


class Machine:
    """A machine whose wall clock somebody sets now and then."""

    def __init__(self) -> None:
        self.passed = self.set_by = 0

    def wall(self) -> int:
        return 1_700_000_000_000_000_000 + self.passed + self.set_by

    def steady(self) -> int:
        return 77 + self.passed


@given(st.lists(st.tuples(st.integers(0, 10**9), st.integers(-(10**13), 10**13))))
def test_clock_counts_on_whatever_is_done_to_the_wall_clock(
    steps: list[tuple[int, int]],
) -> None:
    machine = Machine()
    clock = SteadyClock(machine.wall, machine.steady)
    assert clock.now() == 1_700_000_000_000_000
    for passes, jump in steps:
        machine.passed += passes
        machine.set_by += jump
        assert clock.now() == 1_700_000_000_000_000 + machine.passed // 1000


def test_process_that_begins_later_begins_with_what_the_wall_clock_shows_then() -> None:
    machine = Machine()
    machine.set_by = -3_600_000_000_000
    assert SteadyClock(machine.wall, machine.steady).now() == 1_699_996_400_000_000
