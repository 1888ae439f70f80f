"""Bugs that show when a broker or Redis dies, above all before it has answered; and in a bank."""

from typing import Any

import msgspec
from floodway_lab.simulation.bank import Bank
from floodway_lab.simulation.streams import AtLeastOnce, Stateless

from floodway.connectors.base import Unavailable
from floodway.engine.datastream.aside import Errands
from floodway.engine.datastream.delivery import EpochSink
from floodway.engine.datastream.reading import Sources
from floodway.engine.datastream.writing import Sinks
from floodway.operators.changes import HoldingKernel, MarkKernel
from tests.lab.simulation.bugs import Patch, bug, original

# ---------------------------------------------------------------------- away


@bug(Stateless())
def an_epoch_counts_as_shown_when_its_sink_is_away(patch: Patch) -> None:
    judge = original(Errands, "_judge")

    def hopeful(self: Any, outcome: Any, now: int) -> Any:
        away = isinstance(outcome[1], Unavailable)
        return judge(self, (None, None) if away else outcome, now)

    patch.setattr(Errands, "_judge", hopeful)


@bug(Stateless())
def a_source_that_is_away_is_taken_for_its_end(patch: Patch) -> None:
    read = original(Sources, "_read")

    def impatient(self: Any, source: Any, now: int, steady: int) -> Any:
        busy = read(self, source, now, steady)
        if source.away is not None:
            self._end(source, now, final=True)
        return busy

    patch.setattr(Sources, "_read", impatient)


# ---------------------------------------------------------------------- without an answer


@bug(Stateless())
def what_waits_is_shown_together_with_what_was_not_answered(patch: Patch) -> None:
    # As good as any other way if nothing of the first was shown.
    apply = original(EpochSink, "_apply")

    def together(self: Any, log: Any) -> None:
        tried, done = self.__dict__.setdefault("tried", set()), self.__dict__.setdefault("done", 0)
        if log.epoch <= done:
            return
        logs = [entry.log for entry in self._entries if entry.queued and log.epoch in tried]
        later = [more for more in logs if more.epoch > log.epoch]
        blocks = [block for one in (log, *later) for block in one.blocks]
        tried.add(log.epoch)
        apply(self, msgspec.structs.replace(log, blocks=blocks))
        self.done = max(one.epoch for one in (log, *later))

    patch.setattr(EpochSink, "_apply", together)


@bug(Stateless())
def an_epoch_that_was_not_answered_is_shown_under_a_later_number(patch: Patch) -> None:
    # As good as any other way, too; but whoever has shown it cannot tell that it is the same.
    apply, commit = original(EpochSink, "_apply"), original(EpochSink, "commit")

    def committed(self: Any, epoch: int, errands: Any) -> None:
        self.last = epoch
        commit(self, epoch, errands)

    def renumbered(self: Any, log: Any) -> None:
        tried = self.__dict__.setdefault("tried", set())
        again = log.epoch in tried and sum(entry.queued for entry in self._entries) == 1
        tried.add(log.epoch)
        apply(self, msgspec.structs.replace(log, epoch=self.last if again else log.epoch))

    patch.setattr(EpochSink, "commit", committed)
    patch.setattr(EpochSink, "_apply", renumbered)


@bug(AtLeastOnce())
def if_some_rows_are_known_to_be_written_all_of_them_are(patch: Patch) -> None:
    hand_over = original(Sinks, "_hand_over")

    def trusting(self: Any, sink: Any, count: int, now: int) -> None:
        try:
            hand_over(self, sink, count, now)
        except Unavailable as error:
            error.taken = len(sink.rows) if error.taken else 0
            raise

    patch.setattr(Sinks, "_hand_over", trusting)


# ---------------------------------------------------------------------- a bank


@bug(Bank())
def consistent_results_come_at_any_record(patch: Patch) -> None:
    def process(self: Any, port: int, rows: Any) -> None:
        hold(self, port, rows)
        if len(rows) % 2:
            self.finish()

    hold = original(HoldingKernel, "process")
    patch.setattr(MarkKernel, "process", process, raising=False)


@bug(Bank())
def consistent_results_wait_for_more_of_them_and_not_for_a_mark(patch: Patch) -> None:
    def marked(self: Any) -> None:
        if len(self._held) > 2:
            self.finish()

    patch.setattr(MarkKernel, "marked", marked)
