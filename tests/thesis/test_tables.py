"""Examples 14 to 18 of the thesis, table by table."""

import pytest

from floodway import Flow, Window, hopping, tumbling
from tests.engines import Engine

UPDATES = [
    (1, "A", 7.2),
    (3, "A", 8.9),
    (4, "B", 4.7),
    (2, "C", 3.3),
    (3, "A", None),
    (0, "B", 9.9),
    (1, "A", 2.8),
]

# One entry per generation: the rows of each version as key -> (timestamp, value).
GENERATIONS = [
    {0: {}},
    {0: {}, 1: {"A": (1, 7.2)}},
    {0: {}, 1: {"A": (1, 7.2)}, 2: {"A": (1, 7.2)}, 3: {"A": (3, 8.9)}},
    {
        0: {},
        1: {"A": (1, 7.2)},
        2: {"A": (1, 7.2)},
        3: {"A": (3, 8.9)},
        4: {"A": (3, 8.9), "B": (4, 4.7)},
    },
    {
        0: {},
        1: {"A": (1, 7.2)},
        2: {"A": (1, 7.2), "C": (2, 3.3)},
        3: {"A": (3, 8.9), "C": (2, 3.3)},
        4: {"A": (3, 8.9), "B": (4, 4.7), "C": (2, 3.3)},
    },
    {
        0: {},
        1: {"A": (1, 7.2)},
        2: {"A": (1, 7.2), "C": (2, 3.3)},
        3: {"C": (2, 3.3)},
        4: {"B": (4, 4.7), "C": (2, 3.3)},
    },
    {
        0: {"B": (0, 9.9)},
        1: {"A": (1, 7.2), "B": (0, 9.9)},
        2: {"A": (1, 7.2), "B": (0, 9.9), "C": (2, 3.3)},
        3: {"B": (0, 9.9), "C": (2, 3.3)},
        4: {"B": (4, 4.7), "C": (2, 3.3)},
    },
    {
        0: {"B": (0, 9.9)},
        1: {"A": (1, 2.8), "B": (0, 9.9)},
        2: {"A": (1, 2.8), "B": (0, 9.9), "C": (2, 3.3)},
        3: {"B": (0, 9.9), "C": (2, 3.3)},
        4: {"B": (4, 4.7), "C": (2, 3.3)},
    },
]
MODIFIED = [
    {},
    {1: {"A"}},
    {1: {"A"}, 3: {"A"}},
    {1: {"A"}, 3: {"A"}, 4: {"B"}},
    {1: {"A"}, 2: {"C"}, 3: {"A"}, 4: {"B"}},
    {1: {"A"}, 2: {"C"}, 3: {"A"}, 4: {"B"}},
    {0: {"B"}, 1: {"A"}, 2: {"C"}, 3: {"A"}, 4: {"B"}},
    {0: {"B"}, 1: {"A"}, 2: {"C"}, 3: {"A"}, 4: {"B"}},
]


@pytest.mark.parametrize("generation", range(len(GENERATIONS)))
def test_example_14_evolving_table(engine: Engine, generation: int) -> None:
    flow = Flow("example-14")
    flow.table("table", schema=float | None, key=str, versions=True)
    with engine(flow) as driver:
        for time, key, value in UPDATES[:generation]:
            driver.update("table", key, value, at=time)
        table = driver.table("table")
        for version, rows in GENERATIONS[generation].items():
            assert table.rows(at=version) == rows, f"version {version}"
        assert table.modified() == MODIFIED[generation]
        newest = max(GENERATIONS[generation])
        assert table.rows() == GENERATIONS[generation][newest]


def test_example_14_changelog_describes_the_table(engine: Engine) -> None:
    flow = Flow("example-14")
    flow.table("table", schema=float | None, key=str, versions=True).changes().to("changes")
    with engine(flow) as driver:
        for time, key, value in UPDATES:
            driver.update("table", key, value, at=time)
        emitted = [
            (record.timestamp, record.key, record.value.previous, record.value.value)
            for record in driver.read("changes")
        ]
    assert emitted == [
        (1, "A", None, 7.2),
        (3, "A", 7.2, 8.9),
        (4, "B", None, 4.7),
        (2, "C", None, 3.3),
        (3, "A", 8.9, None),
        (0, "B", None, 9.9),
        (1, "A", 7.2, 2.8),
    ]


