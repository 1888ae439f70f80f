"""``floodway prepare`` lets Spark start a second sooner on this machine."""

from typing import Annotated

import typer

from floodway.engine.spark.archive import archive, archive_options, make_archive

MIB = 1024**2


def prepare(
    *,
    again: Annotated[
        bool, typer.Option("--again", help="Make the archive anew even if there is one.")
    ] = False,
) -> None:
    """Make an archive of Spark's classes, so that every flow starts a second sooner.

    It takes about ten seconds and 70 MB in the cache folder of this user. Nothing depends on it.
    """
    if archive_options() and not again:
        typer.echo(f"Spark is prepared already: {archive()}")
        return
    made = make_archive()
    size = made.stat().st_size / MIB
    typer.echo(f"Spark starts sooner from now on: {size:.0f} MB in {made}")
