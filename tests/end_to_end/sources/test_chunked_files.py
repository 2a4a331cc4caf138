"""Large files that change in places: only chunks that differ are read, and the result equals a run from nothing."""

from __future__ import annotations

import csv
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from errata.core.options import EngineOptions
from errata.state import chunk_index as index
from operators.source import reading
from operators.source.diff import by_key, by_position, chunk_index
from operators.source.diff.chunk_spans import ChunkSpans
from operators.source.file_changes import FileRecord, Part
from storage import formats
from storage.delta import changelog_table
from storage.formats import content_chunks, record_hashes
from storage.formats.base import Column, Range, Reader, ReadPlan
from storage.formats.tasks import Task, read_task
from tests.support.chunking import small_chunks
from tests.support.examples import examples
from tests.support.killing import kill_points
from tests.support.pipelines import Folder

SOURCE = """\
  - type: source
    name: NAME
    config:
      name: NAME
      type: FORMAT
      glob: NAME/*
      on_unmapped: { mode: drop }
      merge: MERGE
      schema: [{ name: id, type: int }, { name: v, type: int }, { name: w, type: string }]
"""
NUMBERED = '  - { type: transform, name: numbered, input: rowed, config: { cxl: "emit at = $source.row" } }\n'
OUTPUT = "  - { type: output, name: NAME_out, input: NAME, config: { name: NAME_out, type: csv, path: out/NAME.csv } }\n"
MERGES = {"text": "snapshot", "rowed": "snapshot", "keyed": "{strategy: snapshot, primary_key: [id]}", "lines": "snapshot"}
ALL = (*MERGES, "numbered")
PLACES = ("_cxl_dlq_source_name", "_cxl_dlq_source_file", "_cxl_dlq_source_row", "_cxl_dlq_error_category", "id", "v", "w")


def pipeline() -> str:
    """Sources of all kinds that are read in stretches."""
    nodes = [SOURCE.replace("NAME", name).replace("FORMAT", "json" if name == "lines" else "csv").replace("MERGE", merge) for name, merge in MERGES.items()]
    outputs = [OUTPUT.replace("NAME", name) for name in ALL]
    tail = "error_handling: { strategy: continue, dlq: { path: out/rejected.csv } }\n"
    return "pipeline: { name: stretched }\nnodes:\n" + "".join([*nodes, NUMBERED, *outputs]) + tail


Lines = list[tuple[int, str]]
"""The records of a file, each with a number of its own: `v` and the text of its cell `w`."""
values = st.one_of(st.integers(0, 9).map(str), st.sampled_from(["", "many"]))
texts = st.sampled_from(["", "x", "longer text", '"a,b"', '"two\nlines"', '"said ""no"""', "é"])
cells = st.builds(lambda v, w: f"{v},{w}", values, texts)


@st.composite
def edited(draw: st.DrawFn, lines: Lines, numbers: Iterator[int]) -> Lines:
    """Records put in, taken out, changed, moved and repeated."""
    made = list(lines)
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, max(len(made) - 1, 0)))
        kind = draw(st.sampled_from(["insert", "remove", "change", "move", "block"]))
        if kind == "insert" or not made:
            made.insert(at, (next(numbers), draw(cells)))
        elif kind == "block":
            made[at:at] = [(next(numbers), draw(cells)) for _ in range(draw(st.integers(1, 12)))]
        elif kind == "remove":
            del made[at : at + draw(st.integers(1, 4))]
        elif kind == "change":
            made[at] = (made[at][0], draw(cells))
        else:
            made.insert(draw(st.integers(0, len(made) - 1)), made.pop(at))
    return made


@st.composite
def histories(draw: st.DrawFn) -> list[dict[str, str]]:
    """The text of each source's files after each step; in the last one they may be as they were once before."""
    numbers = iter(range(1, 100_000))
    files = {name: [(next(numbers), draw(cells)) for _ in range(draw(st.integers(20, 50)))] for name in ("text", "rowed", "keyed", "lines")}
    steps = [files]
    for _ in range(draw(st.integers(1, 3))):
        steps.append({name: draw(edited(lines, numbers)) if draw(st.integers(0, 4)) else lines for name, lines in steps[-1].items()})
    steps.append(draw(st.sampled_from(steps)))
    end, last = draw(st.sampled_from(["\n", "\r\n"])), draw(st.booleans())
    return [{name: as_json(lines) if name == "lines" else as_csv(name, lines, end, last=last) for name, lines in step.items()} for step in steps]


