"""Delta tables as outputs: after every run they hold exactly the live rows, or all op rows; killed runs, other writers and logic edits included."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake
from hypothesis import given
from hypothesis import strategies as st

from errata.core.options import EngineOptions
from errata.inspect.explain import explain
from storage import durable
from tests.invariants.test_crashes import steps_of
from tests.support.examples import examples
from tests.support.killing import Died, dies_at
from tests.support.pipelines import Folder, command, limited, standing_in

PIPELINE = """\
pipeline: {name: tables}
nodes:
  - type: source
    name: rows
    config:
      name: rows
      type: csv
      path: rows.csv
      schema: [{name: grp, type: string}, {name: "odd name", type: float}, {name: day, type: date}]
  - {type: aggregate, name: sums, input: rows, config: {group_by: [grp], cxl: "emit n = count(*)\\nemit last_day = max(day)\\n"}}
  - {type: output, name: all, input: rows, config: {name: all, type: delta, path: out/all}}
  - {type: output, name: totals, input: sums, config: {name: totals, type: delta, path: out/totals}}
  - {type: output, name: told, input: rows, config: {name: told, type: delta, path: out/told, options: {mode: changelog}}}
error_handling: {strategy: continue}
"""
HEADER = ("grp", "odd name", "day")
Row = tuple[str, str, str]

rows = st.tuples(st.sampled_from(["a", "b", ""]), st.sampled_from(["0", "-0.0", "1.5", "", "nan"]), st.sampled_from(["2024-01-05", ""]))
versions = st.lists(st.lists(rows, max_size=5), min_size=2, max_size=4)


def project(place: str | Path, engine: str = "sail") -> Folder:
    folder = Folder(Path(place), engine)
    folder.write("pipeline.yaml", PIPELINE)
    return folder


def lay_out(folder: Folder, records: list[Row]) -> None:
    folder.write_csv("rows.csv", HEADER, [dict(zip(HEADER, record, strict=True)) for record in records])


def cell(value: Any) -> str:
    """A value of a table so that two are the same text exactly where they are the same value."""
    return "" if value is None else value.isoformat() if hasattr(value, "isoformat") else repr(value) if isinstance(value, float) else str(value)


def content(folder: Folder, name: str) -> list[tuple[str, ...]]:
    found = pa.table(DeltaTable(str(folder.path / "out" / name)).scan())
    return [tuple(cell(value) for value in row.values()) for row in found.to_pylist()]


def as_values(record: Row) -> tuple[str, ...]:
    group, number, day = record
    return (group, repr(float(number)) if number else "", day)


def check(folder: Folder, records: list[Row]) -> None:
    standing = Counter(map(as_values, records))
    assert Counter(content(folder, "all")) == standing
    groups: dict[str, list[str]] = {}
    for group, _, day in records:
        groups.setdefault(group, []).append(day)
    assert sorted(content(folder, "totals")) == sorted((group, str(len(days)), max(days)) for group, days in groups.items())
    total: Counter[Any] = Counter()
    events = sorted(content(folder, "told"), key=lambda row: int(row[0]))
    for _, op, _, _, *data in events:
        total[tuple(data)] += 1 if op in ("0", "3") else -1
    assert +total == standing
    assert [int(row[0]) for row in events] == list(range(len(events)))


@given(history=versions)
@examples(24, 4)
def test_after_every_run_the_tables_hold_what_stands(history: list[list[Row]]) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = project(place)
        for records in history:
            lay_out(folder, records)
            folder.run()
            check(folder, records)
            before = DeltaTable(str(folder.path / "out/all")).version()
            assert not folder.run().committed
            assert DeltaTable(str(folder.path / "out/all")).version() == before


FIRST: list[Row] = [("a", "1.5", "2024-01-05"), ("a", "1.5", "2024-01-05"), ("b", "", "")]
SECOND: list[Row] = [("a", "1.5", "2024-01-05"), ("b", "nan", "2024-02-01"), ("c", "-0.0", "")]


@pytest.mark.parametrize("engine", ["sail", "spark"])
def test_two_versions_on_both_engines(tmp_path: Path, engine: str) -> None:
    folder = project(tmp_path, engine)
    for records in (FIRST, SECOND, FIRST):
        lay_out(folder, records)
        folder.run()
        check(folder, records)
    last = DeltaTable(str(tmp_path / "out/all")).history(1)[0]
    assert last["operation"] == "WRITE"
    assert '"epoch": 3' in last["userMetadata"]


@pytest.mark.deep
def test_every_step_of_a_second_run_may_be_the_last(tmp_path: Path) -> None:
    ready = project(tmp_path / "ready")
    lay_out(ready, FIRST)
    ready.run()
    lay_out(ready, SECOND)
    copy = Folder(tmp_path / "copy")
    shutil.copytree(ready.path, copy.path)
    steps = [(number, name) for number, name in steps_of(copy) if name == "append:ledger" or name.partition(":")[2] in ("all", "totals", "told")]
    assert [name for _, name in steps] == ["append:ledger", "merge:all", "merge:totals", "append:told"]
    for number, name in steps:
        for side in ("before", "after") if name in ("append:ledger", "merge:all") else ("after",):
            shutil.rmtree(copy.path)
            shutil.copytree(ready.path, copy.path)
            with pytest.raises(Died), durable.probing(dies_at(number, side)):
                copy.run()
            if name != "append:ledger":
                lay_out(copy, SECOND)
            copy.run()
            check(copy, SECOND)
            assert copy.load().head_epoch() == 2


def run_command(folder: Folder, *words: str) -> tuple[int, str]:
    with standing_in(folder.path):
        code, _, stderr = command(*words)
    return code, stderr


def test_a_table_that_somebody_else_wrote_is_refused_and_one_that_somebody_changed_is_written_anew(tmp_path: Path) -> None:
    folder = project(tmp_path)
    lay_out(folder, FIRST)
    write_deltalake(str(tmp_path / "out/all"), pa.table({"x": [1]}))
    code, stderr = run_command(folder, "run", "pipeline.yaml")
    assert (code, "exists and was not written by this pipeline" in stderr) == (4, True)
    assert run_command(folder, "run", "pipeline.yaml", "--force")[0] == 0
    check(folder, FIRST)
    for name in ("all", "told"):
        DeltaTable(str(tmp_path / "out" / name)).delete("grp = 'a'")
    code, stderr = run_command(folder, "run", "pipeline.yaml")
    assert (code, stderr.count("somebody else changed")) == (0, 2)
    check(folder, FIRST)
    DeltaTable(str(tmp_path / "out/all")).optimize.compact()
    before = DeltaTable(str(tmp_path / "out/all")).version()
    assert run_command(folder, "run", "pipeline.yaml")[0] == 0
    assert DeltaTable(str(tmp_path / "out/all")).version() == before
    shutil.rmtree(tmp_path / "out/totals")
    assert run_command(folder, "run", "pipeline.yaml")[0] == 0
    check(folder, FIRST)


def test_refresh_revert_and_edited_logic(tmp_path: Path) -> None:
    folder = project(tmp_path)
    for records in (FIRST, SECOND):
        lay_out(folder, records)
        folder.run()
    assert run_command(folder, "revert", "pipeline.yaml", "--to", "1")[0] == 0
    check(folder, FIRST)
    assert run_command(folder, "run", "pipeline.yaml", "--full-refresh")[0] == 0
    check(folder, SECOND)
    folder.write("pipeline.yaml", PIPELINE.replace("emit last_day = max(day)", "emit last_day = max(day)\\nemit more = 1"))
    assert run_command(folder, "run", "pipeline.yaml")[0] == 0
    assert sorted(content(folder, "totals")) == [("a", "1", "2024-01-05", "1"), ("b", "1", "2024-02-01", "1"), ("c", "1", "", "1")]


def test_outputs_may_get_other_names(tmp_path: Path) -> None:
    folder = project(tmp_path)
    lay_out(folder, [("a", "1.5", "")])
    folder.run()
    renamed = PIPELINE.replace("output, name: all,", "output, name: whole,").replace("output, name: told,", "output, name: changes,")
    for number, text in enumerate((renamed, PIPELINE), 2):
        folder.write("pipeline.yaml", text)
        lay_out(folder, records := [("a", "1.5", "")] * number)
        folder.run()
        check(folder, records)
        assert folder.violations() == []


def test_an_output_may_take_another_ones_table_and_a_moved_table_may_come_back(tmp_path: Path) -> None:
    """Without `if_exists` and `--force`: this pipeline made everything at either place."""
    folder = project(tmp_path)
    lay_out(folder, FIRST)
    folder.run()
    moved = PIPELINE.replace("out/all", "out/elsewhere")
    for number, text in enumerate((exchanged(PIPELINE), moved, PIPELINE), 2):
        folder.write("pipeline.yaml", text)
        lay_out(folder, records := [("a", "1.5", "")] * number)
        folder.run()
    check(folder, records)


def exchanged(pipeline: str) -> str:
    """The pipeline with two tables at each other's place."""
    return pipeline.replace("out/all", "out/none").replace("out/totals", "out/all").replace("out/none", "out/totals")


