"""Corrections as code: any history of deliveries and of edits of the files ends as one full run, and each correction has its state."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from errata.core.diagnostics import PipelineErrors
from errata.core.failures import Exit, Usage
from errata.core.options import Correction, EngineOptions, RunOptions
from tests.support.examples import examples
from tests.support.pipelines import Folder, command, standing_in
from tests.support.workbooks import workbook

PIPELINE = """
pipeline: { name: books }
nodes:
  - type: source
    name: orders
    config:
      name: orders
      type: csv
      path: orders.csv
      merge: { strategy: snapshot, primary_key: [id] }
      schema:
        - { name: id, type: int }
        - { name: region, type: string }
        - { name: amount, type: decimal, precision: 10, scale: 2 }
  - type: corrections
    name: fixed
    input: orders
    config: { path: corrections/*, key: [id] }
  - type: aggregate
    name: totals
    input: fixed
    config: { group_by: [region], cxl: "emit total = sum(amount)\\nemit orders = count(*)" }
  - { type: output, name: all, input: fixed, config: { name: all, type: csv, path: all.csv } }
  - { type: output, name: sums, input: totals, config: { name: sums, type: csv, path: sums.csv } }
"""
HEADER = ("id", "region", "amount")
REGIONS, AMOUNTS = ("N", "S", "W"), ("1.00", "2.50", "10.00")


class Fix(NamedTuple):
    """A correction of a cell, or a retraction (no column)."""

    id: int
    column: str | None
    before: str | None = None
    after: str | None = None


def folder(path: Path, **options: Any) -> Folder:
    """A project without records and corrections."""
    made = Folder(path, **options)
    made.write("pipeline.yaml", PIPELINE)
    lay(made, {}, ())
    return made


def lay(made: Folder, records: Mapping[int, tuple[str, str]], fixes: tuple[Fix, ...]) -> None:
    """Write the delivery, and the corrections, of odd records as CSV."""
    made.write_csv("orders.csv", HEADER, [{"id": key, "region": region, "amount": amount} for key, (region, amount) in sorted(records.items())])
    entries = [
        {"key": one.id, "reason": "seen", **({"retract": True} if one.column is None else {"set": {one.column: {"from": one.before, "to": one.after}}})}
        for one in fixes if one.id % 2 == 0
    ]  # fmt: skip
    made.write("corrections/even.yaml", yaml.safe_dump(entries))
    rows = [
        {"id": one.id, "column": one.column, "from": one.before, "to": one.after, "retract": "yes" if one.column is None else "", "reason": "seen"}
        for one in fixes if one.id % 2
    ]  # fmt: skip
    made.write_csv("corrections/odd.csv", ("id", "column", "from", "to", "retract", "reason"), rows)


def corrected(records: Mapping[int, tuple[str, str]], fixes: tuple[Fix, ...]) -> dict[int, tuple[str, str]]:
    """The records as the corrections make them."""
    found = {key: dict(zip(HEADER[1:], values, strict=True)) for key, values in records.items()}
    for one in fixes:
        if one.id in found and one.column is not None and found[one.id][one.column] == one.before:
            found[one.id][one.column] = str(one.after)
    gone = {one.id for one in fixes if one.column is None}
    return {key: (row["region"], row["amount"]) for key, row in found.items() if key not in gone}


def state(records: Mapping[int, tuple[str, str]], one: Fix) -> str:
    """The state of a correction."""
    if one.id not in records:
        return "spent" if one.column is None else "dangling"
    value = None if one.column is None else records[one.id][HEADER.index(one.column) - 1]
    return "applied" if one.column is None or value == one.before else "spent" if value == one.after else "conflict"


records_of = st.dictionaries(st.integers(1, 6), st.tuples(st.sampled_from(REGIONS), st.sampled_from(AMOUNTS)), max_size=6)
cells = st.one_of(
    st.tuples(st.just("region"), st.sampled_from(REGIONS), st.sampled_from(REGIONS)), st.tuples(st.just("amount"), st.sampled_from(AMOUNTS), st.sampled_from(AMOUNTS)),
)  # fmt: skip
fixes_of = st.lists(st.builds(lambda key, cell: Fix(key, *cell) if cell else Fix(key, None), st.integers(1, 6), st.one_of(st.none(), cells)), max_size=6)


def consistent(fixes: list[Fix]) -> tuple[Fix, ...]:
    """The corrections without the ones that change nothing, or meet an earlier one."""
    kept: list[Fix] = []
    for one in fixes:
        meets = any(one.id == other.id and (one.column == other.column or None in (one.column, other.column)) for other in kept)
        if not meets and (one.column is None or one.before != one.after):
            kept.append(one)
    return tuple(kept)


@pytest.mark.property
@examples(6)
@given(st.lists(st.tuples(records_of, fixes_of), min_size=2, max_size=4))
def test_any_history_ends_as_a_full_run(tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[dict[int, tuple[str, str]], list[Fix]]]) -> None:
    made = folder(tmp_path_factory.mktemp("steps"))
    for records, drawn in steps:
        fixes = consistent(drawn)
        lay(made, records, fixes)
        made.run()
        wanted = corrected(records, fixes)
        assert {int(row["id"]): (row["region"], row["amount"]) for row in made.rows("all.csv")} == wanted
        shown = {(json.loads(str(row["key"]["id"])), row["column"] or None): row["state"] for row in made.load().corrections()}
        if records:  # without records no node of the pipeline runs
            assert shown == {(one.id, one.column): state(records, one) for one in fixes}
    whole = folder(tmp_path_factory.mktemp("whole"))
    lay(whole, records, fixes)
    whole.run()
    assert [made.text(name) for name in ("all.csv", "sums.csv")] == [whole.text(name) for name in ("all.csv", "sums.csv")]
    assert made.violations() == []


@pytest.mark.parametrize("engine", ["sail", pytest.param("spark", marks=pytest.mark.rarely_on_spark)])
def test_an_edit_touches_the_records_that_it_names(engine: str, tmp_path: Path) -> None:
    made = folder(tmp_path, engine=engine)
    records = dict.fromkeys(range(1, 7), ("N", "1.00"))
    lay(made, records, (Fix(1, "amount", "1.00", "2.50"), Fix(2, None)))
    made.run()
    lay(made, records, (Fix(1, "amount", "1.00", "10.00"), Fix(2, None), Fix(4, "region", "N", "S")))
    made.run()
    assert [(row["epoch"], row["op"], row["cause"], row["data"]) for row in made.log("fixed") if row["epoch"] == 2] == [
        (2, "-C", "correction", {"id": 1, "region": "N", "amount": 2.5}),
        (2, "+C", "correction", {"id": 1, "region": "N", "amount": 10}),
        (2, "-C", "correction", {"id": 4, "region": "N", "amount": 1}),
        (2, "+C", "correction", {"id": 4, "region": "S", "amount": 1}),
    ]  # fmt: skip
    assert made.text("sums.csv") == "region,total,orders\nN,13.00,4\nS,1.00,1\n"
    lay(made, {**records, 4: ("W", "1.00")}, ())
    made.run()
    assert made.text("sums.csv") == "region,total,orders\nN,5.00,5\nW,1.00,1\n"
    assert made.violations() == []


def test_an_edit_and_a_delivery_move_a_record_in_one_run(tmp_path: Path) -> None:
    made = folder(tmp_path)
    made.write("pipeline.yaml", PIPELINE.replace("corrections/*, key: [id]", "corrections/by-region.yaml, key: [region]"))
    made.write("corrections/by-region.yaml", "[{key: N, set: {amount: {from: 1, to: 2}}, reason: r}]")
    made.write("orders.csv", "id,region,amount\n1,N,1\n2,S,1\n")
    made.run()
    made.write("corrections/by-region.yaml", "[{key: N, set: {amount: {from: 1, to: 3}}, reason: r}]")
    made.write("orders.csv", "id,region,amount\n1,S,1\n2,N,1\n3,N,1\n")
    made.run()
    assert made.text("all.csv") == "id,region,amount\n1,S,1.00\n2,N,3.00\n3,N,3.00\n"
    assert [row["records"] for row in made.load().corrections()] == [2]
    assert made.violations() == []


def test_a_run_tells_what_does_not_hold_any_more(tmp_path: Path) -> None:
    made = folder(tmp_path)
    lay(made, {1: ("N", "1.00"), 2: ("N", "1.00"), 3: ("N", "1.00")}, (Fix(1, "region", "N", "S"), Fix(2, "region", "N", "S"), Fix(3, "region", "N", "S")))
    with standing_in(tmp_path):
        assert "W480" not in command("run", "pipeline.yaml", "--engine", "sail")[2]
        lay(made, {1: ("S", "1.00"), 2: ("W", "1.00")}, (Fix(1, "region", "N", "S"), Fix(2, "region", "N", "S"), Fix(3, "region", "N", "S")))
        stderr = command("run", "pipeline.yaml", "--engine", "sail", "--max-retract-share", "1")[2]
        assert [line for line in stderr.splitlines() if "W480" in line] == [
            "warning: W480: node 'fixed': 1 correction does not hold: the record says neither what it corrects nor what it should say (corrections/even.yaml:1)",
            "warning: W480: node 'fixed': 1 correction names a record that is not there (corrections/odd.csv:3)",
            "warning: W480: node 'fixed': 1 correction is spent: the source says the same by now (corrections/odd.csv:2)",
        ]
        assert "W480" not in command("run", "pipeline.yaml", "--engine", "sail")[2]


def test_why_names_the_correction(tmp_path: Path) -> None:
    made = folder(tmp_path)
    lay(made, {2: ("N", "1.00"), 3: ("S", "1.00")}, (Fix(2, "region", "N", "S"), Fix(3, "region", "N", "W")))
    made.run()
    rows = [row for row in made.load().why("sums", {"region": "S"}) if row["source"] == "fixed"]
    assert [(row["file"], row["row"], row["cause"], row["reason"], row["data"]) for row in rows] == [
        ("corrections/even.yaml", 1, "correction", "seen", {"id": "2", "column": "region", "from": "N", "to": "S"})
    ]


def test_a_saved_correction_is_applied_by_the_next_run(tmp_path: Path) -> None:
    made = folder(tmp_path)
    lay(made, {1: ("N", "1.00"), 2: ("N", "1.00")}, ())
    made.run()
    words = ("correct", "pipeline.yaml", "orders", "--key", "id=1", "--set", "amount=2.5", "--reason", "the shop called", "--save")
    with standing_in(tmp_path):
        code, text, _ = command(*words, "--dry-run")
        assert (code, (tmp_path / "corrections/manual.yaml").exists()) == (0, False)
        code, text, note = command(*words, "--author", "ana", "--ticket", "T-7")
        assert (code, note) == (0, "Added to corrections/manual.yaml; the next run applies it.\n")
        assert yaml.safe_load(text) == [
            {"key": {"id": 1}, "set": {"amount": {"from": "1.00", "to": "2.5"}}, "reason": "the shop called", "author": "ana", "ticket": "T-7"}
        ]
        assert command(*words)[0] == Exit.USAGE
        assert command("correct", "pipeline.yaml", "orders", "--key", "id=9", "--retract", "--reason", "r", "--save")[0] == Exit.USAGE
        assert command("correct", "pipeline.yaml", "orders", "--key", "id=2", "--retract", "--reason", "twice", "--save")[0] == 0
    made.run()
    assert made.text("all.csv") == "id,region,amount\n1,N,2.50\n"
    assert [row["state"] for row in made.load().corrections()] == ["applied", "applied"]


def test_a_correction_is_saved_behind_a_merge(tmp_path: Path) -> None:
    made = folder(tmp_path)
    source = PIPELINE[PIPELINE.index("  - type: source"):PIPELINE.index("  - type: corrections")]
    both = PIPELINE.replace(source, source + source.replace("orders", "returns") + "  - { type: merge, name: both, inputs: [orders, returns] }\n")
    made.write("pipeline.yaml", both.replace("input: orders", "input: both"))
    made.write("orders.csv", "id,region,amount\n1,N,1.00\n2,N,1.00\n")
    made.write("returns.csv", "id,region,amount\n2,S,7.00\n3,S,7.00\n")
    made.run()
    saved = made.load().save_correction(Correction("returns", {"id": "3"}, {"amount": "8"}, "counted again"))
    assert "from: '7.00'" in saved.text
    with pytest.raises(Usage, match="several records of 'both' have id=2"):
        made.load().save_correction(Correction("orders", {"id": "2"}, {"amount": "8"}, "counted again"))
    made.run()
    assert made.text("all.csv") == "id,region,amount\n1,N,1.00\n2,N,1.00\n2,S,7.00\n3,S,8.00\n"
    assert made.violations() == []


WRONG = {
    "{key: {ix: 1}, retract: true, reason: r}": "E481",
    "{key: x, retract: true, reason: r}": "E482",
    "{key: 1, set: {amuont: {from: 1, to: 2}}, reason: r}": "E482",
    "{key: 1, set: {amount: {from: 1, to: two}}, reason: r}": "E482",
    "{key: 1, set: {id: {from: 1, to: 2}}, reason: r}": "E482",
    "{key: 1, reason: r}": "E480",
    "{key: 1, retract: true, set: {amount: {from: 1, to: 2}}, reason: r}": "E480",
    "{key: 1, retract: true}": "CFG-002",
    "{key: 1, retract: true, reason: ''}": "CFG-004",
    "{key: 1, set: {amount: {from: 1}}, reason: r}": "CFG-002",
    "{key: 1, retract: true, reason: r, status: done}": "CFG-004",
    "{key: 2, retract: true, reason: again}": "E483",
    "7": "CFG-003",
}


@pytest.mark.parametrize("entry", WRONG)
def test_a_correction_that_fits_nothing_is_told_with_its_place(entry: str, tmp_path: Path) -> None:
    made = folder(tmp_path)
    made.write("corrections/even.yaml", f"- {{key: 2, retract: true, reason: r}}\n- {entry}\n")
    with pytest.raises(PipelineErrors) as errors:
        made.load()
    assert [(one.code, Path(one.file).name, one.line) for one in errors.value.diagnostics] == [(WRONG[entry], "even.yaml", 2)]


TABLES = {
    "id,column,from,to,reason\n1,amount,1,2,r,more\n": "line 2 has 6 cells",
    'id,column,from,to,reason\n1,amount,"1,2,r\n': "unexpected end of data",
    "id,column,from,to,reason\n1,amount,1,2,\n": "'reason'",
    "id,colum,from,to,reason\n1,amount,1,2,r\n": "E4",
    "id,column,from,reason\n1,amount,1,r\n": "no column 'to'",
    "id,column,from,to,reason\n1,amount,1\n": "line 2 has 3 cells",
    "id,column,from,to,reason,from\n1,amount,1,2,r,3\n": "'from' is there twice",
}


@pytest.mark.parametrize("text", TABLES)
def test_a_table_that_cannot_be_read_is_told(text: str, tmp_path: Path) -> None:
    made = folder(tmp_path)
    made.write("corrections/odd.csv", text)
    with pytest.raises(PipelineErrors, match=TABLES[text]):
        made.load()


def test_workbooks_are_read_by_rows(tmp_path: Path) -> None:
    made = folder(tmp_path)
    lay(made, {1: ("N", "1.00"), 2: ("N", "1.00")}, ())
    rows = [["id", "column", "from", "to", "retract", "reason"], [1, "amount", 1, 2.5, None, "r"], [2, None, None, None, "yes", "r"]]
    (made.path / "corrections/book.xlsx").write_bytes(workbook(rows))
    made.run()
    assert made.text("all.csv") == "id,region,amount\n1,N,2.50\n"
    assert [row["place"] for row in made.load().corrections()] == ["corrections/book.xlsx:2", "corrections/book.xlsx:3"]


def test_cells_keep_their_line_ends(tmp_path: Path) -> None:
    made = folder(tmp_path)
    made.write("orders.csv", 'id,region,amount\n1,"a\r\nb",1\n')
    made.write("corrections/odd.csv", 'id,column,from,to,reason\r\n1,region,"a\r\nb",N,r\r\n\r\n1,amount,1,2,r\r\n')
    made.run()
    assert made.text("all.csv") == "id,region,amount\n1,N,2.00\n"
    assert [row["place"] for row in made.load().corrections()] == ["corrections/odd.csv:2", "corrections/odd.csv:5"]


def test_unquoted_values_stay_as_they_are_written(tmp_path: Path) -> None:
    made = folder(tmp_path)
    made.write("pipeline.yaml", PIPELINE.replace("precision: 10", "precision: 38"))
    made.write("orders.csv", "id,region,amount\n1,N,12345678901234567.89\n2,007,1\n")
    entries = "- {key: 1, set: {amount: {from: 12345678901234567.89, to: 98765432109876543.21}}, reason: r}\n"
    made.write("corrections/even.yaml", entries + "- {key: 2, set: {region: {from: 007, to: 01234}, amount: {from: 1.00, to: 1.10}}, reason: r}\n")
    made.run()
    assert made.text("all.csv") == "id,region,amount\n1,N,98765432109876543.21\n2,01234,1.10\n"


@pytest.mark.parametrize(("changes", "correlated"), [({"amount": "abc"}, False), ({"id": "9"}, False), ({"region": "${HOME}"}, False), ({"region": "S"}, True)])
def test_what_the_next_run_would_refuse_is_not_saved(changes: dict[str, str], correlated: bool, tmp_path: Path) -> None:
    made = folder(tmp_path)
    made.write("pipeline.yaml", PIPELINE.replace("      schema:\n", "      correlation_key: region\n      schema:\n", 1) if correlated else PIPELINE)
    lay(made, {1: ("N", "1.00")}, ())
    made.run()
    with pytest.raises(Usage):
        made.load().save_correction(Correction("orders", {"id": "1"}, changes, "r"))
    assert not (made.path / "corrections/manual.yaml").exists()


def test_no_link_leads_out_of_the_folder(tmp_path: Path) -> None:
    made = folder(tmp_path / "project")
    (tmp_path / "secret.yaml").write_text("- TOPSECRET\n")
    (made.path / "corrections/link.yaml").symlink_to(tmp_path / "secret.yaml")
    with pytest.raises(PipelineErrors) as errors:
        made.load()
    assert "TOPSECRET" not in str(errors.value)


def test_a_saved_correction_goes_into_the_file_behind_a_link(tmp_path: Path) -> None:
    made = folder(tmp_path)
    lay(made, {1: ("N", "1.00")}, ())
    made.run()
    made.write("kept/manual.yaml", "# ours\n")
    (made.path / "corrections/manual.yaml").symlink_to("../kept/manual.yaml")
    made.load().save_correction(Correction("orders", {"id": "1"}, {"amount": "2"}, "r"))
    assert (made.path / "corrections/manual.yaml").is_symlink()
    assert made.text("kept/manual.yaml").startswith("# ours\n- ")
    made.run()
    assert made.text("all.csv") == "id,region,amount\n1,N,2.00\n"


def test_no_correction_is_saved_through_a_link_out_of_the_folder(tmp_path: Path) -> None:
    made = folder(tmp_path / "project")
    lay(made, {1: ("N", "1.00")}, ())
    made.run()
    loaded = made.load()
    (made.path / "corrections/manual.yaml").symlink_to(tmp_path / "other.yaml")
    with pytest.raises(Usage, match="outside"):
        loaded.save_correction(Correction("orders", {"id": "1"}, {"amount": "2"}, "r"))
    assert not (tmp_path / "other.yaml").exists()


def test_two_that_save_at_once_lose_nothing(tmp_path: Path) -> None:
    made = folder(tmp_path)
    lay(made, dict.fromkeys(range(1, 5), ("N", "1.00")), ())
    made.run()
    loaded = [made.load() for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda at: loaded[at].save_correction(Correction("orders", {"id": str(at + 1)}, {"amount": "2"}, "r")), range(4)))
    assert sorted(entry["key"]["id"] for entry in yaml.safe_load(made.text("corrections/manual.yaml"))) == [1, 2, 3, 4]
    with pytest.raises(Usage, match="corrected in"):
        loaded[0].save_correction(Correction("orders", {"id": "2"}, {"amount": "3"}, "r"))
    loaded[0].save_correction(Correction("orders", {"id": "2"}, {"region": "S"}, "r"))


def test_a_broken_correction_is_all_that_is_told(tmp_path: Path) -> None:
    made = folder(tmp_path)
    closed = "closed: 'region < \"B\"'"
    booked = "closed: { when: 'region < \"B\"', late: book, into: { region: C }, figures: [amount] }"
    made.write("pipeline.yaml", PIPELINE.replace("path: all.csv", f"path: all.csv, {booked}").replace("path: sums.csv", f"path: sums.csv, {closed}"))
    made.write("corrections/a.yaml", "- {key: x, retract: true, reason: r}\n")
    with pytest.raises(PipelineErrors) as errors:
        made.load()
    assert [one.code for one in errors.value.diagnostics if one.is_error] == ["E482"]


@pytest.mark.parametrize(
    ("record", "before", "word"),
    [("1", "true", "conflict"), ("true", "1", "conflict"), ('[{"a":1}]', "[{a: true}]", "conflict"), ("1", "1", "applied"), ("1.0", "1", "applied"), ("[1,2.0]", "[1, 2]", "applied"), ('"1"', "1", "conflict")],
)
def test_values_of_several_types_are_told_apart(record: str, before: str, word: str, tmp_path: Path) -> None:
    made = Folder(tmp_path)
    made.write("pipeline.yaml", OF_ANY_TYPE)
    made.write("in.jsonl", f'{{"id": 1, "v": {record}}}\n')
    made.write("corrections/a.yaml", f"- {{key: 1, set: {{v: {{from: {before}, to: 9}}}}, reason: r}}\n")
    made.run()
    assert [row["state"] for row in made.load().corrections()] == [word]
    assert (made.rows("out.csv")[0]["v"] == "9") == (word == "applied")


OF_ANY_TYPE = """
pipeline: { name: typed }
nodes:
  - type: source
    name: records
    config: { name: records, type: json, path: in.jsonl, options: { format: ndjson }, merge: { strategy: snapshot, primary_key: [id] }, schema: [{ name: id, type: int }, { name: v, type: any }] }
  - { type: corrections, name: fixed, input: records, config: { path: corrections/*, key: [id] } }
  - { type: output, name: out, input: fixed, config: { name: out, type: csv, path: out.csv } }
"""


@pytest.mark.parametrize("text", ["[]\n", "  - {key: 2, retract: true, reason: r}\n", "- {key: 2, retract: true, reason: r}\n...\n"])
def test_a_file_that_cannot_be_extended_stays_as_it_is(text: str, tmp_path: Path) -> None:
    made = folder(tmp_path)
    lay(made, {1: ("N", "1.00"), 2: ("N", "1.00")}, ())
    made.run()
    made.write("corrections/manual.yaml", text)
    with pytest.raises(Usage, match="cannot be extended"):
        made.load().save_correction(Correction("orders", {"id": "1"}, {}, "r"))
    assert made.text("corrections/manual.yaml") == text


def test_a_source_with_expectations_is_corrected_too(tmp_path: Path) -> None:
    made = folder(tmp_path)
    lay(made, {1: ("N", "1.00")}, ())
    made.write("pipeline.yaml", PIPELINE.replace("    config:\n      name: orders\n", "    expect: [{ not_null: [region], severity: reject }]\n    config:\n      name: orders\n", 1))
    made.run()
    made.load().save_correction(Correction("orders", {"id": "1"}, {"amount": "2"}, "r"))
    made.run()
    assert made.text("all.csv") == "id,region,amount\n1,N,2.00\n"


def test_drafts_wait_and_withdrawn_ones_make_room(tmp_path: Path) -> None:
    made = folder(tmp_path)
    lay(made, {2: ("N", "1.00")}, ())
    made.write(
        "corrections/even.yaml",
        "- {key: 2, set: {region: {from: N, to: W}}, reason: r, status: withdrawn}\n- {key: 2, set: {region: {from: N, to: S}}, reason: r}\n- {key: 2, retract: true, reason: r, status: draft}\n",
    )
    made.run()
    assert made.text("all.csv") == "id,region,amount\n2,S,1.00\n"
    assert [row["state"] for row in made.load().corrections()] == ["withdrawn", "applied", "draft"]


def test_no_output_writes_over_the_files(tmp_path: Path) -> None:
    made = folder(tmp_path)
    made.write("corrections/even.yaml", "- {key: 2, retract: true, reason: r}\n")
    made.write("pipeline.yaml", PIPELINE.replace("path: all.csv", "path: corrections/even.yaml"))
    with pytest.raises(PipelineErrors, match="E349"):
        made.load()


def test_huge_numbers_are_listed_with_all_their_digits(tmp_path: Path) -> None:
    made = folder(tmp_path)
    lay(made, {1: ("N", "98765432109876543.21")}, ())
    made.write("pipeline.yaml", PIPELINE.replace("precision: 10", "precision: 30"))
    made.write("corrections/one.yaml", "- {key: 1, set: {amount: {from: 98765432109876543.21, to: 98765432109876543.22}}, reason: r}\n")
    made.run()
    with standing_in(tmp_path):
        for form in ("text", "csv", "json"):
            text = command("corrections", "pipeline.yaml", "--format", form, "--wide")[1]
            assert "98765432109876543.21" in text
            assert "98765432109876543.22" in text


def test_a_cell_of_a_table_may_be_long(tmp_path: Path) -> None:
    made = folder(tmp_path)
    long = "x" * 200_000
    lay(made, {1: ("N", "1.00")}, (Fix(1, "region", "N", long),))
    made.run()
    assert made.rows("all.csv") == [{"id": "1", "region": long, "amount": "1.00"}]


SAIL = RunOptions(EngineOptions("sail"))
TYPED = """
pipeline: { name: typed, date_formats: ["%d.%m.%Y"] }
nodes:
  - type: source
    name: orders
    config:
      name: orders
      type: json
      path: orders.json
      merge: { strategy: snapshot, primary_key: [id] }
      schema: [{ name: id, type: int }, { name: day, type: date }, { name: at, type: date_time }, { name: tags, type: array }, { name: extra, type: map }, { name: some, type: any }, { name: n, type: float }]
  - { type: corrections, name: fixed, input: orders, config: { path: "corrections/*.yaml", key: [id] } }
  - type: transform
    name: counted
    input: fixed
    config: { cxl: "emit ratio = 10 / n.to_int()" }
  - { type: output, name: all, input: fixed, config: { name: all, type: json, path: all.json } }
  - { type: output, name: ratios, input: counted, config: { name: ratios, type: csv, path: ratios.csv, include_unmapped: false } }
error_handling: { strategy: continue, dlq: { path: rejected.csv } }
"""


@pytest.fixture
def typed(tmp_path: Path) -> Folder:
    made = Folder(tmp_path)
    made.write("pipeline.yaml", TYPED)
    made.write("orders.json", json.dumps([{"id": 1, "day": "31.01.2026", "at": "2026-01-31T10:00:00", "tags": ["a"], "extra": {"k": 1}, "some": 1, "n": 1.5}]))
    made.run()
    return made


@pytest.mark.parametrize("saved", [False, True])
def test_a_manual_correction_reads_values_as_files_are_read(typed: Folder, saved: bool) -> None:
    given = {"day": "01.02.2026", "at": "2026-02-01T11:00:00Z", "tags": '["b", 2]', "extra": '{"k": [2]}', "some": "word", "n": ""}
    correction = Correction("orders", {"id": "1"}, given, "r")
    if saved:
        typed.load().save_correction(correction)
        typed.run()
    else:
        typed.load().correct(correction, SAIL)
    [row] = json.loads(typed.text("all.json"))
    assert row == {"id": 1, "day": "2026-02-01", "at": "2026-02-01T11:00:00", "tags": ["b", 2], "extra": {"k": [2]}, "some": "word", "n": ""}


WRONG_VALUES = (
    ("day", "02/30/2026", "column 'day' is date: '02/30/2026' cannot be read as one"), ("tags", "a, b", "column 'tags' is array: 'a, b' cannot be read as one"), ("tags", '{"a": 1}', "is array"),
    ("extra", "[1]", "is map"), ("n", "many", "column 'n' is float: 'many' cannot be read as one"),
)  # fmt: skip


def test_a_manual_correction_with_another_type_is_refused(typed: Folder) -> None:
    for column, text, message in WRONG_VALUES:
        correction = Correction("orders", {"id": "1"}, {column: text}, "r")
        with pytest.raises(Usage, match=re.escape(message)):
            typed.load().correct(correction, SAIL)
        with pytest.raises(Usage, match=re.escape(message)):
            typed.load().save_correction(correction)
    typed.write("corrections/one.yaml", yaml.safe_dump([{"key": at, "set": {column: {"from": None, "to": text}}, "reason": "r"} for at, (column, text, _) in enumerate(WRONG_VALUES)]))
    with pytest.raises(PipelineErrors) as errors:
        typed.load()
    assert [one.code for one in errors.value.diagnostics] == ["E482"] * len(WRONG_VALUES)


def test_a_trial_says_what_it_would_reject(typed: Folder) -> None:
    words = ("correct", "pipeline.yaml", "orders", "--key", "id=1", "--set", "n=0.5", "--reason", "r", "--quiet")
    with standing_in(typed.path):
        code, _, stderr = command(*words, "--dry-run")
        assert code == Exit.REJECTED
        assert stderr == "1 record would be rejected (counted: division by zero).\n"
        assert command(*words)[0] == Exit.REJECTED
        code, _, stderr = command("correct", "pipeline.yaml", "orders", "--key", "id=1", "--set", "day=2026-02-02", "--reason", "r", "--dry-run", "--quiet")
        assert (code, stderr) == (Exit.REJECTED, "1 record is rejected, as before.\n")
