"""The central scheduler: loads in, decisions out.

A stage goes through the paper's steps. *Prepare*: its queue grows, and larger batches get a moment
to help. *Switch*: the queue is above L_up still; the stage and its range are told. *Run*: they work
in the operation paradigm, until the data paradigm can carry what arrives. Then they go *back*, each
when it is calm itself and no flood before it holds it any longer.

What keeps it from swinging to and fro: floods and calm are judged by different lengths and rates
(L_up, L_down), have to last (calm much longer than floods), a stage that has switched stays so for
a while, and one that went back too soon has to be calm for longer the next time.
"""

from collections.abc import Iterable, Mapping

from floodway.core.errors import EngineError
from floodway.engine.scheduler import reasons
from floodway.engine.scheduler.batching import BatchSizes, Enlargement
from floodway.engine.scheduler.decisions import Decision, SetBatch, SwitchTo
from floodway.engine.scheduler.loads import StageLoad, Topology
from floodway.engine.scheduler.pressure import holding_back, is_held_back, room_after
from floodway.engine.scheduler.settings import SchedulerSettings
from floodway.engine.scheduler.story import Answered, Entry, Story
from floodway.engine.scheduler.switch_point import SwitchPoint
from floodway.engine.scheduler.switch_range import combining, may_operate, switch_range
from floodway.engine.scheduler.watch import FloodPhase, StageWatch
from floodway.model.tuning import Paradigm


