"""Tallies: what groups come to while values join and leave them, the latest version only.

A group has one row: its timestamp, how many values it has, their partial and what that lowers to. A
value that leaves is subtracted. Of values that are kept in order (min, max, top, collect) each has
a row of its own, so that what is stored when one comes or goes is that one; the order itself is
made anew when the rows are loaded.

So a correction costs the same, in time and in what is stored for it, however many values a group
has.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from floodway.core.errors import OperatorError
from floodway.operators.aggregates import AggregateFunction
from floodway.operators.aggregates.bag import Bag, union
from floodway.operators.aggregates.identity import identity
from floodway.operators.aggregates.ordered import Member, Ordered
from floodway.operators.history import Expiry
from floodway.operators.keyed import Windowed

GroupRow = tuple[int, int, Any, Any]
"""Timestamp, number of values, partial, lowered value."""

Move = tuple[int, Any, Any]
"""Whether a value joins (1) or leaves (-1), the value, lifted, and whose it is."""

GroupChange = tuple[int, Any, Any]
"""Timestamp, new value and old value of a group."""

RefusedKey = tuple[Any, str]
"""Group, and whose value it is that was refused."""

MemberKey = tuple[Any, int, int]
"""Group, number of the aggregate, and the value's own number."""

OrderedValues = dict[int, Ordered]
"""The values of a group in order, by the number of the aggregate."""

Unsorted = dict[int, list[Member]]
"""The same in no order."""

NOTHING: GroupRow = (-(2**63), 0, None, None)
"""A group before its first value."""


