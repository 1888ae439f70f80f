"""What is fastest for a remote half, in one process on one core: the ad segment, many ways.

A block of JSON lines (`floodway.demo.ads`, 240 bytes each) is decoded, views are kept, their
campaign is looked up, and they are counted per campaign and window. Every way has to give the same
counts, and the latest event time of all records. Candidates that are not installed are left out;
none of them is a dependency because of this file. Put them beside, not into, the environment:

    pip install --no-deps --target /tmp/beside duckdb polars polars-runtime-32 numpy
    PYTHONPATH=/tmp/beside python benchmarks/vectorised.py

All ways take turns; the table has the middle of all rounds. CPU time is of all threads. Figures of
one machine are only comparable as ratios: the last column is against the first line of its part,
by CPU time. ``--json FILE`` writes all of it.
"""

import argparse
import gc
import importlib
import io
import json
import os
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ["POLARS_MAX_THREADS"] = "1"  # before it is imported

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from floodway.connectors.discard import DiscardSink
from floodway.connectors.tcp import TcpSource
from floodway.demo import ads
from floodway.engine.opstream.blocks import LINES, BlockWriter, Result, Unit, read_block
from floodway.engine.opstream.remote import Context, Remote, encode_context
from floodway.engine.program.wiring import classes_of
from floodway.engine.state.pickling import Pickling
from floodway.engine.transport.plain import Plain
from floodway.plan import Plan

WINDOW = ads.WINDOW_MS
Counts = dict[tuple[str, int], int]
Way = Callable[[], Counts | None]
DECODE = msgspec.json.Decoder(ads.AdSeen).decode_lines
TABLE = ads.campaigns()


class Parts:
    """The input in all its forms."""

    def __init__(self, folder: Path, events: int, unit: int) -> None:
        self.events = ads.make_events(events)
        self.raw = ads.to_lines(self.events)
        lines = self.raw.splitlines(keepends=True)
        self.units = [b"".join(lines[i : i + unit]) for i in range(0, events, unit)]
        self.folder = folder
        self.file = folder / "lines"
        self.file.write_bytes(self.raw)
        self.plan = Plan.of(ads.build(TcpSource("127.0.0.1", 1), DiscardSink()))
        self.stage = self.plan.stage_of("with_campaign")
        place = [source.name for source in self.stage.sources].index("events")
        self.blocks = {
            "units": self._block("units", place, self.units),
            "whole": self._block("whole", place, [self.raw]),
        }
        table = [(ad, ([0], [campaign])) for ad, campaign in TABLE.items()]
        (folder / "table").write_bytes(Pickling(classes_of(self.plan)).dumps(table))
        self.context = encode_context(Context([None], {"with_campaign": str(folder / "table")}))

    def _block(self, name: str, place: int, units: list[bytes]) -> tuple[str, int]:
        writer = BlockWriter(self.folder / name)
        for raw in units:
            writer.add(Unit(LINES, place, 0, raw.count(b"\n"), 1, raw))
        cuts = writer.close()
        return str(self.folder / name), cuts[-1][0]


def remote(parts: Parts, block: str) -> Way:
    half = Remote(parts.plan, parts.stage, 0)
    path, size = parts.blocks[block]
    plain = Plain(classes_of(parts.plan))

    def run() -> Counts:
        result = msgspec.msgpack.decode(half.run(path, 0, size, parts.context), type=Result)
        (found,) = result.runs
        partials = plain.unpack(found.sent[0].payload)
        assert found.latest == parts.events[-1].event_time
        return {(group, start): count for group, start, _, count, _ in partials}

    return run


def reading(parts: Parts) -> Way:
    path, size = parts.blocks["units"]

    def run() -> None:
        for _ in read_block(path, 0, size):
            pass

    return run


def decoding(units: list[bytes], decode: Callable[[Any], Any] = DECODE) -> Way:
    def run() -> None:
        for raw in units:
            decode(raw)

    return run


def skimming(units: list[bytes]) -> Way:
    """Only look over the JSON: no field is wanted."""
    return decoding(units, msgspec.json.Decoder(msgspec.defstruct("Nothing", [])).decode_lines)


def comprehension(units: list[bytes]) -> Counts:
    counts: Counter[tuple[str, int]] = Counter()
    latest = 0
    for raw in units:
        events = DECODE(raw)
        latest = max(latest, max([e.event_time for e in events]))
        views = [e for e in events if e.event_type == "view"]
        counts.update(
            [
                (TABLE[e.ad_id], e.event_time - e.event_time % WINDOW)
                for e in views
                if e.ad_id in TABLE
            ]
        )
    return dict(counts)


