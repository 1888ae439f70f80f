"""What limits the engine: the same work by hand, without one."""

import multiprocessing
import socket
import struct
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec

_LENGTH = struct.Struct("<I")


def socket_pair_rate(rows: list[Any], row_type: Any, b_out: int, count: int) -> float:
    """Return records per second from one process to another through a plain Unix socket.

    Each frame is a length and `b_out` encoded rows; the receiver decodes them, and nothing else
    happens: no header, no routing, no flow control, no operator.
    """
    with tempfile.TemporaryDirectory(prefix="floodway-") as folder:
        path = str(Path(folder) / "pair.sock")
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path)
            server.listen()
            context = multiprocessing.get_context("spawn")
            sender = context.Process(target=_send, args=(path, rows, b_out, count))
            sender.start()
            client, _ = server.accept()
            with client, client.makefile("rb", buffering=256 * 1024) as stream:
                rate = _receive(stream, row_type, count)
            sender.join()
    return rate


def _send(path: str, rows: list[Any], b_out: int, count: int) -> None:
    encode = msgspec.msgpack.Encoder().encode
    batches = [rows[start : start + b_out] for start in range(0, len(rows), b_out)]
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(path)
        sent = 0
        while sent < count:
            for batch in batches:
                payload = encode(batch)
                client.sendall(_LENGTH.pack(len(payload)) + payload)
                sent += len(batch)


def _receive(stream: Any, row_type: Any, count: int) -> float:
    decode = msgspec.msgpack.Decoder(list[row_type]).decode
    received, started = 0, 0.0
    first = 0
    while received < count:
        (size,) = _LENGTH.unpack(stream.read(_LENGTH.size))
        rows = decode(stream.read(size))
        received += len(rows)
        if not started:
            started, first = time.monotonic(), received
    return (received - first) / (time.monotonic() - started)
