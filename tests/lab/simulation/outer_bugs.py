"""Bugs that show only when connections break, clocks are set, or sectors go bad."""

from typing import Any

from floodway_lab.simulation.joins import StreamJoin
from floodway_lab.simulation.streams import Processing, Stateless, WindowedCounts

from floodway.engine.checkpoint.checkpoint import Checkpoint
from floodway.engine.checkpoint.commits import Commits
from floodway.engine.host.clock import SteadyClock
from floodway.engine.transport.contacts import Contacts
from floodway.engine.transport.links import SIZE, Links, Outgoing
from tests.lab.simulation.bugs import Patch, bug, original

# ---------------------------------------------------------------------- connections


@bug(Stateless())
def a_gap_in_a_link_is_not_seen(patch: Patch) -> None:
    special = original(Links, "_special")

    def blind(self: Any, key: int, number: int, link: Any, content: bytes, now: float) -> Any:
        if link is not None and key and number > link.count:
            link.count = number + 1
            return content
        return special(self, key, number, link, content, now)

    patch.setattr(Links, "_special", blind)


@bug(WindowedCounts())
def a_frame_that_comes_again_is_taken_again(patch: Patch) -> None:
    take = original(Links, "take")

    def gullible(self: Any, data: bytes, *, now: float) -> Any:
        found = take(self, data, now=now)
        repeated = any(link.repeated for link in self._in.values())
        numbered = any(data[:8]) and any(data[8:SIZE])  # the first one only says an address
        return data[SIZE:] if found is None and repeated and numbered else found

    patch.setattr(Links, "take", gullible)


@bug(StreamJoin())
def nobody_asks_for_the_last_frames(patch: Patch) -> None:
    patch.setattr(Links, "_probes", lambda self, now: iter(()))


@bug(Processing())
def a_frame_is_forgotten_when_it_is_sent(patch: Patch) -> None:
    number = original(Outgoing, "number")

    def careless(self: Any, frame: bytes) -> bytes:
        data: bytes = number(self, frame)
        if self.next > 3:
            self.unanswered.popleft()
            self.first += 1
        return data

    patch.setattr(Outgoing, "number", careless)


@bug(Processing())
def nobody_gives_up_whom_he_cannot_reach(patch: Patch) -> None:
    patch.setattr(Contacts, "look", lambda self, tasks: None)


# ---------------------------------------------------------------------- clocks


@bug(Stateless())
def processes_go_by_the_wall_clock(patch: Patch) -> None:
    begin = original(SteadyClock, "__init__")

    def __init__(self: Any, wall: Any, steady: Any) -> None:
        begin(self, wall, steady)
        self.wall = wall

    patch.setattr(SteadyClock, "__init__", __init__)
    patch.setattr(SteadyClock, "now", lambda self: self.wall() // 1000)


# ---------------------------------------------------------------------- sectors


@bug(Processing())
def a_flow_goes_on_from_files_that_nobody_has_read(patch: Patch) -> None:
    latest = original(Commits, "latest")
    patch.setattr(Commits, "latest", lambda self, *, verify=False: latest(self))


@bug(Stateless())
def a_flow_goes_back_behind_what_its_sinks_cannot_take_back(patch: Patch) -> None:
    patch.setattr(Checkpoint, "_refuse_undone", lambda self, record: None)