def as_csv(name: str, lines: Lines, end: str, *, last: bool) -> str:
    """Without a key a record's number is not in the file, so that records repeat; blank lines are no records."""
    records = [f"{number if name == 'keyed' else number % 3},{rest}" + (end if number % 7 == 0 else "") for number, rest in lines]
    return end.join(["id,v,w", *records]) + (end if last else "")


def as_json(lines: Lines) -> str:
    made = []
    for number, rest in lines:
        value, _, text = rest.partition(",")
        made.append(json.dumps({"id": number % 3, "v": int(value) if value.isdigit() else value or None, "w": text}))
    return "\n".join(made)


def lay_out(folder: Folder, step: dict[str, str]) -> None:
    for name, text in step.items():
        place = f"{name}/all.{'json' if name == 'lines' else 'csv'}"
        if not (folder.path / place).exists() or folder.text(place) != text:
            folder.write(place, text)


def shown(folder: Folder) -> tuple[dict[str, Any], list[Any]]:
    """All outputs, and the records in the DLQ."""
    outputs = {name: folder.rows(f"out/{name}.csv") for name in ALL}
    rejected = folder.rows("out/rejected.csv") if (folder.path / "out/rejected.csv").exists() else []
    return outputs, sorted([str(row.get(name)) for name in PLACES] for row in rejected)


def from_nothing(step: dict[str, str]) -> tuple[dict[str, Any], list[Any]]:
    """The result of a first run."""
    with tempfile.TemporaryDirectory() as place:
        folder = Folder(Path(place))
        folder.write("pipeline.yaml", pipeline())
        lay_out(folder, step)
        folder.run()
        return shown(folder)


@examples(24, 2)
@given(histories(), st.sampled_from([None, 1, 2]), st.sampled_from([0, 10, 1_000]), st.sampled_from([2, 8]))
def test_files_that_change_in_places_end_as_a_run_from_nothing(history: list[dict[str, str]], folded: int | None, fetched: int, ranges: int) -> None:
    """`folded`: after this epoch, the epochs up to it are folded into one. `fetched`: the number of records that come to the driver whole.

    `ranges`: the number of ranges of prior rows that are conditions of a scan.
    """
    with tempfile.TemporaryDirectory() as place, small_chunks(), pytest.MonkeyPatch.context() as patch:
        for module in (by_key, by_position):
            patch.setattr(module, "FETCHED_ROWS", fetched)
        patch.setattr(changelog_table, "MOST_CONDITIONS", ranges)
        folder = Folder(Path(place))
        folder.write("pipeline.yaml", pipeline())
        for step in history:
            lay_out(folder, step)
            if folder.run().epoch == folded:
                list(folder.load().compact(folded + 1, EngineOptions("sail")))
        assert shown(folder) == from_nothing(history[-1])
        assert folder.violations() == []
        before = folder.state_files()
        assert not folder.run().committed
        assert folder.state_files() == before


LARGE = """\
pipeline: { name: large }
nodes:
  - type: source
    name: rows
    config:
      name: rows
      type: csv
      path: rows.csv
      merge: MERGE
      schema: [{ name: id, type: int }, { name: v, type: int }]
  - { type: output, name: out, input: rows, config: { name: out, type: csv, path: out.csv } }
"""


def numbers(changes: dict[int, int]) -> str:
    return "id,v\n" + "".join(f"{number},{changes.get(number, number * 7919 % 1009)}\n" for number in range(20_000))


@contextmanager
def bytes_read() -> Iterator[list[int]]:
    """The bytes of all that is read of files, range by range."""
    sizes: list[int] = []
    tasks = reading.FileReader.tasks

    def counting(reader: reading.FileReader, part: Part) -> list[Task]:
        found = tasks(reader, part)
        sizes.extend(task.part.size for task in found)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading.FileReader, "tasks", counting)
        yield sizes


