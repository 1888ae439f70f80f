"""What ``floodway plan`` plans with: a file of costs, or a flow whose costs are measured here."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from floodway.cli.flows import load_flow
from floodway.cli.plan_output import Part
from floodway.cli.progress import Gauge
from floodway.core.errors import OptionError
from floodway.model.flow import Flow
from floodway.plan.configuration import Configuration
from floodway.plan.stages import Plan
from floodway.provisioning.applying import of_stages, settings_of, stages_of, to_toml
from floodway.provisioning.calibration.calibrating import calibrate
from floodway.provisioning.calibration.describing import Calibrated
from floodway.provisioning.calibration.fitting import Estimate
from floodway.provisioning.cost import Setting, Settings
from floodway.provisioning.paper import Paper, read

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


class Described(ABC):
    """Operators with costs, and what their names mean.

    Attributes
    ----------
    paper
        The operators, and what is expected of the sources; of a flow only in which mix.
    """

    paper: Paper

    @abstractmethod
    def settings(self, file: Path) -> dict[str, Setting]:
        """Return what a file with a configuration means for the operators."""

    @abstractmethod
    def toml(self, settings: Settings) -> str:
        """Return settings as a file that ``floodway run --configuration`` reads."""

    def shown(self) -> Iterator[Part]:
        """Return what there is to say about where the costs come from."""
        yield from ()

    def document(self) -> dict[str, object]:
        """Return the same for programs."""
        return {}


class OnPaper(Described):
    """A file of operators with given costs."""

    def __init__(self, path: Path) -> None:
        self.paper = read(path)

    def settings(self, file: Path) -> dict[str, Setting]:
        """Return what a file with a configuration means for the operators."""
        return settings_of(self.paper.graph, _checked(file))

    def toml(self, settings: Settings) -> str:
        """Return settings as a file."""
        return to_toml(settings)


class OfFlow(Described):
    """A flow, whose stages are the operators."""

    def __init__(self, flow: Flow, found: Calibrated) -> None:
        self.plan, self._flow, self.found = Plan.of(flow), flow, found
        self.paper = Paper(found.graph, found.mix)

    def settings(self, file: Path) -> dict[str, Setting]:
        """Return what a file with a configuration means for the stages."""
        return of_stages(self.paper.graph, Plan.of(self._flow, _checked(file)))

    def toml(self, settings: Settings) -> str:
        """Return settings of stages as a file, with all their operators."""
        return to_toml(stages_of(self.plan, settings))

    def shown(self) -> Iterator[Part]:
        """Return the costs, with the bounds within which they lie."""
        found = self.found
        yield Text(f"costs in nanoseconds, measured {found.date} on {found.machine}", style="bold")
        grid = Grid(box=None, padding=(0, 2, 0, 0), header_style="bold", pad_edge=False)
        grid.add_column("stage")
        for title in ("a record", "a batch in", "a batch out", "selectivity", "bytes", "fits to"):
            grid.add_column(title, justify="right")
        for name, costs in found.costs.items():
            grid.add_row(
                name,
                _bounds(costs.c_cpu_ns),
                _bounds(costs.c_fetch_ns),
                _bounds(costs.c_emit_ns),
                f"{costs.selectivity.value:.3g}",
                f"{costs.record_bytes:.0f}",
                f"{100 * costs.error:.0f} %",
            )
        yield grid
        yield Text("")

    def document(self) -> dict[str, object]:
        """Return what was measured."""
        return {"costs": self.found}


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
        return OnPaper(Path(where))
    return measured(where, samples=samples, fresh=fresh, console=console)


def measured(
    where: str, *, samples: Sequence[str] = (), fresh: bool = False, console: Console
) -> OfFlow:
    """Return a flow with its costs, which are measured unless they are known."""
    flow = load_flow(where)
    given = samples_of(samples)
    with Gauge(console, "costs") as gauge:
        found = calibrate(
            flow,
            samples=given,
            fresh=fresh,
            progress=lambda what, part: gauge.update(round(100 * part), 100, what),
        )
    return OfFlow(flow, found)


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


def _checked(file: Path) -> Configuration:
    found = Configuration.read(file)
    found.default.check()
    for name, tuning in found.operators.items():
        try:
            tuning.check()
        except OptionError as error:
            error.operator = name
            raise
    return found


def _bounds(of: Estimate) -> str:
    return f"{of.value:,.0f} ({of.low:,.0f} to {of.high:,.0f})" if of.value else "-"
