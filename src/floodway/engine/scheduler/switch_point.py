"""When the operation paradigm would be faster: the switch point (DO, section 4.2).

A record that comes last into a queue of L records leaves the stage after

- ``L / P_D + t_dt`` in the data paradigm (equation 4),
- ``T / 2 + t_s + V T / P_O + t_ot`` in the operation paradigm (equation 5).

They are equal at ``L_switch = K V T + C P_D`` (equation 6), with ``K = P_D / P_O`` and
``C = T / 2 + t_s + t_ot - t_dt``. The scheduler acts above ``L_up = (1 + d) L_switch`` and below
``L_down = (1 - d) L_switch`` (equation 7).

The equations alone are not enough in four places:

- *Going there.* Where more arrives than is processed the queue grows by ``V - P_D`` a second. A
  stage whose queue has begun, and will be above L_up soon, need not wait until it is.
- *Going back.* In the operation paradigm there are always about V T records that wait for the end
  of the interval and as many in a batch that is out. That says nothing about a flood. So what is
  compared with L_down is the queue without them; and before anything else the data paradigm must be
  able to carry what arrives, ``V <= (1 - d) P_D``, or the stage would flood again at once.
- *Queues that cannot be seen.* Caches are bounded, so a queue inside of the flow stops growing when
  its senders have to wait, and the queue before a source may be in somebody else's socket. Such a
  queue counts as unbounded; see `StageLoad.saturated` and `pressure`.
- *Operation paradigms that are slower.* Equation 6 has a solution for K > 1, too: a queue so long
  that the next micro-batch is sooner done, since that counts only V T of it. But the queue has to
  be worked off by somebody, and with K > 1 that is not the operation paradigm.
"""

import msgspec

from floodway.engine.scheduler.loads import StageLoad
from floodway.engine.scheduler.settings import SchedulerSettings


class SwitchPoint(msgspec.Struct, frozen=True, kw_only=True):
    """All numbers of equations 4 to 7, for one stage at one moment.

    Attributes
    ----------
    arrival_per_s, queue_records, interval_s, data_per_s, operation_per_s
        V, L, T, P_D and P_O.
    schedule_s, transmit_data_s, transmit_operation_s
        t_s, t_dt and t_ot.
    guessed
        Which of them are first guesses.
    unbounded
        Whether the queue goes on where it cannot be seen.
    k, c_s, delta
        K, C and d.
    l_switch, l_up, l_down
        The queue lengths to act on.
    l_soon, ahead_s
        The queue as it will be after a while, if nothing changes; L itself where P_D is a guess.
    latency_data_s, latency_operation_s
        What the two paradigms would take.
    """

    arrival_per_s: float
    queue_records: int
    interval_s: float
    data_per_s: float
    operation_per_s: float
    schedule_s: float
    transmit_data_s: float
    transmit_operation_s: float
    guessed: tuple[str, ...]
    unbounded: bool
    k: float
    c_s: float
    delta: float
    l_switch: float
    l_up: float
    l_down: float
    l_soon: float
    ahead_s: float
    latency_data_s: float
    latency_operation_s: float

    @property
    def above(self) -> bool:
        """Whether the queue is above L_up, or has begun to grow and soon will be."""
        if self.unbounded or self.queue_records > self.l_up:
            return True
        return self.begun and self.l_soon > self.l_up

    @property
    def begun(self) -> bool:
        """Whether there is a queue worth looking at; a burst of a moment leaves less."""
        return self.queue_records > self.l_down / 4

    @property
    def standing(self) -> float:
        """The records that are there in the operation paradigm without any flood.

        Little's law: a record waits up to T, is scheduled, processed and merged; see equation 5.
        """
        return self.arrival_per_s * (self.latency_operation_s + self.interval_s / 2)

    @property
    def carried(self) -> bool:
        """Whether the data paradigm could carry what arrives, with a margin."""
        return not self.unbounded and self.arrival_per_s <= (1 - self.delta) * self.data_per_s

    @property
    def below(self) -> bool:
        """Whether a stage in the operation paradigm is calm; see the head of this module."""
        return self.carried and self.queue_records - self.standing <= self.l_down

    @property
    def pays(self) -> bool:
        """Whether the operation paradigm is the faster one at all, as far as is known.

        What is only guessed has to promise more: a switch that was wrong lasts for seconds.
        """
        return self.k <= (1 - self.delta if "operation_per_s" in self.guessed else 1)

    @property
    def worse(self) -> bool:
        """Whether the operation paradigm cannot keep up where the data paradigm does better."""
        full = self.unbounded or self.arrival_per_s >= (1 - self.delta) * self.operation_per_s
        return full and self.k > 1 + self.delta / 2


