"""``floodway story``: what a scheduler has decided and why, from the file it left; and again."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console

from floodway.cli.output import STDOUT, JsonOption, write_json
from floodway.cli.telling import in_full
from floodway.core.errors import FloodwayError
from floodway.engine.scheduler.decisions import SetBatch
from floodway.engine.scheduler.replay import Decided, recorded, replay
from floodway.engine.scheduler.story import Began, Entry, Line, Observed, read_story


class StoryError(FloodwayError):
    """A story cannot be read."""


class Replayed(msgspec.Struct, frozen=True):
    """What a new scheduler has decided that was shown the same loads.

    Attributes
    ----------
    recorded, replayed
        How many decisions there were, and are.
    same
        Whether they are the same.
    first_difference
        The first that is not the same, in words.
    """

    recorded: int
    replayed: int
    same: bool
    first_difference: str | None = None


class Told(msgspec.Struct, frozen=True, omit_defaults=True):
    """A story, as ``--json`` writes it.

    Attributes
    ----------
    began_ms
        When it began, in milliseconds since 1970.
    entries
        All decisions and what became of them.
    replay
        Whether they are made again; None if nobody asked.
    """

    began_ms: int
    entries: list[Entry]
    replay: Replayed | None = None


def story(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What `run --story` has written.")],
    *,
    again: Annotated[
        bool,
        typer.Option(
            "--replay", help="Show the same loads to a new scheduler and compare its decisions."
        ),
    ] = False,
    json: JsonOption = None,
) -> None:
    """Tell what the scheduler has decided, when and why.

    With --replay the exit code is 1 if a new scheduler decides otherwise.
    """
    lines = _lines(file)
    told = tell(lines, replayed=again)
    if json is not None:
        write_json(told, json)
    if json != STDOUT:
        show(told, Console(highlight=False))
    if told.replay is not None and not told.replay.same:
        raise typer.Exit(1)


def _lines(file: Path) -> list[bytes]:
    try:
        return file.read_bytes().splitlines()
    except OSError as error:
        raise StoryError(
            f"the story {str(file)!r} cannot be read: {error.strerror or error}",
            remedy="name a file that `floodway run --story FILE` has written",
        ) from error


def tell(lines: list[bytes], *, replayed: bool) -> Told:
    """Return a story that was written, and whether it is lived through again in the same way."""
    found = read_story(lines)
    entries = [line for line in found if isinstance(line, Entry)]
    if not replayed:
        return Told(_began_ms(found), entries)
    if not any(isinstance(line, Observed) for line in found) and entries:
        raise StoryError(
            "the story has decisions, but not the loads that led to them",
            remedy="use the whole file, as it was written",
        )
    return Told(_began_ms(found), entries, compare(recorded(lines), replay(lines)))


def _began_ms(story: list[Line]) -> int:
    return next((line.time_ms for line in story if not isinstance(line, Began)), 0)


def compare(before: list[Decided], now: list[Decided]) -> Replayed:
    """Return whether two lists of decisions are the same."""
    if before == now:
        return Replayed(len(before), len(now), same=True)
    place = next(
        (i for i, (old, new) in enumerate(zip(before, now, strict=False)) if old != new),
        min(len(before), len(now)),
    )
    difference = (
        f"decision {place + 1} was {_words(before[place : place + 1])}, "
        f"and is {_words(now[place : place + 1])} now"
    )
    return Replayed(len(before), len(now), same=False, first_difference=difference)


def _words(decided: list[Decided]) -> str:
    if not decided:
        return "not made"
    time_ms, decision = decided[0]
    if isinstance(decision, SetBatch):
        return f"b_out {decision.b_out} for {decision.operator} at {time_ms} ms"
    return f"{decision.paradigm} for {decision.stage} at {time_ms} ms"


def show(told: Told, console: Console) -> None:
    """Print a story."""
    if told.entries:
        began = datetime.fromtimestamp(told.began_ms / 1000, UTC)
        console.print(f"began {began:%Y-%m-%d %H:%M:%S} UTC\n", markup=False)
        for part in in_full(told.entries, since_ms=told.began_ms):
            console.print(part, soft_wrap=False)
    else:
        console.print("Nothing was decided: the flow has run as it was started.")
    if told.replay is not None:
        again = told.replay
        same = "the same" if again.same else "NOT the same"
        console.print(
            f"\nreplayed: {again.recorded} decisions then, {again.replayed} now: {same}",
            markup=False,
        )
        if again.first_difference is not None:
            console.print(again.first_difference, markup=False)
