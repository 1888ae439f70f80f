"""Real servers for tests: one Kafka broker, one Redis, on loopback, with temporary data.

``python -m floodway.testing.servers kafka`` (or ``redis``) runs one until Ctrl-C. In tests, use
the context managers. A server that cannot be had raises `ServerUnavailable`, which says why.

A server ends with the thread that started it, however that ends: none is left behind.
"""

import argparse
import logging
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, Self

from floodway.testing.kafka_jars import kafka_jars
from floodway.testing.programs import ServerUnavailable, bound_to_us, find, run

__all__ = ["KafkaServer", "RedisServer", "Server", "ServerUnavailable", "free_port", "main"]

HOST = "127.0.0.1"
"""Servers listen on loopback only."""

_logger = logging.getLogger(__name__)

# Below the range from which the system takes the ports of outgoing connections: otherwise another
# program could get the port of a server while that is being restarted.
_PORTS = range(20_000, 32_000)

_START_SECONDS = 60.0  # a cold JVM on a loaded machine
_STOP_SECONDS = 15.0
_ASK_SECONDS = 1.0
_PAUSE_SECONDS = 0.05

# ApiVersions, version 0, correlation id 7, no client id: the one request that every broker answers.
_KAFKA_QUESTION = bytes.fromhex("0000000a 0012 0000 00000007 ffff")
_KAFKA_PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@{host}:{controller_port}
listeners=BROKER://{host}:{port},CONTROLLER://{host}:{controller_port}
advertised.listeners=BROKER://{host}:{port}
listener.security.protocol.map=BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=BROKER
controller.listener.names=CONTROLLER
log.dirs={folder}/logs
auto.create.topics.enable=false
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
# A broker that was killed may come back only once its old session is over.
broker.session.timeout.ms=2000
broker.heartbeat.interval.ms=200
num.network.threads=1
num.io.threads=2
log.cleaner.dedupe.buffer.size=8388608
"""


class Server:
    """A server process with a port and a temporary folder of its own.

    Parameters
    ----------
    port
        The port to listen on; any free one if not given.
    """

    name = "server"

    def __init__(self, *, port: int | None = None) -> None:
        self.port = port or free_port()
        self.folder: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def running(self) -> bool:
        """Whether the process is there."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start it, on the data it had if it ran before, and wait until it answers."""
        if self.running:
            return
        if not _is_free(self.port):  # or we would take another server's answer for ours
            raise ServerUnavailable(f"port {self.port} is in use")
        if self.folder is None:
            self.folder = Path(tempfile.mkdtemp(prefix=f"floodway-{self.name}-"))
        try:
            self._launch(self.folder)
            _wait_until(self._answers, self._gone)
        except BaseException:
            self.kill()
            raise

    def stop(self) -> None:
        """Ask it to end, and wait until it has; its data stay until `close`."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End it at once, as a crash would; its data stay until `close`."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        """Stop it and start it again, on the same port and data."""
        self.stop()
        self.start()

    def close(self) -> None:
        """End it and remove its data."""
        self.kill()
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder = None

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def _launch(self, folder: Path) -> None:
        command = self._command(folder)
        with (folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                bound_to_us(command),
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for us; we tell the server
            )

    def _end(self, number: int) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(number)
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _gone(self) -> str | None:
        """Return why it will never answer, or None while it may."""
        if self.running:
            return None
        return f"{self.name} ended while it started:\n{self._last_words()}"

    def _last_words(self) -> str:
        if self.folder is None:
            return ""
        text = (self.folder / "server.log").read_text(encoding="utf-8", errors="replace")
        return "\n".join(text.splitlines()[-15:])

    def _command(self, folder: Path) -> list[str]:
        """Return the command that runs the server in `folder`; called before each start."""
        raise TypeError(f"{type(self).__name__} is not a server")  # pragma: no cover

    def _answers(self) -> bool:
        """Return whether the server answers a question of its protocol."""
        raise TypeError(f"{type(self).__name__} is not a server")  # pragma: no cover


class KafkaServer(Server):
    """A Kafka broker (KRaft, one node) on loopback; topics are not created by themselves.

    It needs Java 17 and, the first time, Maven, which fetches the broker's jars into the user's
    cache; see `floodway.testing.kafka_jars`.

    Parameters
    ----------
    port
        The port of the broker; any free one if not given.
    heap_mb
        How much memory the Java heap may have.

    Examples
    --------
    >>> with KafkaServer() as kafka:  # doctest: +SKIP
    ...     kafka.create_topic("taps", partitions=3)
    ...     print(kafka.servers)
    127.0.0.1:29092
    """

    name = "kafka"

    def __init__(self, *, port: int | None = None, heap_mb: int = 512) -> None:
        super().__init__(port=port)
        self.heap_mb = heap_mb
        self._controller_port = free_port(besides=self.port)

    @property
    def servers(self) -> str:
        """The bootstrap address."""
        return f"{HOST}:{self.port}"

    def create_topic(
        self, topic: str, *, partitions: int = 1, settings: dict[str, str] | None = None
    ) -> None:
        """Create a topic and wait until it is there; needs the extra ``floodway[kafka]``."""
        from confluent_kafka.admin import AdminClient
        from confluent_kafka.cimpl import NewTopic

        admin = AdminClient({"bootstrap.servers": self.servers}, logger=_logger)
        new = NewTopic(topic, partitions, 1, config=settings or {})
        admin.create_topics([new], operation_timeout=10.0)[topic].result(timeout=15.0)
        # A loaded broker answers that before it tells others of the topic.
        _wait_until(lambda: _has_topic(admin, topic, partitions), self._gone)

    def _command(self, folder: Path) -> list[str]:
        java = [
            find("java", "Java 17 or newer"),
            f"-Xmx{self.heap_mb}m",
            "-XX:TieredStopAtLevel=1",  # starts faster, and no test runs long enough for more
            "-XX:+UseSerialGC",
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
            "-cp",
            f"{kafka_jars()}/*",
        ]
        properties = folder / "server.properties"
        if not properties.exists():
            self._format(java, properties)
        return [*java, "kafka.Kafka", str(properties)]

    def _format(self, java: Sequence[str], properties: Path) -> None:
        text = _KAFKA_PROPERTIES.format(
            host=HOST,
            port=self.port,
            controller_port=self._controller_port,
            folder=properties.parent,
        )
        properties.write_text(text, encoding="utf-8")
        tool = ["kafka.tools.StorageTool", "format", "-t", "floodway-test-cluster", "-c"]
        run([*java, *tool, str(properties)], "formatting Kafka's storage", _START_SECONDS)

    def _answers(self) -> bool:
        return _ask(self.port, _KAFKA_QUESTION)[4:8] == _KAFKA_QUESTION[8:12]


def _has_topic(admin: Any, topic: str, partitions: int) -> bool:
    from confluent_kafka import KafkaException

    try:
        found = admin.list_topics(topic, timeout=_ASK_SECONDS).topics[topic]
    except KafkaException:
        return False
    return found.error is None and len(found.partitions) == partitions


class RedisServer(Server):
    """A Redis on loopback, from the ``redis-server`` on the path.

    Parameters
    ----------
    port
        The port; any free one if not given.
    password
        What clients have to say to be let in; nothing if not given.
    keep
        Whether the data survive a restart: every write is then on disk before it is answered.

    Examples
    --------
    >>> with RedisServer() as redis:  # doctest: +SKIP
    ...     print(redis.url)
    redis://127.0.0.1:26379/0
    """

    name = "redis"

    def __init__(
        self, *, port: int | None = None, password: str | None = None, keep: bool = False
    ) -> None:
        super().__init__(port=port)
        self.password = password
        self.keep = keep

    @property
    def url(self) -> str:
        """The address, with the password."""
        secret = f":{self.password}@" if self.password else ""
        return f"redis://{secret}{HOST}:{self.port}/0"

    def _command(self, folder: Path) -> list[str]:
        options = {
            "bind": HOST,
            "port": str(self.port),
            "dir": str(folder),
            "save": '""',
            "appendonly": "yes" if self.keep else "no",
            "appendfsync": "always",
        }
        if self.password:
            options["requirepass"] = self.password
        # In a file and not as arguments, where everybody on the machine could read the password.
        settings = folder / "redis.conf"
        settings.touch(mode=0o600)
        settings.write_text("".join(f"{name} {value}\n" for name, value in options.items()))
        return [find("redis-server", "the package redis-server"), str(settings)]

    def _answers(self) -> bool:
        # While it loads its data it says -LOADING.
        return _ask(self.port, b"PING\r\n").startswith((b"+PONG", b"-NOAUTH"))


def free_port(*, besides: int | None = None) -> int:
    """Return a loopback port that nothing listens on."""
    for port in random.sample(_PORTS, len(_PORTS)):
        if port != besides and _is_free(port):
            return port
    raise ServerUnavailable(f"no port from {_PORTS.start} to {_PORTS.stop - 1} is free")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a server in the foreground until Ctrl-C, and remove its data."""
    parser = argparse.ArgumentParser(
        prog="python -m floodway.testing.servers",
        description="Run a server with temporary data until Ctrl-C.",
    )
    parser.add_argument("server", choices=["kafka", "redis"])
    parser.add_argument("--port", type=int, help="default: the usual port, or a free one")
    chosen = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        _serve(chosen.server, chosen.port)
    except ServerUnavailable as missing:
        sys.stderr.write(f"{chosen.server} cannot be started: {missing.reason}\n")
        return 1
    return 0


