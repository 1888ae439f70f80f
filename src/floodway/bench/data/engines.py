"""Data engines seen from the process that wants them: started, listened to, and ended."""

import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import IO, Self

import msgspec

from floodway.bench.data.engine import Ending, Orders, Progress, Said
from floodway.core.errors import EngineError

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
        command = [sys.executable, "-m", "floodway.bench.data.engine", orders]
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


class DataEngines:
    """Several data engines with the same orders but for what each of them leaves behind."""

    def __init__(self, orders: Sequence[Orders]) -> None:
        self.engines = [DataEngine(each) for each in orders]
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            for engine in self.engines:
                stack.enter_context(engine)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    @property
    def ports(self) -> list[int]:
        """Where a system has to connect to, all of them."""
        return [engine.port for engine in self.engines]

    @property
    def taken(self) -> int:
        """How many events the system has taken so far."""
        return sum(engine.history[-1].taken for engine in self.engines if engine.history)