@pytest.mark.parametrize("merge", ["snapshot", "{strategy: snapshot, primary_key: [id]}"])
@pytest.mark.parametrize("known", [True, False], ids=["listed", "older state"])
def test_one_changed_record_costs_its_stretch(merge: str, known: bool, tmp_path: Path) -> None:
    """A state of a version that kept no lists is read as a whole once."""
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", LARGE.replace("MERGE", merge))
    folder.write("rows.csv", numbers({}))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "SMALL_BYTES", 50_000 if known else 1_000_000)
        patch.setattr(content_chunks, "RECORDS", 64)
        folder.run()
    changes: dict[int, int] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "SMALL_BYTES", 50_000)
        patch.setattr(content_chunks, "RECORDS", 64)
        for at in (11, 19_999, 7_000):
            changes[at] = -at
            folder.write("rows.csv", numbers(changes))
            with bytes_read() as sizes:
                folder.run()
            read = sum(sizes) / len(folder.text("rows.csv"))
            assert read > 1 if at == 11 and not known else read < 0.05
            assert folder.rows("out.csv") == list(csv.DictReader(StringIO(numbers(changes))))
            assert [row["op"] for row in folder.log("rows")][20_000:].count("+A" if merge == "snapshot" else "+C") == len(changes)
    assert folder.violations() == []


readers = {
    "csv": ("csv", {}),
    "no header": ("csv", {"has_header": False}),
    "ndjson": ("json", {"format": "ndjson"}),
    "lines": ("fixed_width", {}),
}


def a_reader(kind: str) -> Any:
    name, options = readers[kind]
    layout = {"fields": [{"name": "id", "start": 0, "width": 3}, {"name": "w", "start": 3, "width": 5}]} if name == "fixed_width" else None
    return formats.reader(name, options, ReadPlan((Column("col_0"), Column("col_1")) if kind == "no header" else (Column("id"), Column("w")), on_unmapped="drop", layout=layout))


HEADS = ["", "\ufeff", "\n\n", "\ufeff\n", "\ufeff\r\n\n"]
"""The beginnings that a file may have before its records: a byte order mark and blank lines."""


def content(kind: str, lines: list[tuple[int, str]], head: str = "") -> bytes:
    shapes = {"csv": lambda one: f'{one[0]},"{one[1]}"', "no header": lambda one: f'"{one[0]}\n","{one[1]}"', "ndjson": lambda one: json.dumps({"id": str(one[0]), "w": one[1]}), "lines": lambda one: f"{one[0]:3}{one[1]!r:5}"}
    return (head + "\n".join([*(["id,w"] if kind == "csv" else []), *map(shapes[kind], lines)])).encode()


