"""How long to wait before trying again."""

import random
from typing import Protocol

from floodway.core.errors import OptionError


class _Random(Protocol):
    def random(self) -> float: ...


class Backoff:
    """Waits that grow from one failure to the next and vary a little.

    Parameters
    ----------
    first_ms
        The first wait.
    most_ms
        No wait is longer than this, the variation included.
    factor
        How much longer each wait is than the one before.
    jitter
        By which part a wait may be shorter or longer, so that many tasks that lost the same
        server do not all come back at the same moment.
    rng
        What gives the variation: anything with ``random()``.

    Examples
    --------
    >>> backoff = Backoff(first_ms=100, most_ms=1_000, jitter=0)
    >>> [backoff.next_ms() for _ in range(5)]
    [100.0, 200.0, 400.0, 800.0, 1000.0]
    >>> backoff.reset()
    >>> backoff.next_ms()
    100.0
    """

    def __init__(
        self,
        first_ms: float = 100,
        most_ms: float = 10_000,
        factor: float = 2.0,
        jitter: float = 0.2,
        rng: _Random | None = None,
    ) -> None:
        if not (0 < first_ms <= most_ms and factor >= 1 and 0 <= jitter < 1):
            raise OptionError(
                f"a back-off of {first_ms} to {most_ms} ms with factor {factor} and jitter "
                f"{jitter} makes no sense",
                remedy="let 0 < first_ms <= most_ms, factor >= 1 and 0 <= jitter < 1",
            )
        self._first_ms = float(first_ms)
        self._most_ms = float(most_ms)
        self._factor = factor
        self._jitter = jitter
        self._rng = rng or random
        self._wait_ms = self._first_ms

    def next_ms(self) -> float:
        """Return how long to wait now; the next wait will be longer."""
        wait_ms = self._wait_ms
        self._wait_ms = min(wait_ms * self._factor, self._most_ms)
        varied = wait_ms * (1 + self._jitter * (2 * self._rng.random() - 1))
        return min(varied, self._most_ms)

    def reset(self) -> None:
        """Begin again with the first wait: it worked."""
        self._wait_ms = self._first_ms
