"""Comparisons made by hand, as large and as odd as a test wants them."""

import math
import random
from collections.abc import Sequence

import msgspec
from floodway_lab.figures.machine import Machine
from floodway_lab.runs.comparing import LOADS, Compared, Comparison, Round, ratios
from floodway_lab.runs.experiment import Experiment, Latency, Paradigm, Run
from floodway_lab.runs.searching import Trial
from floodway_lab.runs.series import CDF
from floodway_lab.sending.generating import Jitter
from floodway_lab.systems.system import Link

MACHINE = Machine(
    "2026-11-17 02:10 UTC", "0.5.0", "3.12.11", "AMD EPYC 7B13 64-Core Processor", 4, 15.6, 0.21
)
EXPERIMENT = Experiment(case="ads", system="", rate=1.0, seconds=20.0, warm_s=5.0, engines=2, dop=2)

MODELS: dict[str, tuple[str, float, float, Link]] = {
    "floodway-dual": ("Floodway, as flows run by default", 812_000, 4.1, "tcp"),
    "floodway-data": ("Floodway, record by record, b_out 1000", 640_000, 3.8, "tcp"),
    "floodway-operation": ("Floodway, micro-batches only", 835_000, 240, "tcp"),
    "floodway-unbatched": ("Floodway, record by record, b_out 1, no fusion", 61_000, 1.9, "tcp"),
    "loop": ("a Python loop by hand, one process", 905_000, 0.9, "tcp"),
    "loops": ("a Python loop by hand, several processes", 1_490_000, 1.4, "tcp"),
    "bytewax": ("Bytewax 0.21.1", 415_000, 6.2, "tcp"),
    "pathway": ("Pathway 0.33.0", 287_000, 38, "tcp"),
    "quix": ("Quix Streams 3.28.1", 23_000, 140, "kafka"),
    "spark": ("Spark Structured Streaming 4.3.0", 331_000, 910, "tcp"),
    "spark-realtime": ("Spark Real-Time Mode 4.3.0", 204_000, 61, "kafka"),
    "flink-sql": ("Flink 2.3, Table API and SQL", 352_000, 22, "tcp"),
    "flink-datastream": ("Flink 2.3, DataStream in Python", 74_000, 105, "tcp"),
}
"""Some systems: title, sustainable rate, half of the latency at a tenth of it, link."""


def made_run(system: str, rate: float, middle_ms: float, **changes: object) -> Run:
    """Return a run whose latency has a long tail."""
    chance = random.Random(f"{system} {rate}")
    cdf = [round(middle_ms * (0.4 + (1 / (1.0004 - min(s, 1.0))) ** 0.45 * 0.45), 3) for s in CDF]
    seconds = int(EXPERIMENT.seconds)
    p99 = cdf[98]
    over_time = [
        {
            "t": float(t),
            "p50": round(middle_ms * (1 + 3 * math.exp(-t)) * chance.uniform(0.9, 1.1), 3),
            "p99": round(p99 * (1 + 3 * math.exp(-t)) * chance.uniform(0.7, 1.6), 3),
            "taken": rate,
            "queued": rate * middle_ms / 1000,
        }
        for t in range(seconds)
    ]
    made = Run(
        experiment=msgspec.structs.replace(EXPERIMENT, system=system, rate=rate),
        machine=MACHINE,
        link="tcp",
        void=False,
        why="",
        sustained=True,
        correct=True,
        generated=int(rate * seconds),
        taken=int(rate * seconds),
        per_s=rate,
        latency_ms=Latency(middle_ms, cdf[89], p99, cdf[-2], cdf[-1], 48_000),
        cdf_ms=cdf,
        over_time=over_time,
        paradigms=[],
        jitter_ms=Jitter(0.1, 0.8, 3.0),
        foreign=0.02,
    )
    return msgspec.structs.replace(made, **changes)


def made_system(name: str, *, rounds: int = 3) -> Compared:
    """Return a system that was measured without trouble."""
    title, rate, middle_ms, link = MODELS[name]
    chance = random.Random(name)
    made = []
    for number in range(rounds):
        reached = round(rate * chance.uniform(0.97, 1.03), 1)
        loads = list(LOADS)
        runs = [
            made_run(name, round(load * reached, 1), middle_ms * (0.9 + load) * slower)
            for load, slower in zip(loads, (1.0, 1.3, 3.1), strict=False)
        ]
        trials = [Trial(reached * 1.05, False, reached), Trial(reached, True, reached)]
        made.append(Round(number=number, rate=reached, trials=trials, runs=runs, loads=loads))
    return Compared(
        system=name,
        title=title,
        tuning="lines in chunks, decoded with msgspec in one call; a process per task",
        link=link,
        versions=[]
        if name.startswith(("floodway", "loop"))
        else [f"{name}==1.0", "msgspec==0.22.0"],
        rounds=made,
    )


def left_out(name: str, why: str) -> Compared:
    """Return a system that could not be measured."""
    title, _, _, link = MODELS[name]
    empty = Round(number=0, rate=None, trials=[], runs=[], loads=[])
    return Compared(
        system=name, title=title, tuning="", link=link, versions=[], rounds=[empty], why=why
    )


def changed_run(of: Compared, number: int, position: int, **changes: object) -> Compared:
    """Return a system one of whose runs was different."""
    rounds = list(of.rounds)
    runs = list(rounds[number].runs)
    runs[position] = msgspec.structs.replace(runs[position], **changes)
    rounds[number] = msgspec.structs.replace(rounds[number], runs=runs)
    return msgspec.structs.replace(of, rounds=rounds)


def switching(of: Compared) -> Compared:
    """Return Floodway with stages that switched in its last run."""
    switches = [
        Paradigm("parse", "operation", 1.2),
        Paradigm("count per campaign", "operation", 1.9),
        Paradigm("parse", "data", 9.4),
        Paradigm("parse", "operation", 12.0),
    ]
    return changed_run(of, -1, -1, paradigms=switches)


def made_comparison(
    systems: Sequence[Compared], *, complete: bool = True, **changes: object
) -> Comparison:
    """Return a comparison of some systems."""
    made = Comparison(
        case="ads",
        title="ad analytics: windowed count per campaign",
        machine=MACHINE,
        experiment=EXPERIMENT,
        rounds_wanted=3,
        complete=complete,
        systems=list(systems),
        ratios=ratios(systems),
    )
    return msgspec.structs.replace(made, **changes)


def eventful() -> Comparison:
    """Return a comparison in which something of everything has happened."""
    return made_comparison(
        [
            switching(made_system("floodway-dual")),
            made_system("loop"),
            changed_run(
                made_system("bytewax"),
                1,
                0,
                void=True,
                correct=None,
                why="the machine was too loaded: others had 31% of its cores, more than 15%",
            ),
            made_system("quix"),
            left_out("pathway", "the system ended with code 1: ImportError: no module 'pathway'"),
        ]
    )


def everybody() -> Comparison:
    """Return a comparison of all systems."""
    return made_comparison(
        [switching(made_system(n)) if n == "floodway-dual" else made_system(n) for n in MODELS]
    )