class Tallies:
    """The groups of one kernel.

    A group's row lies in a namespace, its *home*: the window it belongs to, or None. Its values lie
    in the same one or, if `spread`, in one of their own, by where they are from; then they can be
    closed when nothing from there can leave any more.

    Attributes
    ----------
    groups
        The row of each group.
    members
        The values that are kept in order, by group, number of the aggregate, and a number of
        their own.
    refused
        How many values could not join a group, by group and whose they are: when they are taken
        back there is nothing to take out.

    Examples
    --------
    >>> import floodway as fw
    >>> from floodway.operators.table_aggregate import TableAggregate
    >>> flow = fw.Flow("prices")
    >>> prices = flow.table("prices", schema=int, key=str)
    >>> _ = prices.group_by("1 AS all").max("value", name="highest")
    >>> operator = next(op for op in flow.operators if isinstance(op, TableAggregate))
    >>> tallies = Tallies(operator.function)
    >>> lift = tallies.function.lift
    >>> tallies.change(None, "all", 1, [(1, lift(0, "tea", 3), "tea")])
    (1, 3, None)
    >>> tallies.change(None, "all", 1, [(1, lift(0, "rum", 9), "rum")])
    (1, 9, 3)
    >>> tallies.change(None, "all", 2, [(-1, lift(0, "rum", 9), "rum")])
    (2, 3, 9)
    """

    def __init__(self, function: AggregateFunction, *, spread: bool = False) -> None:
        parts = function.parts or (function,)
        self.function = function.compiled()
        self._parts = [part.compiled() for part in parts]
        self._several = bool(function.parts)
        self._kept = {number: part.kept for number, part in enumerate(parts) if part.ordered}
        self._spread = spread
        self.groups: Windowed[Any, Any, GroupRow] = Windowed()
        self.members: Windowed[Any, MemberKey, Member] = Windowed()
        self.refused: Windowed[Any, RefusedKey, int] = Windowed()
        self._orders: dict[Any, dict[Any, OrderedValues]] = {}
        self._loaded: dict[Any, dict[Any, Unsorted]] = {}
        self._empty = Expiry()

    # ------------------------------------------------------------------ changing

    def change(
        self, home: Any, group: Any, timestamp: int, steps: Sequence[Move], origin: Any = None
    ) -> GroupChange:
        """Let values join and leave a group; return its timestamp, new value and old value.

        If that fails nothing has changed: see `change_singly`.
        """
        if self.refused:
            steps, back = self._without_refused(origin, group, steps)
            if back:
                result = self.change(home, group, timestamp, steps, origin)
                self._forget_refused(origin, back)
                return result
        space = self.groups.get(home)
        if space is None:
            space = self.groups.space(home)
        latest, count, partial, old = space.get(group) or NOTHING
        if latest > timestamp:
            timestamp = latest
        if self._kept:
            count, partial, value = self._sorted_in(home, group, origin, count, partial, steps)
        else:
            count, partial = self._summed(count, partial, steps)
            value = self.function.lower(partial) if count else None
        space[group] = (timestamp, count, partial, value)
        if not count and home is None:
            self._empty.add(timestamp, group)
        return timestamp, value, old

    def change_singly(
        self, home: Any, group: Any, timestamp: int, steps: Sequence[Move], origin: Any = None
    ) -> GroupChange:
        """Do of a change that failed what can be done; a value that cannot join is refused."""
        entry = self.groups.space(home).get(group) or NOTHING
        new = old = entry[3]
        for step in steps:
            try:
                timestamp, new, _ = self.change(home, group, timestamp, [step], origin)
            except Exception:  # the whole has failed so, and has been reported
                if step[0] > 0:
                    refused, key = self.refused.space(origin), (group, identity(step[2]))
                    refused[key] = refused.get(key, 0) + 1
        return timestamp, new, old

    def _without_refused(
        self, origin: Any, group: Any, steps: Sequence[Move]
    ) -> tuple[list[Move], list[RefusedKey]]:
        """Return the steps but for values that leave and never joined, and what those were."""
        refused, rest = self.refused.get(origin), list(steps)
        back: list[RefusedKey] = []
        for step in steps if refused is not None else ():
            key = (group, identity(step[2]))
            if step[0] < 0 and refused is not None and key in refused and key not in back:
                rest.remove(step)
                back.append(key)
        return rest, back

    def _forget_refused(self, origin: Any, back: list[RefusedKey]) -> None:
        refused = self.refused[origin]
        for key in back:
            if refused[key] > 1:
                refused[key] -= 1
            else:
                del refused[key]
        if not refused:
            del self.refused[origin]

    def _summed(self, count: int, partial: Any, steps: Sequence[Move]) -> tuple[int, Any]:
        function = self.function
        for sign, lifted, _ in steps:
            if sign > 0:
                partial = function.combine(partial, lifted) if count else lifted
                count += 1
            elif count:  # what failed when it came cannot leave
                assert function.subtract is not None
                partial = function.subtract(partial, lifted) if count > 1 else None
                count -= 1
        return count, partial

    def _sorted_in(
        self, home: Any, group: Any, origin: Any, count: int, partial: Any, steps: Sequence[Move]
    ) -> tuple[int, Any, Any]:
        """Do the same where some of the aggregates keep their values in order."""
        plain, serial, settled = partial or ([None] * len(self._parts), 0, {})
        orders = self._orders_of(home, group)
        moved: list[tuple[int, int, Member]] = []
        try:
            for sign, lifted, _ in steps:
                if sign < 0 and not count:
                    continue
                lifts = lifted if self._several else (lifted,)
                plain = self._each_summed(plain, lifts, count, sign)
                count += sign
                for number, order in orders.items():
                    serial = self._move(order, number, lifts[number], sign, origin, serial, moved)
            value = self._lowered(plain, orders, settled) if count else None
        except Exception:
            for sign, number, member in reversed(moved):
                (orders[number].remove if sign > 0 else orders[number].add)(member)
            self._tidy(home, group, orders)
            raise
        members = self.members.space(origin)
        for sign, number, member in moved:
            if sign > 0:
                members[group, number, member[3]] = member
            else:
                del members[group, number, member[3]]
        self._tidy(home, group, orders)
        return count, (plain, serial, settled) if count else None, value

    def _move(
        self,
        order: Ordered,
        number: int,
        lifted: Bag,
        sign: int,
        origin: Any,
        serial: int,
        moved: list[tuple[int, int, Member]],
    ) -> int:
        """Put values in order, or take them out; note which, and return the next serial number."""
        for by, text, value in lifted:
            if sign > 0:
                member: Member | None = (by, text, origin, serial, value)
                assert member is not None
                order.add(member)
                serial += 1
            else:
                member = order.find(by, text, origin)
                if member is None and self._spread:
                    continue  # it was settled
                if member is None:
                    raise OperatorError(
                        f"the value {value!r:.100} is to be taken back and is not there: it has "
                        "changed since it joined its group",
                        remedy="give the input a schema, or values that are equal after pickling, "
                        "and do not change values in place",
                    )
                order.remove(member)
            moved.append((sign, number, member))
        return serial

    def _each_summed(
        self, plain: list[Any], lifts: Sequence[Any], count: int, sign: int
    ) -> list[Any]:
        """Return the partials of the aggregates that can be subtracted from."""
        summed: list[Any] = []
        for number, part in enumerate(self._parts):
            if number in self._kept or count + sign == 0:
                summed.append(None)
            elif sign > 0:
                summed.append(
                    part.combine(plain[number], lifts[number]) if count else lifts[number]
                )
            else:
                assert part.subtract is not None
                summed.append(part.subtract(plain[number], lifts[number]))
        return summed

    def _lowered(self, plain: list[Any], orders: OrderedValues, settled: dict[int, Bag]) -> Any:
        seen: list[Any] = list(plain)
        for number, order in orders.items():
            kept = self._kept[number]
            seen[number] = order
            if kept is not None and number in settled:
                seen[number] = union(order[kept], settled[number])[kept]
        return self.function.lower(tuple(seen) if self._several else seen[0])

    # ------------------------------------------------------------------ forgetting

    def drop(self, home: Any) -> None:
        """Forget all groups of a namespace, with their values."""
        for spaces in (self.groups, self.members, self.refused):
            if home in spaces:
                del spaces[home]
        self._orders.pop(home, None)

    def settle(self, horizon: int) -> None:
        """Forget groups without values, if nothing that comes can be older than they are.

        Until then they stay, unseen: changes up to there have been sent, and have to be followed by
        others.
        """
        groups = self.groups.get(None)
        if groups is None:
            return
        for _, group in self._empty.due(horizon):
            row = groups.get(group)
            if row is not None and not row[1] and row[0] <= horizon:
                del groups[group]
        if not groups and not self.refused.get(None):
            self.drop(None)

    def close(self, origin: Any) -> None:
        """Let all values from somewhere stay for good: of those in order, keep what still counts.

        What the groups come to does not change.
        """
        if origin in self.refused:
            del self.refused[origin]
        members = self.members.get(origin)
        if members is None:
            return
        closed: dict[Any, dict[int, list[Member]]] = {}
        for (group, number, _), member in members.everything():
            closed.setdefault(group, {}).setdefault(number, []).append(member)
        for group, found in closed.items():
            self._keep_what_counts(group, found)
        del self.members[origin]

    def _keep_what_counts(self, group: Any, closed: dict[int, list[Member]]) -> None:
        orders = self._orders_of(None, group)
        groups = self.groups[None]  # there, as the group has values
        timestamp, count, (plain, serial, settled), value = groups[group]
        settled = dict(settled)
        for number, gone in closed.items():
            kept = self._kept[number]
            assert kept is not None
            for member in gone:
                orders[number].remove(member)
            bag = [(order, text, item) for order, text, _, _, item in sorted(gone, key=_place)]
            settled[number] = union(bag, settled.get(number, []))[kept]
        groups[group] = (timestamp, count, (plain, serial, settled), value)
        self._tidy(None, group, orders)

    # ------------------------------------------------------------------ the order of values

    def _orders_of(self, home: Any, group: Any) -> OrderedValues:
        found = self._orders.setdefault(home, {})
        orders = found.get(group)
        if orders is None:
            orders = found[group] = {number: Ordered() for number in self._kept}
        return orders

    def _tidy(self, home: Any, group: Any, orders: OrderedValues) -> None:
        """Forget the order of values of a group that has none."""
        if any(orders.values()):
            return
        found = self._orders[home]
        del found[group]
        if not found:
            del self._orders[home]

    def loaded(self, name: str, namespace: Any, key: Any, row: Any) -> None:
        """See that a row of the space `name` is back from where it was stored."""
        if name.endswith(".members"):
            group, number, _ = key
            groups = self._loaded.setdefault(None if self._spread else namespace, {})
            groups.setdefault(group, {}).setdefault(number, []).append(row)
        elif name.endswith(".groups") and namespace is None and not row[1]:
            self._empty.add(row[0], key)

    def all_loaded(self) -> None:
        """See that there are no more rows to come.

        Values are sorted now: put in one after the other, a great many take several times as long.
        """
        for home, groups in self._loaded.items():
            for group, unsorted in groups.items():
                for number, order in self._orders_of(home, group).items():
                    order.extend(unsorted.get(number, ()))
        self._loaded.clear()

    def route(self, name: str, key: Any) -> Any:
        """Return the group that a row of the space `name` belongs to."""
        return key[0] if name.endswith((".members", ".refused")) else key

    # ------------------------------------------------------------------ looking in

    def entry(self, home: Any, group: Any) -> tuple[int, Any] | None:
        """Return timestamp and value of a group, or None if it has no row."""
        space = self.groups.get(home)
        row = None if space is None else space.get(group)
        return None if row is None or row[3] is None else (row[0], row[3])

    def rows(self) -> Iterator[tuple[Any, Any, tuple[int, Any]]]:
        """Go through the rows: namespace, group, and timestamp with value."""
        for home, groups in self.groups.items():
            for group, (timestamp, _, _, value) in groups.everything():
                if value is not None:
                    yield home, group, (timestamp, value)


def _place(member: Member) -> tuple[Any, ...]:
    return member[:4]
