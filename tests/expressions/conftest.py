"""The judge of the oracle tests: a Spark session in UTC and with ANSI mode on."""

import os
import time
from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="module")
def judge(spark: Any) -> Iterator[Any]:
    """Spark itself, with settings of its own."""
    session = spark.newSession()
    for name, value in {
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.ansi.enabled": "true",
        "spark.sql.shuffle.partitions": "1",
        # Many small questions: interpreting them is faster than compiling each one.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.subexpressionElimination.enabled": "false",
    }.items():
        session.conf.set(name, value)
    # PySpark shows timestamps in the process's own time zone.
    before = os.environ.get("TZ")
    os.environ["TZ"] = "UTC"
    time.tzset()
    # Many answers are errors, as they should be; Spark need not tell each one.
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.sparkContext.setLogLevel("ERROR")
    if before is None:
        del os.environ["TZ"]
    else:
        os.environ["TZ"] = before
    time.tzset()
