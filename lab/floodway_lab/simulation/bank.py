"""A bank: what it has is moved from account to account, and never more or less than nothing."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from random import Random

from floodway.connectors.list_items import Emitted
from floodway.core.record import Record
from floodway.model.flow import Flow
from floodway.operators import emit
from floodway_lab.simulation.outside import Feed
from floodway_lab.simulation.outside import Shown as Epoch
from floodway_lab.simulation.scenario import (
    Connections,
    Epochs,
    Scenario,
    Shown,
    Stream,
    differing,
    items,
)

ACCOUNTS = 12


class Transfer(Record):
    """Money that goes from one account to another: one record, and an update of each of the two."""

    name: str
    taker: str
    amount: int


class Bank(Scenario):
    """What accounts have, from what was given and what was taken; all of it together is nothing.

    Each half of a transfer goes its own way, to be joined with others at its account. Sinks of
    what is consistent have to show as much of the one as of the other, epoch by epoch.
    """

    name = "bank"

    def feeds(self, random: Random) -> dict[str, Feed]:
        """Return transfers."""
        stream = Stream(random, most=150)
        rows = [(time, None, _transfer(random)) for time, _ in stream.readings()]
        return {"transfers": stream.feed(rows)}

    def build(self, flow: Flow, world: Connections) -> None:
        """Join what accounts were given with what was taken, and add all of it up."""
        transfers = flow.source("transfers", world.source("transfers"), schema=Transfer)
        gave = transfers.group_by("name AS account").sum("amount", name="gave")
        took = transfers.group_by("taker AS account").sum("amount", name="took")
        balances = took.join(gave, how="full", joiner=_balance, schema=int, name="balances")
        total = balances.group_by("1 AS bank").sum("value", name="total")
        changes = balances.changes(emit=emit.consistent(), name="balance_changes")
        changes.to(world.sink("accounts"), name="accounts_out")
        totals = total.changes(emit=emit.consistent(), name="total_changes")
        totals.to(world.sink("total"), name="total_out")

    def sinks(self) -> Sequence[str]:
        """Return the sinks of the accounts and of their sum."""
        return ["accounts", "total"]

    def problem(self, feeds: Mapping[str, Feed], shown: Shown) -> str | None:
        """In the end every account has what it took and did not give."""
        expected: dict[str, int] = {}
        for item in items(feeds["transfers"]):
            transfer = item.value
            expected[transfer.name] = expected.get(transfer.name, 0) - transfer.amount
            expected[transfer.taker] = expected.get(transfer.taker, 0) + transfer.amount
        found = dict(map(_balance_of, shown["accounts"]))
        totals = [row.value["value"] for row in shown["total"]]
        return differing(expected.items(), found.items(), "balances") or (
            f"all accounts together had {totals}" if any(totals) else None
        )

    def problem_between(self, epochs: Epochs) -> str | None:
        """After every epoch as much was taken as was given."""
        known: dict[str, int] = {}
        for epoch, rows in _by_epoch(epochs["accounts"]):
            known |= dict(map(_balance_of, rows))
            if sum(known.values()):
                return f"after epoch {epoch} all accounts together have {sum(known.values())}"
        return None


def _transfer(random: Random) -> Transfer:
    giver, taker = random.sample(range(ACCOUNTS), 2)
    return Transfer(f"a{giver}", f"a{taker}", random.randint(1, 9))


def _balance(took: int | None, gave: int | None) -> int:
    return (took or 0) - (gave or 0)


def _balance_of(row: Emitted) -> tuple[str, int]:
    return row.value["key"], row.value["value"]


def _by_epoch(epochs: Sequence[Epoch]) -> Iterator[tuple[int, list[Emitted]]]:
    """Return what all writers have shown together, epoch by epoch."""
    for epoch, shown in groupby(epochs, key=lambda shown: shown.epoch):
        yield epoch, [row for part in shown for row in part.rows]
