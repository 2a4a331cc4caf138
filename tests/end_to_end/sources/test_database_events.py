"""Tables of change records in databases: read in any portions, they end as one file with the sorted history does, and as a plain Python model says."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from errata.core.failures import StorageFailed
from errata.core.options import RunOptions
from errata.state.source_memory import SourceMemory
from tests.support import corrections
from tests.support.change_records import COLUMNS, CREATE, Delivered, Table
from tests.support.corrections import SOURCES
from tests.support.databases import Database
from tests.support.examples import examples
from tests.support.pipelines import Folder, limited

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SOURCE = """\
  - type: source
    name: NAME
    config:
      name: NAME
      WHERE
      on_unmapped: { mode: drop }
      merge: MERGE
      schema: [{ name: seq, type: int }, { name: id, type: int }, { name: code, type: string }, { name: of, type: int }, { name: v, type: int }, { name: w, type: string }MORE]
  - type: output
    name: NAME_out
    input: NAME
    config: { name: NAME_out, type: csv, path: out/NAME.csv }
"""
MORE = ", { name: more, type: string }"
_ASKED = "type: sql\n      connection: shop\n      "
EDITS = (
    (_ASKED + "table: records", ""),
    (_ASKED + "query: SELECT * FROM records WHERE 1 = 1", ""),
    (_ASKED + "table: records", MORE),
)
"""Where a source reads, and what its schema has beside the columns: each is an edit of the others."""
WHOLE = ("versions", "checked", "newest")
"""Sources whose records have versions: they need no cursor."""


def pipeline(names: tuple[str, ...], where: str, more: str = "", *, beside: str = "") -> str:
    sources = "".join(SOURCE.replace("WHERE", where).replace("MORE", more).replace("NAME", name).replace("MERGE", SOURCES[name].replace("{strategy", "{" + beside + "strategy")) for name in names)
    return f"pipeline: {{ name: changes }}\nnodes:\n{sources}error_handling: {{ strategy: continue, dlq: {{ path: out/rejected.csv }} }}\n"


def rejects(folder: Folder) -> dict[str, Counter[tuple[int, str]]]:
    found: dict[str, Counter[tuple[int, str]]] = {name: Counter() for name in SOURCES}
    if (folder.path / "out/rejected.csv").exists():
        for row in folder.rows("out/rejected.csv"):
            found[row["_cxl_dlq_stage"].removeprefix("source:")][int(row["seq"]), row["_cxl_dlq_error_category"]] += 1
    return found


def check(folder: Folder, deliveries: dict[str, Delivered]) -> None:
    wrong = rejects(folder)
    for name, delivered in deliveries.items():
        live, bad = delivered.outcome()
        found = [{column: row[column] for column in COLUMNS} for row in folder.rows(f"out/{name}.csv")]
        assert found == corrections.shown(live), f"{name}: {found} is not {corrections.shown(live)}, after {delivered.in_order}"
        assert wrong[name] == bad, f"{name}: {wrong[name]} is not {bad}, after {delivered.in_order}"


def check_history(folder: Folder, deliveries: dict[str, Delivered], more: str) -> None:
    """One file with the history in order gives the same bytes."""
    with tempfile.TemporaryDirectory() as place:
        one = Folder(Path(place))
        one.write("pipeline.yaml", pipeline(tuple(deliveries), "type: csv\n      path: NAME.csv", more))
        for name, delivered in deliveries.items():
            one.write_csv(f"{name}.csv", (*COLUMNS, "more"), [event.record | {"more": None} for event in delivered.in_order])
        one.run()
        for name in deliveries:
            assert one.text(f"out/{name}.csv") == folder.text(f"out/{name}.csv"), name


def play(kind: str, seed: int, overlap: int | None, *, runs: int = 5, sources: int = 3, engine: str = "sail") -> None:
    """Write into a table between runs, and compare after each."""
    with tempfile.TemporaryDirectory() as place:
        dice, folder = Random(seed), Folder(Path(place), engine)
        database = Database.new(kind, folder.path)
        database.do(CREATE)
        names = tuple(dice.sample(WHOLE if overlap is None else list(SOURCES), sources))
        merge = "" if overlap is None else f"cursor: seq, overlap: {overlap}, "
        edits = dice.sample(EDITS, len(EDITS))
        folder.write("pipeline.yaml", pipeline(names, *edits[0], beside=merge))
        table, deliveries = Table.new(dice, database.do), {name: Delivered(name, overlap) for name in names}
        for run in range(runs):
            table.change(versions_are_numbers=overlap is None)
            again = run > 0 and dice.random() < 0.2
            refresh = again and dice.random() < 0.5
            if again and not refresh:
                edits.insert(0, edits.pop())
                folder.write("pipeline.yaml", pipeline(names, *edits[0], beside=merge))
            folder.run(full_refresh=refresh)
            for delivered in deliveries.values():
                (delivered.read_again if again else delivered.read)(table.rows)
            check(folder, deliveries)
            assert not folder.run().committed
        check_history(folder, deliveries, edits[0][1])
        assert folder.violations() == []


SEEDS, OVERLAPS = st.integers(0, 1 << 32), st.sampled_from([None, 0, 5, 100])


@examples(24, 2)
@given(SEEDS, st.sampled_from(["sqlite", "duckdb"]), OVERLAPS)
def test_any_portions_of_a_table_end_as_its_history_in_order(seed: int, kind: str, overlap: int | None) -> None:
    play(kind, seed, overlap)


@pytest.mark.deep
@examples(12, 2)
@given(SEEDS, OVERLAPS)
def test_large_portions_lead_to_the_same(seed: int, overlap: int | None) -> None:
    with pytest.MonkeyPatch.context() as patch, limited(small_rows=0, driver_rows=0):
        patch.setattr("operators.source.diff.by_answer.SMALL_BYTES", 0)
        play("sqlite", seed, overlap)


@pytest.mark.servers
@pytest.mark.parametrize(("seed", "overlap"), [(1, None), (2, 5)])
def test_portions_of_a_table_of_postgresql(seed: int, overlap: int | None) -> None:
    play("postgresql", seed, overlap)


@pytest.mark.spark
@pytest.mark.parametrize(("seed", "overlap"), [(3, None), (4, 5)])
def test_portions_on_spark(seed: int, overlap: int | None) -> None:
    play("sqlite", seed, overlap, runs=2, sources=1, engine="spark")


@pytest.mark.parametrize("seed", [1, 2, *(pytest.param(seed, marks=pytest.mark.deep) for seed in range(3, 7))])
def test_a_table_and_files_with_its_portions_agree_after_each_command(seed: int, tmp_path: Path) -> None:
    """Runs, reverts, edits and full refreshes, each on a table that grows and on a folder that gets a file with the new records. Numbers are versions, or the cursor."""
    dice, one, other, by_cursor = Random(seed), Folder(tmp_path / "table"), Folder(tmp_path / "files"), seed % 2 == 0
    database = Database.new("sqlite", one.path)
    database.do(CREATE)
    names = tuple(dice.sample(["plain", "strict", "named"] if by_cursor else list(WHOLE), 2))
    merge, table, more, epoch = "cursor: seq, overlap: 9, " if by_cursor else "", Table.new(dice, database.do), "", 0
    acts = dice.choice([["edit", "refresh"], ["refresh", "revert"]])  # a revert holds in an edited source while its file is the same, and an answer is one file
    if by_cursor:
        acts = ["edit", "refresh"]  # each record may be late, so that its key is replayed and a revert ends
        table.numbers.sort(reverse=True)  # files have the order of the numbers then
    for portion in range(1, 7):
        act = dice.choice(["run", "run", *acts])
        for folder in (one, other) if act == "revert" and epoch > 1 else ():
            folder.load().revert(epoch - 1, RunOptions(engine=folder.engine_options, max_retract_share=1.0))
        before = len(table.rows)
        table.grow(versions_are_numbers=not by_cursor)
        more = MORE if act == "edit" else more
        one.write("pipeline.yaml", pipeline(names, _ASKED + "table: records", more, beside=merge))
        other.write("pipeline.yaml", pipeline(names, "type: csv\n      glob: in/*.csv", more))
        other.write_csv(f"in/{portion}.csv", (*COLUMNS, "more"), [dict(zip((*COLUMNS, "more"), (*row, None), strict=True)) for row in table.rows[before:]])
        epoch, _ = (folder.run(full_refresh=act == "refresh").epoch for folder in (one, other))
        for name in names:
            assert one.text(f"out/{name}.csv") == other.text(f"out/{name}.csv"), (act, name, table.rows)
        assert rejects(one) == rejects(other), (act, table.rows)
    assert one.violations() == other.violations() == []


TABLE = """\
pipeline: { name: changes }
nodes:
  - type: source
    name: changes
    config:
      name: changes
      type: sql
      connection: shop
      table: changes
      merge: { strategy: changelog, primary_key: [id], MERGE }
      schema: [{ name: seq, type: int }, { name: code, type: string }, { name: id, type: int }, { name: amount, type: int }]
  - { type: output, name: rows, input: changes, config: { name: rows, type: csv, path: rows.csv } }
