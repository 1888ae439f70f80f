"""The operators of a flow and their names.

Names are what state, metrics and errors hang on. An operator without state is named after its
kind and numbered. An operator with state gets a name that says what it keeps
(``count_by_country``), which stays the same when the program around it changes; if two would have
the same name, the user has to choose.
"""

import re

from floodway.core.errors import DuplicateNameError, OptionError
from floodway.operators.base import Operator

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class Registry:
    """Collects a flow's operators, in the order in which they were written."""

    def __init__(self) -> None:
        self._operators: dict[str, Operator] = {}
        self._numbers: dict[str, int] = {}

    @property
    def operators(self) -> tuple[Operator, ...]:
        """All operators."""
        return tuple(self._operators.values())

    def add(self, operator: Operator) -> None:
        """Take an operator in; its name must be free."""
        taken = self._operators.get(operator.name)
        if taken is not None:
            raise DuplicateNameError(
                f"the name {operator.name!r} is taken by the {taken.label} at {taken.place}",
                remedy="give one of them another name=",
            )
        self._operators[operator.name] = operator

    def owns(self, operator: Operator) -> bool:
        """Return whether an operator is one of this flow's."""
        return self._operators.get(operator.name) is operator

    def numbered(self, stem: str) -> str:
        """Return `stem`, with a number if that name is taken."""
        number = self._numbers.get(stem, 1)
        while (stem if number == 1 else f"{stem}_{number}") in self._operators:
            number += 1
        self._numbers[stem] = number
        return stem if number == 1 else f"{stem}_{number}"


def check_name(name: str) -> None:
    """Refuse a name that could not be a file's, a metric's and a key's."""
    if not _NAME.fullmatch(name):
        raise OptionError(
            f"{name!r} cannot be a name",
            remedy="use up to 64 letters, digits, dots, dashes and underscores, a letter or digit "
            "first",
        )


def stable_name(*parts: str) -> str:
    """Return a name made of words that say what is kept.

    >>> stable_name("count", "by", "upper(country)")
    'count_by_upper_country'
    """
    words = "_".join(re.sub(r"[^A-Za-z0-9]+", "_", part).strip("_") for part in parts if part)
    return words[:64].rstrip("_") or "table"
