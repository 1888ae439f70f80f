"""The endpoint over real sockets."""

import contextlib
import http.client
import json
import os
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
import pytest

from floodway.core.errors import EngineError
from floodway.engine.metrics import endpoint as endpoint_module
from floodway.engine.metrics.board import Board
from floodway.engine.metrics.endpoint import Endpoint
from floodway.engine.metrics.status import Status
from floodway.engine.scheduler.story import Entry
from tests.engine.control.reports import STAGES, START, busy_board, report
from tests.waiting import wait_for


@pytest.fixture(autouse=True)
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give announcements a folder of their own."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path / "floodway"


def at(seconds: float) -> Callable[[], float]:
    return lambda: START + seconds


def ask(url: str, path: str, **headers: str) -> tuple[int, str, bytes]:
    """Return code, content type and body of an answer."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=10)
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.headers["Content-Type"], answer.read()
    finally:
        connection.close()


def test_status_is_the_status_of_the_board() -> None:
    board = busy_board()
    with Endpoint(board, clock=at(3)) as endpoint:
        code, kind, body = ask(endpoint.url, "/status.json")
    assert (code, kind) == (200, "application/json")
    assert msgspec.json.decode(body, type=Status) == board.status(START + 3)


def test_metrics_are_prometheus_text() -> None:
    with Endpoint(busy_board(), clock=at(3)) as endpoint:
        code, kind, body = ask(endpoint.url, "/metrics")
    assert code == 200
    assert kind.startswith("text/plain; version=")
    assert b'floodway_records_in_total{flow="ads",stage="events",task="0"} 3000.0' in body


def test_healthy_flow_is_healthy() -> None:
    board = Board("ads", STAGES[:1])
    board.take(report("events"))
    with Endpoint(board, clock=at(1)) as endpoint:
        code, _, body = ask(endpoint.url, "/healthz")
    assert code == 200
    assert json.loads(body) == {
        "healthy": True,
        "state": "running",
        "health": "healthy",
        "problems": [],
        "degraded": [],
    }


def test_degraded_flow_says_why_and_is_not_restarted_for_it() -> None:
    with Endpoint(busy_board(), clock=at(3)) as endpoint:
        code, _, body = ask(endpoint.url, "/healthz")
    health = json.loads(body)
    assert (code, health["healthy"], health["health"]) == (200, True, "degraded")
    skipped, dead, late = health["degraded"]
    assert skipped.startswith("only_views failed on 2 of 3,000 records and skipped them; ")
    assert dead.startswith("only_views failed on 1 of 3,000 records and sent them to its dead")
    assert late.startswith("views took 14 of 900 records for late and left them out: ")
    assert "views.late.to(...)" in late


def test_flow_that_starts_is_healthy() -> None:
    with Endpoint(Board("ads", STAGES)) as endpoint:
        assert ask(endpoint.url, "/healthz")[0] == 200


def test_failed_task_is_not_healthy() -> None:
    board = busy_board()
    board.take(report("views", 1, at=3.1, state="failed", reason="killed"))
    with Endpoint(board, clock=at(3.1)) as endpoint:
        code, _, body = ask(endpoint.url, "/healthz")
    health = json.loads(body)
    assert (code, health["healthy"], health["state"]) == (503, False, "failed")
    assert health["problems"] == ["task views/1 failed: killed"]


def test_silence_is_not_healthy_after_five_seconds() -> None:
    board = busy_board()
    with Endpoint(board, clock=at(7.9)) as endpoint:
        assert ask(endpoint.url, "/healthz")[0] == 200
    with Endpoint(board, clock=at(8.1)) as endpoint:
        assert ask(endpoint.url, "/healthz")[0] == 503


def test_story_is_what_was_decided() -> None:
    story = [
        Entry(
            time_ms=1, what="switch", stage="views", why="flood", before="data", after="operation"
        )
    ]
    with Endpoint(busy_board(), story=lambda: story) as endpoint:
        code, kind, body = ask(endpoint.url, "/story")
    assert (code, kind) == (200, "application/json")
    assert msgspec.json.decode(body, type=list[Entry]) == story


def test_story_of_a_flow_without_decisions_is_empty() -> None:
    with Endpoint(busy_board(), clock=at(3)) as endpoint:
        assert ask(endpoint.url, "/story")[2] == b"[]"


def test_other_paths_are_not_found() -> None:
    with Endpoint(busy_board(), clock=at(3)) as endpoint:
        code, _, body = ask(endpoint.url, "/")
    assert code == 404
    assert b"/status.json" in body


def test_orders_are_not_taken() -> None:
    with Endpoint(busy_board(), clock=at(3)) as endpoint:
        parts = urlsplit(endpoint.url)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=10)
        connection.request("POST", "/status.json", body=b"{}")
        assert connection.getresponse().status == 501
        connection.close()


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "example.org", ""])
def test_address_that_others_reach_has_to_be_meant(host: str) -> None:
    with pytest.raises(EngineError, match="open to other machines") as caught:
        Endpoint(busy_board(), host=host)
    assert "expose=True" in caught.value.remedy


def test_exposed_endpoint_answers_by_any_name() -> None:
    with Endpoint(busy_board(), host="0.0.0.0", expose=True) as endpoint:
        port = urlsplit(endpoint.url).port
        code, _, _ = ask(f"http://127.0.0.1:{port}", "/status.json", Host="driver.example")
    assert code == 200


def test_port_in_use_is_an_error_with_a_remedy() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(EngineError, match=f"port {port} on 127.0.0.1 is in use") as caught:
            Endpoint(busy_board(), port=port)
    assert "another port" in caught.value.remedy


@pytest.mark.parametrize("port", [-1, 70_000])
def test_port_that_does_not_exist_is_an_error(port: int) -> None:
    with pytest.raises(EngineError, match=f"port {port}"):
        Endpoint(busy_board(), port=port)


def test_address_of_another_machine_is_an_error() -> None:
    with pytest.raises(EngineError, match=r"cannot listen on '192\.0\.2\.1'"):
        Endpoint(busy_board(), host="192.0.2.1", expose=True)


def test_nothing_is_left_when_it_closes(runtime: Path) -> None:
    before = set(threading.enumerate())
    with Endpoint(busy_board(), clock=at(3)) as endpoint:
        port = urlsplit(endpoint.url).port
        assert ask(endpoint.url, "/healthz")[0]
    assert {
        thread for thread in threading.enumerate() if thread.name.startswith("floodway")
    } <= before
    assert list(runtime.iterdir()) == []
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0


def test_closing_one_that_was_never_entered_frees_the_port() -> None:
    endpoint = Endpoint(busy_board(), clock=at(3))
    port = urlsplit(endpoint.url).port or 0
    endpoint.close()
    with Endpoint(busy_board(), port=port):
        pass


def test_flow_is_announced_in_private(runtime: Path) -> None:
    with Endpoint(busy_board(), clock=at(3)) as endpoint:
        (file,) = runtime.iterdir()
        announced = json.loads(file.read_bytes())
        assert file.name == f"ads-{os.getpid()}.json"
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert stat.S_IMODE(runtime.stat().st_mode) == 0o700
        assert {key: announced[key] for key in ("url", "pid", "flow")} == {
            "url": endpoint.url,
            "pid": os.getpid(),
            "flow": "ads",
        }


def test_reports_may_come_while_it_answers() -> None:
    board = Board("ads", STAGES)
    with Endpoint(board, clock=at(1)) as endpoint:
        failed: list[int] = []

        def scrape() -> None:
            failed.extend(
                code
                for code in (ask(endpoint.url, "/metrics")[0] for _ in range(10))
                if code != 200
            )

        threads = [threading.Thread(target=scrape) for _ in range(3)]
        for thread in threads:
            thread.start()
        tick = 0
        while any(thread.is_alive() for thread in threads):
            tick += 1
            board.take(report("views", tick % 2, at=tick / 1e5, records_in=tick, service_us=[tick]))
        for thread in threads:
            thread.join()
    assert failed == []


class BrokenBoard(Board):
    """A board with a defect."""

    def status(self, now: float) -> Status:
        raise ZeroDivisionError


def test_defect_is_logged_and_the_endpoint_lives_on(caplog: pytest.LogCaptureFixture) -> None:
    with Endpoint(BrokenBoard("ads", STAGES)) as endpoint:
        with pytest.raises(http.client.RemoteDisconnected):
            ask(endpoint.url, "/status.json")
        assert ask(endpoint.url, "/")[0] == 404
    assert "ZeroDivisionError" in caplog.text


@pytest.mark.parametrize("host", ["127.0.0.1:80", "localhost:9464", "[::1]:80"])
def test_request_by_a_name_of_this_machine_is_answered(host: str) -> None:
    with Endpoint(busy_board(), clock=at(3)) as endpoint:
        assert ask(endpoint.url, "/healthz", Host=host)[0] == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example:80",
        "[::1",
        "",
        "evil.example@127.0.0.1",
        "evil.example:80@localhost:9464",
        "127.0.0.1:x",
        "127.0.0.1, evil.example",
        "127.0.0.1/evil.example",
        "127.0.0.1#evil.example",
    ],
)
def test_request_by_a_foreign_name_is_refused(host: str) -> None:
    with Endpoint(busy_board(), clock=at(3)) as endpoint:
        assert ask(endpoint.url, "/healthz", Host=host)[0] == 403


@pytest.mark.parametrize("second", ["127.0.0.1", "evil.example"])
def test_request_by_two_names_is_refused(second: str) -> None:
    """A proxy, or a browser's check, may have looked at the other one."""
    with Endpoint(busy_board(), clock=at(3)) as endpoint:
        connection = connected(endpoint.url)
        connection.putrequest("GET", "/status.json", skip_host=True)
        connection.putheader("Host", "127.0.0.1")
        connection.putheader("Host", second)
        connection.endheaders()
        assert connection.getresponse().status == 403
        connection.close()


