"""A configuration as the cost model sees it: dop and b_out of every operator (definition 41)."""

from collections.abc import Mapping

import msgspec


class Setting(msgspec.Struct, frozen=True):
    """How one operator runs; a sink has no output batch size."""

    dop: int = 1
    b_out: int | None = None


Settings = Mapping[str, Setting]
"""The setting of every operator."""


def tasks(settings: Settings) -> int:
    """Return how many tasks run: the resource consumption (definition 50, equation 4.15).

    Examples
    --------
    >>> tasks({"read": Setting(2, 100), "count": Setting(3)})
    5
    """
    return sum(setting.dop for setting in settings.values())
