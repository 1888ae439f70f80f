"""Flink SQL: one query for each workload, in a local cluster in one process.

Tuning: events are decoded by Flink's JSON format in the source, so only the fields that are needed
become rows; objects are reused; buffers are sent after 2 ms at the latest and watermarks come every
5 ms; checkpoints are off. Results are stamped by a sink in Java right behind the last operator and
written to a file, which is read at the end: Python takes no time from the cluster while it runs.
Mini-batches are off, so each update comes out at once.
"""

import sys
from collections.abc import Callable

from events import fields
from flink_shared import Cluster, as_map, told
from kit import Results, Task, run
from pyflink.datastream import DataStream
from pyflink.table import ChangelogMode, DataTypes, Schema, StreamTableEnvironment, Table
from pyflink.table.types import _to_java_data_type

SETTINGS = {"table.local-time-zone": "UTC"}

TIMED = {"join", "sessions", "road"}
"""Those that need watermarks."""

UPDATED = {"ads", "mean", "words", "windowed-words"}
"""Those whose results change."""

VALUES = {"mean": float, "road": float}
"""What values are, if they are not whole numbers."""

TYPES = {str: DataTypes.STRING(), int: DataTypes.BIGINT()}


def ads(task: Task) -> str:
    """Return the query of ad analytics."""
    size = task.options["window_ms"]
    return f"""
        SELECT k, w, COUNT(*) AS v, MAX(`time`) AS t FROM (
            SELECT CAMPAIGN(ad_id) AS k, event_time - event_time % {size} AS w, event_time AS `time`
            FROM events WHERE event_type = 'view'
        ) WHERE k IS NOT NULL GROUP BY k, w"""


def mean(task: Task) -> str:
    """Return the query of windowed aggregation."""
    size, hop = task.options["size_ms"], task.options["hop_ms"]
    windows = " UNION ALL ".join(
        f"SELECT geo, `time` - `time` % {hop} - {back} AS w, seconds, `time` FROM events"
        for back in range(0, size, hop)
    )
    return f"""
        SELECT geo AS k, w, AVG(CAST(seconds AS DOUBLE)) AS v, MAX(`time`) AS t
        FROM ({windows}) GROUP BY geo, w"""


def words(task: Task) -> str:
    """Return the query of WordCount, in windows if they have a length."""
    size = task.options.get("window_ms")
    window = f"`time` - `time` % {size}" if size else "CAST(0 AS BIGINT)"
    return f"""
        SELECT k, w, COUNT(*) AS v, MAX(`time`) AS t FROM (
            SELECT k, {window} AS w, `time` FROM events
            CROSS JOIN UNNEST(SPLIT(text, ' ')) AS each_word(k)
        ) GROUP BY k, w"""


def grep(task: Task) -> str:
    """Return the query of Grep."""
    return f"""
        SELECT id AS a, `time` AS t FROM events
        WHERE ' ' || text || ' ' LIKE '% {task.options["sought"]} %'"""


def join(task: Task) -> str:
    """Return the query of the windowed join."""
    within = f"INTERVAL '{task.options['within_ms'] / 1000}' SECOND"
    return f"""
        SELECT s.price - o.price AS a, GREATEST(s.`time`, o.`time`) AS t
        FROM (SELECT * FROM events WHERE kind = 'sale') s
        JOIN (SELECT * FROM events WHERE kind = 'offer') o
        ON s.item = o.item AND s.ts BETWEEN o.ts - {within} AND o.ts + {within}"""


def sessions(task: Task) -> str:
    """Return the query of sessionization."""
    gap, prime = task.options["gap_ms"], task.options["prime"]
    return f"""
        SELECT COUNT(*) * (`user` % {prime} + 1) AS a, MAX(`time`) AS t
        FROM SESSION(
            TABLE events PARTITION BY `user`, DESCRIPTOR(ts), INTERVAL '{gap / 1000}' SECOND)
        GROUP BY `user`, window_start, window_end"""


