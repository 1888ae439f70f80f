"""The files of a state: few, sound, and only those that were returned matter."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floodway import Record
from floodway.core.errors import CorruptError, DiskFullError
from floodway.engine.checkpoint.state_files import MOST_FILES, StateFiles, StoredParts, to_merge
from floodway.engine.checkpoint.vault import FileRef, FolderVault
from floodway.engine.host import failpoints
from floodway.engine.state.delta import Part, PartWriter, Survivors, alive
from floodway.engine.state.pickling import Pickling
from floodway.operators.keyed import GONE

PICKLING = Pickling([])
PLACE = ("counts", "state", None)


def delta(rows: dict[Any, Any]) -> bytes:
    writer = PartWriter(PICKLING)
    writer.rows(PLACE, rows)
    return writer.finish()


def state(parts: StoredParts) -> dict[Any, Any]:
    survivors, found = Survivors(), {}
    for index in reversed(range(len(parts))):
        for _, rows in survivors.of(Part(parts[index], PICKLING), oldest=index == 0):
            found.update(alive(rows))
    return found


@pytest.fixture
def vault(tmp_path: Path) -> FolderVault:
    return FolderVault(tmp_path / "vault")


@pytest.fixture
def reached() -> Iterator[list[str]]:
    names: list[str] = []
    failpoints.hook = names.append
    yield names
    failpoints.hook = None


def test_the_files_that_are_returned_are_the_state(vault: FolderVault) -> None:
    files = StateFiles(vault, "state/counts-0", PICKLING)
    first = files.store(1, 0, delta({"a": 1, "b": 2}))
    second = files.store(2, 0, delta({"a": 3, "b": GONE}))
    assert [ref.name for ref in second] == [
        "state/counts-0/000000000001-0.delta",
        "state/counts-0/000000000002-0.delta",
    ]
    assert state(StoredParts(vault, first)) == {"a": 1, "b": 2}
    assert state(StoredParts(vault, second)) == {"a": 3}
    assert state(StateFiles(vault, "elsewhere", PICKLING, second).parts()) == {"a": 3}
    assert files.read(second[0]) == delta({"a": 1, "b": 2})


def test_changes_that_outweigh_their_base_become_the_next_base(
    vault: FolderVault, reached: list[str]
) -> None:
    files = StateFiles(vault, "state/counts-0", PICKLING, small=0)
    files.store(1, 0, delta({"a": 1, "b": 2}))
    files.store(2, 0, delta({"a": 3}))
    refs = files.store(3, 0, delta({"b": GONE, "c": 4}))
    assert [ref.name for ref in refs] == ["state/counts-0/000000000003-0.base"]
    rows = [found for _, found in Part(vault.fetch(refs[0]), PICKLING).rows()]
    assert rows == [{"c": 4}, {"a": 3}]
    points = [name for name in reached if name.startswith("compact")]
    assert points == ["compact.before_base", "compact.after_base"]


def test_there_are_never_many_files_and_their_state_is_right(vault: FolderVault) -> None:
    chosen, model = random.Random(5), dict[Any, Any]()
    files = StateFiles(vault, "state/counts-0", PICKLING)
    files.store(0, 0, delta({key: key for key in range(10_000)}))
    model = {key: key for key in range(10_000)}
    for epoch in range(1, 300):
        rows = {chosen.randrange(10_000): epoch for _ in range(3)}
        model |= rows
        refs = files.store(epoch, 0, delta(rows))
        assert len(refs) <= MOST_FILES
    assert state(files.parts()) == model
    assert refs[0].name == "state/counts-0/000000000000-0.delta"  # the base was not touched


def test_little_changes_of_a_large_state_are_written_few_times() -> None:
    sizes, written = [10**9], 0
    for _ in range(5000):
        sizes.append(10_000)
        count = to_merge(sizes)
        merged = sum(sizes[-count:])
        written += merged
        sizes[-count:] = [merged]
    assert written < 5 * 5000 * 10_000
    assert len(sizes) <= MOST_FILES


@settings(max_examples=200)
@given(st.lists(st.integers(1, 10**7), min_size=1, max_size=60))
def test_merging_takes_at_least_the_new_file_and_leaves_few(sizes: list[int]) -> None:
    kept: list[int] = []
    for size in sizes:
        kept.append(size)
        count = to_merge(kept)
        assert 1 <= count <= len(kept)
        kept[-count:] = [sum(kept[-count:])]
        assert len(kept) <= MOST_FILES


@settings(max_examples=40)
@given(
    st.lists(
        st.dictionaries(st.integers(0, 20), st.one_of(st.integers(), st.just(GONE)), max_size=8),
        min_size=1,
        max_size=30,
    ),
    st.integers(2, 6),
    st.integers(0, 2000),
)
def test_any_sequence_of_epochs_gives_the_state_at_its_end(
    tmp_path_factory: pytest.TempPathFactory, epochs: list[dict[int, Any]], most: int, small: int
) -> None:
    vault = FolderVault(tmp_path_factory.mktemp("vault"))
    model: dict[int, Any] = {}
    states: list[tuple[list[FileRef], dict[int, Any]]] = []
    files = StateFiles(vault, "state/counts-0", PICKLING, most=most, small=small)
    for epoch, rows in enumerate(epochs):
        refs = files.store(epoch, 0, delta(rows))
        model = alive(model | rows)
        states.append((refs, model))
        assert len(refs) <= most
        if epoch % 3 == 0:  # another process goes on
            files = StateFiles(vault, "state/counts-0", PICKLING, refs, most=most, small=small)
    for refs, expected in states:
        assert state(StoredParts(vault, refs)) == expected


def test_a_store_that_fails_may_be_tried_again(vault: FolderVault) -> None:
    class Full(FolderVault):
        full = False

        def write(self, name: str, data: bytes) -> FileRef:
            if self.full:
                raise DiskFullError("the disk is full", remedy="make room")
            return super().write(name, data)

    disk = Full(vault.path)
    files = StateFiles(disk, "state/counts-0", PICKLING, small=0)
    files.store(1, 0, delta({"a": 1}))
    for epoch in (2, 3):
        disk.full = True
        before = files.refs
        with pytest.raises(DiskFullError):
            files.store(epoch, 0, delta({"a": epoch, "b": epoch}))
        assert files.refs == before
        disk.full = False
        refs = files.store(epoch, 0, delta({"a": epoch, "b": epoch}))
        assert state(StoredParts(disk, refs)) == {"a": epoch, "b": epoch}


@pytest.mark.parametrize("point", ["compact.before_base", "compact.after_base"])
def test_a_crash_while_compacting_leaves_the_former_state(vault: FolderVault, point: str) -> None:
    files = StateFiles(vault, "state/counts-0", PICKLING, small=0)
    refs = files.store(1, 0, delta({"a": 1}))

    class Killed(BaseException):
        pass

    def die(name: str) -> None:
        if name == point:
            raise Killed

    failpoints.hook = die
    try:
        with pytest.raises(Killed):
            files.store(2, 0, delta({"a": 2, "b": 2}))
    finally:
        failpoints.hook = None
    assert state(StoredParts(vault, refs)) == {"a": 1}
    again = StateFiles(vault, "state/counts-0", PICKLING, refs, small=0)
    assert state(StoredParts(vault, again.store(2, 1, delta({"c": 3, "d": 4})))) == {
        "a": 1,
        "c": 3,
        "d": 4,
    }


def test_state_of_operators_that_are_gone_is_left_out_when_files_are_merged(
    vault: FolderVault,
) -> None:
    class Old(Record):
        x: int

    pickling = Pickling([Old])
    writer = PartWriter(pickling)
    writer.rows(("old", "state", None), {"a": Old(1)})
    writer.scalars("old", {"latest": Old(2)})
    writer.rows(PLACE, {"a": 1})
    writer.scalars("counts", {"latest": 1})
    refs = StateFiles(vault, "state/counts-0", pickling).store(1, 0, writer.finish())
    files = StateFiles(vault, "state/counts-0", PICKLING, refs, operators={"counts"}, small=0)
    for epoch in range(2, 6):
        files.store(epoch, 0, delta({"b": epoch}))
    assert len(files.refs) < 5
    assert state(files.parts()) == {"a": 1, "b": 5}
    assert list(Part(files.parts()[0], PICKLING).scalars) == ["counts"]


def test_a_damaged_file_is_noticed_when_it_is_read_or_merged(vault: FolderVault) -> None:
    files = StateFiles(vault, "state/counts-0", PICKLING, small=0)
    (ref,) = files.store(1, 0, delta({"a": 1}))
    path = vault.path / ref.name
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    with pytest.raises(CorruptError, match=ref.name):
        files.read(ref)
    with pytest.raises(CorruptError, match=ref.name):
        files.parts()[0]
    with pytest.raises(CorruptError, match=ref.name):
        files.store(2, 0, delta({"a": 2, "b": 2, "c": 3}))


def test_parts_are_read_when_they_are_asked_for(vault: FolderVault) -> None:
    files = StateFiles(vault, "state/counts-0", PICKLING)
    for epoch in range(3):
        refs = files.store(epoch, 0, delta({"a": epoch}))
    parts = files.parts()
    assert parts.total == sum(ref.size for ref in refs)
    assert list(parts[1:]) == [delta({"a": 1}), delta({"a": 2})]
    vault.delete(refs[0].name)
    assert parts[2] == delta({"a": 2})
    with pytest.raises(CorruptError):
        parts[0]
