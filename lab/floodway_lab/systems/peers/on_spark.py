"""Spark Structured Streaming: micro-batches, one after the other as fast as they go.

Everything is a native operator. Results are collected as Arrow in `foreachBatch`, and so are timed
when the job of the batch is done, before Spark writes down that it is.

Sockets are read by a Python data source (`SimpleDataSourceStreamReader`), not by the source
`socket`: that one takes without bound, so nobody can tell whether it keeps up, and it looks its
rows up in a linked list, from the front each time. At the start of a batch this one takes what is
there, at most `MOST_BYTES`, and hands it to the JVM as Arrow, a list of lines in a row: Python
touches no single line. It is read by one task, whatever there are after it.

Tuning: as many shuffle partitions as tasks, at least two threads; state in memory with files of
changes (the default provider; RocksDB is for more state than memory can hold).
"""

import json
from collections.abc import Callable, Iterator
from functools import reduce
from pathlib import Path
from select import select

import pyarrow as pa
import pyarrow.compute as pc
from kit import Link, Results, Signal, Task, run
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader
from pyspark.sql.streaming import StreamingQuery
from spark_queries import QUERIES, of_ms, parsed, session, start_of, timed

MOST_BYTES = 32 * 1024 * 1024
"""So much is taken for a batch at most."""

FEW_BYTES, FEW_TIMES = 16 * 1024, 5
"""Once no more than this comes so many times in a row, there is nothing left that has waited."""

PAUSE_S = 0.002
"""So long the data engine may take to send more of what waits."""

SCHEMA = pa.schema([("lines", pa.list_(pa.field("element", pa.string())))])


class Port(DataSource):
    """The lines of a data engine."""

    @classmethod
    def name(cls) -> str:
        return "port"

    def schema(self) -> str:
        return "lines ARRAY<STRING>"

    def simpleStreamReader(self, schema: object) -> SimpleDataSourceStreamReader:
        return Taking(int(self.options["port"]), self.options["over"])


class Taking(SimpleDataSourceStreamReader):
    """Takes what is there; offsets count batches. It leaves a file when there will be no more.

    It connects after the first batch, which is empty, and for which Spark makes its plans.
    """

    def __init__(self, port: int, over: str) -> None:
        self._port, self._over = port, over
        self._link: Link | None = None
        self._open, self._warm = True, False

    def __reduce__(self) -> tuple[type["Taking"], tuple[int, str]]:
        return Taking, (self._port, self._over)  # Spark sends readers to tasks, this one in vain

    def initialOffset(self) -> dict[str, int]:
        return {"batch": 0}

    def read(self, start: dict[str, int]) -> tuple[Iterator[pa.RecordBatch], dict[str, int]]:
        chunks = list(self._take()) if self._warm else []
        self._warm = True
        if not chunks:
            return iter([]), start
        lines = pc.split_pattern(pa.array(chunks, pa.string()), "\n").cast(SCHEMA.field(0).type)
        batch = pa.RecordBatch.from_arrays([lines], schema=SCHEMA)
        return iter([batch]), {"batch": start["batch"] + 1}

    def _take(self) -> Iterator[bytes]:
        """Return chunks of whole lines, without the last end of line."""
        if self._link is None:
            self._link = Link(self._port, blocking=False)
        taken = few = 0
        while self._open and few < FEW_TIMES and taken < MOST_BYTES:
            if not select([self._link.socket], [], [], PAUSE_S)[0]:
                break
            lines = self._link.read()
            if lines is None:
                self._open = False
                Path(self._over).touch()
            elif lines:
                taken += len(lines)
                few = few + 1 if len(lines) <= FEW_BYTES else 0
                yield lines[:-1]

    def readBetweenOffsets(
        self, start: dict[str, int], end: dict[str, int]
    ) -> Iterator[pa.RecordBatch]:
        if start == end:  # the first batch may have nothing in it
            return iter([])
        raise OSError("what came through a socket cannot be read again")


def from_ports(spark: SparkSession, task: Task) -> list[DataFrame]:
    """Return the lines of each data engine."""
    spark.dataSource.register(Port)
    streams = []
    for port in task.ports:
        source = spark.readStream.format("port").option("port", port)
        lines = source.option("over", f"{task.folder}/over-{port}").load()
        streams.append(lines.select(F.explode("lines").alias("value")))
    return streams


def from_topic(spark: SparkSession, task: Task) -> list[DataFrame]:
    """Return the lines of each partition of the topic: each has a watermark of its own then."""
    streams = []
    for number in range(len(task.ports)):
        source = spark.readStream.format("kafka").option("startingOffsets", "earliest")
        source = source.option("kafka.bootstrap.servers", task.servers)
        lines = source.option("assign", json.dumps({task.topic: [number]})).load()
        streams.append(lines.select(F.col("value").cast("string")))
    return streams