SCHEMA = pa.schema(
    [("ad_id", pa.string()), ("event_type", pa.string()), ("event_time", pa.int64())]
)
ADS, OF_ADS = pa.array(list(TABLE)), pa.array(list(TABLE.values()))


def arrow_rest(table: pa.Table) -> Counts:
    pc.max(table["event_time"])
    views = table.filter(pc.equal(table["event_type"], "view")).combine_chunks()
    campaign = OF_ADS.take(pc.index_in(views["ad_id"], ADS).combine_chunks())
    times = views["event_time"].combine_chunks()
    start = pc.subtract(times, pc.subtract(times, pc.multiply(pc.divide(times, WINDOW), WINDOW)))
    grouped = pa.table({"c": campaign, "w": start, "t": times}).group_by(
        ["c", "w"], use_threads=False
    )
    found = grouped.aggregate([("t", "count"), ("t", "max")]).to_pydict()
    rows = zip(found["c"], found["w"], found["t_count"], strict=True)
    return {(c, w): n for c, w, n in rows if c is not None}


def arrow_json(raw: bytes) -> Counts:
    read = pj.ReadOptions(use_threads=False)
    parse = pj.ParseOptions(explicit_schema=SCHEMA, unexpected_field_behavior="ignore")
    return arrow_rest(pj.read_json(pa.BufferReader(raw), read, parse))


def msgspec_arrow(units: list[bytes]) -> Counts:
    events = [event for raw in units for event in DECODE(raw)]
    columns = {name: [getattr(e, name) for e in events] for name in SCHEMA.names}
    return arrow_rest(pa.table(columns, schema=SCHEMA))


def numpy_ways(parts: Parts) -> Iterator[tuple[str, Way]]:
    np = importlib.import_module("numpy")
    campaigns = sorted(set(TABLE.values()))
    number = {ad: campaigns.index(campaign) for ad, campaign in TABLE.items()}

    def run() -> Counts:
        counts: Counter[tuple[str, int]] = Counter()
        for raw in parts.units:
            events = DECODE(raw)
            times = np.array([e.event_time for e in events])
            views = np.array([e.event_type == "view" for e in events])
            ids = np.array([number.get(e.ad_id, -1) for e in events])
            times.max()
            kept = views & (ids >= 0)
            start = times[kept] // WINDOW
            code, n = np.unique(start * len(campaigns) + ids[kept], return_counts=True)
            for one, count in zip(code.tolist(), n.tolist(), strict=True):
                window, campaign = divmod(one, len(campaigns))
                counts[campaigns[campaign], window * WINDOW] += count
        return dict(counts)

    yield "msgspec, numpy columns", run


def duckdb_ways(parts: Parts) -> Iterator[tuple[str, Way]]:
    duckdb = importlib.import_module("duckdb")
    base = duckdb.connect(config={"threads": 1})
    base.execute("CREATE TABLE c AS SELECT unnest(?) ad, unnest(?) campaign", [*_table()])

    def run(columns: dict[str, str], kind: str, at: str, ad: str) -> Counts:
        source = f"read_json('{parts.file}', format='newline_delimited', columns={columns})"
        found = base.execute(
            f"WITH e AS MATERIALIZED (SELECT {ad} ad_id, event_type, {at} t FROM {source}) "
            f"SELECT campaign, t - t % {WINDOW} w, count(*) n, max(t) FROM e "
            f"JOIN c ON e.ad_id = c.ad WHERE event_type = '{kind}' GROUP BY ALL "
            "UNION ALL SELECT NULL, max(t), count(ad_id), count(event_type) FROM e"
        ).fetchall()
        return {(c, w): n for c, w, n, _ in found if c is not None}

    loose = {"ad_id": "VARCHAR", "event_type": "VARCHAR", "event_time": "BIGINT"}
    strict = dict.fromkeys(loose, "JSON")
    yield "DuckDB, from file", lambda: run(loose, "view", "event_time", "ad_id")
    at, ad = "event_time::VARCHAR::BIGINT", "(ad_id::VARCHAR)[2:-2]"
    yield "DuckDB, types looked at", lambda: run(strict, '"view"', at, f"({ad})")


def _table() -> tuple[list[str], list[str]]:
    return list(TABLE), list(TABLE.values())


