"""The systems that others have made: versions, set-up, and what each is written for.

Each is a file in `peers`, which runs in an environment of its own.
"""

from floodway_lab.systems.system import System

_SPARK = ("pyspark==4.3.0", "pyarrow==26.0.1", "confluent-kafka==2.16.1")

# The connector of 4.3.0 is not with Maven (November 2026), nor all that the one of 4.2.0 needs.
# These work together.
_KAFKA_FOR_SPARK = (
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
    "org.apache.kafka:kafka-clients:3.9.0",
    "org.apache.commons:commons-pool2:2.13.1",
)

_ALL = frozenset({"ads", "mean", "join", "words", "grep", "windowed-words", "sessions", "road"})

_FLINK = ("apache-flink==2.3.0", "msgspec==0.22.0")

OTHERS: tuple[System, ...] = (
    System(
        "bytewax",
        "Bytewax 0.21.1",
        "on_bytewax.py",
        _ALL,
        tuning="chunks decoded with msgspec in one call (flat_map_batch); stateful_batch; a "
        "process per task; keys of join and sessions in groups",
        requirements=("bytewax==0.21.1", "msgspec==0.22.0"),
    ),
    System(
        "pathway",
        "Pathway 0.33.0",
        "on_pathway.py",
        _ALL,
        tuning="a row of the input is a chunk of lines, decoded with msgspec, then flatten; "
        "append-only; groupby with windows as keys; mini-batches from 1 ms on",
        requirements=("pathway==0.33.0", "msgspec==0.22.0"),
    ),
    System(
        "quix",
        "Quix Streams 3.28.1",
        "on_quix.py",
        _ALL,
        tuning="msgspec as deserializer, one value per window, windows close by partition; RocksDB "
        "without changelog topics, checkpoints every 5 s; a process per task",
        requirements=("quixstreams==3.28.1", "msgspec==0.22.0"),
        links=("kafka",),
        first_rate=60_000.0,
        ends=False,
    ),
    System(
        "spark",
        "Spark Structured Streaming 4.3.0",
        "on_spark.py",
        _ALL,
        tuning="native operators, a batch as soon as the last is done, dop shuffle partitions, "
        "state in memory; sockets read as Arrow by a Python data source, results as Arrow",
        starts_s=10.0,
        requirements=_SPARK,
        jars=_KAFKA_FOR_SPARK,
        links=("tcp", "kafka"),
        first_rate=400_000.0,
        ends=False,
    ),
    System(
        "spark-rtm",
        "Spark 4.3.0 in Real-Time Mode, Kafka connector 4.2.0",
        "on_spark_rtm.py",
        frozenset({"ads", "mean", "words", "grep", "windowed-words"}),
        tuning="native operators, 5 minutes between checkpoints (the default), a thread per task, "
        "RocksDB; results into a topic after 1 ms, timed by its client right after the operator",
        cannot={
            "join": "Real-Time Mode has no joins of two streams",
            "sessions": "Real-Time Mode has no session windows",
            "road": "Real-Time Mode has no append mode: it cannot tell when a window is over",
        },
        starts_s=10.0,
        requirements=_SPARK,
        jars=_KAFKA_FOR_SPARK,
        home="spark",
        links=("kafka",),
        first_rate=150_000.0,
        ends=False,
    ),
    System(
        "flink-sql",
        "Flink 2.3.0, SQL",
        "on_flink_sql.py",
        _ALL,
        tuning="Flink's JSON format in a socket source; object reuse; buffers sent after 2 ms, "
        "watermarks every 5 ms; no mini-batches, no checkpoints; results stamped in Java",
        starts_s=5.0,
        requirements=_FLINK,
        home="flink",
    ),
    System(
        "flink",
        "Flink 2.3.0, DataStream in Python",
        "on_flink.py",
        _ALL,
        tuning="thread mode; chunks of lines, decoded with msgspec and added up before keying; "
        "object reuse; buffers sent after 2 ms, watermarks every 5 ms; no checkpoints",
        starts_s=5.0,
        requirements=_FLINK,
        home="flink",
        first_rate=400_000.0,
    ),
)
"""All there are."""