def _serve(name: str, port: int | None) -> None:
    server: KafkaServer | RedisServer
    if name == "kafka":
        server = KafkaServer(port=port or _usual_port(9092))
    else:
        server = RedisServer(port=port or _usual_port(6379))
    address = server.servers if isinstance(server, KafkaServer) else server.url
    try:
        _say(f"starting {name} ...")
        with server:
            _say(f"{name} is ready: {address}\nCtrl-C stops it and removes its data.")
            while server.running:
                time.sleep(_PAUSE_SECONDS)
            raise ServerUnavailable(f"{name} has ended by itself")
    except KeyboardInterrupt:
        _say(f"{name} is stopped and its data are removed.")


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _usual_port(port: int) -> int:
    return port if _is_free(port) else free_port()


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        # As servers do: a port whose last connections are still being forgotten counts as free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def _ask(port: int, question: bytes) -> bytes:
    """Send a question and return the beginning of the answer, or nothing if there is none."""
    try:
        with socket.create_connection((HOST, port), timeout=_ASK_SECONDS) as connection:
            connection.sendall(question)
            return connection.recv(64)
    except OSError:
        return b""


def _wait_until(answers: Callable[[], bool], gone: Callable[[], str | None]) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while not answers():
        if reason := gone():
            raise ServerUnavailable(reason)
        if time.monotonic() > deadline:
            raise ServerUnavailable(f"no answer within {_START_SECONDS:.0f} seconds")
        time.sleep(_PAUSE_SECONDS)


if __name__ == "__main__":
    sys.exit(main())
