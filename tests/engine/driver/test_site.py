"""The site of a flow: how its tasks talk where no Spark is needed."""

from pathlib import Path
from typing import Any

import pytest

from floodway.engine.driver.site import Site


@pytest.mark.parametrize("transport", ["auto", "ipc"])
def test_tasks_of_one_process_talk_through_files(transport: Any, tmp_path: Path) -> None:
    network = Site(None, {}, transport, None).network(None, tmp_path, announce="")
    assert (network.folder, network.host, network.keys) == (str(tmp_path), "", None)


def test_tcp_has_keys_also_on_one_host(tmp_path: Path) -> None:
    network = Site(None, {}, "tcp", None).network(None, tmp_path, announce="elsewhere")
    assert (network.folder, network.host, network.announce) == ("", "127.0.0.1", "elsewhere")
    assert network.keys is not None
