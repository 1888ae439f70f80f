"""What befalls the processes of a simulation, their network, their clocks and their disk."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from floodway_lab.simulation.conditions import Fault, FaultKind
from floodway_lab.simulation.disk import RECORDS
from floodway_lab.simulation.tasks import TaskProcess

if TYPE_CHECKING:
    from floodway_lab.simulation.world import World

HOUR_US = 3_600_000_000
"""By so much somebody sets a clock, forward or back."""

LOST_SIGHT_US = 2_000_000
"""A process whose daemon is gone finds that out within so long."""


class Faults:
    """Lets things go wrong in a world."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._timeline, self._random = world.timeline, world.timeline.random

    def befall(self, fault: Fault) -> None:
        """Let something go wrong."""
        if self._world.ended:
            return
        action: Callable[[Fault], None] = {
            "kill": self._task,
            "pause": self._task,
            "give up": self._task,
            "cut off": self._task,
            "kill driver": self._driver,
            "pause driver": self._driver,
            "drain": self._driver,
            "switch": self._switch,
            "power": self._power,
            "full disk": self._disk,
            "slow disk": self._disk,
            "bad sector": self._sector,
            "source away": self._outside,
            "sink away": self._outside,
            "broker": self._server,
            "redis": self._server,
            "reset": self._reset,
            "block": self._block_way,
            "part": self._block_way,
            "daemon": self._host,
            "host": self._host,
            "clock": self._clock,
        }[fault.kind]
        action(fault)

    # ------------------------------------------------------------------ processes

    def _task(self, fault: Fault) -> None:
        process = self._someone()
        if process is None:
            return
        if fault.kind == "kill":
            process.kill("by chance")
        elif fault.kind == "give up":
            self._give_up(process)
        else:
            # Long enough to be given up, most often.
            silent_us = self._world.conditions.silent_ms * 1000
            lasts = int(silent_us * self._random.uniform(0.3, 4.0))
            self._silence(process, fault.kind, lasts)

    def _someone(self) -> TaskProcess | None:
        alive = [p for p in self._world.processes if p.alive and not p.paused]
        return self._random.choice(alive) if alive else None

    def _give_up(self, process: TaskProcess) -> None:
        """Let Spark lose sight of a process that is still there, and start another one."""
        self._world.happened["zombies"] += 1
        self._timeline.say(f"{process.name} is given up")
        self._world.missed(process, "lost from sight")

    def _silence(self, process: TaskProcess, kind: FaultKind, lasts: int) -> None:
        """Stop a process, or let it work on and cut it off from all others."""
        world = self._world
        world.happened["pauses"] += 1
        world.paused.append((process.run, process.stage, process.index))
        self._timeline.say(f"{process.name}: {kind}, for {lasts / 1e6:.1f} s")
        if kind == "cut off":
            world.network.cut_off(process.name, self._timeline.now + lasts)
            return
        process.pause()
        self._timeline.after(lasts, process.resume)

    def _host(self, fault: Fault) -> None:
        """Let all tasks of a host die at once, with it, or with the process that forked them."""
        someone = self._someone()
        if someone is None:
            return
        world = self._world
        world.happened["hosts" if fault.kind == "host" else "daemons"] += 1
        self._timeline.say(f"host {someone.host}: its {fault.kind} dies")
        found = [p for p in world.processes if p.alive and p.host == someone.host]
        for process in found:
            if fault.kind == "host":
                process.kill("with its host")
            else:
                world.missed(process, "its daemon is gone")
                self._timeline.after(self._timeline.between(0, LOST_SIGHT_US), process.orphan)

    def _driver(self, fault: Fault) -> None:
        world, driver = self._world, self._world.driver
        if driver is None or driver.paused:
            return
        if fault.kind == "kill driver":
            world.kill_driver(driver, "by chance")
        elif fault.kind == "drain":
            self._timeline.say("the flow is to be stopped")
            world.happened["drains"] += 1
            driver.drain()
        else:
            world.happened["pauses"] += 1
            self._timeline.say(f"{driver.name} is paused for {fault.lasts / 1e6:.1f} s")
            driver.pause()
            self._timeline.after(fault.lasts, driver.resume)

    def _switch(self, fault: Fault) -> None:
        """Let one stage, or all of them, work in another paradigm."""
        driver = self._world.driver
        if driver is not None:
            self._world.happened["switches"] += 1
            driver.switch()

    def _power(self, fault: Fault) -> None:
        self._world.lose_power("by chance")

    def _clock(self, fault: Fault) -> None:
        """Set the wall clock of a process, of the driver or of the machine, an hour on or back."""
        world, driver = self._world, self._world.driver
        by = self._random.choice([-HOUR_US, HOUR_US])
        victim = self._random.choice([self._someone(), driver, None])
        name = "everybody" if victim is None else victim.name
        self._timeline.say(f"the clock of {name} is set by {by / HOUR_US:+.0f} h")
        world.happened["clock_jumps"] += 1
        if victim is not None:
            victim.set_by += by
            return
        world.set_by += by
        for process in [*world.processes, *world.drivers]:
            process.set_by += by

    # ------------------------------------------------------------------ the network

    def _reset(self, fault: Fault) -> None:
        """Break a connection, or all that a process has."""
        world, process = self._world, self._someone()
        ways = [] if process is None else world.network.between(process.name)
        if process is None or not ways or not world.network.linked:
            return
        if self._random.random() < 0.5:
            ways = [self._random.choice(ways)]
        lost = sum(world.network.reset(way) for way in ways)
        world.happened["resets"] += len(ways)
        self._timeline.say(
            f"{len(ways)} connections of {process.name} break, {lost} frames are lost"
        )

    def _block_way(self, fault: Fault) -> None:
        """Let nothing through one connection for a while; if that is long, it breaks."""
        world, network, process = self._world, self._world.network, self._someone()
        ways = [] if process is None else network.between(process.name)
        if fault.kind == "part" and process is not None and not self._known(process):
            return  # for him who has not said hello there is another deadline
        if not ways:
            return
        way = self._random.choice(ways)
        self._timeline.say(f"{way.sender} cannot reach {way.address}, {fault.lasts / 1e6:.1f} s")
        world.happened["cuts"] += 1
        for each in world.processes:
            if each.name in network.ends(way):
                world.paused.append((each.run, each.stage, each.index))
        if network.linked:
            network.reset(way)
        until = self._timeline.now + fault.lasts
        (network.part if fault.kind == "part" else network.block)(way, until)

    def _known(self, process: TaskProcess) -> bool:
        """Return whether a process has said hello to the driver that is there."""
        lead = None if self._world.driver is None else self._world.driver.coordinator
        return lead is not None and lead.roster.address(process.task) == process.mailbox.address

    # ------------------------------------------------------------------ the disk

    def _disk(self, fault: Fault) -> None:
        world, disk = self._world, self._world.disk
        self._timeline.say(f"{fault.kind} for {fault.lasts / 1e6:.1f} s")
        if fault.kind == "full disk":
            world.happened["full_disks"] += 1
            disk.full = True
            block(world, world.processes)
        else:
            disk.slow = 20.0

        def pass_by() -> None:
            self._timeline.say(f"no {fault.kind} any more")
            disk.full, disk.slow = False, 1.0
            for process in world.processes:
                process.unblock()

        self._timeline.after(fault.lasts, pass_by)

    def _sector(self, fault: Fault) -> None:
        """Let a file go bad that was durable: a commit record, or what one names."""
        disk = self._world.disk
        durable = [
            name
            for name, file in sorted(disk.files.items())
            if file.durable_at is not None and file.durable_at <= self._timeline.now
        ]
        records = [name for name in durable if name.startswith(RECORDS)]
        if not durable:
            return
        name = self._random.choice(records if records and self._random.random() < 0.2 else durable)
        self._timeline.say(f"a sector of {name} goes bad")
        self._world.happened["bad_sectors"] += 1
        disk.damage(name)

    def _outside(self, fault: Fault) -> None:
        world = self._world
        names = sorted(world.outside.feeds)
        if fault.kind == "sink away":
            names = sorted(world.conditions.scenario.sinks())
        name = self._random.choice(names)
        self._timeline.say(f"{name} is away for {fault.lasts / 1e6:.1f} s")
        world.outside.away_until[name] = self._timeline.now + fault.lasts

    def _server(self, fault: Fault) -> None:
        """Kill the broker or Redis; all sources and sinks that live there are away with it."""
        assert fault.kind in ("broker", "redis")
        outside, kind = self._world.outside, fault.kind
        if kind == "redis" and not outside.redis:
            return
        self._world.happened[f"{kind}_kills"] += 1
        self._timeline.say(f"the {kind} is killed, for {fault.lasts / 1e6:.1f} s")
        outside.servers[kind].kill(fault.lasts)


def block(world: "World", processes: Iterable[TaskProcess]) -> None:
    """Let output caches find no room; state beyond its budget would fail, and has to."""
    if world.conditions.settings.state_memory is None:
        for process in processes:
            process.block()
