"""Who has come, and who has not: for want of a slot, or because its process is slow."""

import os
from typing import Protocol

from floodway.core.errors import EngineError
from floodway.engine.driver.coordinator import Coordinator

LOOK_SECONDS = 1.0
"""How often Spark is asked who has no slot, while somebody is missing."""


class Slots(Protocol):
    """Who knows which tasks have a slot."""

    def queued(self) -> list[int]:
        """Return the tasks for whose process there is no slot yet."""


class Arrivals:
    """Watches tasks come, at the start and after losses.

    At the start there is a limit, from one arrival to the next: on a busy machine many tasks take
    their time, but they keep coming. Afterwards there is none.

    Parameters
    ----------
    patience_s
        The limit.
    """

    def __init__(self, coordinator: Coordinator, slots: Slots, patience_s: float) -> None:
        self._coordinator, self._slots = coordinator, slots
        self._patience_s = patience_s
        self._missing = len(coordinator.names) + 1
        self._since = self._next = 0.0

    def look(self, now_ms: int, now_s: float) -> EngineError | None:
        """See who is missing; return what is wrong if nobody has come for too long."""
        coordinator = self._coordinator
        missing = len(coordinator.roster.missing)
        if missing < self._missing:
            self._since = now_s
        self._missing = missing
        if missing and now_s >= self._next:
            self._next = now_s + LOOK_SECONDS
            coordinator.queue(self._slots.queued(), now_ms)
        elif not missing and coordinator.queued:
            coordinator.queue([], now_ms)
        if coordinator.state == "gathering" and now_s - self._since > self._patience_s:
            return self._nobody_came()
        return None

    def _nobody_came(self) -> EngineError:
        coordinator = self._coordinator
        missing, queued = coordinator.roster.missing, coordinator.queued
        slow = [name for name in (f"{s}/{i}" for s, i in missing) if name not in queued]
        reasons, remedies = [], []
        if queued:
            reasons.append(f"{_some(queued)} got no slot of Spark")
            remedies.append("free slots, or give Spark more (--master), or lower --dop")
        if slow:
            load = os.getloadavg()[0] / (os.cpu_count() or 1)
            reasons.append(f"{_some(slow)} had a slot, and their processes did not report")
            busy = f"this machine is busy ({load:.1f} times what its cores can do)"
            remedies.append(
                f"{busy}: wait longer with --patience 5m"
                if load > 1
                else "see that the hosts of Spark can reach this one and import what the flow "
                "imports, or wait longer with --patience 5m"
            )
        return EngineError(
            f"{len(missing)} of {len(coordinator.names)} tasks did not start, and for "
            f"{self._patience_s:.0f} s none came: {'; '.join(reasons)}",
            remedy="; ".join(remedies),
        )


def _some(names: list[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"{', '.join(names[:3])}{more}"
