"""Rates as users write them: one, or a range of them."""

import math

from floodway.core.errors import OptionError
from floodway.provisioning.planning.changes import number_of

MOST_RATES = 1000
"""How many rates a range may have."""


def rates_of(text: str) -> list[float]:
    """Return the rate that somebody wrote, or the rates of a range ``FROM:TO:STEP``.

    Examples
    --------
    >>> rates_of("500_000"), rates_of("100:300:100")
    ([500000.0], [100.0, 200.0, 300.0])
    """
    numbers = [number_of(part) for part in text.split(":")]
    found = [number for number in numbers if number is not None and number >= 0]
    if len(found) != len(numbers) or len(found) not in (1, 3):
        raise OptionError(
            f"{text!r} is not a rate",
            remedy="give records per second, such as 500000, or a range such as "
            "100000:500000:50000 (from, to, step)",
        )
    if len(found) == 1:
        return found
    first, last, step = found
    if first > last or not step:
        raise OptionError(
            f"the range {text!r} has no rates in it",
            remedy="go from the lower rate to the higher, in steps above 0",
        )
    count = math.floor((last - first) / step + 1e-9) + 1
    if count > MOST_RATES:
        raise OptionError(
            f"the range {text!r} has {count:,} rates; {MOST_RATES:,} can be shown",
            remedy="take larger steps",
        )
    return [first + step * number for number in range(count)]
