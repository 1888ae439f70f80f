"""What the queues of a run say about it."""

from floodway_lab.runs.series import queue_growth

from floodway.demo.sending.engine import Progress


def history(*queued: int) -> list[Progress]:
    """Return what is told every 100 ms, of a queue that is so long."""
    return [Progress(100 * n, 1_000 * n + each, 1_000 * n) for n, each in enumerate(queued)]


def test_queue_that_goes_up_and_down_has_not_grown() -> None:
    saw = history(*([0, 400, 800] * 10))
    assert queue_growth([saw], 0.0, 3.0) == (0, 0)


def test_queues_of_all_engines_are_added_up() -> None:
    steady, filling = history(*([300] * 30)), history(*range(0, 3_000, 100))
    late, grown = queue_growth([steady, filling], 0.5, 3.0)
    assert (late, grown) == (300 + 2_500, 2_000)


def test_engine_that_nobody_has_connected_to_has_no_queue() -> None:
    assert queue_growth([[]], 1.0, 3.0) == (0, 0)
