"""Whether a TCP connection stands: what ZeroMQ tells about it when asked."""

from typing import Any

import zmq
from zmq.utils.monitor import recv_monitor_message

EVENTS = zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_DISCONNECTED


class InboxConnection:
    """The connection behind a socket that leads to one inbox."""

    def __init__(self, way: "zmq.Socket[bytes]", now: float) -> None:
        self._way = way
        self._events: Any = way.get_monitor_socket(EVENTS)
        self._down_since: float | None = now

    def look(self, now: float) -> bool:
        """Take note of what has happened; return whether the connection was made anew."""
        made = False
        while self._events.poll(0):
            event = recv_monitor_message(self._events, zmq.NOBLOCK)["event"]
            made = event == zmq.EVENT_HANDSHAKE_SUCCEEDED
            if made:
                self._down_since = None
            elif self._down_since is None:  # what stands before a dead end accepts, and hangs up
                self._down_since = now
        return made

    def down_s(self, now: float) -> float:
        """Return for how many seconds there has been no connection; 0 if there is one."""
        return 0.0 if self._down_since is None else max(now - self._down_since, 1e-9)

    def close(self) -> None:
        """Listen no more."""
        self._way.disable_monitor()
        self._events.close(0)
