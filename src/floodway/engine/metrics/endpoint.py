"""The HTTP endpoint of a running flow: ``/metrics``, ``/status.json``, ``/story`` and ``/healthz``.

It has no password and no encryption, so it listens on the loopback interface unless the user says
otherwise twice: with the address and with ``expose``. It answers questions and takes no orders.
"""

import contextlib
import errno
import ipaddress
import logging
import os
import socket
import socketserver
import sys
import threading
import time
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

import msgspec
from prometheus_client import CONTENT_TYPE_LATEST

from floodway.core.errors import EngineError
from floodway.engine.metrics.announcements import Announcement, announce, withdraw
from floodway.engine.metrics.board import Board
from floodway.engine.metrics.health import problems
from floodway.engine.metrics.prometheus import exposition
from floodway.engine.metrics.status import HealthState, Status

_logger = logging.getLogger(__name__)

_PATIENCE_S = 5.0  # for a client, from its connection to its answer
_AT_ONCE = 32  # answered at a time: who is not let in yet costs no descriptor and no thread
_POLL_S = 0.05  # how long closing may have to wait for the server's thread


class Endpoint:
    """Serves what a board knows, from a thread of its own, while the context is open.

    Parameters
    ----------
    board
        The board to ask.
    host
        The address to listen on.
    port
        The port to listen on; 0 takes a free one.
    expose
        Whether an address that other machines can reach is meant.
    announced
        Whether to leave a file by which ``floodway top`` finds the flow.
    clock
        Returns the present time in seconds since 1970.
    story
        Returns what the scheduler has decided lately, oldest first.

    Raises
    ------
    EngineError
        If the address is not loopback and not meant to be exposed, or cannot be listened on.

    Examples
    --------
    >>> from urllib.request import urlopen
    >>> with Endpoint(Board("ads", []), announced=False) as endpoint:
    ...     with urlopen(endpoint.url + "/healthz") as answer:
    ...         print(answer.read().decode())
    {"healthy":true,"state":"starting","health":"healthy","problems":[],"degraded":[]}
    """

    def __init__(
        self,
        board: Board,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        expose: bool = False,
        announced: bool = True,
        clock: Callable[[], float] = time.time,
        story: Callable[[], Sequence[msgspec.Struct]] = list,
    ) -> None:
        if not expose and not is_loopback(host):
            raise EngineError(
                f"the metrics endpoint would be open to other machines at {host!r}",
                remedy="use 127.0.0.1, or pass expose=True if whoever reaches it may read it",
            )
        self._board = board
        self._announced = announced
        self._announcement: tuple[Path, Announcement] | None = None
        self._server = _listen(host, port, lambda: board.status(clock()), checked=not expose)
        self._server.story = story
        self._thread = threading.Thread(
            target=self._server.serve_forever,
            kwargs={"poll_interval": _POLL_S},
            name=f"floodway-metrics-{board.flow}",
            daemon=True,
        )

    @property
    def url(self) -> str:
        """Where the endpoint is, for example ``http://127.0.0.1:43121``."""
        host, port = self._server.server_address[:2]
        return f"http://[{host!s}]:{port}" if ":" in str(host) else f"http://{host!s}:{port}"

    def __enter__(self) -> Self:
        if self._announced:
            self._announce()
        self._thread.start()
        return self

    def _announce(self) -> None:
        made = Announcement(
            url=self.url, pid=os.getpid(), flow=self._board.flow, started=time.time()
        )
        try:
            self._announcement = (announce(made), made)
        except EngineError as error:
            _logger.warning(
                "floodway top will not find this flow by itself, only with --url %s: %s",
                self.url,
                error,
            )

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop serving, and take the announcement back."""
        if self._announcement is not None:
            withdraw(*self._announcement)
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address.

    Examples
    --------
    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("localhost")
    (True, True, True)
    >>> is_loopback("0.0.0.0"), is_loopback("example.org")
    (False, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _names_loopback(authority: str) -> bool:
    """Return whether a Host header is a loopback address and perhaps a port, and nothing else.

    >>> _names_loopback("127.0.0.1:80"), _names_loopback("[::1]:80"), _names_loopback("localhost")
    (True, True, True)
    >>> _names_loopback("evil.example@127.0.0.1"), _names_loopback("127.0.0.1/evil.example")
    (False, False)
    """
    if any(mark in authority for mark in "@/?#\\ \t,"):
        return False
    try:
        parts = urlsplit(f"//{authority}")
        _ = parts.port  # which has to be a number
        return is_loopback(parts.hostname or "")
    except ValueError:
        return False


class _Server(ThreadingHTTPServer):
    daemon_threads = True  # a client that holds its connection does not keep the program alive
    request_queue_size = 128  # of those who come at once; with five the seventh waits for a second

    def __init__(
        self, host: str, port: int, status: Callable[[], Status], *, checked: bool
    ) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.status = status
        self.story: Callable[[], Sequence[msgspec.Struct]] = list
        self.checked = checked
        self._room = threading.Semaphore(_AT_ONCE)
        self._let_in: dict[socket.socket, float] = {}
        super().__init__((host, port), _Handler)

    def server_bind(self) -> None:
        # Not HTTPServer's, which asks the name service for the machine's name and may wait for it.
        socketserver.TCPServer.server_bind(self)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Let a client in when there is room; the others wait in the kernel's queue.

        Everybody on the machine can connect. Without a bound they could use up the descriptors of
        the driver, and the flow with them.
        """
        while not self._room.acquire(timeout=_POLL_S):
            self.service_actions()
        self._let_in[request] = time.monotonic() + _PATIENCE_S
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer a client, and make room."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._let_in.pop(request, None)
            self._room.release()

    def service_actions(self) -> None:
        """See those out who take too long, however busily they send byte after byte."""
        now = time.monotonic()
        for request, deadline in list(self._let_in.items()):
            if now > deadline:
                with contextlib.suppress(OSError):  # it may have gone in this moment
                    request.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: object, client_address: object) -> None:
        # A client that goes away or is too slow is no news; anything else is a defect.
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            _logger.exception("the metrics endpoint could not answer a request")


