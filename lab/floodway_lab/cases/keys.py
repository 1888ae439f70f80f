"""Which key an event has: how often each of some keys comes."""

import random
from itertools import accumulate

import msgspec

from floodway.core.errors import OptionError


class Keys(msgspec.Struct, frozen=True):
    """A number of keys, and how they are distributed.

    Attributes
    ----------
    count
        How many there are.
    hot
        The share of all events that have the first key; the others have the rest as it is.
    zipf
        How uneven they are: the n-th is as often as the first divided by n to this power. With 0
        all are as often.

    Examples
    --------
    >>> Keys(4, zipf=1).weights()
    [0.48, 0.24, 0.16, 0.12]
    >>> Keys(3, hot=0.5).weights()
    [0.666667, 0.166667, 0.166667]
    """

    count: int
    hot: float = 0.0
    zipf: float = 0.0

    def __post_init__(self) -> None:
        if self.count < 1 or not 0 <= self.hot <= 1 or self.zipf < 0:
            raise OptionError(
                f"there cannot be {self.count} keys, {self.hot} of all events on one of them, "
                f"with an exponent of {self.zipf}",
                remedy="use at least 1 key, a share between 0 and 1, an exponent of 0 or more",
            )

    def weights(self) -> list[float]:
        """Return which share of all events each key has."""
        raw = [(number + 1) ** -self.zipf for number in range(self.count)]
        whole = sum(raw)
        shares = [(1 - self.hot) * each / whole for each in raw]
        shares[0] += self.hot
        return [round(share, 6) for share in shares]

    def draw(self, count: int, rng: random.Random) -> list[int]:
        """Return the keys of some events, by number."""
        return rng.choices(range(self.count), cum_weights=list(accumulate(self.weights())), k=count)
