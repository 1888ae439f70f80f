"""Systems side by side: in turns, in one run, so that a machine's moods strike all of them.

Every round looks for each system's sustainable rate and then takes its latency at a tenth, a half
and nine tenths of that, one after the other in one run. Ratios are taken within a round, where the
machine was the same, and only then averaged.
"""

import math
from collections.abc import Callable, Sequence
from statistics import fmean, geometric_mean

import msgspec

from floodway.core.errors import OptionError
from floodway_lab.cases.registry import case_named
from floodway_lab.figures.machine import Machine
from floodway_lab.runs.experiment import Experiment, Run
from floodway_lab.runs.searching import Search, Trial
from floodway_lab.runs.sustaining import interval
from floodway_lab.systems.registry import SYSTEMS, link_of, with_tasks
from floodway_lab.systems.system import Link

LOADS = (0.1, 0.5, 0.9)
"""The latency is taken at these parts of the sustainable rate; the first is what is compared."""

AT_LOAD = 0.6
"""Each of them lasts for so much of a trial, and half of that counts: what a system does about more
load is over then."""

OWN = "floodway"
LIMITS = ("loop", "loops")
"""What is not a peer: Floodway itself, and what was written by hand to know the limits."""

CAVEATS = (
    "Everybody was on one machine: data engines, brokers and systems share its cores.",
    "Systems were written by the authors of one of them, as the others' documentation advises; "
    "what was tuned is said below.",
    "A figure is worth as much as its interval; compare ratios of one run, not runs.",
    "Sustained is what the paper's Algorithm 1 calls so, for as long as a trial lasted.",
)


class Round(msgspec.Struct, frozen=True, kw_only=True):
    """What a round has shown of a system.

    Attributes
    ----------
    number
        Which round it was.
    rate
        The sustainable rate; None if nothing was sustained.
    trials
        All that was tried to find it.
    runs
        The runs at parts of it.
    loads
        Which parts.
    """

    number: int
    rate: float | None
    trials: list[Trial]
    runs: list[Run]
    loads: list[float]


class Compared(msgspec.Struct, kw_only=True):
    """What the comparison has shown of a system.

    Attributes
    ----------
    system, title, tuning, link, versions
        Which one, how it was set up, how events came to it, what was installed for it.
    dop
        How many tasks it was to have.
    starts_s
        How much more warm-up it had than `Experiment.warm_s`.
    rounds
        What each round has shown.
    why
        Why it was left out; nothing if it was not.
    """

    system: str
    title: str
    tuning: str
    link: Link
    versions: list[str]
    dop: int = 1
    starts_s: float = 0.0
    rounds: list[Round] = []
    why: str = ""

    @property
    def rates(self) -> list[float]:
        """The sustainable rate of each round that had one."""
        return [each.rate for each in self.rounds if each.rate is not None]

    @property
    def sustainable_rate(self) -> float | None:
        """The mean over all rounds."""
        return fmean(self.rates) if self.rates else None

    def at(self, load: float) -> list[Run]:
        """Return the runs at a part of the sustainable rate that mean something."""
        return [
            run
            for each in self.rounds
            for run, part in zip(each.runs, each.loads, strict=True)
            if part == load and not run.void
        ]

    @property
    def correct(self) -> bool:
        """Whether no answer was wrong."""
        return all(run.correct is not False for each in self.rounds for run in each.runs)


class Ratio(msgspec.Struct, frozen=True):
    """How two systems compare: what, of whom, against whom; the mean of all rounds, its bounds.

    The mean is geometric: one that is twice as much and one that is half as much make 1.
    """

    what: str
    system: str
    against: str
    value: float
    interval: tuple[float, float] | None
    rounds: list[float]


class Comparison(msgspec.Struct, kw_only=True):
    """Systems side by side.

    Attributes
    ----------
    case, title
        The workload.
    machine
        Where, and when.
    experiment, command
        What all runs have in common, and how the comparison was asked for.
    rounds_wanted, complete
        How many rounds there were to be, and whether it came to its end.
    caveats
        What to keep in mind.
    systems, ratios
        What was found.
    """

    case: str
    title: str
    machine: Machine
    experiment: Experiment
    command: str = ""
    rounds_wanted: int
    complete: bool = False
    caveats: tuple[str, ...] = CAVEATS
    systems: list[Compared]
    ratios: list[Ratio] = []


Runner = Callable[[Experiment], Run]
Progress = Callable[[int, int, str], None]
Keep = Callable[[Comparison], None]


def compare(
    systems: Sequence[str],
    experiment: Experiment,
    *,
    rounds: int,
    run: Runner,
    precision: float = 0.05,
    command: str = "",
    progress: Progress = lambda *_: None,
    keep: Keep = lambda _: None,
    so_far: Comparison | None = None,
) -> Comparison:
    """Compare systems; `keep` gets what there is after every step, in case there is no next one.

    With `so_far`, what such a comparison has found before it was stopped is not measured again.
    """
    if so_far is not None:
        _check_same(so_far.experiment, experiment)
    found = Comparison(
        case=experiment.case,
        title=case_named(experiment.case).title,
        machine=Machine.here(),
        experiment=experiment,
        command=command,
        rounds_wanted=rounds,
        systems=[_described(name, experiment, so_far) for name in systems],
    )
    steps, step = rounds * len(systems), 0
    for number in range(rounds):
        for of in found.systems:
            progress(step, steps, f"round {number + 1}: {of.title}")
            step += 1
            if not of.why and number not in (each.number for each in of.rounds):
                _do_round(of, number, experiment, precision, run)
            found.ratios = ratios(found.systems)
            keep(found)
    found.complete = True
    keep(found)
    return found


