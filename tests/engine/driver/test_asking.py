"""A running flow is found and asked by another process, over its endpoint."""

import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from floodway.core.errors import EngineError
from floodway.engine.driver.asking import find_endpoint, read_status, read_story
from floodway.engine.metrics.announcements import Announcement, announce
from floodway.engine.metrics.board import Board
from floodway.engine.metrics.endpoint import Endpoint
from tests.engine.control.reports import STAGES, START, busy_board


@pytest.fixture(autouse=True)
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with Endpoint(busy_board(), clock=lambda: START + 3) as endpoint:
        yield endpoint


def test_running_flow_is_found_and_says_how_it_is(endpoint: Endpoint) -> None:
    assert find_endpoint() == find_endpoint("ads") == endpoint.url
    assert read_status(endpoint.url) == busy_board().status(START + 3)
    assert read_story(endpoint.url) == []


def test_flow_of_another_name_is_not_found(endpoint: Endpoint) -> None:
    assert find_endpoint("clicks") is None


def test_one_of_several_flows_has_to_be_named(endpoint: Endpoint) -> None:
    with Endpoint(Board("clicks", STAGES)) as other:
        with pytest.raises(EngineError, match="several flows are running: ads, clicks") as error:
            find_endpoint()
        assert "--flow ads" in error.value.remedy
        assert find_endpoint("clicks") == other.url


def test_flow_that_is_gone_but_for_its_file_does_not_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
    announce(Announcement(url=url, pid=os.getpid(), flow="ads", started=time.time()))
    assert find_endpoint() == url
    assert read_status(url) is None
    assert read_story(url) == []


@pytest.mark.parametrize("url", ["file:///etc", "127.0.0.1:80", "http://"])
def test_address_that_is_none_is_an_error(url: str) -> None:
    with pytest.raises(EngineError, match="is no address of an endpoint") as error:
        read_status(url)
    assert "http://" in error.value.remedy


def test_other_server_is_an_error(endpoint: Endpoint) -> None:
    with pytest.raises(EngineError, match="is no endpoint of this version of Floodway"):
        read_status(f"{endpoint.url}/metrics")