CLICKS = [(0, "GER"), (1, "GER"), (1, "US"), (2, "US")]
UNORDERED = [(0, "GER"), (1, "GER"), (2, "US"), (1, "US")]


def clicks_per_country(*, windows=None) -> Flow:
    flow = Flow("clicks")
    grouped = flow.source("clicks", schema=str).group_by("value AS country")
    grouped = grouped if windows is None else grouped.window(windows)
    grouped.count(name="counts", versions=True).changes().to("changes")
    return flow


def test_example_15_record_stream_aggregation(engine: Engine) -> None:
    with engine(clicks_per_country()) as driver:
        driver.push_at("clicks", *CLICKS)
        table = driver.table("counts")
        assert table.rows(at=0) == {"GER": (0, 1)}
        assert table.rows(at=1) == {"GER": (1, 2), "US": (1, 1)}
        assert table.rows(at=2) == {"GER": (1, 2), "US": (2, 2)}
        assert table.modified() == {0: {"GER"}, 1: {"GER", "US"}, 2: {"US"}}


def test_example_16_hopping_windows_hold_three_or_four_windows() -> None:
    windows = hopping(10, advance=3)
    held = {time: list(windows.starts(time)) for time in range(22)}
    for start in (0, 3, 6, 9, 12):
        assert [time for time in held if start in held[time]] == [
            time for time in range(start, start + 10) if time < 22
        ]
    assert [len(held[time]) for time in (9, 12)] == [4, 4]
    assert [len(held[time]) for time in (10, 11)] == [3, 3]


def test_example_17_windowed_aggregation(engine: Engine) -> None:
    ger, us, us_later = ("GER", Window(0, 2)), ("US", Window(0, 2)), ("US", Window(2, 4))
    with engine(clicks_per_country(windows=tumbling(2))) as driver:
        driver.push_at("clicks", *CLICKS)
        table = driver.table("counts")
        assert table.rows(at=0) == {ger: (0, 1)}
        assert table.rows(at=1) == {ger: (1, 2), us: (1, 1)}
        assert table.rows(at=2) == {ger: (1, 2), us: (1, 1), us_later: (2, 1)}
        assert table.modified() == {0: {ger}, 1: {ger, us}, 2: {us_later}}


def test_example_18_out_of_order_generation_three_differs(engine: Engine) -> None:
    with engine(clicks_per_country()) as ordered, engine(clicks_per_country()) as unordered:
        ordered.push_at("clicks", *CLICKS[:3])
        unordered.push_at("clicks", *UNORDERED[:3])
        assert ordered.table("counts").rows() == {"GER": (1, 2), "US": (1, 1)}
        assert unordered.table("counts").rows(at=1) == {"GER": (1, 2)}
        assert unordered.table("counts").rows(at=2) == {"GER": (1, 2), "US": (2, 1)}


def test_example_18_out_of_order_result_is_the_same(engine: Engine) -> None:
    with engine(clicks_per_country()) as ordered, engine(clicks_per_country()) as unordered:
        ordered.push_at("clicks", *CLICKS)
        unordered.push_at("clicks", *UNORDERED)
        for version in (0, 1, 2):
            expected = ordered.table("counts").rows(at=version)
            assert unordered.table("counts").rows(at=version) == expected
        assert unordered.table("counts").modified() == ordered.table("counts").modified()


def test_example_18_out_of_order_record_updates_every_later_version(engine: Engine) -> None:
    with engine(clicks_per_country()) as driver:
        driver.push_at("clicks", *UNORDERED[:3])
        driver.read("changes")
        driver.push_at("clicks", UNORDERED[3])
        emitted = [(r.timestamp, r.key, r.value.value) for r in driver.read("changes")]
    assert emitted == [(1, "US", 1), (2, "US", 2)]
