"""Changes of files: any sequence of folders leads to labels in discovery order, and tells exactly which files to read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from operators.source.file_changes import (
    FileChanges,
    FileRecord,
    compare_contents,
    compare_deliveries,
    compare_files,
    is_late,
    is_whole_history,
)


@dataclass(frozen=True)
class Given:
    """A file in a folder. Its hash is made of its content."""

    name: str
    content: str
    mtime_ns: int = 0
    tag: str = ""

    @property
    def size(self) -> int:
        return len(self.content)


names = st.sampled_from("abcdefg")
contents = st.text("xy", max_size=3)
folders = st.lists(st.builds(Given, names, contents, st.integers(0, 2)), max_size=6, unique_by=lambda file: file.name)


class Disk:
    """Hashes of files, each a salt and a content, and how many were asked for."""

    salts = count()

    def __init__(self, files: Sequence[Given]) -> None:
        self.files = {file.name: file.content for file in files}
        self.asked = 0

    def __call__(self, name: str, like: str = "", length: int | None = None) -> str:
        self.asked += 1
        salt = like.partition(":")[0] or str(next(self.salts))
        return f"{salt}:{self.files[name][:length]}"


def snapshot(files: Sequence[Given], known: Sequence[FileRecord]) -> FileChanges:
    return compare_files(files, known, Disk(files))


def deliveries(files: Sequence[Given], known: Sequence[FileRecord]) -> FileChanges:
    return compare_deliveries(files, known, Disk(files))


def read(changes: FileChanges) -> tuple[FileRecord, ...]:
    """The files after a run: each that is there has rows."""
    return tuple(FileRecord.of({**record.json(), "rows": record.size}) for record in changes.now)


@given(st.lists(folders, max_size=4))
def test_labels_follow_discovery_order_and_are_those_of_one_file(history: list[list[Given]]):
    known: tuple[FileRecord, ...] = ()
    for files in history:
        changes = snapshot(files, known)
        labels = [record.label for record in changes.now]
        assert [record.path for record in changes.now] == [file.name for file in files]
        assert labels == sorted(set(labels))
        assert not {record.label for record in changes.added} & {record.label for record in known}, "a new file has the label of another"
        known = read(changes)


@given(folders, folders)
def test_a_snapshot_reads_what_is_new_and_takes_back_what_went(before: list[Given], after: list[Given]):
    known = read(snapshot(before, ()))
    changes = snapshot(after, known)
    old, new = {file.name: file for file in before}, {file.name: file for file in after}
    removed, added = {record.path for record in changes.removed}, {record.path for record in changes.added}
    assert old.keys() - new.keys() <= removed
    assert new.keys() - old.keys() <= added
    assert removed & new.keys() == added & old.keys(), "a file that moved is removed and added"
    stayed = (old.keys() & new.keys()) - added
    same_by_look = {name for name in stayed if (old[name].size, old[name].mtime_ns) == (new[name].size, new[name].mtime_ns)}
    assert {record.path for record in changes.changed} == {name for name in stayed - same_by_look if old[name].content != new[name].content}


@given(st.lists(folders, max_size=4))
def test_a_new_file_takes_the_place_of_one_that_went_from_between_the_same_neighbours(history: list[list[Given]]):
    known: tuple[FileRecord, ...] = ()
    for files in history:
        changes = compare_contents(files, known, Disk(files))
        assert [record.path for record in changes.now] == [file.name for file in files]
        labels = [record.label for record in changes.now]
        assert labels == sorted(set(labels))
        stored = [record.stored for record in (*changes.now, *changes.removed)]
        kept = {record.path for record in changes.removed} & {record.path for record in changes.added}
        assert len(set(stored)) + len(kept) == len(stored), "the records of two files cannot be told apart"
        places = {record.label: record.stored for record in known}
        assert all(record.stored == places.get(record.label, record.stored) for record in changes.now), "a file that stays has its records under another path"
        known = read(changes)


def test_a_file_of_another_name_is_a_change_of_the_one_that_went():
    known = read(compare_contents([Given("b", "x"), Given("d", "y")], (), Disk([Given("b", "x"), Given("d", "y")])))
    files = [Given("c", "x"), Given("d", "y"), Given("e", "z")]
    changes = compare_contents(files, known, Disk(files))
    assert [(record.path, record.stored) for record in changes.changed] == [("c", "b")]
    assert [record.path for record in changes.added] == ["e"]
    assert not changes.removed
    files = [Given("b", "new"), *files]
    again = compare_contents(files, read(changes), Disk(files))
    assert [(record.path, record.stored) for record in again.added] == [("b", "b#2")]
    assert not again.changed
    assert not again.removed


@given(folders)
def test_a_folder_that_is_as_it_was_is_not_even_hashed(files: list[Given]):
    for compare in (compare_files, compare_contents, compare_deliveries):
        known = read(compare(files, (), Disk(files)))
        disk = Disk(files)
        changes = compare(files, known, disk)
        assert not changes.any
        assert changes.now == known
        assert disk.asked == 0


@given(folders)
def test_touched_files_are_hashed_and_nothing_else(files: list[Given]):
    known = read(snapshot(files, ()))
    touched = [Given(file.name, file.content, file.mtime_ns + 1) for file in files]
    assert not snapshot(touched, known).any
    assert not deliveries(touched, known).any


@given(st.lists(folders, max_size=4))
def test_deliveries_forget_no_file_and_no_label(history: list[list[Given]]):
    known: tuple[FileRecord, ...] = ()
    for files in history:
        changes = deliveries(files, known)
        labels = {record.path: record.label for record in changes.now}
        assert {record.path: record.label for record in known}.items() <= labels.items()
        assert len(set(labels.values())) == len(labels)
        assert {record.path for record in changes.now if record.present} == {file.name for file in files}
        assert not changes.removed
        known = read(changes)


@given(st.lists(st.tuples(names, contents, contents), max_size=5, unique_by=lambda one: one[0]))
def test_what_stands_behind_known_bytes_is_all_that_is_read_of_a_grown_file(files: list[tuple[str, str, str]]):
    known = read(deliveries([Given(name, old) for name, old, _ in files], ()))
    changes = deliveries([Given(name, old + more, 1) for name, old, more in files], known)
    grown = {part.record.path: (part.start, part.rows, part.size) for part in changes.grown}
    assert grown == {name: (len(old), len(old), len(more)) for name, old, more in files if more}
    assert not changes.added
    assert not changes.changed


def test_a_delivery_before_one_that_was_read_is_late():
    known = read(deliveries([Given("b", "x"), Given("d", "x")], ()))
    assert is_late(deliveries([Given("a", "x"), Given("b", "x"), Given("d", "x")], known))
    assert is_late(deliveries([Given("b", "xy", 1), Given("d", "x")], known))
    assert not is_late(deliveries([Given("b", "x"), Given("d", "xy", 1), Given("e", "x")], known))
    assert not is_late(deliveries([Given("b", "x"), Given("d", "x")], known))


def test_history_is_whole_while_every_delivery_can_be_read_again():
    known = read(deliveries([Given("a", "x"), Given("b", "x")], ()))
    assert is_whole_history(deliveries([Given("a", "x"), Given("b", "xy", 1)], known))
    assert not is_whole_history(deliveries([Given("b", "x")], known))
    assert not is_whole_history(deliveries([Given("a", "yy", 1), Given("b", "x")], known))


def test_records_of_the_ledger_come_back():
    record = FileRecord("a.csv", 3, 4, "h", (1, 2), 5, dense=False, undeclared=(("extra", "string"),), present=False, replaced=True)
    assert FileRecord.of({**record.json(), "unknown": 1}) == record
