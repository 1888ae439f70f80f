"""Asking a running flow over its endpoint: who runs here, how it is, what was decided."""

import http.client
from typing import TypeVar
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import ProxyHandler, build_opener

import msgspec

from floodway.core.errors import EngineError
from floodway.engine.metrics.announcements import Announcement, running
from floodway.engine.metrics.status import Status
from floodway.engine.scheduler.story import Entry

T = TypeVar("T")

_ANSWER_SECONDS = 5.0  # loopback: a driver that takes longer is stuck


def find_endpoint(flow: str | None = None) -> str | None:
    """Return the address of a running flow of this user, or None if no such flow is running."""
    found = [each for each in running() if flow is None or each.flow == flow]
    if flow is None and len({each.flow for each in found}) > 1:
        raise _several(found)
    return found[0].url if found else None


def _several(found: list[Announcement]) -> EngineError:
    names = sorted({each.flow for each in found})
    return EngineError(
        f"several flows are running: {', '.join(names)}",
        remedy=f"choose one, for example: floodway top --flow {names[0]}",
    )


def read_status(url: str) -> Status | None:
    """Ask an endpoint for the status of its flow.

    Parameters
    ----------
    url
        The address of the endpoint.

    Returns
    -------
    Status or None
        The status; None if nothing listens there.

    Raises
    ------
    EngineError
        If the address is not an HTTP address, or what answers is no endpoint of Floodway.
    """
    return _ask(url, "/status.json", Status)


def read_story(url: str) -> list[Entry]:
    """Ask an endpoint for what its scheduler has decided lately, oldest first."""
    return _ask(url, "/story", list[Entry]) or []


def _ask(url: str, path: str, kind: type[T]) -> T | None:
    if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).netloc:
        raise EngineError(
            f"{url!r} is no address of an endpoint",
            remedy="write it like http://127.0.0.1:43121",
        )
    # No proxy: it could not reach the loopback interface of this machine.
    opener = build_opener(ProxyHandler({}))
    try:
        with opener.open(f"{url}{path}", timeout=_ANSWER_SECONDS) as answer:
            return msgspec.json.decode(answer.read(), type=kind)
    except (HTTPError, http.client.HTTPException, msgspec.MsgspecError) as error:
        if isinstance(error, HTTPError):
            error.close()
        raise EngineError(
            f"what answers at {url} is no endpoint of this version of Floodway: {error}",
            remedy="use the address that the flow printed, without a path",
        ) from error
    except (URLError, OSError):
        return None
