"""``floodway run``: a flow on Spark, until it ends or is told to."""

import logging
import re
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, cast, get_args

import typer
from rich.console import Console
from rich.live import Live

from floodway.cli.described import SampleOption, measuring, samples_of
from floodway.cli.flows import (
    BatchOption,
    ConfigurationOption,
    DopOption,
    FlowArgument,
    LingerOption,
    configuration_of,
    on_command_line,
)
from floodway.cli.output import STDOUT, JsonOption, write_json
from floodway.cli.restoring import Restoring
from floodway.cli.sizes import MemoryOption, memory_of
from floodway.cli.top import render
from floodway.core.errors import FloodwayError, OptionError
from floodway.engine.checkpoint.upgrading import read_record
from floodway.engine.driver.job import Job, start
from floodway.engine.driver.site import Transport
from floodway.engine.metrics.status import Status
from floodway.engine.metrics.summary import summarize
from floodway.model.loading import load_flow
from floodway.model.tuning import Pin
from floodway.provisioning.planning.starting import (
    HEADROOM,
    for_rate,
    refuse_by_hand,
    start_planned,
)


def run(
    flow: FlowArgument,
    *,
    dop: DopOption = None,
    b_out: BatchOption = None,
    linger: LingerOption = None,
    configuration: ConfigurationOption = None,
    master: Annotated[
        str | None,
        typer.Option(envvar="FLOODWAY_MASTER", help="Which Spark; by default one of its own."),
    ] = None,
    conf: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="A setting for Spark; repeatable.")
    ] = None,
    seconds: Annotated[
        float | None, typer.Option("--seconds", min=0, help="Stop reading after so many seconds.")
    ] = None,
    metrics_port: Annotated[
        int, typer.Option(min=0, max=65535, help="Loopback port for metrics; 0 chooses one.")
    ] = 0,
    transport: Annotated[
        str,
        typer.Option(help="auto, ipc (Unix sockets, one host) or tcp (encrypted, any hosts)."),
    ] = "auto",
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            "--checkpoint", metavar="DIR", help="Keep state here, and go on from what is there."
        ),
    ] = None,
    epoch: Annotated[
        str | None,
        typer.Option("--epoch", metavar="TIME", help="How often to commit; 1s by default."),
    ] = None,
    recovery: Annotated[
        bool,
        typer.Option(
            "--recovery/--no-recovery",
            help="Survive the loss of tasks; without, the flow ends with the first.",
        ),
    ] = True,
    patience: Annotated[
        str | None,
        typer.Option(
            "--patience",
            metavar="TIME",
            help="How long to wait, at the start, from one task to the next; 60s by default.",
        ),
    ] = None,
    state_memory: MemoryOption = None,
    paradigm: Annotated[
        str | None,
        typer.Option(
            envvar="FLOODWAY_PARADIGM",
            help="auto (the scheduler chooses), data (record by record) or operation (in "
            "micro-batches), where not said.",
        ),
    ] = None,
    story: Annotated[
        Path | None,
        typer.Option(
            "--story", metavar="FILE", help="Append what the scheduler decides, and why, here."
        ),
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option(
            min=1,
            metavar="R",
            help="Plan tasks and batches for so many records per second, all sources together.",
        ),
    ] = None,
    headroom: Annotated[
        float,
        typer.Option(min=0, max=0.95, help="With --rate: the share of capacity to keep free."),
    ] = HEADROOM,
    sample: SampleOption = None,
    live: Annotated[
        bool, typer.Option("--live", help="Show what the tasks are doing, as floodway top does.")
    ] = False,
    json: JsonOption = None,
) -> None:
    """Run a flow on Spark.

    SIGTERM or Ctrl-C stops reading, lets everything out and exits with 0; a second one stops at
    once. The flow survives the loss of tasks. With --checkpoint it also goes on where it was when
    it is run again, whatever has ended it.
    """
    logging.basicConfig(format="floodway: %(message)s", stream=sys.stderr)
    console = Console(stderr=True, highlight=False)
    loaded = load_flow(flow)
    if not recovery:
        refuse_without_recovery(checkpoint=checkpoint, epoch=epoch, state_memory=state_memory)
    begin = partial(start, configuration=configuration_of(configuration, dop, b_out, linger))
    if rate is not None:
        by_hand = {"dop": dop, "b_out": b_out, "configuration": configuration}
        refuse_by_hand(by_hand, on_command_line)
        given = samples_of(sample or ())
        with measuring(console) as progress:
            found = for_rate(loaded, rate, headroom=headroom, samples=given, progress=progress)
        console.print(found.summary, markup=False, soft_wrap=True)
        begin = partial(start_planned, found=found, linger=linger)
    job = begin(
        loaded,
        master=master,
        conf=settings_of(conf or []),
        metrics_port=metrics_port,
        transport=transport_of(transport),
        checkpoint=checkpoint,
        recovery=recovery,
        epoch=epoch or "1s",
        patience=patience,
        state_memory=memory_of(state_memory),
        paradigm=pin_of(paradigm),
        story=story,
    )
    if checkpoint is not None:
        console.print(beginning(job, checkpoint), markup=False, soft_wrap=True)
    try:
        status = follow(job, console, seconds=seconds, live=live)
    except FloodwayError:
        if checkpoint is not None:
            console.print(ending(job, checkpoint), markup=False, soft_wrap=True)
        raise
    if json is not None:
        write_json(status, json)
    if json != STDOUT:
        console.print(summarize(status, job.state), markup=False, soft_wrap=True)
    if checkpoint is not None:
        console.print(ending(job, checkpoint), markup=False, soft_wrap=True)


