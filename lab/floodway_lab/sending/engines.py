"""Several data engines, for a system that pulls from more than one."""

from collections.abc import Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from floodway.demo.sending.engine import Orders
from floodway.demo.sending.engines import DataEngine


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