def _listen(host: str, port: int, status: Callable[[], Status], *, checked: bool) -> _Server:
    try:
        return _Server(host, port, status, checked=checked)
    except (OSError, OverflowError) as error:
        if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
            raise EngineError(
                f"port {port} on {host} is in use",
                remedy="choose another port for the metrics endpoint, or 0 for any free one",
            ) from error
        raise EngineError(
            f"the metrics endpoint cannot listen on {host!r}, port {port}: {error}",
            remedy="use an address of this machine, and port 0 for any free one",
        ) from error


class Healthz(msgspec.Struct, frozen=True):
    """What ``/healthz`` answers.

    Attributes
    ----------
    healthy
        Whether all tasks work.
    state
        The state of the flow.
    health
        Healthy, degraded or unhealthy.
    problems
        Which tasks do not work, in words.
    degraded
        What does not come out that people may expect, with causes and remedies.
    """

    healthy: bool
    state: str
    health: HealthState
    problems: list[str]
    degraded: list[str]

    @classmethod
    def of(cls, status: Status) -> Self:
        """Return the answer for a status."""
        health = status.health
        told = [str(reason) for reason in health.reasons if reason.kind != "task"]
        return cls(health.state != "unhealthy", status.state, health.state, problems(health), told)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    server_version = "floodway"
    sys_version = ""
    timeout = _PATIENCE_S

    def do_GET(self) -> None:
        if not self._meant_for_us():
            self._answer(403, "text/plain", b"ask by the endpoint's own address\n")
            return
        path = self.path.partition("?")[0]
        if path == "/metrics":
            self._answer(200, CONTENT_TYPE_LATEST, exposition(self.server.status()))
        elif path == "/status.json":
            self._answer(200, "application/json", msgspec.json.encode(self.server.status()))
        elif path == "/story":
            self._answer(200, "application/json", msgspec.json.encode(self.server.story()))
        elif path == "/healthz":
            # A degraded flow works: whoever restarts it because of a 503 would only lose more.
            health = Healthz.of(self.server.status())
            code = 200 if health.healthy else 503
            self._answer(code, "application/json", msgspec.json.encode(health))
        else:
            self._answer(404, "text/plain", b"try /metrics, /status.json, /story or /healthz\n")

    def _meant_for_us(self) -> bool:
        """Return whether the request names a loopback address.

        Otherwise a web page could read the endpoint through the browser, by a name of its own that
        it lets point to this machine.
        """
        if not self.server.checked:
            return True
        hosts = self.headers.get_all("Host") or []
        # Of two names, others may have looked at the one and we at the other.
        return len(hosts) <= 1 and all(map(_names_loopback, hosts))

    def _answer(self, code: int, kind: str, body: bytes) -> None:
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: a scrape every few seconds is no news."""