def road(task: Task) -> str:
    """Return the query of Linear Road."""
    minute, minutes = task.options["minute_ms"], task.options["minutes"]
    crowded = f"CAST({task.options['crowded']} AS DOUBLE)"
    since = "TIMESTAMP '1970-01-01 00:00:00'"
    one, all_ = (f"INTERVAL '{ms / 1000}' SECOND" for ms in (minute, minute * minutes))
    return f"""
        WITH agg AS (
            SELECT segment, window_time AS ts,
                AVG(CAST(speed AS DOUBLE)) AS speed, COUNT(*) AS n, MAX(`time`) AS t,
                MAX(`time` - `time` % {minute}) AS w
            FROM TUMBLE(TABLE valid, DESCRIPTOR(ts), {one})
            GROUP BY segment, window_start, window_end, window_time
        ), mv AS (
            SELECT segment, AVG(speed) AS speed, MAX(t) AS t, window_start
            FROM HOP(TABLE agg, DESCRIPTOR(ts), {one}, {all_})
            GROUP BY segment, window_start, window_end
        )
        SELECT 'block-' || CAST(segment AS STRING) AS k, w, CAST(n AS DOUBLE) AS v, t FROM agg
        UNION ALL
        SELECT 'toll-' || CAST(segment AS STRING) AS k,
            1000 * CAST(TIMESTAMPDIFF(SECOND, {since}, window_start) AS BIGINT) AS w,
            IF(speed < {crowded}, 2 * ({crowded} - speed) * ({crowded} - speed), 0e0) AS v, t
        FROM mv"""


QUERIES: dict[str, Callable[[Task], str]] = {
    "ads": ads,
    "mean": mean,
    "join": join,
    "words": words,
    "windowed-words": words,
    "grep": grep,
    "sessions": sessions,
    "road": road,
}


def start(task: Task) -> None:
    """Run the query until all events have come; then tell what was found."""
    if task.redis:
        sys.exit("flink-sql hands results over when it has ended: it cannot store them in Redis")
    cluster = Cluster(task, SETTINGS)
    tables = StreamTableEnvironment.create(cluster.env)
    tables.create_temporary_view("events", events(task, cluster, tables))
    if task.case == "ads":
        known = as_map(cluster.jvm, task.options["campaigns"].items())
        lookup = cluster.jvm.floodway.Lookup(known)
        environment = tables._j_tenv  # noqa: SLF001 - PyFlink takes a name only, not an object
        environment.createTemporarySystemFunction("CAMPAIGN", lookup)
    if task.case == "road":
        tables.execute_sql("CREATE TEMPORARY VIEW valid AS SELECT * FROM events WHERE speed >= 0")
    found = tables.sql_query(QUERIES[task.case](task))
    sink = cluster.jvm.floodway.Told(task.folder)
    rows(task, tables, found)._j_data_stream.addSink(sink)  # noqa: SLF001 - a sink in Java
    cluster.env.execute(task.case)
    hand_over(task)


def events(task: Task, cluster: Cluster, tables: StreamTableEnvironment) -> Table:
    """Return the events of all ports as a table; each port has its own watermark."""
    columns = {name: TYPES[kind] for name, kind in fields(task.case).items()}
    kind = DataTypes.ROW([DataTypes.FIELD(name, of) for name, of in columns.items()])
    flink, row = cluster.jvm.org.apache.flink, _to_java_data_type(kind).getLogicalType()
    info = flink.table.runtime.typeutils.InternalTypeInfo.of(row)
    iso = flink.formats.common.TimestampFormat.ISO_8601
    strict = (False, False)  # a field may be missing; a line that is not JSON is an error
    form = flink.formats.json.JsonParserRowDataDeserializationSchema(row, info, *strict, iso)
    builder = Schema.new_builder()
    for name, of in columns.items():
        builder = builder.column(name, of)
    if task.case in TIMED:
        builder = builder.column_by_expression("ts", "TO_TIMESTAMP_LTZ(`time`, 3)")
        builder = builder.watermark("ts", "ts - INTERVAL '0.002' SECOND")
    streams = [DataStream(each) for each in cluster.lines(form, info)]
    found = [tables.from_data_stream(each, builder.build()) for each in streams]
    whole = found[0]
    for each in found[1:]:
        whole = whole.union_all(each)
    return whole


def rows(task: Task, tables: StreamTableEnvironment, found: Table) -> DataStream:
    """Return the results as a stream: each has the latest value, not what it was before."""
    if task.case not in UPDATED:
        return tables.to_data_stream(found)
    names = found.get_schema().get_field_names()
    builder = Schema.new_builder()
    for name, kind in zip(names, found.get_schema().get_field_data_types(), strict=True):
        builder = builder.column(name, kind.not_null() if name in "kw" else kind)
    return tables.to_changelog_stream(
        found, builder.primary_key("k", "w").build(), ChangelogMode.upsert()
    )


def hand_over(task: Task) -> None:
    """Hand the results over, with the times at which they came out."""
    results, whole = Results(task), VALUES.get(task.case, int)
    for found, at_us in told(task.folder):
        if len(found[0]) == 2:
            results.tally([(int(amount), int(time_ms)) for amount, time_ms in found], at_us)
        else:
            results.put(
                [(key, int(start), whole(value), int(at)) for key, start, value, at in found], at_us
            )
    results.close()


if __name__ == "__main__":
    run(start)
