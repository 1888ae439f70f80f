"""How the scheduler judges: first guesses, margins and times."""

import msgspec

from floodway.core.errors import OptionError


class SchedulerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The scheduler's settings.

    The first guesses hold until something is measured; they are those of a two-core machine
    (design, section 8), and of the DO paper.

    Attributes
    ----------
    delta
        The share by which L_up lies above and L_down below L_switch (DO, equation 7). It is also
        the margin by which the data paradigm must be able to carry the load before a stage goes
        back to it.
    data_per_s
        First guess of P_D.
    collect_ns, return_ns
        What a micro-batch costs beyond the work itself, for a first guess of P_O: to collect a
        record undecoded, and to bring one back to its owner.
    usable
        Which part of the slots' time micro-batches can make use of, for the same guess.
    interval_s
        First guess of T: about as long as a Spark job takes under load.
    schedule_s
        First guess of t_s: the smallest Spark job with Python tasks.
    transmit_data_s, transmit_operation_s
        First guesses of t_dt, one hop, and of t_ot, writing and merging a block.
    ahead_s
        How far to look ahead: a queue that has begun, and will be above L_up by then if nothing
        changes, is a flood already.
    confirm, confirm_ms
        A flood counts when so many observations in a row show it, over at least that time. With
        an observation every 50 ms, of the last 100 ms, it is found in less than 300 ms.
    warm_ms
        So long a stage that is new is not switched: at its start everybody has a backlog.
    calm_ms, most_calm_ms
        So long it has to be calm before a stage goes back. Whoever went back and floods again soon
        has to be calm for twice as long, up to the second.
    soon_ms
        What "soon" means there.
    cool_ms
        The least time between two switches of a stage.
    answer_ms
        A switch that is not answered for so long has failed.
    failed_ms
        So long a stage is left alone after a switch that failed.
    doubt_ms
        An operation paradigm that was slower than the data paradigm is not tried again for so
        long. Then it is: the measurement may have been that of a cold or a crowded machine.
    blocked
        From this share of the time without room for output on, a stage may be held back by others.
    busy
        From this share of the time at work on, a stage is what holds them back.
    dominant
        From this share of a record's cost on, fetching or emitting is worth larger batches.
    factor, most_batch
        A batch size grows and shrinks by this factor, up to the second.
    moment_ms
        So long a larger batch size has to show its effect before a stage is switched.
    patience_ms
        So long after the first of them there may be further steps; then there have been enough.
    lower_ms
        So long it has to be calm for each step back to the configured batch size.
    """

    delta: float = 0.2
    data_per_s: float = 100_000.0
    collect_ns: float = 200.0
    return_ns: float = 1_000.0
    usable: float = 0.95
    interval_s: float = 0.1
    schedule_s: float = 0.05
    transmit_data_s: float = 0.001
    transmit_operation_s: float = 0.01
    ahead_s: float = 0.5
    confirm: int = 2
    confirm_ms: int = 80
    warm_ms: int = 1_000
    calm_ms: int = 2_000
    most_calm_ms: int = 60_000
    soon_ms: int = 30_000
    cool_ms: int = 5_000
    answer_ms: int = 30_000
    failed_ms: int = 30_000
    doubt_ms: int = 600_000
    blocked: float = 0.1
    busy: float = 0.8
    dominant: float = 0.25
    factor: int = 10
    most_batch: int = 1_000
    moment_ms: int = 300
    patience_ms: int = 500
    lower_ms: int = 5_000

    def __post_init__(self) -> None:
        if not 0 < self.delta < 1:
            raise OptionError(
                f"delta is {self.delta}", remedy="choose a share between 0 and 1, like 0.2"
            )
        if self.collect_ns <= 0 or self.return_ns < 0:
            raise OptionError(
                f"collecting cannot cost {self.collect_ns} ns, nor coming back {self.return_ns} ns",
                remedy="leave them as they are, or measure them",
            )
        if self.factor < 2:
            raise OptionError(
                f"batch sizes cannot grow by a factor of {self.factor}", remedy="use 2 or more"
            )
