"""Whom Spark lets in: a secret for every master, and settings that reach Java unseen."""

import json
import logging
import os
import stat
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil
import pytest

from floodway.core.errors import EngineError
from floodway.engine.host.scratch import OWNER
from floodway.engine.spark.authentication import check_active, check_secret
from floodway.engine.spark.context import Lease
from floodway.engine.spark.daemon import SOCKETS, private_sockets
from floodway.engine.spark.gateway import properties
from tests.engine.spark.child import ROOT, Child, Order
from tests.engine.spark.recovering import expected, histories, release
from tests.engine.spark.standalone import Standalone

ON, OFF = {"spark.authenticate": "true"}, {"spark.authenticate": "false"}
CLUSTER = "spark://head:7077"


# ---------------------------------------------------------------------- a Spark that is there


@pytest.mark.parametrize("master", ["local[4]", CLUSTER, "yarn"])
@pytest.mark.parametrize(("there", "given"), [(ON, {}), (ON, OFF), (OFF, {}), ({}, OFF)])
def test_spark_that_authenticates_or_is_meant_to_be_open_is_used(
    master: str, there: dict[str, str], given: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    check_active(master, there, given)
    assert not caplog.records


def test_open_local_spark_is_warned_about(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        check_active("local[4]", {}, {})
    assert "everybody on this machine can read the flow" in caplog.text
    assert '.config("spark.authenticate", "true")' in caplog.messages[-1]


@pytest.mark.parametrize("master", [CLUSTER, "yarn", "k8s://head"])
def test_open_cluster_is_refused(master: str) -> None:
    with pytest.raises(EngineError, match="does not authenticate") as caught:
        check_active(master, {}, {})
    assert 'conf={"spark.authenticate": "false"}' in caught.value.remedy


@pytest.mark.parametrize("there", [{}, OFF])
def test_open_spark_is_refused_where_a_closed_one_was_asked_for(there: dict[str, str]) -> None:
    with pytest.raises(EngineError, match="does not authenticate"):
        check_active("local[4]", there, ON)


def test_standalone_cluster_needs_a_secret() -> None:
    check_secret(CLUSTER, {**ON, "spark.authenticate.secret": "x"})
    check_secret(CLUSTER, OFF)
    for generating in ("local[2]", "yarn", "k8s://head"):
        check_secret(generating, ON)
    with pytest.raises(EngineError, match="no secret for spark://head") as caught:
        check_secret(CLUSTER, ON)
    assert "spark-defaults.conf" in caught.value.remedy
    assert "--conf spark.authenticate=false" in caught.value.remedy


# ---------------------------------------------------------------------- the daemon's socket


def test_daemon_uses_the_folder_that_only_its_user_may_enter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o700)
    monkeypatch.setenv(SOCKETS, str(tmp_path))
    with private_sockets():
        assert os.environ[SOCKETS] == str(tmp_path)


@pytest.mark.parametrize("given", ["missing", "open"])
def test_daemon_on_another_host_makes_a_folder_of_its_own(
    given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if given == "open":
        (tmp_path / given).mkdir()
        (tmp_path / given).chmod(0o755)
    monkeypatch.setenv(SOCKETS, str(tmp_path / given))
    with private_sockets():
        made = Path(os.environ[SOCKETS])
        assert stat.S_IMODE(made.stat().st_mode) == 0o700
        assert (made / OWNER).exists()
    assert not made.exists()


# ---------------------------------------------------------------------- settings

ASK = """\
import json, os, psutil, sys
from floodway.engine.spark.context import Lease

def ask(conf, names):
    lease = Lease.take("asked", 1, master="local[1]", conf=conf)
    found = lease.context.getConf()
    lines = [word for child in psutil.Process().children() for word in child.cmdline()]
    said = {name: found.get(name, None) for name in names}
    said["tmp"] = lease.context._jvm.System.getProperty("java.io.tmpdir")
    said["lines"] = " ".join(lines)
    lease.release()
    return said

order = json.load(sys.stdin)
print(json.dumps([ask(order["first"], order["names"]), ask({}, order["names"])]))
"""


def ask(order: Mapping[str, Any], **environment: str) -> list[dict[str, str | None]]:
    done = subprocess.run(
        [sys.executable, "-c", ASK],
        input=json.dumps(order),
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: list[dict[str, str | None]] = json.loads(done.stdout)
    return found


AWKWARD = ' two  words = "é" \\ # \\n: !\ttab'


@pytest.mark.spark
@pytest.mark.slow
def test_settings_reach_java_exactly_and_unseen_and_hold_for_one_flow(
    tmp_path: Path, private: Path
) -> None:
    """Those of the user's own files hold, too, and what a flow is given comes before them.

    But a file that somebody wrote years ago opens no flow; see decision 020.
    """
    open_to_all = "spark.authenticate false\n"
    defaults, more = tmp_path / "spark-defaults.conf", tmp_path / "more.conf"
    defaults.write_text(f"spark.mine.a defaults\nspark.mine.b defaults\n{open_to_all}")
    more.write_text(f"spark.mine.c more\nspark.mine.d more\n{open_to_all}")
    first = {"spark.mine.b": "given", "spark.mine.d": "given", "spark.mine.x": AWKWARD}
    names = [f"spark.mine.{letter}" for letter in "abcdx"] + ["spark.authenticate"]
    one, other = ask(
        {"first": first, "names": names},
        SPARK_CONF_DIR=str(tmp_path),
        PYSPARK_SUBMIT_ARGS=f"--properties-file {more} pyspark-shell",
        TMPDIR=str(private),
    )
    assert [one[name] for name in names] == ["defaults", "given", "more", "given", AWKWARD, "true"]
    assert other["spark.mine.x"] is None
    assert other["spark.authenticate"] == "true"
    assert "spark.properties" in str(one["lines"])
    assert "given" not in str(one["lines"])
    assert Path(str(one["tmp"])).parent == private
    assert [path.name for path in private.iterdir()] == ["floodway"]


def test_property_file_keeps_names_apart_from_values() -> None:
    assert properties({"a b=c:d": "x=y"}) == "a\\ b\\=c\\:d=x=y\n"


def test_temporary_folder_with_too_long_a_name_is_refused(tmp_path: Path) -> None:
    deep = tmp_path / ("x" * 80)
    deep.mkdir()
    ask = "from floodway.engine.spark.context import Lease; Lease.take('deep', 1, conf={})"
    done = subprocess.run(
        [sys.executable, "-c", ask],
        env={**os.environ, "TMPDIR": str(deep)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "too long a name for sockets" in done.stderr
    assert "set TMPDIR to a shorter path" in done.stderr
    assert not list(deep.iterdir())


# ---------------------------------------------------------------------- clusters

SECRET = "a-secret-of-the-whole-cluster"


@pytest.mark.spark
@pytest.mark.usefixtures("no_spark", "private")
def test_flow_on_a_standalone_cluster_without_a_secret_is_refused() -> None:
    with pytest.raises(EngineError, match="there is no secret for spark://127"):
        Lease.take("refused", 1, master="spark://127.0.0.1:9", conf={})


BOTH = """\
import sys
from floodway.engine.spark.context import Lease

for master in ("local[1]", sys.argv[1]):
    lease = Lease.take("both", 1, master=master, conf={"spark.executor.memory": "512m"})
    print(lease.context.parallelize([1, 2], 2).sum())
    lease.release()
"""


@pytest.mark.spark
@pytest.mark.slow
def test_process_that_had_a_local_spark_gets_into_a_cluster(tmp_path: Path, private: Path) -> None:
    """Its Java remembers the secret that it made for the first one."""
    settings = f"spark.authenticate true\nspark.authenticate.secret {SECRET}\n"
    with Standalone(tmp_path, settings) as cluster:
        done = subprocess.run(
            [sys.executable, "-c", BOTH, cluster.master],
            env={**os.environ, "SPARK_CONF_DIR": str(cluster.conf), "TMPDIR": str(private)},
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.stdout.split() == ["3", "3"], done.stderr


@pytest.mark.spark
@pytest.mark.slow
def test_flow_runs_on_a_standalone_cluster_with_a_secret(
    tmp_path: Path, private: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(private))
    settings = f"spark.authenticate true\nspark.authenticate.secret {SECRET}\n"
    (tmp_path / "flow").mkdir()
    order = Order(
        folder=str(tmp_path / "flow"),
        dop=1,
        options={"count": 2000},
        conf={"spark.executor.memory": "512m"},
    )
    (tmp_path / "cluster").mkdir()
    with Standalone(tmp_path / "cluster", settings) as cluster:
        order.master = cluster.master
        with Child(order, SPARK_CONF_DIR=str(cluster.conf)) as child:
            child.until(lambda: (tmp_path / "flow" / "out").exists(), "showing something")
            seen = [
                " ".join(each.info["cmdline"] or ()) for each in psutil.process_iter(["cmdline"])
            ]
            assert any("org.apache.spark.executor" in line for line in seen)
            assert not any(SECRET in line for line in seen)
            release(tmp_path / "flow")
            assert child.wait() == 0, child.log
    assert histories(tmp_path / "flow" / "out") == expected(2000)