@given(st.sampled_from(list(readers)), st.lists(st.tuples(st.integers(0, 99), st.sampled_from(["", "a", "b\nc"])), min_size=3, max_size=60), st.sampled_from(HEADS), st.data())
def test_stretches_read_together_are_the_file(kind: str, lines: list[tuple[int, str]], head: str, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as place, small_chunks():
        file = Path(place, "file")
        file.write_bytes(content(kind, lines, head))
        reader = a_reader(kind)
        whole = [row for batch in read_task(reader, Task(file, "file", Range(0, file.stat().st_size))) for row in batch.to_pylist()]
        found = content_chunks.chunks_of(reader, file, "file")
        assert found is not None
        assert found.records == len(whole) == len(lines)
        chosen = [at for at in range(found.count) if data.draw(st.booleans())]
        for numbers, target in ((None, 10), (None, 1000), (content_chunks.np.array(chosen, int), 25)):
            ranges = found.ranges(numbers, target)
            read = [row for part in ranges for batch in read_task(reader, Task(file, "file", part)) for row in batch.to_pylist()]
            wanted = range(found.count) if numbers is None else chosen
            assert read == [row for at in wanted for row in whole[found.rows[at] - 1 : found.rows[at + 1] - 1]]


@given(st.sampled_from(list(readers)), st.integers(0, 299), st.integers(0, 2), st.sampled_from([0, 1, 90]), st.booleans())
def test_a_change_leaves_the_chunks_beside_it(kind: str, at: int, taken: int, came: int, alike: bool) -> None:
    """`came`: how many records come in a block; `alike`: whether all records but few begin with the same bytes."""
    lines = [(number * 7919 % 997 if number % 50 == 0 or not alike else 7, "ab"[number % 2]) for number in range(300)]
    with tempfile.TemporaryDirectory() as place, small_chunks():
        file = Path(place, "file")
        file.write_bytes(content(kind, lines))
        was = content_chunks.chunks_of(a_reader(kind), file, "file")
        assert was is not None
        known = known_of(was)
        file.write_bytes(content(kind, [*lines[:at], *[(5, "c")] * came, *lines[at + taken :]]))
        found = content_chunks.chunks_of(a_reader(kind), file, "file", known)
    assert found is not None
    assert was.count == 100
    old, new = (content_chunks.np.array(one.digests) for one in (was, found))
    assert len(content_chunks.np.setdiff1d(old, new)) < 6
    assert len(content_chunks.np.setdiff1d(new, old)) < 6
    assert abs(found.count - was.count) < came // 3 + 4


@pytest.mark.parametrize("kind", list(readers))
@pytest.mark.parametrize("change", ["one went", "one came", "another text"])
def test_records_are_looked_for_once_for_all_changes(kind: str, change: str, tmp_path: Path) -> None:
    """Behind most changes the next known chunk is a few lines from where it was. What lies between is looked at together in the end."""
    lines = [(number, f"{number % 9}b") for number in range(900)]
    new: dict[str, Callable[[tuple[int, str]], list[tuple[int, str]]]] = {"one went": lambda one: [], "one came": lambda one: [one, (5, "c")], "another text": lambda one: [(one[0], "abc")]}
    file, calls = tmp_path / "file", 0
    with small_chunks(), pytest.MonkeyPatch.context() as patch:
        file.write_bytes(content(kind, lines))
        reader = a_reader(kind)
        was = content_chunks.chunks_of(reader, file, "file")
        assert was is not None
        known = known_of(was)
        file.write_bytes(content(kind, [one for at, line in enumerate(lines) for one in (new[change](line) if at % 45 == 31 else [line])]))

        def starts_within(self: Reader, *arguments: Any) -> Any:
            nonlocal calls
            calls += 1
            return whole(self, *arguments)

        whole = type(reader).starts_within
        patch.setattr(type(reader), "starts_within", starts_within)
        found = content_chunks.chunks_of(reader, file, "file", known)
    assert found is not None
    assert found.count == was.count == 300
    assert len(set(found.digests.to_pylist()) - set(was.digests.to_pylist())) == 20
    assert calls == 1


@pytest.mark.parametrize("text", ["\n", " \n", " \n\t\n"])
def test_lines_without_records_between_chunks_are_a_part_of_one(text: str, tmp_path: Path) -> None:
    lines = content("ndjson", [(number, "a") for number in range(300)]).splitlines(keepends=True)
    file = tmp_path / "file"
    with small_chunks():
        file.write_bytes(b"".join(lines))
        was = content_chunks.chunks_of(a_reader("ndjson"), file, "file")
        assert was is not None
        known = known_of(was)
        for at in (3, 150, 151, 299):
            file.write_bytes(b"".join([*lines[:at], text.encode(), *lines[at:]]))
            found = content_chunks.chunks_of(a_reader("ndjson"), file, "file", known)
            assert found is not None
            assert (found.records, found.starts[-1]) == (300, len(file.read_bytes()))
            assert (content_chunks.np.diff(found.rows) > 0).all()
            assert len(set(was.digests.to_pylist()) - set(found.digests.to_pylist())) <= 2


def known_of(chunks: content_chunks.ContentChunks) -> content_chunks.KnownChunks:
    """The chunks that the next version of a file is compared with."""
    return chunk_index.ChunkList.of_new_file(chunks).known


def bounds_of(reader: Reader, data: bytes, chunks: content_chunks.ContentChunks, chunk: int) -> Any:
    """Where the records of a chunk begin, and the last one ends."""
    start, end = map(int, chunks.starts[chunk : chunk + 2])
    starts = reader.starts_within(data, start, end)
    assert starts is not None
    return content_chunks.np.append(starts, end)


edits = st.tuples(st.integers(0, 99), st.integers(0, 4), st.lists(st.tuples(st.integers(0, 99), st.sampled_from(["", "a", "b\nc", 'said "no"'])), max_size=9))
"""A place in per cent, records that go there, and records that come."""


@examples(200, 25)
@given(st.sampled_from(list(readers)), st.lists(st.tuples(st.integers(0, 99), st.sampled_from(["", "a", "b\nc"])), min_size=8, max_size=80), st.lists(edits, max_size=3), st.floats(0, 1))
def test_known_chunks_are_passed_over(kind: str, lines: list[tuple[int, str]], changes: list[tuple[int, int, list[tuple[int, str]]]], most: float) -> None:
    """With the chunks of the last version the file is cut into chunks of the same records, known and new ones. `most`: share of new ones above which all is cut."""
    with tempfile.TemporaryDirectory() as place, small_chunks(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(content_chunks, "_MOST_NEW", most)
        patch.setattr(content_chunks, "_SLACK", int(most * 20))
        file, reader = Path(place, "file"), a_reader(kind)
        file.write_bytes(content(kind, lines))
        patch.setattr(record_hashes, "new_salt", lambda: 7)
        was = content_chunks.chunks_of(reader, file, "file", by_record=True)
        assert was is not None
        known = known_of(was)
        for share, went, came in changes:
            at = share * len(lines) // 100
            lines = [*lines[:at], *came, *lines[at + went :]]
        blank = b"\n" * (len(changes) % 2)
        file.write_bytes(content(kind, lines) + blank)
        found = content_chunks.chunks_of(reader, file, "file", known, by_record=True)
        anew = content_chunks.chunks_of(reader, file, "file", by_record=True)
        assert (found is None) == (anew is None)
        if found is None or anew is None:
            return
        data = file.read_bytes()
        assert (found.starts[0], found.starts[-1], found.records) == (anew.starts[0], len(data), len(lines))
        digests = found.digests.to_pylist()
        by_digest = dict(zip(was.digests.to_pylist(), content_chunks.np.diff(was.rows).tolist(), strict=True))
        texts: dict[bytes, bytes] = {}
        for number, digest in enumerate(digests):
            assert texts.setdefault(digest, data[found.starts[number] : found.starts[number + 1]]) == data[found.starts[number] : found.starts[number + 1]]
            assert by_digest.get(digest, found.rows[number + 1] - found.rows[number]) == found.rows[number + 1] - found.rows[number]
        whole = [row for batch in read_task(reader, Task(file, "file", Range(0, len(data)))) for row in batch.to_pylist()]
        for number, part in enumerate(found.ranges(target=1)):
            read = [row for batch in read_task(reader, Task(file, "file", part)) for row in batch.to_pylist()]
            assert read == whole[found.rows[number] - 1 : found.rows[number + 1] - 1]
        some = content_chunks.np.arange(1, len(lines) + 1)[:: 1 + len(lines) % 3]
        parts = found.reading(some, {chunk: bounds_of(reader, data, found, chunk) for chunk in found.with_records(some)}, 20)
        read = [row for part in parts for batch in read_task(reader, Task(file, "file", part)) for row in batch.to_pylist()]
        assert read == [whole[number - 1] for number in some.tolist()]
        assert was.hashes is not None
        stored = dict(zip(was.digests.to_pylist(), was.hashes.to_pylist(), strict=True))
        own = found.hashes_of(content_chunks.np.arange(found.count)).to_pylist()
        assert anew.hashes is not None
        assert b"".join(stored[digest] if one is None else one for digest, one in zip(digests, own, strict=True)) == b"".join(anew.hashes.to_pylist())
        if not changes:
            assert digests == was.digests.to_pylist()
        again = content_chunks.chunks_of(reader, file, "file", known_of(found))
        assert again is not None
        assert (again.digests.to_pylist(), again.starts.tolist()) == (digests, found.starts.tolist())


@examples(40, 8)
@given(st.lists(st.tuples(st.integers(0, 99), st.sampled_from(["", "a"])), min_size=8, max_size=60), st.lists(edits, min_size=1, max_size=4), st.sampled_from([0, 30]))
def test_hashes_of_records_are_found_and_each_is_stored_once(lines: list[tuple[int, str]], changes: list[tuple[int, int, list[tuple[int, str]]]], few: int) -> None:
    """`few`: rows of chunks that are gone, from which on they leave the table."""
    label, reader, before = (1,), a_reader("csv"), None
    with tempfile.TemporaryDirectory() as place, small_chunks(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(index, "FEW", few)
        patch.setattr(record_hashes, "new_salt", lambda: 7)
        file, table = Path(place, "file"), changelog_table.ChangelogTable(str(Path(place, "table")))
        for epoch, (share, went, came) in enumerate([(0, 0, []), *changes], 1):
            at, stood = share * len(lines) // 100, table.statistics.rows_without(index.FILE)
            lines = [*lines[:at], *came, *lines[at + went :]]
            file.write_bytes(content("csv", lines))
            found = content_chunks.chunks_of(reader, file, "file", before and before.known, by_record=True)
            anew = content_chunks.chunks_of(reader, file, "file", by_record=True)
            if found is None or anew is None or anew.hashes is None:
                return
            spans = ChunkSpans.of_new_file(found, epoch).column(found.count)
            fresh = set(found.digests.to_pylist()) - set(before.known.digests.view("int64").tolist() if before else [])
            index.write_lists(table, {label: index.ChunkIndex(str(epoch), chunk_index.ChunkList.by_spans(found, spans, before))}, epoch)
            before = index.read_lists(table, [FileRecord("file", 0, 0, str(epoch), label, listed=True)], table)[label].chunks
            hashes = before.hashes_of(content_chunks.np.arange(found.count))
            assert hashes is not None
            assert hashes.tobytes() == b"".join(anew.hashes.to_pylist())
            rows = table.statistics.rows_without(index.FILE)
            assert rows == stood + len(fresh) or (rows == len(set(found.digests.to_pylist())) and stood + len(fresh) > index.MOST_GONE * found.count + few)
            assert table.statistics.rows() == rows + found.count


def test_a_file_that_is_written_to_while_it_is_hashed_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The chunks that were read may be older than the hash: a stretch of later content must not count as read."""
    file, hashed = tmp_path / "file", content_chunks._digests
    file.write_bytes(content("csv", [(number, "a") for number in range(100)]))

    def written_to(*given: Any) -> Any:
        with file.open("r+b") as other:
            other.seek(-2, os.SEEK_END)
            other.write(b"b")
        os.utime(file, ns=(0, 0))
        return hashed(*given)

    with small_chunks():
        monkeypatch.setattr(record_hashes, "new_salt", lambda: 7)
        made = []
        for digests in (hashed, written_to, hashed):
            monkeypatch.setattr(content_chunks, "_digests", digests)
            found = content_chunks.chunks_of(a_reader("csv"), file, "file")
            assert found is not None
            made.append(set(found.digests.to_pylist()))
    assert len(made[0] & made[2]) > 10
    assert not made[1] & (made[0] | made[2])


@pytest.mark.deep
def test_a_run_over_changed_stretches_may_be_killed_at_every_step(tmp_path: Path) -> None:
    first = {name: as_csv(name, [(number, f"{number % 9},x") for number in range(1, 41)], "\n", last=True) for name in ("text", "rowed", "keyed")}
    first["lines"] = as_json([(number, "1,x") for number in range(1, 41)])
    second = {name: text.replace("\n7,7,x", "\n7,8,y\n77,,") if name == "keyed" else text.replace("1,4,x", "2,4,y") for name, text in first.items()}
    with small_chunks():
        folder = Folder(tmp_path / "whole")
        folder.write("pipeline.yaml", pipeline())
        lay_out(folder, first)
        folder.run()
        lay_out(folder, second)
        wanted = from_nothing(second)
        for point in list(kill_points(folder, Folder.run, tmp_path / "killed"))[::9]:
            point.folder.run()
            assert shown(point.folder) == wanted, point
            assert point.folder.violations() == [], point
            assert point.folder.load().head_epoch() == 2, point