def union(streams: list[DataFrame]) -> DataFrame:
    """Return several streams as one."""
    return reduce(DataFrame.union, streams)


def join(task: Task, streams: list[DataFrame]) -> DataFrame:
    """Return what each sale has brought above what was offered."""
    fields = "time BIGINT, kind STRING, item BIGINT, price BIGINT"
    events = union([timed(parsed(lines, fields), of_ms(0)) for lines in streams])
    offers = events.where("kind = 'offer'").alias("o")
    sales = events.where("kind = 'sale'").alias("s")
    within = f"INTERVAL '{task.options['within_ms'] / 1000}' SECOND"
    near = f"o.item = s.item AND o.ts BETWEEN s.ts - {within} AND s.ts + {within}"
    return offers.join(sales, F.expr(near)).select(
        F.expr("s.price - o.price").alias("value"),
        F.greatest("o.time", "s.time").alias("latest"),
    )


def sessions(task: Task, streams: list[DataFrame]) -> DataFrame:
    """Return each session when it is over."""
    fields, prime = "time BIGINT, user BIGINT", task.options["prime"]
    clicks = union([timed(parsed(lines, fields), of_ms(0)) for lines in streams])
    over = clicks.groupBy("user", F.session_window("ts", of_ms(task.options["gap_ms"]))).agg(
        F.count("*").alias("clicks"), F.max("time").alias("latest")
    )
    return over.select((F.col("clicks") * (F.col("user") % prime + 1)).alias("value"), "latest")


def road(task: Task, streams: list[DataFrame]) -> DataFrame:
    """Return the traffic of each minute, and the toll of each five."""
    fields, minute = "time BIGINT, segment INT, speed INT", task.options["minute_ms"]
    reports = union([timed(parsed(lines, fields), of_ms(0)) for lines in streams])
    minutes = (
        reports.where("speed >= 0")
        .groupBy(F.window("ts", of_ms(minute)), "segment")
        .agg(
            F.avg("speed").alias("speed"),
            F.count("*").alias("count"),
            F.max("time").alias("latest"),
        )
    )
    whole, crowded = of_ms(minute * task.options["minutes"]), task.options["crowded"]
    means = minutes.groupBy(F.window("window", whole, of_ms(minute)), "segment").agg(
        F.avg("speed").alias("speed"), F.max("latest").alias("latest")
    )
    toll = F.when(F.col("speed") < crowded, 2 * F.pow(crowded - F.col("speed"), F.lit(2)))
    return minutes.select(
        F.concat(F.lit("block-"), "segment").alias("key"),
        start_of().alias("at"),
        F.col("count").cast("double").alias("value"),
        "latest",
    ).union(
        means.select(
            F.concat(F.lit("toll-"), "segment").alias("key"),
            start_of().alias("at"),
            toll.otherwise(0.0).alias("value"),
            "latest",
        )
    )


APPENDED = {"join": join, "sessions": sessions, "road": road}
"""Those that give each result once."""


def taker(results: Results) -> Callable[[DataFrame, int], None]:
    """Return what takes the results of a batch."""

    def take(batch: DataFrame, _number: int) -> None:
        found = [column.to_pylist() for column in batch.toArrow().columns]
        if len(found) == 2:
            results.tally(zip(*found, strict=True))
        else:
            results.put(zip(*found, strict=True))

    return take


def wait_for_ports(task: Task, query: StreamingQuery) -> None:
    """Wait until all data engines have sent everything."""
    over = [Path(task.folder) / f"over-{port}" for port in task.ports]
    while not all(path.exists() for path in over):
        if query.awaitTermination(0.1):  # raises what it has ended with
            break


def wait_for_topic(task: Task, query: StreamingQuery) -> None:
    """Let events begin after the first batch, which is empty, and wait until they are sent."""
    while query.lastProgress is None:
        if query.awaitTermination(0.1):
            break
    Signal(task).wait()


def start(task: Task) -> None:
    """Run the query until all events have come."""
    spark, results = session(task, max(task.dop, 2)), Results(task)
    streams = (from_topic if task.link == "kafka" else from_ports)(spark, task)
    if task.case in APPENDED:
        found, mode = APPENDED[task.case](task, streams), "append"
    else:
        found, mode = QUERIES[task.case](spark, task, union(streams)), "update"
    writer = found.writeStream.outputMode(mode).foreachBatch(taker(results))
    query = writer.option("checkpointLocation", f"{task.folder}/checkpoint").start()
    if task.link == "kafka":
        wait_for_topic(task, query)
    else:
        wait_for_ports(task, query)
    query.processAllAvailable()
    query.stop()
    results.close()
    spark.stop()


if __name__ == "__main__":
    run(start)
