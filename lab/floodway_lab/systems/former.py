"""Another version of Floodway, from a checkout of its own, as systems beside this one.

``FLOODWAY_FORMER=../former floodway bench compare ads --suts floodway-data,former-data`` measures
both in turns, with the data engine and the judgement of this version. Only what runs the flow is
taken from there.
"""

import os
from pathlib import Path

from floodway_lab.systems.system import System

VARIABLE = "FLOODWAY_FORMER"
"""The environment variable that names the checkout."""

OLDER = "floodway.bench.systems.on_floodway"
"""What ran a flow before there was a laboratory."""


def former_systems(own: tuple[System, ...]) -> tuple[System, ...]:
    """Return for each system of this version that of the other one, if one is named."""
    named = os.environ.get(VARIABLE)
    if not named:
        return ()
    folder = Path(named).resolve()
    sources = (str(folder / "src"), str(folder / "lab"))
    return tuple(_former(system, sources) for system in own)


def _former(system: System, sources: tuple[str, str]) -> System:
    older = not (Path(sources[1]) / "floodway_lab").is_dir()
    return System(
        system.name.replace("floodway-", "former-"),
        system.title.replace("Floodway", "Floodway before"),
        OLDER if older else system.program,
        system.cases,
        tuning=system.tuning,
        links=system.links,
        starts_s=system.starts_s,
        options=system.options,
        sources=sources,
    )