def connected(url: str) -> http.client.HTTPConnection:
    parts = urlsplit(url)
    return http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=10)


def test_many_may_come_at_once() -> None:
    """Who does not fit into the backlog waits for a second or longer before it tries again."""
    endpoint = Endpoint(busy_board(), clock=at(3))  # nobody is let in before it is entered
    parts = urlsplit(endpoint.url)
    with contextlib.ExitStack() as stack:
        stack.callback(endpoint.close)
        for _ in range(50):
            address = (parts.hostname or "", parts.port or 0)
            stack.enter_context(socket.create_connection(address, timeout=10))


def test_query_is_ignored() -> None:
    with Endpoint(busy_board(), clock=at(3)) as endpoint:
        assert ask(endpoint.url, "/healthz?verbose=1")[0] == 200


HOLDING = """
import socket, sys
address = ("127.0.0.1", int(sys.argv[1]))
held = [socket.create_connection(address, timeout=10) for _ in range(int(sys.argv[2]))]
for each in held:
    each.sendall(b"GET /healthz HTTP/1.1\\r\\nX: ")
print("all there", flush=True)
sys.stdin.read()
"""


def test_those_who_hold_connections_use_up_no_descriptors() -> None:
    """Everybody on the machine can connect, and a flow without descriptors is over."""
    before = len(os.listdir("/proc/self/fd"))
    with Endpoint(busy_board(), clock=at(3)) as endpoint:
        port = str(urlsplit(endpoint.url).port)
        pipe = subprocess.PIPE
        command = [sys.executable, "-c", HOLDING, port, "100"]
        with subprocess.Popen(command, stdin=pipe, stdout=pipe) as client:
            assert client.stdout is not None
            assert client.stdout.readline() == b"all there\n"
            assert len(os.listdir("/proc/self/fd")) - before < 50
            client.kill()
        assert ask(endpoint.url, "/healthz")[0] == 200


def test_who_sends_byte_after_byte_is_seen_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint_module, "_PATIENCE_S", 0.1)
    with Endpoint(busy_board(), clock=at(3)) as endpoint:
        port = urlsplit(endpoint.url).port or 0
        with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
            client.sendall(b"GET /healthz HTTP/1.1\r\nX: ")
            client.settimeout(0.02)
            wait_for(lambda: gone(client))


def gone(client: socket.socket) -> bool:
    """Send one byte more; return whether the other side has hung up."""
    try:
        client.sendall(b"a")
        return client.recv(1) == b""
    except TimeoutError:
        return False
    except OSError:
        return True


def test_flow_runs_where_somebody_else_has_made_its_folder(
    runtime: Path, caplog: pytest.LogCaptureFixture
) -> None:
    runtime.mkdir()
    runtime.chmod(0o777)
    with Endpoint(busy_board(), clock=at(3)) as endpoint:
        assert ask(endpoint.url, "/healthz")[0] == 200
    assert f"only with --url {endpoint.url}" in caplog.text
    assert "is not private" in caplog.text
