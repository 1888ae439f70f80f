"""Bugs that show only under one kind of fault: a disk that is full, a sink that is away, and so on.

Most other bugs show as soon as anybody is killed.
"""

from contextlib import suppress
from typing import Any

from floodway_lab.simulation import disk as disk_module
from floodway_lab.simulation.streams import Processing, Stateless

from floodway.connectors.base import Unavailable
from floodway.core.errors import DiskFullError
from floodway.engine.checkpoint import vault as vault_module
from floodway.engine.checkpoint.commits import Commits
from floodway.engine.checkpoint.records import CommitRecord
from floodway.engine.checkpoint.vault import Vault
from floodway.engine.datastream.aside import Errands, Outcome
from floodway.engine.datastream.reading import Sources
from tests.lab.simulation.bugs import Patch, bug, original


@bug(Stateless())
def a_commit_for_which_there_was_no_room_counts(patch: Patch) -> None:
    write = original(Commits, "write")

    def trusting(self: Any, record: CommitRecord) -> None:
        with suppress(DiskFullError):
            write(self, record)

    patch.setattr(Commits, "write", trusting)


@bug(Stateless())
def what_a_sink_could_not_take_is_taken_for_shown(patch: Patch) -> None:
    judge = original(Errands, "_judge")

    def trusting(self: Any, outcome: Outcome, now: int) -> bool:
        shown = isinstance(outcome[1], Unavailable)
        found: bool = judge(self, (None, None) if shown else outcome, now)
        return found

    patch.setattr(Errands, "_judge", trusting)


@bug(Stateless())
def a_source_that_is_away_has_ended(patch: Patch) -> None:
    read = original(Sources, "_read")

    def and_end(self: Any, source: Any, now: int, steady: int) -> bool:
        busy: bool = read(self, source, now, steady)
        if source.away is not None:
            self._end(source, now, final=True)
        return busy

    patch.setattr(Sources, "_read", and_end)


@bug(Processing())
def a_digest_is_not_compared(patch: Patch) -> None:
    def trusted(name: str, header: bytes, data: bytes) -> bytes:
        return header[-16:]

    for module in (vault_module, disk_module):
        patch.setattr(module, "verified_digest", trusted)
    patch.setattr(Vault, "fetch", lambda self, ref: self.read(ref.name))
