"""The benchmarks measure something real: small runs of each, and their answers checked."""

import pytest
from floodway_lab.figures import micro
from floodway_lab.figures.plain import socket_pair_rate

from floodway.demo import ads

pytestmark = pytest.mark.spark


def test_a_hop_delivers_every_record() -> None:
    assert micro.hop_rate(10, 20_000) > 0


def test_a_plain_socket_delivers_every_record() -> None:
    rows = [(1, None, tick) for tick in micro.ticks()]
    assert socket_pair_rate(rows, tuple[int, None, micro.Tick], 100, 20_000) > 0


def test_the_ad_pipeline_counts_what_a_plain_loop_counts() -> None:
    figure = micro.measure_ads(seconds=0.5)
    assert figure.correct
    assert figure.events > 0


def test_the_ad_pipeline_notices_a_wrong_count() -> None:
    lines = ads.to_lines(ads.make_events(300))
    counts = ads.plain_count(lines, ads.campaigns())
    assert sum(counts.values()) == sum(b'"event_type":"view"' in row for row in lines.splitlines())


def test_latency_is_measured_from_when_a_record_was_due() -> None:
    figure = micro.measure_latency(per_second=200, seconds=2)
    assert figure.count == 300  # of 400 that were due, but for a quarter to warm up
    assert 0 < figure.p50_ms <= figure.p99_ms <= figure.max_ms


def test_a_count_over_three_tasks_is_exact() -> None:
    figure = micro.measure_count(30_001, dop=3, keys=100)
    assert figure.exact


def test_memory_stays_within_the_cache() -> None:
    figure = micro.measure_memory(5, cache=256 * 1024)
    assert figure.lost == 0
    assert figure.delivered > 0
    assert figure.queue_bytes_most <= 256 * 1024 + 64 * 1024  # and one batch of what was on its way


def test_the_cost_of_metrics_is_measured_on_the_same_frames() -> None:
    figure = micro.measure_overhead(10, turns=4)
    assert figure.with_sampling_ns > 0
    assert figure.without_sampling_ns > 0
    assert figure.report_us > 0
