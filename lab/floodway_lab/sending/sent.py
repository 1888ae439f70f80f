"""What data engines have sent of a workload, lap by lap."""

from collections.abc import Iterator, Sequence

import msgspec

from floodway.demo.sending.sent import Part, Sent
from floodway_lab.sending.lines import first_lap


class CasePart(Part, frozen=True):
    """What one data engine has sent of a workload; its seed says which laps are its own."""

    seed: int = 1


class Lap(msgspec.Struct, frozen=True):
    """One time that lines were sent, from the first: the lap's number, whose lines, their times."""

    number: int
    part: CasePart
    times_ms: list[int]


class CaseSent(Sent):
    """What all data engines have sent of a workload.

    Examples
    --------
    >>> from floodway.demo.sending.lines import Stretch
    >>> sent = CaseSent([CasePart([b"a", b"b"], [Stretch(0, 2, 7), Stretch(0, 1, 12)])])
    >>> [(lap.number, lap.times_ms) for lap in sent.laps()]
    [(100001, [7, 7]), (100002, [12])]
    """

    parts: Sequence[CasePart]

    def __init__(self, parts: Sequence[CasePart]) -> None:
        super().__init__(parts)

    @property
    def last_ms(self) -> int:
        """The time of the latest event; 0 if there is none."""
        return max((s.time_ms for part in self.parts for s in part.stretches), default=0)

    def laps(self) -> Iterator[Lap]:
        """Return the times of all lines, lap by lap; a lap that was not finished is shorter."""
        for part in self.parts:
            number, times = first_lap(part.seed), list[int]()
            for stretch in part.stretches:
                times += [stretch.time_ms] * stretch.count
                if len(times) == len(part.lines):
                    yield Lap(number, part, times)
                    number, times = number + 1, []
            if times:
                yield Lap(number, part, times)
