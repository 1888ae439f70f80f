"""What the TCP source and sink have in common: addresses, and how full a socket is."""

import fcntl
import socket
import struct
from typing import Any

from floodway.core.errors import ConnectorError, OptionError


def waiting(connection: socket.socket, question: int) -> int:
    """Return how many bytes a socket's buffer holds: `question` is ``FIONREAD`` or ``TIOCOUTQ``."""
    answer = fcntl.ioctl(connection.fileno(), question, struct.pack("i", 0))
    return int(struct.unpack("i", answer)[0])


def resolve(host: str, port: int) -> list[tuple[int, Any]]:
    """Return the families and addresses of a host; refuse one that is not known."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise ConnectorError(
            f"host {host!r} of {host_and_port(host, port)} is not known: {error.strerror or error}",
            remedy="correct the name, or use an address",
        ) from error
    return [(family, address) for family, _, _, _, address in found]


def host_and_port(host: str, port: int) -> str:
    """Return what a server is called in messages."""
    return f"{host}:{port}"


def check_port(port: int) -> None:
    """Refuse a number that is no port."""
    if not 0 < port < 65_536:
        raise OptionError(f"there is no port {port}", remedy="use a number from 1 to 65535")