def test_a_pipeline_reads_what_another_wrote(tmp_path: Path) -> None:
    """The tables of one pipeline as the source of the next: cost and rows follow the change."""
    folder = project(tmp_path)
    after = Folder(tmp_path / "out")
    after.write(
        "pipeline.yaml",
        "pipeline: {name: after}\nnodes:\n"
        "  - {type: source, name: totals, config: {name: totals, type: delta, path: totals, merge: {strategy: snapshot, primary_key: [grp]},"
        " schema: [{name: grp, type: string}, {name: n, type: int}]}}\n"
        "  - {type: output, name: one, input: totals, config: {name: one, type: csv, path: one.csv}}\n",
    )
    for records, rows_ in ((FIRST, "a,2,2024-01-05\nb,1,\n"), (SECOND, "a,1,2024-01-05\nb,1,2024-02-01\nc,1,\n")):
        lay_out(folder, records)
        folder.run()
        after.run()
        assert after.text("one.csv") == "grp,n,last_day\n" + rows_


def test_a_preview_of_what_is_no_text_is_json_lines(tmp_path: Path) -> None:
    folder = project(tmp_path)
    folder.write("pipeline.yaml", PIPELINE.split("  - {type: output, name: totals", maxsplit=1)[0] + "error_handling: {strategy: continue}\n")
    lay_out(folder, FIRST)
    with standing_in(tmp_path):
        code, shown, _ = command("run", "pipeline.yaml", "--dry-run", "-n", "1")
    assert (code, shown) == (0, '{"grp":"a","odd name":1.5,"day":"2024-01-05"}\n')
    assert not (tmp_path / "out").exists()