class Scheduler:
    """Decides on batch sizes and paradigms.

    Parameters
    ----------
    topology
        The stages of the flow.
    settings
        How to judge.
    story
        Where to tell what is decided; if None, only the latest entries are kept.

    Examples
    --------
    >>> scheduler = Scheduler(Topology(("count",)))
    >>> flood = StageLoad(stage="count", arrival_per_s=5000, queue_records=9000, data_per_s=1000)
    >>> [scheduler.observe([flood], now_ms) for now_ms in (0, 1000, 1100)]
    [[], [SwitchTo(stage='count', paradigm='operation')], []]
    """

    def __init__(
        self,
        topology: Topology,
        settings: SchedulerSettings | None = None,
        story: Story | None = None,
    ) -> None:
        self.topology = topology
        self.settings = settings or SchedulerSettings()
        self.story = story or Story()
        self._batching = BatchSizes(topology, self.settings)
        self._watches: dict[str, StageWatch] = {}
        self._ranges: dict[str, frozenset[str]] = {}
        self._now_ms = 0
        self.story.began(topology, self.settings)

    # ------------------------------------------------------------------ what others may know

    def phases(self) -> dict[str, FloodPhase]:
        """Return where every stage is, as far as it has been seen."""
        return {stage: watch.phase for stage, watch in self._watches.items()}

    def points(self) -> dict[str, SwitchPoint]:
        """Return the present switch point of every stage that has been seen."""
        return {stage: watch.point for stage, watch in self._watches.items()}

    # ------------------------------------------------------------------ events

    def observe(self, loads: Iterable[StageLoad], now_ms: int) -> list[Decision]:
        """Take what was measured, about every 50 ms, and return what is to be done.

        Stages that nothing is known of may be left out.
        """
        self._now_ms = now_ms
        known = self._known(loads)
        self.story.observed(known.values(), now_ms)
        self._see(known)
        decisions: list[Decision] = []
        self._obey_pins(decisions)
        self._go_back(decisions)
        self._meet_floods(known, decisions)
        self._lower(decisions)
        return decisions

    def switched(
        self, stage: str, now_ms: int, pause_us: int = 0, paradigm: Paradigm | None = None
    ) -> None:
        """Take note that all tasks of a stage have switched, and how long they paused for it.

        `paradigm` is that in which they work now; if None, the one they were told here. A user may
        have told them otherwise meanwhile.
        """
        self._now_ms = max(now_ms, self._now_ms)
        self.story.answered(Answered(now_ms, stage, pause_us, paradigm=paradigm))
        why = f"{stage} paused for {pause_us / 1000:.1f} ms"
        self._done(stage, now_ms, why, pause_us, paradigm)

    def _done(
        self,
        stage: str,
        now_ms: int,
        why: str,
        pause_us: int | None = None,
        paradigm: Paradigm | None = None,
    ) -> None:
        watch = self._watches.get(stage)
        if watch is None or watch.pending is None:
            return
        before, after = watch.paradigm, paradigm or watch.pending
        if after != watch.pending:
            why = f"{stage} was told otherwise meanwhile; {why}"
        watch.pending = after
        watch.switched(now_ms)
        self.story.add(
            Entry(
                time_ms=now_ms,
                what="switched",
                stage=stage,
                before=before,
                after=after,
                why=why,
                pause_us=pause_us,
            )
        )

    def failed(self, stage: str, reason: str) -> None:
        """Take note that a stage could not switch; it is left alone for a while."""
        self.story.answered(Answered(self._now_ms, stage, failed=reason))
        self._fail(stage, reason)

    def _fail(self, stage: str, reason: str) -> None:
        watch = self._watches.get(stage)
        if watch is None or watch.pending is None:
            return
        self.story.add(
            Entry(
                time_ms=self._now_ms,
                what="failed",
                stage=stage,
                before=watch.paradigm,
                after=watch.pending,
                why=f"{reason}; it is left alone for {self.settings.failed_ms / 1000:g} s",
            )
        )
        watch.failed(self._now_ms)

    # ------------------------------------------------------------------ seeing

    def _known(self, loads: Iterable[StageLoad]) -> dict[str, StageLoad]:
        """Return the loads as they are decided on: in the order of the flow, with few digits."""
        found = {load.stage: load.rounded() for load in loads}
        for stage in found:
            if stage not in self.topology.stages:
                raise EngineError(
                    f"there is no stage {stage!r} to be scheduled",
                    remedy=f"measure one of: {', '.join(self.topology.stages)}",
                )
        return {stage: found[stage] for stage in self.topology.stages if stage in found}

    def _see(self, known: Mapping[str, StageLoad]) -> None:
        now_ms = self._now_ms
        self._batching.take(known.values(), now_ms)
        holding = holding_back(self.topology, known, self.settings)
        room = self._room()
        for stage, load in known.items():
            watch = self._watches.get(stage)
            if watch is None:
                watch = self._watches[stage] = StageWatch(load, self.settings, now_ms)
            if watch.overdue(now_ms):
                self._expire(watch, load)
            held_back = is_held_back(load, self.settings)
            watch.see(
                load,
                held_back=held_back,
                waits=holding.get(stage),
                now_ms=now_ms,
                room=room.get(stage),
                spared=self._spared(stage),
            )
            if watch.pressed:
                self._batching.press(stage, now_ms)
            else:
                self._batching.relax(stage)
        for start in list(self._ranges):
            watch = self._watches[start]
            if watch.paradigm == "data" and watch.pending is None:
                del self._ranges[start]

    def _room(self) -> dict[str, float]:
        rates = ((stage, watch.data_per_s) for stage, watch in self._watches.items())
        return room_after(
            self.topology,
            {stage: watch.before for stage, watch in self._watches.items()},
            {stage: rate for stage, rate in rates if rate is not None},
        )

    def _spared(self, stage: str) -> bool:
        """Return whether a stage gets what others have combined in micro-batches."""
        senders = (link.sender for link in self.topology.entering(stage) if link.combines)
        watches = (self._watches[sender] for sender in senders if sender in self._watches)
        return any(w.paradigm == "operation" or w.pending is not None for w in watches)

    def _expire(self, watch: StageWatch, load: StageLoad) -> None:
        """Do not wait for an answer any longer; see for ourselves what became of the switch."""
        silence = f"no answer for {self.settings.answer_ms / 1000:g} s"
        if load.paradigm == watch.pending:
            self._done(watch.stage, self._now_ms, f"{silence}, but it has switched")
        else:
            self._fail(watch.stage, silence)

    # ------------------------------------------------------------------ deciding

    def _obey_pins(self, decisions: list[Decision]) -> None:
        """Switch what a user has pinned; that is no matter of load, and needs nothing measured."""
        for watch in self._watches.values():
            pin = watch.load.pin
            if pin == "auto" or pin == watch.paradigm or not watch.load.able:
                continue
            if watch.free(self._now_ms):
                why = reasons.pinned(watch.stage, pin)
                self._switch(watch, pin, why, (watch.stage,), watch, decisions)

    def _go_back(self, decisions: list[Decision]) -> None:
        """Switch back what is calm; in the order of the flow, so that a whole range may go."""
        for stage in self.topology.stages:
            watch = self._watches.get(stage)
            if watch is None or watch.paradigm != "operation" or not watch.load.free:
                continue
            if not watch.free(self._now_ms):
                continue
            worse = watch.worse(self._now_ms)
            if worse or (watch.calm(self._now_ms) and not self._holds(stage)):
                why = reasons.worse(watch) if worse else reasons.passed(watch)
                self._ranges.pop(stage, None)
                self._switch(watch, "data", why, (stage,), watch, decisions)

    def _holds(self, stage: str) -> bool:
        """Return whether a flood before a stage still wants it in its range."""
        return any(
            stage in members and not self._watches[start].calm(self._now_ms)
            for start, members in self._ranges.items()
            if start != stage
        )

    def _meet_floods(self, known: Mapping[str, StageLoad], decisions: list[Decision]) -> None:
        for stage in known:
            watch = self._watches[stage]
            if watch.rising(self._now_ms) and watch.load.pin == "auto":
                steps = self._batching.raise_for(watch.load, known, watch.point, self._now_ms)
                for step in steps:
                    why = reasons.raised(step, watch, self.settings)
                    self._set_batch(step, why, watch, decisions)
            if watch.flooded(self._now_ms) and not self._batching.waiting(stage, self._now_ms):
                self._meet_flood(watch, known, decisions)

    def _meet_flood(
        self, watch: StageWatch, known: Mapping[str, StageLoad], decisions: list[Decision]
    ) -> None:
        """Switch a flooded stage and its range, or tell why not."""
        if not may_operate(self.topology, watch.load):
            self._stay(watch, "unable", reasons.unable(watch, self.topology))
        elif not watch.pays(self._now_ms):
            self._stay(watch, "slower", reasons.slower(watch))
        elif watch.free(self._now_ms) and watch.warm(self._now_ms):
            slow = [name for name in known if not self._watches[name].pays(self._now_ms)]
            before = set(combining(self.topology, known, watch.stage)).difference(slow)
            after = switch_range(self.topology, known, watch.stage, slow)
            members = tuple(s for s in self.topology.stages if s in before or s in after)
            self._ranges[watch.stage] = frozenset(members)
            for member in map(self._watches.__getitem__, members):
                if member is watch:
                    why = reasons.flooded(watch, members)
                elif member.paradigm == "data" and member.load.free and member.free(self._now_ms):
                    tell = reasons.combines if member.stage in before else reasons.reached
                    why = tell(watch.stage, member.load)
                else:
                    continue  # it is there already, or has just come from there
                self._switch(member, "operation", why, members, watch, decisions)

    def _lower(self, decisions: list[Decision]) -> None:
        def arrival(stage: str) -> float | None:
            watch = self._watches.get(stage)
            return None if watch is None else watch.load.arrival_per_s

        for step in self._batching.lower(arrival, self._now_ms):
            why = reasons.lowered(step, self.settings)
            self._set_batch(step, why, self._watches[step.stage], decisions)

    # ------------------------------------------------------------------ telling

    def _switch(
        self,
        watch: StageWatch,
        paradigm: Paradigm,
        why: str,
        members: tuple[str, ...],
        start: StageWatch,
        decisions: list[Decision],
    ) -> None:
        looked_at = [start.load] if watch is start else [start.load, watch.load]
        self.story.add(
            Entry(
                time_ms=self._now_ms,
                what="switch",
                stage=watch.stage,
                before=watch.paradigm,
                after=paradigm,
                why=why,
                point=watch.point,
                range=members,
                loads=tuple(looked_at),
            )
        )
        watch.ask(paradigm, self._now_ms)
        decisions.append(SwitchTo(watch.stage, paradigm))

    def _set_batch(
        self, step: Enlargement, why: str, watch: StageWatch, decisions: list[Decision]
    ) -> None:
        self.story.add(
            Entry(
                time_ms=self._now_ms,
                what="batch",
                stage=step.stage,
                operator=step.operator,
                before=step.before,
                after=step.after,
                why=why,
                point=watch.point,
                loads=(watch.load,),
            )
        )
        decisions.append(SetBatch(step.operator, step.after))

    def _stay(self, watch: StageWatch, reason: str, why: str) -> None:
        """Tell, but not all the time, why nothing is done about a flood."""
        if watch.note(reason, self._now_ms):
            self.story.add(
                Entry(
                    time_ms=self._now_ms,
                    what="stay",
                    stage=watch.stage,
                    before=watch.paradigm,
                    after=watch.paradigm,
                    why=why,
                    point=watch.point,
                    loads=(watch.load,),
                )
            )
