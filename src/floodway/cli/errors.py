"""How an error reaches the person at the terminal.

A ``FloodwayError`` is something the user can put right, so it is shown
as a short block with the problem, the operator, the place and the remedy, and no traceback. Any
other exception is a defect of Floodway or of the user's own functions and keeps its traceback.
"""

import sys
import traceback
from typing import Any

from rich.console import Console
from rich.text import Text
from typer.core import TyperGroup

from floodway.core.errors import FloodwayError

EXIT_ERROR = 2
"""The exit code after a ``FloodwayError``."""


def error_block(error: FloodwayError) -> Text:
    """Return the block that tells a user about ``error``.

    Examples
    --------
    >>> from floodway.core.place import Place
    >>> error = FloodwayError(
    ...     "there is no column 'knd'", remedy="use 'kind'", operator="f", place=Place("ads.py", 9)
    ... )
    >>> print(error_block(error).plain)
    error: there is no column 'knd'
      operator  f
      place     ads.py:9
      remedy    use 'kind'
    """
    block = Text.assemble(("error: ", "bold red"), (error.problem, "bold"))
    for label, value in (
        ("operator", error.operator),
        ("place", error.place),
        ("remedy", error.remedy),
    ):
        if value is not None:
            indented = str(value).replace("\n", "\n" + " " * 12)
            block.append_text(Text.assemble("\n  ", (f"{label:<10}", "cyan"), indented))
    return block


class ErrorReportingGroup(TyperGroup):
    """A command group that shows Floodway's errors readably and exits with ``EXIT_ERROR``.

    The group's ``debug`` option, when it is on, adds the traceback.
    """

    # Typer carries its own copy of click, whose context type has no public name: hence Any.
    def invoke(self, ctx: Any) -> Any:
        """Run the command; turn a ``FloodwayError`` into a block on standard error."""
        try:
            return super().invoke(ctx)
        except FloodwayError as error:
            if ctx.params.get("debug"):
                traceback.print_exception(error, file=sys.stderr)
            Console(stderr=True, soft_wrap=True, highlight=False).print(error_block(error))
            ctx.exit(EXIT_ERROR)
