"""Spark's Real-Time Mode: tasks that stay, and take record by record from a Kafka topic.

Results go into a topic of their own, as the documentation advises: its client stamps each one when
it gets it, right after the operator, and that is the time that counts. `current_timestamp()` would
be that of the batch, which lasts for minutes.

Tuning: the default of 5 minutes between two checkpoints, so none falls into a short run; as many
threads as there are tasks of both stages; results are sent after a millisecond.
"""

import threading
import time

from confluent_kafka import Consumer, Message, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from kit import Results, Signal, Task, run
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import StreamingQuery
from spark_queries import QUERIES, session

CHECKPOINT = "5 minutes"
MANY = 10_000
READY_S = 60.0

ROCKS = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


class Reading(threading.Thread):
    """Reads the topic of results."""

    def __init__(self, task: Task, topic: str) -> None:
        super().__init__(daemon=True)
        self._results, self._over = Results(task), threading.Event()
        self._counted = task.case == "grep"
        self._put = self._results.tally if self._counted else self._results.put
        self._consumer = Consumer(
            {"bootstrap.servers": task.servers, "group.id": topic, "enable.auto.commit": False}
        )
        self._consumer.assign([TopicPartition(topic, 0, 0)])

    def run(self) -> None:
        while not self._over.is_set():
            self._take(self._consumer.consume(MANY, 0.1))

    def _take(self, messages: list[Message]) -> None:
        """Take results, those of one moment together."""
        moments: dict[int, list[tuple]] = {}
        for message in messages:
            if message.error():
                raise OSError(str(message.error()))
            moments.setdefault(message.timestamp()[1], []).append(self._row(message.value()))
        for time_ms, rows in moments.items():
            self._put(rows, 1000 * time_ms)

    def _row(self, value: bytes) -> tuple:
        if self._counted:
            amount, latest = value.split(b"\t")
            return int(amount), int(latest)
        key, window, number, latest = value.decode().split("\t")
        return key, int(window), float(number), int(latest)

    def close(self) -> None:
        """Stop, and write down what was found."""
        self._over.set()
        self.join()
        self._consumer.close()
        self._results.close()


def written(task: Task, topic: str, found: DataFrame) -> StreamingQuery:
    """Start to write results into a topic."""
    lines = found.select(F.concat_ws("\t", *found.columns).alias("value"))
    writer = lines.writeStream.format("kafka").outputMode("update").trigger(realTime=CHECKPOINT)
    writer = writer.option("kafka.bootstrap.servers", task.servers).option("topic", topic)
    writer = writer.option("kafka.linger.ms", "1")
    return writer.option("checkpointLocation", f"{task.folder}/checkpoint").start()


def wait_for_tasks(spark: SparkSession, query: StreamingQuery, tasks: int) -> None:
    """Wait until all tasks are there."""
    tracker, deadline = spark.sparkContext.statusTracker(), time.monotonic() + READY_S
    while time.monotonic() < deadline:
        if query.awaitTermination(0.05):  # raises what it has ended with
            raise OSError("the query has ended")
        stages = [tracker.getStageInfo(number) for number in tracker.getActiveStageIds()]
        if sum(stage.numActiveTasks for stage in stages if stage) >= tasks:
            return
    raise OSError(f"there are not {tasks} tasks after {READY_S:.0f} s")


def start(task: Task) -> None:
    """Run the query until all events have come."""
    admin, topic = AdminClient({"bootstrap.servers": task.servers}), f"{task.topic}-results"
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result()
    tasks = len(task.ports) + (0 if task.case == "grep" else task.dop)
    more = {
        "spark.sql.streaming.stateStore.providerClass": ROCKS,
        "spark.sql.streaming.stateStore.checkpointFormatVersion": "2",
    }
    spark = session(task, tasks, **more)
    source = spark.readStream.format("kafka").option("startingOffsets", "earliest")
    source = source.option("kafka.bootstrap.servers", task.servers)
    lines = source.option("subscribe", task.topic).load()
    found = QUERIES[task.case](spark, task, lines.select(F.col("value").cast("string")))
    query, reading = written(task, topic, found), Reading(task, topic)
    reading.start()
    wait_for_tasks(spark, query, tasks)
    Signal(task).wait()
    query.stop()
    reading.close()
    spark.stop()
    admin.delete_topics([topic])[topic].result()


if __name__ == "__main__":
    run(start)
