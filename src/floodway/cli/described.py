"""How ``floodway plan`` is told what to plan with: a file of costs, or a flow and its samples."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from floodway.cli.progress import Gauge
from floodway.core.errors import OptionError
from floodway.model.loading import load_flow
from floodway.provisioning.calibration.calibrating import Progress
from floodway.provisioning.paper import read
from floodway.provisioning.planning.described import Described, OnPaper, measured

SampleOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="SOURCE=FILE",
        help="Measure a flow with the lines of a file instead of what a source has; repeatable.",
    ),
]
FreshOption = Annotated[
    bool, typer.Option("--fresh", help="Measure a flow again, though its costs are known here.")
]


def is_paper(where: str) -> bool:
    """Return whether a name is that of a file with costs, and not that of a flow.

    >>> is_paper("road.toml"), is_paper("road.py:flow")
    (True, False)
    """
    return where.endswith(".toml")


def describe(
    where: str, *, samples: Sequence[str] = (), fresh: bool = False, console: Console
) -> Described:
    """Return what there is to plan with: a file if the name is that of one, or else a flow."""
    if is_paper(where):
        if samples or fresh:
            raise OptionError(
                "--sample and --fresh are about measuring, and a file has its costs already",
                remedy="leave them out, or name a flow",
            )
        return OnPaper(read(Path(where)))
    flow, given = load_flow(where), samples_of(samples)
    with measuring(console) as progress:
        return measured(flow, samples=given, fresh=fresh, progress=progress)


@contextmanager
def measuring(console: Console) -> Iterator[Progress]:
    """Show how far a flow is with being measured."""
    with Gauge(console, "costs") as gauge:
        yield lambda what, part: gauge.update(round(100 * part), 100, what)


def samples_of(texts: Sequence[str]) -> Mapping[str, Path]:
    """Return the files of samples by source, from ``source=file``.

    >>> samples_of(["events=day.jsonl"])
    {'events': PosixPath('day.jsonl')}
    """
    found = {}
    for text in texts:
        source, equals, file = text.partition("=")
        if not equals or not source or not file:
            raise OptionError(
                f"--sample {text!r} does not say of which source it is",
                remedy="write --sample SOURCE=FILE",
            )
        found[source] = Path(file)
    return found
