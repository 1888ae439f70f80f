"""What both ways to run Spark have in common: the session, and queries that either can run.

A query takes lines (one column, `value`) and gives results: `key`, `at` (the start of a window, in
milliseconds), `value`, `latest` (the time of the latest event), or `value` and `latest` alone if
results are counted one by one.
"""

import os
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyspark
from kit import Task
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

SLACK = "10 seconds"
"""How late events may be where results come with every update: so long a window is kept."""


def session(task: Task, threads: int, **more: Any) -> SparkSession:
    """Return a session in this process, with the jars of its environment, if it has any."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    jars = _jars()
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "2g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.local.dir": f"{task.folder}/local",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(task.dop),
        **({"spark.jars": ",".join(jars)} if jars else {}),
        **more,
    }
    builder = SparkSession.builder.master(f"local[{threads}]").appName(task.case)
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def _jars() -> list[str]:
    """Return the jars that PySpark does not have itself, in whatever version."""
    shipped = Path(pyspark.__file__).parent / "jars"
    has = {jar.stem.rsplit("-", 1)[0] for jar in shipped.glob("*.jar")}
    own = sorted((Path(sys.prefix) / "jars").glob("*.jar"))
    return [str(jar) for jar in own if jar.stem.rsplit("-", 1)[0] not in has]


def parsed(lines: DataFrame, fields: str) -> DataFrame:
    """Return the fields of JSON that are needed."""
    return lines.select(F.from_json("value", fields).alias("e")).select("e.*")


def timed(events: DataFrame, slack: str, column: str = "time") -> DataFrame:
    """Return events with their time as Spark wants it, which may come so late."""
    return events.withColumn("ts", F.timestamp_millis(column)).withWatermark("ts", slack)


def of_ms(milliseconds: int) -> str:
    """Return a duration as Spark wants it."""
    return f"{milliseconds} milliseconds"


def start_of(window: str = "window") -> Column:
    """Return when a window begins, in milliseconds."""
    return F.unix_millis(f"{window}.start")


def ads(spark: SparkSession, task: Task, lines: DataFrame) -> DataFrame:
    """Return views per campaign and window; the table of campaigns is sent to all tasks."""
    ads, campaigns = zip(*task.options["campaigns"].items(), strict=True)
    known = spark.createDataFrame(pa.table({"ad_id": ads, "campaign": campaigns}))
    events = parsed(lines, "ad_id STRING, event_type STRING, event_time BIGINT")
    views = timed(events.where("event_type = 'view'"), SLACK, "event_time")
    return (
        views.join(F.broadcast(known), "ad_id")
        .groupBy("campaign", F.window("ts", of_ms(task.options["window_ms"])))
        .agg(F.count("*").alias("value"), F.max("event_time").alias("latest"))
        .select(F.col("campaign").alias("key"), start_of().alias("at"), "value", "latest")
    )


def mean(spark: SparkSession, task: Task, lines: DataFrame) -> DataFrame:
    """Return the mean per key and hopping window."""
    events = timed(parsed(lines, "time BIGINT, geo INT, seconds INT"), SLACK)
    size, hop = of_ms(task.options["size_ms"]), of_ms(task.options["hop_ms"])
    return (
        events.groupBy("geo", F.window("ts", size, hop))
        .agg(F.avg("seconds").alias("value"), F.max("time").alias("latest"))
        .select(F.col("geo").alias("key"), start_of().alias("at"), "value", "latest")
    )


def _words(lines: DataFrame) -> DataFrame:
    texts = parsed(lines, "time BIGINT, text STRING")
    return texts.select("time", F.explode(F.split("text", " ")).alias("key"))


def words(spark: SparkSession, task: Task, lines: DataFrame) -> DataFrame:
    """Return how often each word has come."""
    counts = _words(lines).groupBy("key")
    found = counts.agg(F.count("*").alias("value"), F.max("time").alias("latest"))
    return found.select("key", F.lit(0).alias("at"), "value", "latest")


def windowed_words(spark: SparkSession, task: Task, lines: DataFrame) -> DataFrame:
    """Return how often each word has come in a window."""
    counts = timed(_words(lines), SLACK)
    return (
        counts.groupBy("key", F.window("ts", of_ms(task.options["window_ms"])))
        .agg(F.count("*").alias("value"), F.max("time").alias("latest"))
        .select("key", start_of().alias("at"), "value", "latest")
    )


def grep(spark: SparkSession, task: Task, lines: DataFrame) -> DataFrame:
    """Return the lines that have a word."""
    texts = parsed(lines, "time BIGINT, id BIGINT, text STRING")
    found = texts.where(F.array_contains(F.split("text", " "), task.options["sought"]))
    return found.select(F.col("id").alias("value"), F.col("time").alias("latest"))


QUERIES = {
    "ads": ads,
    "mean": mean,
    "words": words,
    "windowed-words": windowed_words,
    "grep": grep,
}
"""Those that give results with every update, or every event."""
