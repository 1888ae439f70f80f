"""What the kernels that keep tallies share: a table of the latest version, and its way back."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from floodway.operators.base import Kernel, View
from floodway.operators.tallies import Tallies


class TalliedKernel(Kernel, View):
    """Keeps the latest version of groups whose values join and leave."""

    remembers: ClassVar[tuple[str, ...]] = ("_tallies", "_horizon")
    keyed: ClassVar[tuple[str, ...]] = ("_tallies.groups", "_tallies.members", "_tallies.refused")

    _tallies: Tallies

    def loaded(self, name: str, namespace: Any, key: Any, row: Any) -> None:
        """See that a group, or a value of one, is back."""
        self._tallies.loaded(name, namespace, key, row)

    def adopt(self, saved: Sequence[Mapping[str, Any]]) -> None:
        """Go on from the scalars; all rows are there."""
        super().adopt(saved)
        self._tallies.all_loaded()

    def route(self, name: str, key: Any) -> Any:
        """Return the group that a row belongs to."""
        return self._tallies.route(name, key)