error_handling: { strategy: continue, dlq: { path: rejected.csv } }
"""
OPS = "op: code, ops: { append: [N], correct: [C], patch: [P], retract: [X] }"
VERSIONS = "op: code, ops: { append: [N], correct: [C], retract: [X] }, version_field: seq"
"""The writes of a program before each run (`+` a record, `-` takes it out of the table), and the op rows of the source after it."""
CHANGES = {
    "the version decides, whatever comes first": (VERSIONS, """
        run | seq | code | id | amount
        1 + | 3   | C  | 1  | 30
        1 + | 2   | X  | 1  |
        2 + | 1   | N  | 1  | 10
        2 + | 4   | N  | 2  | 40
        3 + | 5   | X  | 2  |
        4 + | 4   | N  | 2  | 41
    """, """
        1 +A | 3 | C | 1 | 30
        2 +A | 4 | N | 2 | 40
        3 -R | 4 | N | 2 | 40
    """, ""),
    "a record that leaves the table stays delivered": (VERSIONS, """
        run | seq | code | id | amount
        1 + | 1   | N  | 1  | 10
        2 + | 2   | C  | 1  | 20
        3 - | 2   | C  | 1  | 20
        4 - | 1   | N  | 1  | 10
        5 + | 3   | C  | 1  | 30
    """, """
        1 +A | 1 | N | 1 | 10
        2 -C | 1 | N | 1 | 10
        2 +C | 2 | C | 1 | 20
        5 -C | 2 | C | 1 | 20
        5 +C | 3 | C | 1 | 30
    """, ""),
    "a record that is corrected in its place, and back": (VERSIONS, """
        run | seq | code | id | amount
        1 + | 1   | N  | 1  | 10
        2 - | 1   | N  | 1  | 10
        2 + | 1   | N  | 1  | 11
        3 - | 1   | N  | 1  | 11
        3 + | 1   | N  | 1  | 10
    """, """
        1 +A | 1 | N | 1 | 10
        2 -C | 1 | N | 1 | 10
        2 +C | 1 | N | 1 | 11
        3 -C | 1 | N | 1 | 11
        3 +C | 1 | N | 1 | 10
    """, ""),
    "a late record takes its place by the cursor": (f"{OPS}, cursor: seq, overlap: 10", """
        run | seq | code | id | amount
        1 + | 1   | N  | 1  | 10
        1 + | 4   | X  | 1  |
        2 + | 3   | C  | 1  | 30
        3 + | 5   | N  | 1  | 50
        3 + | 2   | C  | 1  | 20
    """, """
        3 +A | 5 | N | 1 | 50
    """, ""),
    "a patch changes what is live at its place": (f"{OPS}, cursor: seq, overlap: 10", """
        run | seq | code | id | amount
        1 + | 1   | N  | 1  | 10
        1 + | 3   | P  | 1  |
        2 + | 2   | C  | 1  | 20
    """, """
        1 +A | 3 | P | 1 | 10
        2 -C | 3 | P | 1 | 10
        2 +C | 3 | P | 1 | 20
    """, ""),
    "a reject goes with its record, or when its record comes": (f"{OPS}, cursor: seq, overlap: 10", """
        run | seq | code | id | amount
        1 + | 2   | X  | 1  |
        1 + | 3   | ?  | 2  | 30
        1 + | 4   | X  | 3  |
        2 + | 1   | N  | 1  | 10
        3 - | 3   | ?  | 2  | 30
        3 + | 3   | N  | 2  | 30
        4 - | 4   | X  | 3  |
    """, """
        3 +A | 3 | N | 2 | 30
    """, "1: 2 3 4, 2: 3 4, 3: 4, 4:"),
    "words of a changelog without an order follow each other as they come": ("op: code", """
        run | seq | code | id | amount
        1 + | 1   | c  | 1  | 10
        2 + | 2   | u  | 1  | 20
        3 - | 1   | c  | 1  | 10
        4 + | 1   | c  | 1  | 10
        5 + | 1   | c  | 1  | 10
        5 + | 3   | d  | 1  |
    """, """
        1 +A | 1 |  | 1 | 10
        2 -C | 1 |  | 1 | 10
        2 +C | 2 |  | 1 | 20
        4 -C | 2 |  | 1 | 20
        4 +C | 1 |  | 1 | 10
        5 -R | 1 |  | 1 | 10
    """, ""),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_what_a_source_has_of_change_records(name: str, tmp_path: Path) -> None:
    merge, written, wanted, rejected = CHANGES[name]
    folder, database = Folder(tmp_path), Database.new("sqlite", tmp_path)
    folder.write("pipeline.yaml", TABLE.replace("MERGE", merge))
    database.do("CREATE TABLE changes (seq INTEGER, code TEXT, id INTEGER, amount INTEGER)")
    lines = [[cell.strip() for cell in line.split("|")] for line in written.strip().splitlines()[1:]]
    found = []
    for run in sorted({int(line[0].split()[0]) for line in lines}):
        for (_, sign), *values in ((line[0].split(), *line[1:]) for line in lines if int(line[0].split()[0]) == run):
            seq, op, key, amount = (value or None for value in values)
            literals = [seq or "NULL", "NULL" if op is None else f"'{op}'", key or "NULL", amount or "NULL"]
            same = " AND ".join(f"{column} IS {value}" for column, value in zip(("seq", "code", "id", "amount"), literals, strict=True))
            database.do(f"INSERT INTO changes VALUES ({', '.join(literals)})" if sign == "+" else f"DELETE FROM changes WHERE {same}")
        folder.run()
        numbers = [row["seq"] for row in folder.rows("rejected.csv")] if (tmp_path / "rejected.csv").exists() else []
        found.append(f"{run}: {' '.join(sorted(numbers))}".strip())
        assert not folder.run().committed
    log = [[f"{row['epoch']} {row['op']}", *("" if row["data"].get(column) is None else str(row["data"][column]) for column in ("seq", "code", "id", "amount"))] for row in folder.log("changes")]
    assert log == [[cell.strip() for cell in line.split("|")] for line in wanted.strip().splitlines()], log
    assert not rejected or ", ".join(found) == rejected
    assert folder.violations() == []


WORDS = "op: code, ops: { append: [N], correct: [C], retract: [X] }"


@pytest.mark.parametrize("merge", [f"{WORDS}, cursor: seq", f"{WORDS}, version_field: amount, cursor: seq", "op: code, cursor: seq"], ids=["all events", "newest", "plain"])
def test_a_reject_whose_cursor_cannot_be_read_stays_when_it_is_not_asked_for(merge: str, tmp_path: Path) -> None:
    folder, database = Folder(tmp_path), Database.new("sqlite", tmp_path)
    folder.write("pipeline.yaml", TABLE.replace("MERGE", merge).replace("{ name: seq, type: int }", "{ name: seq, type: date }"))
    first, last = ("c", "d") if merge.startswith("op: code, cursor") else ("N", "X")
    database.do("CREATE TABLE changes (seq, code TEXT, id INTEGER, amount)")
    database.do(f"INSERT INTO changes VALUES ('2026-01-05', '{first}', 1, 10), ('2026-02-99', '{first}', 2, 20), (NULL, '{first}', 3, 'many')")
    assert folder.run().rejected == 2
    for number, day in enumerate(("2026-03-01", "2026-03-02", "2026-03-03"), 4):  # the text of the bad cell lies before these, so that it is not asked for again
        database.do(f"INSERT INTO changes VALUES ('{day}', '{first}', {number}, 40)")
        assert folder.run().rejected == 2, day
        assert "2026-02-99" in folder.text("rejected.csv")
    database.do(f"INSERT INTO changes VALUES ('2026-03-04', '{last}', 1, 50)")
    assert folder.run().rejected == 2
    assert [row["id"] for row in folder.rows("rows.csv")] == ["4", "5", "6"]
    assert folder.violations() == []


@pytest.mark.parametrize("merge", [f"{WORDS}, cursor: seq, overlap: 3", f"{WORDS}, version_field: seq, cursor: seq, overlap: 3", "op: code, cursor: seq, overlap: 3"], ids=["all events", "newest", "plain"])
def test_known_records_that_a_run_reads_do_not_grow_with_the_history(merge: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, database, counts = Folder(tmp_path), Database.new("sqlite", tmp_path), []
    folder.write("pipeline.yaml", TABLE.replace("MERGE", merge))
    first, between = "c" if merge.startswith("op: code, cursor") else "N", SourceMemory.between

    def counted(memory: SourceMemory, first: bytes, end: bytes, count: int | None) -> DataFrame | None:
        found = between(memory, first, end, count)
        counts.append(0 if found is None else found.count())
        return found

    monkeypatch.setattr(SourceMemory, "between", counted)
    database.do("CREATE TABLE changes (seq INTEGER, code TEXT, id INTEGER, amount INTEGER)")
    for run in range(4):
        numbers = range(run * 50, run * 50 + 50)
        database.do("INSERT INTO changes VALUES " + ", ".join(f"({number}, '{first}', {number}, 1)" for number in numbers))
        folder.run()
        assert len(folder.rows("rows.csv")) == 50 * run + 50
    assert counts == [4, 4, 4]  # what the overlap asks for again
    assert folder.violations() == []


@pytest.mark.parametrize(("kind", "collation"), [("sqlite", "NOCASE"), ("duckdb", "NOCASE"), pytest.param("postgresql", '"C"', marks=pytest.mark.servers)])
def test_a_cursor_of_texts_is_compared_by_bytes(kind: str, collation: str, tmp_path: Path) -> None:
    folder, database = Folder(tmp_path), Database.new(kind, tmp_path)
    folder.write("pipeline.yaml", TABLE.replace("MERGE", "op: code, cursor: seq").replace("{ name: seq, type: int }", "{ name: seq, type: string }"))
    database.do(f"CREATE TABLE changes (seq TEXT COLLATE {collation}, code TEXT, id INTEGER, amount INTEGER)")
    database.do("INSERT INTO changes VALUES ('Z1', 'c', 1, 10), ('a1', 'd', 1, NULL)")
    folder.run()
    database.do("INSERT INTO changes VALUES ('b1', 'c', 2, 20)")
    folder.run()
    assert [row["id"] for row in folder.rows("rows.csv")] == ["2"]  # in the collation of the column Z1 lies behind b1, and would be read again
    assert folder.violations() == []


def ordered(kind: str, folder: Folder, types: tuple[str, str], merge: str, *before: str) -> Database:
    """A table of changes whose cursor has one type in the pipeline, and another one in the database."""
    declared, column = types
    database = Database.new(kind, folder.path)
    folder.write("pipeline.yaml", TABLE.replace("MERGE", merge).replace("{ name: seq, type: int }", "{ name: seq, type: " + declared + " }"))
    database.do(*before, f"CREATE TABLE changes (seq {column}, code TEXT, id INTEGER, amount INTEGER)")
    return database


SERVER = pytest.mark.servers
OTHER_ORDERS = [
    ("sqlite", ("string", "INTEGER"), "10", "declare it as int or decimal"),
    ("sqlite", ("date_time", "TEXT"), "'2026-01-05T14:30:00+02:00', 'c', 0, 1), ('2026-01-05T13:00:00+00:00'", "in one form"),
    ("sqlite", ("date_time", "TEXT"), "'2026-01-05T14:30:00Z', 'c', 0, 1), ('2026-01-05T14:30:00.5Z'", "in one form"),
    ("duckdb", ("string", "BIGINT"), "10", "declare it as int or decimal"),
    ("duckdb", ("string", "ENUM ('new', 'done')"), "'new'", "CAST"),
    ("duckdb", ("int", "VARCHAR"), "'9'", "declare it as string"),
    pytest.param("postgresql", ("string", "bigint"), "10", "declare it as int or decimal", marks=SERVER),
    pytest.param("postgresql", ("string", "mood"), "'new'", "CAST", marks=SERVER),
    pytest.param("postgresql", ("date_time", "text"), "'2026-01-05T14:30:00'", "declare it as string", marks=SERVER),
]


@pytest.mark.parametrize(("kind", "types", "value", "way"), OTHER_ORDERS)
def test_a_cursor_that_the_database_orders_in_another_way_is_refused(kind: str, types: tuple[str, str], value: str, way: str, tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    database = ordered(kind, folder, types, "op: code, cursor: seq", *(["CREATE TYPE mood AS ENUM ('new', 'done')"] if "mood" in types else []))
    database.do(f"INSERT INTO changes VALUES ({value}, 'c', 1, 10)")
    with pytest.raises(StorageFailed, match="E605") as refused:
        folder.run()
    assert way in f"{refused.value} {refused.value.help}"
    [(line, place)] = [(at, text.index("cursor: seq") + 9) for at, text in enumerate(folder.text("pipeline.yaml").splitlines(), 1) if "cursor: seq" in text]
    assert refused.value.details == (f"at {folder.path / 'pipeline.yaml'}:{line}:{place}",)


KNOWN = [
    # the rows of a first run and of a second one; id 1 was taken back, and its record is not asked for again
    ("sqlite", ("date_time", "TEXT"), "500ms", ("'2026-01-05 14:30:00'", "'2026-01-05 14:30:01'")),
    ("duckdb", ("date_time", "DATE"), "1h", ("'2026-01-05'", "'2026-01-06'")),
    ("duckdb", ("date_time", "TIMESTAMP_S"), "500ms", ("'2026-01-05 14:30:00'", "'2026-01-05 14:30:01'")),
    ("duckdb", ("decimal, scale: 2", "DECIMAL(9,1)"), "0.06", ("1.1", "1.2")),
    ("duckdb", ("decimal, scale: 2", "BIGINT"), "0.5", ("9", "10")),
    pytest.param("postgresql", ("date_time", "DATE"), "1h", ("'2026-01-05'", "'2026-01-06'"), marks=SERVER),
    pytest.param("postgresql", ("decimal, scale: 2", "BIGINT"), "0.5", ("9", "10"), marks=SERVER),
    pytest.param("postgresql", ("int", "SMALLINT"), "0", ("9", "10"), marks=SERVER),
    pytest.param("postgresql", ("string", "CHAR(5)"), None, ("'b1'", "'b2'"), marks=SERVER),
]


@pytest.mark.parametrize(("kind", "types", "overlap", "values"), KNOWN)
def test_what_lies_before_the_overlap_is_not_read_again(kind: str, types: tuple[str, str], overlap: str | None, values: tuple[str, str], tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    database = ordered(kind, folder, types, "op: code, cursor: seq" + (f", overlap: {overlap}" if overlap else ""))
    first, last = values
    database.do(f"INSERT INTO changes VALUES ({first}, 'c', 1, 10), ({last}, 'd', 1, NULL)")
    folder.run()
    for number in (2, 3):
        database.do(f"INSERT INTO changes VALUES ({last}, 'c', {number}, 20)")
        folder.run()
        assert [row["id"] for row in folder.rows("rows.csv")] == [str(one) for one in range(2, number + 1)]
        assert not folder.run().committed
    assert folder.violations() == []


def test_times_with_one_offset_are_a_cursor_without_an_overlap(tmp_path: Path) -> None:
    """Texts of one length with one offset compare as the times do."""
    folder = Folder(tmp_path)
    database = ordered("sqlite", folder, ("date_time", "TEXT"), "op: code, cursor: seq")
    database.do("INSERT INTO changes VALUES ('2026-01-05T14:30:00+02:00', 'c', 1, 10), ('2026-01-05T15:00:00+02:00', 'd', 1, NULL)")
    folder.run()
    database.do("INSERT INTO changes VALUES ('2026-01-05T16:00:00+02:00', 'c', 2, 20)")
    folder.run()
    assert [row["id"] for row in folder.rows("rows.csv")] == ["2"]
    database.do("INSERT INTO changes VALUES ('2026-01-05T18:00:00Z', 'c', 3, 20)")
    with pytest.raises(StorageFailed, match=r"E605.*as 0000-00-00T00:00:00\+02:00 and as 0000-00-00T00:00:00Z"):
        folder.run()


def test_an_overlap_beyond_the_numbers_of_its_column_asks_for_all(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    database = ordered("duckdb", folder, ("int", "TINYINT"), "op: code, cursor: seq, overlap: 1000")
    database.do("INSERT INTO changes VALUES (9, 'c', 1, 10)")
    folder.run()
    database.do("INSERT INTO changes VALUES (-100, 'c', 2, 10)")
    folder.run()
    assert [row["id"] for row in folder.rows("rows.csv")] == ["1", "2"]


EVENTS = pytest.mark.parametrize("merge", [f"{WORDS}, cursor: seq", f"{WORDS}, version_field: seq, cursor: seq", "op: code, cursor: seq"], ids=["all events", "newest", "plain"])


@EVENTS
def test_a_reject_whose_cursor_cannot_be_read_goes_with_a_new_record_of_its_key(merge: str, tmp_path: Path) -> None:
    folder, first = Folder(tmp_path), "c" if merge.startswith("op: code, cursor") else "N"
    database = ordered("sqlite", folder, ("date", "TEXT"), merge)
    database.do(f"INSERT INTO changes VALUES ('2026-01-05', '{first}', 1, 10), ('2026-01-05', '{first}', 2, 10), ('2026-02-99', '{first}', 2, 20)")
    assert folder.run().rejected == 1
    database.do(f"INSERT INTO changes VALUES ('2026-01-06', '{first}', 3, 30)")
    assert folder.run().rejected == 1  # the record of id 2 that was read before repairs nothing
    database.do("UPDATE changes SET seq = '2026-02-09' WHERE seq = '2026-02-99'")
    assert folder.run().rejected == 0
    assert [(row["id"], row["amount"]) for row in folder.rows("rows.csv")] == [("1", "10"), ("2", "20"), ("3", "30")]
    assert not folder.run().committed
    assert folder.violations() == []


@EVENTS
def test_a_repaired_record_takes_its_reject_away_within_the_overlap(merge: str, tmp_path: Path) -> None:
    folder, first = Folder(tmp_path), "c" if merge.startswith("op: code, cursor") else "N"
    database = Database.new("sqlite", tmp_path)
    folder.write("pipeline.yaml", TABLE.replace("MERGE", merge + ", overlap: 5"))
    database.do("CREATE TABLE changes (seq INTEGER, code TEXT, id INTEGER, amount)")
    database.do(f"INSERT INTO changes VALUES (1, '{first}', 1, 10), (2, '{first}', 2, 'many'), (3, '{first}', 3, 'few'), (4, 'Q', 4, 40)")
    assert folder.run().rejected == 3
    database.do("UPDATE changes SET amount = 20 WHERE id = 2")
    assert folder.run().rejected == 2
    database.do("DELETE FROM changes WHERE id = 3", f"UPDATE changes SET code = '{first}' WHERE id = 4")
    assert folder.run().rejected == 0
    assert [row["id"] for row in folder.rows("rows.csv")] == ["1", "2", "4"]
    assert not folder.run().committed
    assert folder.violations() == []