def switch_point(
    load: StageLoad,
    settings: SchedulerSettings,
    *,
    data_per_s: float | None = None,
    operation_per_s: float | None = None,
    unbounded: bool | None = None,
) -> SwitchPoint:
    """Return the switch point of a stage.

    Parameters
    ----------
    load
        What was measured of it now.
    settings
        Has the first guesses.
    data_per_s, operation_per_s
        What was measured before: in one paradigm the other's rate is not measured any longer.
    unbounded
        Whether its queue goes on where it cannot be seen; if None, whether it is saturated.

    Examples
    --------
    >>> load = StageLoad(stage="count", arrival_per_s=1000, queue_records=900, data_per_s=1000)
    >>> point = switch_point(load, SchedulerSettings())
    >>> round(point.l_switch), round(point.l_up), point.above
    (162, 194, True)
    """
    guessed: list[str] = []

    def known(name: str, guess: float, *measured: float | None) -> float:
        for value in measured:
            if value is not None:
                return value
        guessed.append(name)
        return guess

    p_d = known("data_per_s", settings.data_per_s, data_per_s, load.data_per_s)
    guess = guessed_rate(load, settings, p_d)
    p_o = known("operation_per_s", guess, operation_per_s, load.operation_per_s)
    t = known("interval_s", settings.interval_s, load.interval_s)
    t_s = known("schedule_s", settings.schedule_s, load.schedule_s)
    t_dt = known("transmit_data_s", settings.transmit_data_s, load.transmit_data_s)
    t_ot = known("transmit_operation_s", settings.transmit_operation_s, load.transmit_operation_s)

    p_d, p_o = max(p_d, TINY), max(p_o, TINY)
    v, k, c = load.arrival_per_s, p_d / p_o, t / 2 + t_s + t_ot - t_dt
    # Where one hop takes longer than a whole micro-batch, C is negative: any queue is too long.
    l_switch = max(0.0, k * v * t + c * p_d)
    growth = 0.0 if "data_per_s" in guessed else max(0.0, v - p_d) * settings.ahead_s
    return SwitchPoint(
        arrival_per_s=v,
        queue_records=load.queue_records,
        interval_s=t,
        data_per_s=p_d,
        operation_per_s=p_o,
        schedule_s=t_s,
        transmit_data_s=t_dt,
        transmit_operation_s=t_ot,
        guessed=tuple(guessed),
        unbounded=load.saturated if unbounded is None else unbounded,
        k=k,
        c_s=c,
        delta=settings.delta,
        l_switch=l_switch,
        l_up=(1 + settings.delta) * l_switch,
        l_down=(1 - settings.delta) * l_switch,
        l_soon=load.queue_records + growth,
        ahead_s=settings.ahead_s,
        latency_data_s=load.queue_records / p_d + t_dt,
        latency_operation_s=t / 2 + t_s + v * t / p_o + t_ot,
    )


def guessed_rate(load: StageLoad, settings: SchedulerSettings, data_per_s: float) -> float:
    """Return a first guess of P_O: all slots at work, and hardly idle.

    A record costs what it does now, and its owner has to collect it and take what comes back of
    it. The machine's cores have to do all of that, and the owner's its own part.

    Examples
    --------
    Cheap work whose every result comes back is not worth sending away; dear work is:

    >>> cheap, dear = (StageLoad(stage="s", returned=1.0, data_per_s=p) for p in (2e6, 1e5))
    >>> [
    ...     round(load.data_per_s / guessed_rate(load, SchedulerSettings(), load.data_per_s), 2)
    ...     for load in (cheap, dear)
    ... ]
    [2.4, 0.59]
    """
    work_ns = load.tasks * 1e9 / max(data_per_s, TINY)
    owner_ns = settings.collect_ns + settings.return_ns * load.returned
    slots = settings.usable * load.slots
    return min(1e9 * slots / (work_ns + owner_ns), 1e9 * load.tasks / owner_ns)


TINY = 1e-3
"""Records a second, for what was measured as standing still; nothing is divided by zero."""
