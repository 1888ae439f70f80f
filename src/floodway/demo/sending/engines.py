"""Data engines seen from the process that wants them: started, listened to, and ended."""

import subprocess
import sys
import threading
from types import TracebackType
from typing import IO, Self

import msgspec

from floodway.core.errors import EngineError
from floodway.demo.sending.engine import Ending, Orders, Progress, Said

END_S = 10.0
"""How long an engine has to end when nobody wants it any more."""


class DataEngine:
    """One data engine. A context manager; when it is left, the engine is gone.

    Attributes
    ----------
    port
        Where a system has to connect to; the first event is due when it does.
    history
        How far it was, ten times a second.
    ending
        Its last word; None as long as it has not come to its end.
    """

    def __init__(self, orders: Orders) -> None:
        self._orders = orders
        self.port = 0
        self.history: list[Progress] = []
        self.ending: Ending | None = None
        self._over = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        orders = msgspec.json.encode(self._orders).decode()
        command = [sys.executable, "-m", "floodway.demo.sending.engine", orders]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        said = self._process.stdout
        first = said.readline() if said is not None else b""
        if said is None or not first:
            self._end()
            raise EngineError("a data engine did not start", remedy="see what it wrote above")
        self.port = msgspec.json.decode(first, type=int)
        threading.Thread(target=self._listen, args=(said,), daemon=True).start()
        return self

    def _listen(self, said: IO[bytes]) -> None:
        decode = msgspec.json.Decoder(Said).decode
        for line in said:
            told = decode(line)
            if isinstance(told, Progress):
                self.history.append(told)
            else:
                self.ending = told
        self._over.set()

    @property
    def began_ms(self) -> int:
        """When the first event was due, since 1970; 0 if nobody has connected yet."""
        if self.ending is not None:
            return self.ending.began_ms
        return self.history[0].time_ms if self.history else 0

    @property
    def over(self) -> bool:
        """Whether it says nothing any more."""
        return self._over.is_set()

    def wait(self, timeout: float) -> Ending:
        """Wait for its last word."""
        self._over.wait(timeout)
        if self.ending is None:
            raise EngineError(
                "a data engine has not come to its end",
                remedy="see whether the system has connected to it, and why it has left it",
            )
        return self.ending

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()

    def _end(self) -> None:
        process = self._process
        if process is None:
            return
        if process.stdin is not None:
            process.stdin.close()  # which is how it learns that nobody wants it any more
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self._over.wait(END_S)
        if process.stdout is not None:
            process.stdout.close()
