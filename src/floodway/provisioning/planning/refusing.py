"""Options that cannot go together."""

from collections.abc import Mapping

from floodway.core.errors import OptionError


def refuse_beside(options: Mapping[str, object], beside: str, why: str) -> None:
    """Refuse options that make no sense beside another; they are called what the user wrote.

    Examples
    --------
    >>> refuse_beside({"lean=": False, "max_tasks=": 3}, "configuration=", "nothing is planned")
    Traceback (most recent call last):
    floodway.core.errors.OptionError: max_tasks= cannot go with configuration=: nothing is planned
      remedy: leave out max_tasks=
    """
    given = [name for name, value in options.items() if value]
    if given:
        raise OptionError(
            f"{', '.join(given)} cannot go with {beside}: {why}", remedy=f"leave out {given[0]}"
        )