def _check_same(before: Experiment, now: Experiment) -> None:
    """Refuse to go on with a comparison that measured something else."""
    other = [
        field
        for field in before.__struct_fields__
        if field != "system" and getattr(before, field) != getattr(now, field)
    ]
    if other:
        raise OptionError(
            f"what was found before has another {', '.join(other)}",
            remedy="compare with the same options, or begin anew with another file",
        )


def _described(name: str, experiment: Experiment, so_far: Comparison | None) -> Compared:
    known = [each for each in so_far.systems if each.system == name] if so_far else []
    if known and known[0].rounds:
        return known[0]
    base, tasks = with_tasks(name)
    system, link = SYSTEMS[base], experiment.link
    return Compared(
        system=name,
        dop=tasks or experiment.dop,
        title=f"{system.title}, {tasks} tasks" if tasks else system.title,
        tuning=system.tuning,
        link=link if link in system.links else link_of(system, None),
        versions=[*system.requirements, *system.jars],
        starts_s=system.starts_s,
    )


def _do_round(
    of: Compared, number: int, experiment: Experiment, precision: float, run: Runner
) -> None:
    """Have one system do its part of a round."""
    system, _ = with_tasks(of.system)
    given = msgspec.structs.replace(
        experiment,
        system=system,
        link=of.link,
        dop=of.dop,
        seconds=experiment.seconds + SYSTEMS[system].starts_s,
        warm_s=experiment.warm_s + SYSTEMS[system].starts_s,
    )
    first = of.rates[-1] * 1.02 if of.rates else SYSTEMS[system].first_rate
    search, broken = Search(first, precision=precision), ""
    while (rate := search.next_rate()) is not None and not broken:
        done = run(msgspec.structs.replace(given, rate=rate, judged=True))
        search.note(Trial(rate, done.sustained and not done.void, done.per_s))
        if done.void and not done.per_s:
            broken = done.why  # it does not run at all: another rate would not help
    runs, loads = [], list[float]()
    rate = search.sustained
    if rate is not None:
        runs, loads = run(_at_loads(given, rate)).parts[-len(LOADS) :], list(LOADS)
    elif not of.rates:
        of.why = broken or "it has sustained nothing"
    made = Round(number=number, rate=rate, trials=search.trials, runs=runs, loads=loads)
    of.rounds = [*of.rounds, made]


def _at_loads(given: Experiment, rate: float) -> Experiment:
    slow_s = SYSTEMS[given.system].starts_s
    seconds = max(round(AT_LOAD * (given.seconds - slow_s)), 2)
    # A system that is slow to start has the first load twice, and the first time does not count.
    loads = (LOADS[0], *LOADS) if slow_s else LOADS
    return msgspec.structs.replace(
        given, rate=rate, loads=loads, seconds=seconds, warm_s=seconds / 2, judged=False
    )


def is_peer(name: str) -> bool:
    """Return whether a system is one that others have made.

    >>> is_peer("floodway-dual"), is_peer("loops@2"), is_peer("bytewax")
    (False, False, True)
    """
    return not name.startswith(OWN) and with_tasks(name)[0] not in LIMITS


def ratios(systems: Sequence[Compared]) -> list[Ratio]:
    """Return how Floodway, as it runs by default, compares with each of the others."""
    own = next((each for each in systems if each.system == "floodway-dual"), None)
    if own is None:
        return []
    found = []
    for other in systems:
        if other is not own:
            found += _ratios(own, other)
    return found


def _ratios(own: Compared, other: Compared) -> list[Ratio]:
    rates, lates = list[float](), list[float]()
    for mine, theirs in zip(own.rounds, other.rounds, strict=False):
        if mine.rate and theirs.rate:
            rates.append(mine.rate / theirs.rate)
        late, their_late = _p99(mine), _p99(theirs)
        if late and their_late:
            lates.append(late / their_late)
    return [
        Ratio(what, own.system, other.system, geometric_mean(each), _interval(each), each)
        for what, each in (("sustainable rate", rates), ("p99 at 10 % load", lates))
        if each
    ]


def _p99(of: Round) -> float | None:
    runs = [run for run, load in zip(of.runs, of.loads, strict=True) if load == LOADS[0]]
    late = runs[0].latency_ms if runs and not runs[0].void else None
    return late.p99 if late is not None else None


def _interval(ratios: list[float]) -> tuple[float, float] | None:
    """Return the bounds of a ratio; of logarithms, so that twice and half are as far from 1."""
    found = interval([math.log(ratio) for ratio in ratios])
    return (math.exp(found[0]), math.exp(found[1])) if found else None
