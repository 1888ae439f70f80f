"""Calibration from its beginning to its end: samples, a measured run, costs."""

import tempfile
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

from floodway.connectors.base import SourceConnector, Values
from floodway.core.errors import OptionError
from floodway.model.flow import Flow
from floodway.operators.source import Source
from floodway.plan.stages import Plan
from floodway.provisioning.calibration.describing import Calibrated, describe
from floodway.provisioning.calibration.keeping import find, keep, key_of, machine
from floodway.provisioning.calibration.repeating import repeated
from floodway.provisioning.calibration.replay import ReplaySource, replayed, write_pieces
from floodway.provisioning.calibration.running import measure
from floodway.provisioning.calibration.sampling import SourceSample, sample_from, sample_of

Progress = Callable[[str, float], None]
"""Told what is being done, and which part of it is over."""


def calibrate(
    flow: Flow,
    *,
    samples: Mapping[str, Path] | None = None,
    fresh: bool = False,
    master: str | None = None,
    progress: Progress = lambda *_: None,
) -> Calibrated:
    """Return what the stages of a flow cost on this machine; measure it if that is not known.

    Parameters
    ----------
    samples
        Files of lines to measure with instead of what sources have, by the name of the source.
    fresh
        Whether to measure again.
    master
        Which Spark; by default one of its own.
    """
    given = dict(samples or {})
    _check(flow, given)
    plan = Plan.of(flow)
    key = key_of(flow, plan, given.values())
    known = None if fresh else find(key)
    if known is not None:
        return known
    with tempfile.TemporaryDirectory(prefix="floodway-") as folder:
        progress("taking samples", 0.0)
        measured = measure(
            prepared(flow, Path(folder), given),
            master=master,
            progress=lambda part: progress("running the flow on them", part),
        )
    date = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    found = describe(plan, measured, machine=machine(), date=date)
    keep(key, found)
    return found


def streams(flow: Flow) -> list[Source]:
    """Return the sources of a flow that are no tables."""
    return [
        operator
        for operator in flow.operators
        if isinstance(operator, Source) and not operator.brings_updates
    ]


def prepared(flow: Flow, folder: Path, samples: Mapping[str, Path]) -> Flow:
    """Return a flow like another that reads repeated samples, which are written to a folder."""
    sources = {
        source.name: _prepared(source, samples.get(source.name), folder) for source in streams(flow)
    }
    return replayed(flow, sources)


def _prepared(source: Source, file: Path | None, folder: Path) -> SourceConnector:
    """Write down what a source is to read, and return what reads it."""
    sample = sample_of(source) if file is None else sample_from(file)
    _check_sample(source, sample)
    path = folder / source.name
    write_pieces(path, repeated(source, sample))
    shape = getattr(source.connector, "format", None) or Values()
    return ReplaySource(str(path), shape, sample.keyed)


def _check(flow: Flow, samples: Mapping[str, Path]) -> None:
    if not flow.operators:
        raise OptionError(
            f"the flow {flow.name!r} has nothing to plan: there is no source in it",
            remedy="build it first, with flow.source(...) and what follows",
        )
    known = [source.name for source in streams(flow)]
    for name in samples:
        if name not in known:
            raise OptionError(
                f"the flow has no source {name!r} to give a sample of",
                remedy=f"use one of: {', '.join(known)}",
            )


def _check_sample(source: Source, sample: SourceSample) -> None:
    if not sample.records:
        raise OptionError(
            "there is nothing to take a sample of",
            remedy="let the source have some records, or give a file of them: "
            f"--sample {source.name}=FILE, or samples={{{source.name!r}: FILE}} in Python",
            operator=source.name,
            place=source.place,
        )
