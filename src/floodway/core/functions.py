"""What functions of users can be."""

from collections.abc import Callable
from inspect import isasyncgenfunction, iscoroutinefunction
from typing import Any

from floodway.core.errors import OptionError


def require_plain(function: Callable[..., Any], what: str = "the function") -> None:
    """Refuse a coroutine function: what it returns when it is called is not its result.

    >>> async def ask(value): ...
    >>> require_plain(ask)
    Traceback (most recent call last):
    floodway.core.errors.OptionError: the function ask is a coroutine function: nobody awaits it
      remedy: write it with def instead of async def; wait inside it with asyncio.run(...)
    """
    called = getattr(function, "__call__", None)  # noqa: B004 - an object may be called, too
    if any(iscoroutinefunction(one) or isasyncgenfunction(one) for one in (function, called)):
        name = getattr(function, "__name__", type(function).__name__)
        raise OptionError(
            f"{what} {name} is a coroutine function: nobody awaits it",
            remedy="write it with def instead of async def; wait inside it with asyncio.run(...)",
        )