def test_the_op_rows_of_an_epoch_may_come_in_batches(tmp_path: Path) -> None:
    folder = project(tmp_path)
    for records in ([("a", "1.5", ""), ("b", "nan", "2024-01-05"), ("b", "nan", "2024-01-05")], [("b", "nan", "2024-01-05"), ("c", "0", "")], []):
        lay_out(folder, records)
        with limited(driver_rows=0):
            folder.run()
        check(folder, records)
    offsets = [int(row[0]) for row in content(folder, "told")]
    assert sorted(offsets) == list(range(len(offsets)))


UNDECLARED = """\
pipeline: {name: tables}
nodes:
  - {type: source, name: rows, config: {name: rows, type: csv, path: rows.csv, schema: [{name: grp, type: string}, {name: size, type: float}]}}
  - {type: output, name: all, input: rows, config: {name: all, type: delta, path: out/all, exclude: [note]}}
"""


@pytest.mark.parametrize(
    ("before", "after", "stay"),
    [
        (["a,1,x", "a,1,y", "a,1,x"], ["a,1,y"], [("a", "1.0")]),
        (["a,-0.0,x", "a,0,x", "a,0,y"], ["a,0,x", "a,0,y"], [("a", "0.0")] * 2),
        (["a,-0.0,x", "a,0,x"], ["a,-0.0,x", "a,-0.0,y"], [("a", "-0.0")] * 2),
        (["a,nan,x", "a,nan,y", "a,,x"], ["a,nan,y"], [("a", "nan")]),
    ],
    ids=["undeclared", "minus zero goes", "zero goes", "no number"],
)
def test_rows_stay_that_a_table_finds_equal_to_one_that_went(tmp_path: Path, before: list[str], after: list[str], stay: list[tuple[str, str]]) -> None:
    """Rows that differ in a field that is not written, or in the sign of a zero, which Delta's `=` does not see."""
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", UNDECLARED)
    for lines in (before, after):
        folder.write("rows.csv", "\n".join(["grp,size,note", *lines, "b,5,z", ""]))
        folder.run()
    assert sorted(content(folder, "all")) == [*stay, ("b", "5.0")]


