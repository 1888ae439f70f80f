"""The shapes of load that benchmarks use, as schedules; a load can also be read from a file."""

import math
from collections.abc import Callable
from pathlib import Path

import msgspec

from floodway.core.errors import OptionError
from floodway.demo.sending.schedules import Recorded


class Constant(msgspec.Struct, frozen=True, tag=True):
    """The same rate all the time.

    Examples
    --------
    >>> Constant(1_000).due(2.5)
    2500.0
    """

    per_s: float

    def due(self, t: float) -> float:
        """Return how many events are due by a moment."""
        return self.per_s * t


class Step(msgspec.Struct, frozen=True, tag=True):
    """One rate until a moment, and another between that and a second one, or from then on.

    Examples
    --------
    >>> step = Step(1_000, 5_000, start_s=2, stop_s=3)
    >>> [step.due(t) for t in (2, 2.5, 3, 4)]
    [2000, 4500.0, 7000, 8000]
    """

    per_s: float
    flood_per_s: float
    start_s: float
    stop_s: float | None = None

    def due(self, t: float) -> float:
        """Return how many events are due by a moment."""
        stop_s = math.inf if self.stop_s is None else self.stop_s
        flooded = min(max(t - self.start_s, 0.0), stop_s - self.start_s)
        return self.per_s * (t - flooded) + self.flood_per_s * flooded


class Bursts(msgspec.Struct, frozen=True, tag=True):
    """A rate, and again and again another one for a while; each period ends with a burst.

    Examples
    --------
    >>> bursts = Bursts(100, 1_000, every_s=10, lasting_s=1)
    >>> [bursts.due(t) for t in (9, 10, 19, 19.5)]
    [900, 1900.0, 2800, 3300.0]
    """

    per_s: float
    burst_per_s: float
    every_s: float
    lasting_s: float

    def due(self, t: float) -> float:
        """Return how many events are due by a moment."""
        periods, rest = divmod(t, self.every_s)
        burst = self.lasting_s * periods + max(rest - (self.every_s - self.lasting_s), 0.0)
        return self.per_s * (t - burst) + self.burst_per_s * burst


class Sine(msgspec.Struct, frozen=True, tag=True):
    """A rate that swings about a mean, and begins there, rising.

    Examples
    --------
    >>> sine = Sine(1_000, swing_per_s=500, period_s=10)
    >>> [round(sine.due(t)) for t in (2.5, 5, 10)]
    [3296, 6592, 10000]
    """

    per_s: float
    swing_per_s: float
    period_s: float

    def due(self, t: float) -> float:
        """Return how many events are due by a moment."""
        omega = math.tau / self.period_s
        return self.per_s * t + self.swing_per_s * (1 - math.cos(omega * t)) / omega


class Ramp(msgspec.Struct, frozen=True, tag=True):
    """A rate that grows or falls evenly to another one, and stays there.

    Examples
    --------
    >>> ramp = Ramp(0, 1_000, seconds=10)
    >>> [ramp.due(t) for t in (5, 10, 11)]
    [1250.0, 5000.0, 6000.0]
    """

    per_s: float
    last_per_s: float
    seconds: float

    def due(self, t: float) -> float:
        """Return how many events are due by a moment."""
        within = min(t, self.seconds)
        slope = (self.last_per_s - self.per_s) / self.seconds
        return self.per_s * within + slope * within**2 / 2 + self.last_per_s * (t - within)


Schedule = Constant | Step | Bursts | Sine | Ramp | Recorded
"""All there are; each is a JSON object that says in ``type`` which one it is."""

_SHAPES: dict[str, Callable[[float, float], Schedule]] = {
    "constant": lambda rate, _: Constant(rate),
    "step": lambda rate, s: Step(rate, 5 * rate, start_s=s / 3, stop_s=2 * s / 3),
    "bursts": lambda rate, s: Bursts(rate, 5 * rate, every_s=s / 4, lasting_s=s / 20),
    "sine": lambda rate, s: Sine(rate, 0.8 * rate, period_s=s / 3),
    "ramp": lambda rate, s: Ramp(rate / 10, rate, seconds=s),
}

SHAPES = tuple(_SHAPES)
"""The shapes that have a name."""


def shaped(shape: str | Schedule, rate: float, seconds: float) -> Schedule:
    """Return a schedule of a shape, fitted into a time; a shape may be a file of rates.

    What is a schedule already stays as it is.

    ``step`` and ``bursts`` are floods of five times the rate, ``sine`` swings by four fifths about
    it, ``ramp`` grows up to it from a tenth. A file has a number on each line, one for each second;
    its mean becomes the rate.

    >>> shaped("step", 1_000, 30)
    Step(per_s=1000, flood_per_s=5000, start_s=10.0, stop_s=20.0)
    """
    if not isinstance(shape, str):
        return shape
    if shape in _SHAPES:
        return _SHAPES[shape](rate, seconds)
    if not Path(shape).is_file():
        raise OptionError(
            f"there is no shape {shape!r}",
            remedy=f"use one of {', '.join(SHAPES)}, or a file with a rate on each line",
        )
    recorded = read_rates(Path(shape))
    mean = sum(recorded.per_s) / len(recorded.per_s)
    return Recorded(tuple(rate * each / mean for each in recorded.per_s))


def read_rates(path: Path) -> Recorded:
    """Return the rates of a file, one for each second."""
    rates: list[float] = []
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        try:
            rate = float(text)
        except ValueError:
            rate = math.nan
        if not 0 <= rate < math.inf:
            raise OptionError(
                f"{path}, line {number}: {text!r} is no rate",
                remedy="have one number on each line, 0 or more: events per second",
            )
        rates.append(rate)
    if not sum(rates):
        raise OptionError(f"{path} has no rate above 0", remedy="add one on a line of its own")
    return Recorded(tuple(rates))