def refuse_without_recovery(**options: object) -> None:
    """Refuse options that mean nothing without recovery."""
    for name, value in options.items():
        if value is not None:
            option = on_command_line(name)
            raise OptionError(
                f"{option} {value} needs recovery, and --no-recovery is given",
                remedy=f"leave out --no-recovery, or {option}",
            )


def beginning(job: Job, checkpoint: Path) -> str:
    """Return where a flow with a checkpoint begins, in one line."""
    if not job.start_epoch:
        return f"from the beginning, with a new checkpoint in {checkpoint}"
    return f"going on from epoch {job.start_epoch} in {checkpoint}"


def ending(job: Job, checkpoint: Path) -> str:
    """Return whether a flow with a checkpoint can go on, in one line."""
    if not job.committed:
        return f"no epoch was committed: it begins anew when it is run with {checkpoint} again"
    if read_record(checkpoint).finished:
        return f"finished at epoch {job.committed}: there is nothing to go on with"
    return f"committed up to epoch {job.committed}: run it with {checkpoint} again to go on"


def transport_of(name: str) -> Transport:
    """Return how tasks are to talk."""
    for known in get_args(Transport):
        if name == known:
            return cast(Transport, name)
    raise OptionError(
        f"--transport {name!r} is not a transport",
        remedy=f"use one of: {', '.join(get_args(Transport))}",
    )


def pin_of(name: str | None) -> Pin | None:
    """Return in which paradigm stages are to work, where nobody says otherwise."""
    if name is None:
        return None
    for known in get_args(Pin):
        if name == known:
            return cast(Pin, name)
    raise OptionError(
        f"--paradigm {name!r} is not a paradigm", remedy=f"use one of: {', '.join(get_args(Pin))}"
    )


_SECRET = re.compile(
    r"(secret|password|passwd|token|[._](pass|pw|pwd|sas)|(secret|access|private|api)[._]?key)$"
    r"|account\.key\.|\.sas\.",
    re.IGNORECASE,
)
_JAVA_PROPERTY = re.compile(r"-D([^=\s]+)=")


def settings_of(pairs: list[str]) -> dict[str, str]:
    """Return Spark settings given as ``key=value``."""
    settings = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise OptionError(
                f"--conf {pair!r} is not a setting", remedy="write --conf spark.some.key=value"
            )
        if any(map(_SECRET.search, [key.strip(), *_JAVA_PROPERTY.findall(value)])):
            raise OptionError(
                f"--conf {key.strip()} would show a secret: everybody on this machine can read "
                "command lines",
                remedy="put it into spark-defaults.conf, readable only for you, in the folder that "
                "SPARK_CONF_DIR names",
            )
        settings[key.strip()] = value.strip()
    return settings


def follow(job: Job, console: Console, *, seconds: float | None, live: bool) -> Status:
    """Stay with a job until it is over, and return its last status."""
    with _signals(job, console):
        console.print(f"starting {job.plan.flow}: {job.plan.tasks} tasks on Spark")
        with Restoring(job, console) as restoring:
            while not job.wait_running(0.2):
                restoring.look()
        began = time.monotonic()
        if job.state == "running":
            console.print(f"running; metrics at {job.url}/metrics, live with `floodway top`")
        with _screen(job, console, live=live) as screen:
            while not job.wait(0.2):
                if screen is not None:
                    screen.update(render(job.status, job.story))
                if seconds is not None and time.monotonic() - began >= seconds:
                    seconds = None
                    job.drain()
    return job.status


@contextmanager
def _screen(job: Job, console: Console, *, live: bool) -> Iterator[Live | None]:
    if not live:
        yield None
        return
    with Live(render(job.status, job.story), console=console, refresh_per_second=4) as screen:
        yield screen
        screen.update(render(job.status, job.story))


@contextmanager
def _signals(job: Job, console: Console) -> Iterator[None]:
    """Drain at the first signal, stop at the second."""
    seen = 0

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal seen
        seen += 1
        if seen == 1:
            console.print("draining; once more to stop at once")
            job.drain()
        else:
            job.stop()

    before: dict[int, Any] = {
        number: signal.signal(number, handle) for number in (signal.SIGTERM, signal.SIGINT)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