def test_explain_says_what_a_change_costs_a_table(tmp_path: Path) -> None:
    folder = project(tmp_path)
    plan = explain(folder.load().plan, "text")
    assert plan.count("a change costs: the changed rows, and the files of the table that hold rows which go") == 2
    assert plan.count("a change costs: the changed rows\n") == 1


def test_a_table_that_has_not_what_it_was_given_is_written_anew(tmp_path: Path) -> None:
    """Somebody put other rows under the mark of the last run."""
    folder = project(tmp_path)
    lay_out(folder, FIRST)
    folder.run()
    place = str(tmp_path / "out/all")
    mark = DeltaTable(place).history(1)[0]["userMetadata"]
    DeltaTable(place).delete("grp = 'a'", commit_properties=CommitProperties(custom_metadata={"userMetadata": mark}))
    lay_out(folder, SECOND)
    code, stderr = run_command(folder, "run", "pipeline.yaml")
    assert (code, "has not the rows that it was given; it is written anew" in stderr) == (0, True)
    check(folder, SECOND)


@pytest.mark.parametrize(("length", "anew"), [(10, False), (4_000, True)])
def test_a_table_is_written_anew_where_changes_take_much_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, length: int, anew: bool) -> None:
    """A hundred changed rows: texts of 10 bytes are merged within 100 kB, and texts of 4,000 bytes are not."""
    monkeypatch.setattr("errata.outputs.delta_table.MOST_BYTES", 100_000)
    folder = project(tmp_path)
    for text in ("x", "y"):
        lay_out(folder, records := [(f"{number} {text * length}", "1", "") for number in range(100)])
        folder.run()
    check(folder, records)
    last = DeltaTable(str(tmp_path / "out/all")).history(1)[0]
    assert (last["operationParameters"]["mode"] == "Overwrite") == anew


def test_a_change_data_feed_that_a_table_was_given_holds(tmp_path: Path) -> None:
    folder = project(tmp_path)
    lay_out(folder, FIRST)
    folder.run()
    place = str(tmp_path / "out/all")
    DeltaTable(place).alter.set_table_properties({"delta.enableChangeDataFeed": "true"})
    lay_out(folder, SECOND)
    folder.run()
    check(folder, SECOND)
    feed = pa.table(DeltaTable(place).load_cdf(starting_version=2)).to_pylist()
    came, went = (Counter(tuple(cell(row[name]) for name in HEADER) for row in feed if row["_change_type"] == kind) for kind in ("insert", "delete"))
    first, second = (Counter(map(as_values, records)) for records in (FIRST, SECOND))
    assert (came - went, went - came) == (second - first, first - second)


FORMS = ("two", "retract", "upsert", "single", "debezium", "flink")
IN_ALL_FORMS = """\
pipeline: {name: forms}
nodes:
  - type: source
    name: rows
    config:
      name: rows
      type: csv
      path: rows.csv
      merge: {strategy: snapshot, primary_key: [id]}
      correlation_key: grp
      schema: [{name: id, type: int}, {name: grp, type: string}, {name: n, type: int}]
  - {type: transform, name: shares, input: rows, config: {cxl: "emit share = FACTOR / (n - 1)"}}
  - {type: output, name: live, input: shares, config: {name: live, type: delta, path: out/live}}
""" + "".join(
    f"  - {{type: output, name: {form}, input: shares, config: {{name: {form}, type: delta, path: out/{form}, options: {{mode: changelog, form: {form}}}}}}}\n" for form in FORMS
) + "error_handling: {strategy: continue, dlq: {path: out/rejected.csv}}\n"  # fmt: skip


