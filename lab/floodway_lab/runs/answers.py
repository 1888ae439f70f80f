"""Whether the answers of a system are right."""

from collections import Counter
from pathlib import Path
from typing import Any

import msgspec

from floodway.demo.sending.sent import read_stretches
from floodway_lab.cases.base import Case, Found, Shape, differences
from floodway_lab.sending.sent import CasePart, CaseSent


class _Written(msgspec.Struct):
    """What a part of a system has written down; see `floodway_lab.systems.kit.Results`."""

    found: list[tuple[Any, int, Any]]
    tally: list[tuple[int, int, int]]


def check(case: Case, shape: Shape, folder: Path, *, ends: bool, stored: Found | None) -> list[str]:
    """Return what is wrong with the answers of a system that was given everything.

    Parameters
    ----------
    case, shape
        The workload, and what its events were like.
    folder
        Where data engines have left what they sent, and the system what it has found.
    ends
        Whether the system was told that there are no more events.
    stored
        What the system has stored besides; None if it was not to store anything.
    """
    sent = CaseSent([_part(case, shape, path) for path in sorted(folder.glob("sent-*"))])
    expected = {(str(key), window): value for (key, window), value in case.expected(sent).items()}
    until_ms = None if ends or not case.open_ms else sent.last_ms - case.open_ms
    wrong = differences(expected, read_found(folder), until_ms=until_ms)
    if stored is not None:
        texts = {place: str(value) for place, value in read_found(folder).items()}
        wrong += [f"in Redis, {line}" for line in differences(texts, stored)]
    return wrong


def _part(case: Case, shape: Shape, path: Path) -> CasePart:
    """Return what a data engine has sent; its number is in the name of its file."""
    seed = shape.seed + int(path.name.rpartition("-")[2])
    lines = case.lines(msgspec.structs.replace(shape, seed=seed))
    return CasePart(lines, read_stretches(path), seed)


def read_found(folder: Path) -> dict[tuple[Any, int], Any]:
    """Return what all parts of a system have found; keys are text, as some systems want them."""
    found: dict[tuple[Any, int], Any] = {}
    counts: Counter[tuple[Any, int]] = Counter()
    for path in sorted(folder.glob("found-*.json")):
        written = msgspec.json.decode(path.read_bytes(), type=_Written)
        found |= {(str(key), window): value for key, window, value in written.found}
        for second, count, whole in written.tally:
            counts["count", second] += count
            counts["sum", second] += whole
    return found | counts
