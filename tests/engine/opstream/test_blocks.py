"""Blocks come back as they were written, can be cut anywhere, and are never read half."""

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from floodway.core.errors import EngineError
from floodway.engine.opstream.blocks import Cut, Unit, read_block, thinned
from tests.engine.opstream.writing import write_block

UNITS = st.lists(
    st.builds(
        Unit,
        kind=st.integers(1, 5),
        place=st.integers(0, 2**16 - 1),
        run=st.integers(0, 2**32 - 1),
        records=st.integers(0, 10_000),
        born=st.integers(0, 2**64 - 1),
        data=st.binary(max_size=300),
    ),
    max_size=30,
)


@given(units=UNITS, data=st.data())
def test_pieces_of_a_block_are_the_block(
    tmp_path_factory: pytest.TempPathFactory, units: list[Unit], data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("block") / "block"
    cuts = write_block(path, units)
    assert cuts[0] == (0, 0)
    assert cuts[-1] == (path.stat().st_size, sum(unit.records for unit in units))
    inner = data.draw(st.lists(st.sampled_from(cuts), unique=True))
    offsets = sorted({0, cuts[-1][0], *(cut[0] for cut in inner)})
    found = [
        unit for start, stop in pairwise(offsets) for unit in read_block(str(path), start, stop)
    ]
    assert [unit._replace(data=bytes(unit.data)) for unit in found] == units


@given(before=UNITS, units=UNITS)
def test_block_over_another_is_as_one_in_a_new_file(
    tmp_path_factory: pytest.TempPathFactory, before: list[Unit], units: list[Unit]
) -> None:
    path = tmp_path_factory.mktemp("block") / "block"
    write_block(path, before)
    cuts = write_block(path, units)
    found = read_block(str(path), 0, cuts[-1][0])
    assert [unit._replace(data=bytes(unit.data)) for unit in found] == units


def test_many_units_have_few_cuts(tmp_path: Path) -> None:
    units = [Unit(1, 0, 0, 1, 0, b"%d" % number) for number in range(5000)]
    cuts = write_block(tmp_path / "block", units)
    assert len(cuts) == 256
    assert len(list(read_block(str(tmp_path / "block"), cuts[7][0], cuts[9][0]))) == (
        cuts[9][1] - cuts[7][1]
    )


def test_block_that_ends_too_early_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "block"
    write_block(path, [Unit(1, 0, 0, 1, 0, b"abc")])
    whole = path.read_bytes()
    for size in range(1, len(whole)):
        path.write_bytes(whole[:size])
        with pytest.raises(EngineError, match="not complete"):
            list(read_block(str(path), 0, len(whole)))


@given(st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99)), min_size=1), st.integers(2, 9))
def test_first_and_last_cut_stay(cuts: list[Cut], most: int) -> None:
    few = thinned(cuts, most)
    assert len(few) <= max(most, 1)
    assert (few[0], few[-1]) == (cuts[0], cuts[-1])