def content_in(folder: Folder, form: str) -> dict[int, tuple[Any, ...]]:
    """Live rows by id after all op rows of a table. Each retraction equals a live row."""
    standing: dict[int, tuple[Any, ...]] = {}
    names = ("id", "grp", "n", "share")
    for event in sorted(pa.table(DeltaTable(str(folder.path / "out" / form)).scan()).to_pylist(), key=lambda event: int(event["offset"])):
        row, taken = tuple(event[name] for name in names), event.get("old_id")
        if event["op"] in (1, 2, "-U", "-D") and taken is None:
            assert standing.pop(event["id"]) == row
            continue
        if taken is not None:
            assert standing.pop(taken) == tuple(event[f"old_{name}"] for name in names)
        if event["id"] is not None:
            assert form == "upsert" or event["id"] not in standing
            standing[event["id"]] = row
    return standing


def test_the_op_rows_of_every_form_lead_to_what_stands_through_rollback_and_edited_logic(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    failing = [(1, "a", 3), (2, "a", 1), (3, "b", 2)]
    history = [
        (failing, 6.0), ([(1, "a", 3), (2, "a", 4), (3, "b", 3)], 6.0), ([(1, "a", 3), (2, "a", 4), (3, "b", 3)], 12.0),
        ([(1, "a", 3), (2, "a", 4), (3, "b", 1), (4, "c", 2)], 12.0), ([(2, "a", 7), (4, "c", 2)], 12.0),
    ]  # fmt: skip
    for records, factor in history:
        folder.write("pipeline.yaml", IN_ALL_FORMS.replace("FACTOR", str(factor)))
        folder.write_csv("rows.csv", ("id", "grp", "n"), [dict(zip(("id", "grp", "n"), map(str, record), strict=True)) for record in records])
        run_command(folder, "run", "pipeline.yaml")
        broken = {group for _, group, n in records if n == 1}
        expected = {id_: (id_, group, n, factor / (n - 1)) for id_, group, n in records if group not in broken}
        live = pa.table(DeltaTable(str(tmp_path / "out/live")).scan()).to_pylist()
        assert {row["id"]: tuple(row.values()) for row in live} == expected
        assert {form: content_in(folder, form) for form in FORMS} == dict.fromkeys(FORMS, expected)
    assert run_command(folder, "verify", "pipeline.yaml")[0] == 0


def test_op_rows_that_were_published_stay_where_a_base_lies_behind_them_and_a_column_comes(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", """\
pipeline: { name: p }
nodes:
  - { type: source, name: s, config: { name: s, type: csv, path: in.csv, merge: { strategy: snapshot, primary_key: [id] }, schema: [{ name: id, type: int }, { name: v, type: int }] } }
  - { type: output, name: out, input: s, config: { name: out, type: delta, path: out, options: { mode: changelog } } }
""")
    for value in (1, 2, 3):
        folder.write("in.csv", f"id,v\n1,{value}\n")
        folder.run()
    list(folder.load().compact(3, EngineOptions("sail")))
    folder.write("in.csv", "id,v\n1,4\n")
    folder.run()
    before = DeltaTable(folder.path / "out").to_pyarrow_table().sort_by("offset").to_pylist()
    assert [row["v"] for row in before] == [1, 1, 2, 2, 3, 3, 4]
    folder.write("in.csv", "id,v,x\n1,5,new\n")
    folder.run()
    after = DeltaTable(folder.path / "out").to_pyarrow_table().sort_by("offset").to_pylist()
    assert [{name: value for name, value in row.items() if name != "x"} for row in after[: len(before)]] == before
    assert [(row["offset"], row["v"], row["x"]) for row in after[len(before) :]] == [(7, 4, None), (8, 5, "new")]
