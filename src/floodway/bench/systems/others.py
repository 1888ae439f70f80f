"""The systems that others have made: versions, set-up, and what each is written for.

Each is a file in `peers`, which runs in an environment of its own.
"""

from floodway.bench.systems.system import System

_SPARK = ("pyspark==4.3.0", "pyarrow==26.0.1", "confluent-kafka==2.16.1")

_ALL = frozenset(
    {"ads", "mean", "join", "words", "grep", "windowed-words", "sessions", "road"}
)

OTHERS: tuple[System, ...] = (
    System(
        "bytewax",
        "Bytewax 0.21.1",
        "on_bytewax.py",
        frozenset({"ads", "mean", "join", "words", "grep", "windowed-words", "sessions", "road"}),
        tuning="lines in chunks, decoded with msgspec in one call (flat_map_batch); stateful_batch; "
        "a process per task; keys of join and sessions in groups",
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
        frozenset({"ads", "mean"}),
        tuning="",
        requirements=("quixstreams==3.28.1", "msgspec==0.22.0"),
        links=("kafka",),
        ends=False,
    ),
    System(
        "spark",
        "Spark Structured Streaming 4.3.0",
        "on_spark.py",
        frozenset({"ads", "mean", "join", "words", "grep", "windowed-words", "sessions", "road"}),
        tuning="micro-batches as fast as possible, native operators only, dop shuffle partitions",
        requirements=_SPARK,
        ends=False,
    ),
)
"""All there are."""