def polars_ways(parts: Parts) -> Iterator[tuple[str, Way]]:
    pl = importlib.import_module("polars")
    table = pl.LazyFrame({"ad_id": list(TABLE), "campaign": list(TABLE.values())})
    schema = {"ad_id": pl.String, "event_type": pl.String, "event_time": pl.Int64}

    def run() -> Counts:
        events = pl.read_ndjson(io.BytesIO(parts.raw), schema=schema)
        events["event_time"].max()
        start = (pl.col("event_time") - pl.col("event_time") % WINDOW).alias("w")
        views = events.lazy().filter(pl.col("event_type") == "view")
        grouped = views.join(table, on="ad_id").group_by("campaign", start)
        found = grouped.agg(pl.len(), pl.col("event_time").max().alias("m")).collect()
        return {(c, w): n for c, w, n, _ in found.iter_rows()}

    yield "Polars, from memory", run


def json_ways(parts: Parts) -> Iterator[tuple[str, Way]]:
    units = parts.units
    yield "record form", remote(parts, "units")
    yield "record form, one unit", remote(parts, "whole")
    yield "msgspec, comprehensions", lambda: comprehension(units)
    yield "msgspec, pyarrow columns", lambda: msgspec_arrow(units)
    yield "pyarrow.json", lambda: arrow_json(parts.raw)
    for ways in (numpy_ways, duckdb_ways, polars_ways):
        try:
            yield from ways(parts)
        except ImportError as error:
            print(f"left out: {error.name}")
    yield "only: read the file", reading(parts)
    yield "only: look over the JSON", skimming(units)
    yield "only: decode", decoding(units)


Row = tuple[int, None, ads.AdSeen]


def frame_ways(parts: Parts) -> Iterator[tuple[str, Way]]:
    """The same from frames of MessagePack, in rows as they are and in columns as they are not."""
    encode = msgspec.msgpack.Encoder().encode
    seen = [ads.AdSeen(e.ad_id, e.event_type, e.event_time) for e in parts.events]
    cuts = [seen[i : i + 1000] for i in range(0, len(seen), 1000)]
    rows = [encode([(e.event_time, None, e) for e in cut]) for cut in cuts]
    columns = [encode([[getattr(e, n) for e in cut] for n in SCHEMA.names]) for cut in cuts]
    decode_rows = msgspec.msgpack.Decoder(list[Row]).decode
    decode_columns = msgspec.msgpack.Decoder(tuple[list[str], list[str], list[int]]).decode
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, SCHEMA) as writer:
        for cut in cuts:
            values = [[getattr(e, n) for e in cut] for n in SCHEMA.names]
            writer.write_batch(pa.record_batch(values, schema=SCHEMA))
    arrow = sink.getvalue()

    def by_rows() -> Counts:
        counts: Counter[tuple[str, int]] = Counter()
        for frame in rows:
            for t, _, event in decode_rows(frame):
                if event.event_type == "view" and (campaign := TABLE.get(event.ad_id)) is not None:
                    counts[campaign, t - t % WINDOW] += 1
        return dict(counts)

    def by_columns() -> Counts:
        counts: Counter[tuple[str, int]] = Counter()
        for frame in columns:
            for ad, kind, t in zip(*decode_columns(frame), strict=True):
                if kind == "view" and (campaign := TABLE.get(ad)) is not None:
                    counts[campaign, t - t % WINDOW] += 1
        return dict(counts)

    yield "frames of rows", by_rows
    yield "frames of columns", by_columns
    yield "frames of Arrow", lambda: arrow_rest(pa.ipc.open_stream(arrow).read_all())
    yield "only: decode rows", decoding(rows, decode_rows)
    yield "only: decode columns", decoding(columns, decode_columns)


def measure(ways: dict[str, Way], want: Counts, rounds: int) -> dict[str, tuple[float, float]]:
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for number in range(rounds + 1):  # the first one warms up, and is looked at
        for name, way in ways.items():
            gc.collect()
            wall, cpu = time.perf_counter(), time.process_time()
            found = way()
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
            if number:
                times[name].append((wall, cpu))
            elif found is not None and found != want:
                raise SystemExit(f"{name} gives something else")
            del found
    return {
        name: (statistics.median(w for w, _ in both), statistics.median(c for _, c in both))
        for name, both in times.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--unit", type=int, default=500, help="lines in a unit")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    shared = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=shared if shared.exists() else None) as folder:
        parts = Parts(Path(folder), options.events, options.unit)
        want = dict(ads.plain_count(parts.raw, TABLE))
        figures = {}
        for title, ways in (("JSON lines", json_ways), ("frames", frame_ways)):
            found = measure(dict(ways(parts)), want, options.rounds)
            (_, base), *_ = found.values()
            print(f"\n{title:28}{'wall ns':>10}{'cpu ns':>10}{'ratio':>8}   per event")
            for name, (wall, cpu) in found.items():
                each = 1e9 / options.events
                print(f"{name:28}{wall * each:10.0f}{cpu * each:10.0f}{base / cpu:8.2f}")
            figures[title] = found
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
