"""What recovery cannot make good: input that is read once, and sinks that show rows again."""

from collections.abc import Iterable

from floodway.connectors.base import SinkConnector, SourceConnector
from floodway.operators.sink import Sink
from floodway.plan.stages import Plan, Stage


class Coverage:
    """Knows what of a plan can go back, and what cannot.

    Parameters
    ----------
    lasting
        Whether sinks wait for epochs to be committed, as they do with a checkpoint, or show rows
        at once.
    """

    def __init__(self, plan: Plan, *, lasting: bool) -> None:
        self._plan = plan
        self._lasting = lasting

    def read_once(self, stages: Iterable[str]) -> list[str]:
        """Return the sources of some stages that cannot be read again."""
        return [
            source.name
            for stage in self._stages(stages)
            for source in stage.sources
            if isinstance(source.connector, SourceConnector) and not source.connector.replayable
        ]

    def shown_again(self, stages: Iterable[str]) -> list[str]:
        """Return the sinks of some stages that show rows again after the stages have gone back."""
        return [name for name, exact in self._sinks(stages) if not exact]

    def taken_back(self, stages: Iterable[str]) -> list[str]:
        """Return the sinks of some stages that show rows at once and take them back.

        Two processes must not do so at a time.
        """
        return [name for name, exact in self._sinks(stages) if exact and not self._lasting]

    @property
    def in_tasks(self) -> list[str]:
        """The sources that cannot be read again, and are read by processes that may be lost."""
        return self.read_once(stage.name for stage in self._plan.stages if stage.host == "task")

    def _stages(self, names: Iterable[str]) -> list[Stage]:
        wanted = set(names)
        return [stage for stage in self._plan.stages if stage.name in wanted]

    def _sinks(self, stages: Iterable[str]) -> list[tuple[str, bool]]:
        found = []
        for stage in self._stages(stages):
            for operator in stage.operators:
                connector = operator.connector if isinstance(operator, Sink) else None
                if isinstance(connector, SinkConnector):
                    waits = self._lasting or connector.by_epochs_only
                    promise = connector.delivery if waits else connector.eager
                    found.append((operator.name, promise == "exactly once"))
        return found
