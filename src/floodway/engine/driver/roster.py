"""The roster: which process each task is, where it listens, and who has left.

A process that is lost has a successor, with the number of another launch; what is still heard from
the lost one does not count. Spark may also start a process again by itself, as the same launch.
"""

from collections.abc import Mapping, Set

from floodway.engine.control.messages import Hello
from floodway.engine.host.whereabouts import Whereabouts


class Roster:
    """Keeps who has said hello, in which launch, and who has left since.

    Attributes
    ----------
    names
        Stage and index of every task, by number.
    """

    def __init__(self, names: Mapping[int, tuple[str, int]]) -> None:
        self.names = names
        self._launches = dict.fromkeys(names, 0)
        self._hellos: dict[int, Hello] = {}
        self._left: set[int] = set()

    def name(self, task: int) -> str:
        """Return what people call a task."""
        stage, index = self.names[task]
        return f"{stage}/{index}"

    # ------------------------------------------------------------------ who comes and goes

    def came(self, hello: Hello) -> bool:
        """Take note of a process; return whether it takes the place of another one."""
        former = self._hellos.get(hello.task)
        self._hellos[hello.task] = hello
        return former is not None and former.pid != hello.pid

    def relaunch(self, task: int) -> int:
        """Forget the process of a task, which is lost; return the number of the next launch."""
        self._hellos.pop(task, None)
        self._launches[task] += 1
        return self._launches[task]

    def leave(self, task: int) -> None:
        """Take note that a task has ended."""
        self._left.add(task)

    # ------------------------------------------------------------------ who is who

    def launch(self, task: int) -> int:
        """Return the number of a task's latest launch."""
        return self._launches[task]

    def hello(self, task: int) -> Hello | None:
        """Return what the process of a task has said of itself, if it has said hello."""
        return self._hellos.get(task)

    def address(self, task: int) -> str | None:
        """Return where a task listens, once it has said hello."""
        hello = self._hellos.get(task)
        return None if hello is None else hello.address

    @property
    def addresses(self) -> list[str]:
        """Where all tasks listen; nowhere, if they have not said hello."""
        return [self.address(task) or "" for task in self.names]

    def process(self, task: int) -> tuple[str, int] | None:
        """Return host and process of a task that has said hello."""
        hello = self._hellos.get(task)
        return None if hello is None else (hello.host, hello.pid)

    @property
    def processes(self) -> list[tuple[str, int]]:
        """Host and process of every task that has said hello."""
        return [(hello.host, hello.pid) for hello in self._hellos.values()]

    def whereabouts(self, task: int) -> Whereabouts | None:
        """Return which process a task that has said hello is."""
        hello = self._hellos.get(task)
        return None if hello is None else Whereabouts(hello.machine, hello.pid, hello.began)

    # ------------------------------------------------------------------ who is there

    @property
    def come(self) -> Set[int]:
        """The tasks that have said hello, even if they have left."""
        return self._hellos.keys()

    @property
    def missing(self) -> list[tuple[str, int]]:
        """The tasks that have not said hello."""
        return [name for task, name in self.names.items() if task not in self._hellos]

    @property
    def left(self) -> Set[int]:
        """The tasks that have ended."""
        return self._left

    @property
    def staying(self) -> set[int]:
        """The tasks that have not left, whether they have said hello or not."""
        return self.names.keys() - self._left

    @property
    def there(self) -> list[int]:
        """The tasks that have said hello and have not left."""
        return sorted(self._hellos.keys() - self._left)
