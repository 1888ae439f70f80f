"""What was measured on a machine is kept: the same flow need not be measured there again."""

import hashlib
import os
import platform
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path

import msgspec

from floodway.core.files import write_whole
from floodway.core.machine import processor
from floodway.model.flow import Flow
from floodway.plan.stages import Plan
from floodway.provisioning.calibration.describing import Calibrated


def home() -> Path:
    """Return where results are kept: in the user's cache."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "floodway" / "costs"


def machine() -> str:
    """Return what costs depend on here, in a line."""
    return (
        f"{processor()}, {os.cpu_count()} cores, Python {platform.python_version()}, "
        f"Floodway {version('floodway')}"
    )


def key_of(flow: Flow, plan: Plan, samples: Iterable[Path]) -> str:
    """Return a name for a flow on this machine: another one if anything has changed.

    What has changed is seen in the files that the operators are written in, in how the flow is
    divided into stages, and in the samples that were given.
    """
    files = {Path(operator.place.file) for operator in flow.operators}
    said = [
        machine(),
        plan.flow,
        str([(s.name, [o.name for o in s.operators]) for s in plan.stages]),
    ]
    digest = hashlib.sha256("\n".join(said).encode())
    for file in sorted(files | set(samples)):
        digest.update(str(file.name).encode())
        digest.update(file.read_bytes() if file.is_file() else b"")
    return f"{plan.flow}-{digest.hexdigest()[:16]}"


def find(key: str) -> Calibrated | None:
    """Return what was measured before; None if nothing was, or it cannot be read any more."""
    try:
        return msgspec.json.decode((home() / f"{key}.json").read_bytes(), type=Calibrated)
    except (OSError, msgspec.DecodeError):
        return None


def keep(key: str, found: Calibrated) -> Path:
    """Keep what was measured; return where."""
    path = home() / f"{key}.json"
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_whole(path, msgspec.json.format(msgspec.json.encode(found)))
    return path
