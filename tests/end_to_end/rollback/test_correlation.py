"""Rollback: records fail at random places; outputs and DLQ follow from the surviving records, in one run and spread over several."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from errata.core.failures import Stopped
from errata.core.options import EngineOptions, RunOptions
from tests.support.examples import examples
from tests.support.pipelines import Folder, command, limited
from tests.support.rollback_model import HEADER, Expected, Files, expected, pipeline

NAMES = ("shop-a.csv", "shop-b.csv", "web-a.csv")
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)


def record(number: int) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({
        "id": st.just(number), "sale": st.sampled_from([None, 1, 1, 2, 3, 4, 5]), "dept": st.sampled_from(["toys", "books", "maps", "skip"]),
        "qty": st.sampled_from(["1", "2", "3", "7", "12", "30", "bad"]), "k": st.sampled_from([1, 3, 7, 7, None, 0, "x"]),
    })  # fmt: skip


@st.composite
def histories(draw: st.DrawFn) -> list[Files]:
    """Two versions of three files: records come, go, are corrected, swap places; files come and go."""
    numbers = iter(range(1, 1000))
    files = {name: [draw(record(next(numbers))) for _ in range(draw(st.integers(1, 5)))] for name in NAMES}
    before: Files = {name: list(rows) for name, rows in files.items()}
    for _ in range(draw(st.integers(1, 4))):
        _change(draw, files, numbers)
    return [before, files]


def _change(draw: st.DrawFn, files: dict[str, list[dict[str, Any]]], numbers: Any) -> None:
    name = draw(st.sampled_from(NAMES))
    rows = files.setdefault(name, [])
    kind = draw(st.sampled_from(["insert", "insert", "remove", "correct", "correct", "swap", "file"]))
    at = draw(st.integers(0, max(len(rows) - 1, 0)))
    if kind == "insert":
        rows.insert(at, draw(record(next(numbers))))
    elif kind == "file":
        del files[name]
    elif rows and kind == "remove":
        del rows[at]
    elif rows and kind == "correct":
        rows[at] = draw(record(rows[at]["id"]))
    elif rows:
        rows[at], rows[0] = rows[0], rows[at]


def lay_out(folder: Folder, files: Files) -> None:
    """Make the data folder hold exactly these files."""
    for name in NAMES:
        if name in files:
            folder.write_csv(f"data/{name}", HEADER, files[name])
        else:
            folder.remove(f"data/{name}")


def check(folder: Folder, files: Files, want: Expected, exit_code: int) -> None:
    """Outputs and DLQ are what the model says, and no record is lost."""
    for name in ("big", "small", "totals"):
        assert folder.rows(f"out/{name}.csv") == getattr(want, name), name
    found = folder.rows("out/rejected.csv") if want.rejected else []
    assert Counter((row["_cxl_dlq_error_category"], row["id"]) for row in found) == want.rejected
    assert (folder.path / "out/rejected.csv").exists() == bool(want.rejected)
    assert exit_code == (2 if want.rejected else 0)
    refused, filtered = {row["id"] for row in found if row["id"]}, 0
    for records in files.values():
        filtered += sum(str(one["id"]) not in refused and one["dept"] == "skip" for one in records)
    assert sum(map(len, files.values())) == len(want.big) + len(want.small) + filtered + len(refused)


def run_history(history: list[Files], *, keyed: bool, persist: str = "all", scope: str = "group", engine: str = "sail") -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Folder(Path(place), engine)
        folder.write("pipeline.yaml", pipeline(keyed=keyed, persist=persist, scope=scope))
        for files in history:
            lay_out(folder, files)
            check(folder, files, expected(files, keyed=keyed, scope=scope), folder.run().exit_code)
        assert folder.violations() == []
        before = folder.state_files()
        assert not folder.run().committed
        assert folder.state_files() == before


@examples(24, 2, phases=PHASES)
@given(histories(), st.booleans(), st.sampled_from(["all", "boundaries"]))
def test_later_runs_settle_like_a_full_run(history: list[Files], keyed: bool, persist: str) -> None:
    run_history(history, keyed=keyed, persist=persist)


@examples(24, 2, phases=PHASES)
@given(histories(), st.booleans(), st.sampled_from(["all", "boundaries"]))
def test_later_runs_hold_mates_back_like_a_full_run(history: list[Files], keyed: bool, persist: str) -> None:
    run_history(history, keyed=keyed, persist=persist, scope="record")


def many(start: int, odd: int) -> list[dict[str, Any]]:
    """Enough records to be looked at before they are written on: sales of three lines, in each `odd`-th record something that fails."""
    kinds: list[dict[str, Any]] = [{"qty": "bad"}, {"k": 0, "qty": "30"}, {"k": "x"}, {"sale": None, "qty": "bad"}]
    rows = [line(number, number // 3, "12" if number % 2 else "3", ("toys", "books", "skip")[number % 7 % 3]) for number in range(start, start + 6_000)]
    return [row | (kinds[at // odd % 4] if at % odd == 0 else {}) for at, row in enumerate(rows)]


@pytest.mark.deep
@pytest.mark.parametrize(("keyed", "scope"), [(False, "group"), (True, "record")])
def test_large_sources_settle_like_small_ones(keyed: bool, scope: str) -> None:
    before: Files = {"shop-a.csv": many(0, 97), "shop-b.csv": many(6_000, 150), "web-a.csv": many(12_000, 83)}
    after: Files = {"shop-a.csv": before["shop-a.csv"], "shop-b.csv": many(6_000, 400), "web-a.csv": many(12_000, 79)}
    run_history([before, after], keyed=keyed, scope=scope)


@pytest.mark.spark
@settings(max_examples=1, phases=PHASES)
@given(histories())
def test_spark_settles_the_same(history: list[Files]) -> None:
    run_history(history, keyed=False, engine="spark")


@examples(16, 2, phases=PHASES)
@given(st.data(), st.lists(record(0), min_size=6, max_size=10), st.booleans())
def test_the_order_of_records_and_files_changes_nothing(data: st.DataObject, records: list[dict[str, Any]], keyed: bool) -> None:
    lines = [{**one, "id": number} for number, one in enumerate(records, 1)]
    shuffled = data.draw(st.permutations(lines))
    cut = data.draw(st.integers(1, len(lines) - 1))
    results = []
    with tempfile.TemporaryDirectory() as place:
        for number, files in enumerate(({"shop-a.csv": lines}, {"shop-a.csv": shuffled[cut:], "shop-b.csv": shuffled[:cut]})):
            folder = Folder(Path(place) / str(number))
            folder.write("pipeline.yaml", pipeline(keyed=keyed).replace("max_group_buffer: 4", "max_group_buffer: 100"))
            lay_out(folder, files)
            code = folder.run().exit_code
            rejected = folder.rows("out/rejected.csv") if code else []
            entries = Counter((row["_cxl_dlq_error_category"], row["id"]) for row in rejected)
            rows = [sorted(folder.text(f"out/{name}.csv").splitlines()) for name in ("big", "small", "totals")]
            results.append((code, rows, entries))
    assert results[0] == results[1]


# Causes, cursors, commands ----------------------------------------------------------------------------------------------
def line(number: int, sale: int | None, qty: str = "30", dept: str = "toys") -> dict[str, Any]:
    return {"id": number, "sale": sale, "dept": dept, "qty": qty, "k": 7}


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    made = Folder(tmp_path)
    made.write("pipeline.yaml", pipeline(keyed=False))
    return made


def causes(folder: Folder, node: str, epoch: int) -> list[tuple[str, str, int]]:
    return [(row["op"], row["cause"], row["data"]["id"]) for row in folder.log(node) if row["epoch"] == epoch]


def test_a_clean_group_that_breaks_is_rolled_back_and_comes_back(folder: Folder) -> None:
    good = [line(1, 1), line(2, 1), line(3, 2)]
    lay_out(folder, {"shop-a.csv": good})
    folder.run()
    lay_out(folder, {"shop-a.csv": [good[0], line(2, 1, "bad"), good[2]]})
    assert folder.run().exit_code == 2
    assert causes(folder, "shop", 2) == [("-R", "rollback:shop:2", 1), ("-R", "correction", 2)]
    assert causes(folder, "big", 2) == [("-R", "rollback:shop:2", 1), ("-R", "correction", 2)]
    lay_out(folder, {"shop-a.csv": good})
    assert folder.run().exit_code == 0
    assert sorted(causes(folder, "shop", 3)) == [("+A", "ingest", 2), ("+A", "readmit", 1)]
    assert folder.violations() == []


def test_a_record_that_was_never_admitted_nets_to_nothing(folder: Folder) -> None:
    lay_out(folder, {"shop-a.csv": [line(1, 1, "bad"), line(2, 1), line(3, 2)]})
    folder.run()
    assert causes(folder, "shop", 1) == [("+A", "ingest", 3)]
    lay_out(folder, {"shop-a.csv": [line(1, 1, "bad"), line(2, 1), line(3, 2), line(4, 3)]})
    folder.run()
    assert causes(folder, "shop", 2) == [("+A", "ingest", 4)]
    assert causes(folder, "parse", 2) == [("+A", "ingest", 4)]


def test_the_cursor_is_the_last_row_that_came_through(folder: Folder) -> None:
    lay_out(folder, {"shop-a.csv": [line(1, 1), line(2, 2)], "shop-b.csv": [line(3, 3), line(4, 4, "bad"), line(5, 4)], "web-a.csv": [line(6, 9, "bad")]})
    result = folder.run()
    assert result.per_source_rollback_cursors == {"shop": 3}


def test_a_group_that_overflows_rewinds_the_cursor(folder: Folder) -> None:
    lay_out(folder, {"shop-a.csv": [line(1, 1), *(line(number, 2) for number in range(2, 7)), line(7, 3)]})
    assert folder.run().per_source_rollback_cursors == {"shop": 1}


def test_a_group_that_overflows_is_no_hard_error(folder: Folder) -> None:
    """Also the default strategy goes on; it ends at the first record that fails by itself."""
    folder.write("pipeline.yaml", folder.text("pipeline.yaml").replace("strategy: continue", "strategy: fail_fast"))
    lay_out(folder, {"shop-a.csv": [line(1, 1), *(line(number, 2) for number in range(2, 7)), line(7, 3)]})
    result = folder.run()
    assert (result.exit_code, result.rejected) == (2, 5)
    assert [row["id"] for row in folder.rows("out/big.csv")] == ["1", "7"]
    lay_out(folder, {"shop-a.csv": [line(1, 1), *(line(number, 2) for number in range(2, 7)), line(7, 3), line(8, 4, "bad")]})
    with pytest.raises(Stopped, match="record 8"):
        folder.run()


@pytest.mark.parametrize("keyed", [False, True])
def test_a_revert_brings_back_a_group_that_has_broken_since(folder: Folder, keyed: bool) -> None:
    folder.write("pipeline.yaml", pipeline(keyed=keyed))
    good = [line(1, 1), line(2, 1), line(3, 2)]
    broken = [good[0], line(2, 1, "bad"), good[2]]
    for files in ({"shop-a.csv": good}, {"shop-a.csv": broken}):
        lay_out(folder, files)
        folder.run()
    assert folder.load().revert(1, RunOptions(engine=EngineOptions("sail"), max_retract_share=1.0)).exit_code == 0
    assert [row["id"] for row in folder.rows("out/big.csv")] == ["1", "2", "3"]
    assert folder.violations() == []
    assert folder.load().revert(2, RunOptions(engine=EngineOptions("sail"), max_retract_share=1.0)).exit_code == 2
    check(folder, {"shop-a.csv": broken}, expected({"shop-a.csv": broken}, keyed=keyed), 2)
    assert folder.violations() == []


def test_groups_have_no_bound_where_it_is_0(folder: Folder) -> None:
    lay_out(folder, {"shop-a.csv": [line(number, 2) for number in range(2, 7)]})
    assert folder.run().rejected == 5
    folder.write("pipeline.yaml", folder.text("pipeline.yaml").replace("max_group_buffer: 4", "max_group_buffer: 0"))
    assert folder.run().exit_code == 0
    assert len(folder.load().live("shop").collect()) == 5


def test_status_counts_what_is_suppressed(folder: Folder) -> None:
    lay_out(folder, {"shop-a.csv": [line(1, 1, "bad"), line(2, 1), line(3, 2)]})
    folder.run()
    shop = next(one for one in folder.load().status()["sources"] if one["name"] == "shop")
    assert (shop["rows_live"], shop["rows_suppressed"], shop["cursor"]) == (1, 2, 3)


def test_dlq_shows_groups_and_tries_them_again(folder: Folder) -> None:
    lay_out(folder, {"shop-a.csv": [line(1, 8, "bad"), line(2, 8), line(3, 2)]})
    folder.run()
    groups = list(folder.load().dlq_groups())
    shown = [(one["group"], one["source"], one["records"], one["triggers"], one["collateral"], one["trigger"], one["category"]) for one in groups]
    assert shown == [("8", "shop", 2, 1, 1, "data/shop-a.csv:1", "type_coercion_failure")]
    assert [(one["row"], one["category"]) for one in folder.load().dlq_list()] == [(1, "type_coercion_failure"), (2, "correlated")]
    path = str(folder.path / "pipeline.yaml")
    code, _, err = command("dlq", path, "retry", "9")
    assert (code, "suppressed groups: 8" in err) == (64, True)
    code, _, err = command("dlq", path, "retry", "8", "--engine", "sail")
    assert (code, "group '8' stays out: " in err) == (2, True)


KEYED_BY_TEXT = """\
pipeline: { name: keyed }
error_handling: { strategy: continue, dlq: { path: out/rejected.csv } }
nodes:
  - type: source
    name: lines
    config:
      name: lines
      type: csv
      path: data/lines.csv
      correlation_key: [order, part]
      schema: [{ name: order, type: string }, { name: part, type: int }, { name: item, type: string }, { name: qty, type: string }]
  - { type: transform, name: parse, input: lines, config: { cxl: "emit n = qty.to_int()" } }
  - { type: output, name: out, input: parse, config: { name: out, type: csv, path: out/out.csv } }
"""


def test_an_empty_text_is_a_key_and_null_is_none(folder: Folder) -> None:
    """An empty CSV cell is null in every column type but string."""
    folder.write("pipeline.yaml", KEYED_BY_TEXT)
    folder.write("data/lines.csv", "order,part,item,qty\n,1,a,x\n,1,b,1\n,2,c,1\nA,,d,x\nA,,e,1\n")
    assert folder.run().exit_code == 2
    assert [row["item"] for row in folder.rows("out/out.csv")] == ["c", "e"]
    shown = [(one["group"], one["records"], one["collateral"], one["trigger"]) for one in folder.load().dlq_groups()]
    assert shown == [('"",1', 2, 1, "data/lines.csv:1"), ("data/lines.csv:4", 1, 0, "data/lines.csv:4")]
    assert command("dlq", str(folder.path / "pipeline.yaml"), "retry", '"",1', "--engine", "sail")[0] == 2


def test_a_key_may_end_like_the_key_of_a_reject(folder: Folder) -> None:
    """The last byte of the key of record 33 is the one that closes keys of rejects."""
    folder.write("pipeline.yaml", pipeline(keyed=True))
    lay_out(folder, {"shop-a.csv": [line(1, 1), line(33, None, "bad"), line(34, 2), line(289, 2, "bad")]})
    folder.run()
    assert [row["id"] for row in folder.rows("out/big.csv")] == ["1"]
    lay_out(folder, {"shop-a.csv": [line(1, 1), line(33, None), line(34, 2), line(289, 2, "bad"), line(545, 1, "bad")]})
    folder.run()
    assert [row["id"] for row in folder.rows("out/big.csv")] == ["33"]
    assert causes(folder, "shop", 2) == [("-R", "rollback:shop:5", 1), ("+A", "correction", 33)]


@pytest.mark.parametrize(
    ("kind", "one", "other"),
    [
        ("int", "33", "34"), ("float", "-0.5", "0.5"), ("bool", "true", "false"), ("date", "2024-02-29", "2024-03-01"),
        ("date_time", "2024-02-29T10:00:00.000001", "2024-02-29T10:00:00.000002"), ("string", "ä", "a"),
    ],
)  # fmt: skip
def test_keys_of_every_type_lead_to_the_mates(folder: Folder, kind: str, one: str, other: str) -> None:
    folder.write("pipeline.yaml", KEYED_BY_TEXT.replace("correlation_key: [order, part]", "correlation_key: order").replace("order, type: string", f"order, type: {kind}"))
    folder.write("data/lines.csv", f"order,part,item,qty\n{one},1,a,1\n{other},1,b,1\n{one},2,c,x\n{one},3,d,1\n")
    assert folder.run().exit_code == 2
    assert [row["item"] for row in folder.rows("out/out.csv")] == ["b"]
    folder.write("data/lines.csv", f"order,part,item,qty\n{one},1,a,1\n{other},1,b,x\n{one},2,c,1\n{one},3,d,1\n")
    assert folder.run().exit_code == 2
    assert [row["item"] for row in folder.rows("out/out.csv")] == ["a", "c", "d"]


def test_many_rejects_are_read_by_the_engine() -> None:
    first = {"shop-a.csv": [line(1, 1, "bad"), line(2, 1), line(3, 2), line(4, None, "bad")], "web-a.csv": [line(5, 1)]}
    second = {**first, "shop-a.csv": [line(1, 1), line(2, 1), line(3, 2, "bad"), line(4, None, "bad")]}
    with limited(driver_rows=0):
        for keyed in (False, True):
            run_history([first, second], keyed=keyed)


def test_groups_that_are_written_alike_stay_apart(folder: Folder) -> None:
    folder.write("pipeline.yaml", KEYED_BY_TEXT.replace("part, type: int", "part, type: string"))
    folder.write("data/lines.csv", 'order,part,item,qty\n"a,b",c,a,x\na,"b,c",b,x\n')
    assert folder.run().exit_code == 2
    assert [(one["group"], one["records"]) for one in folder.load().dlq_groups()] == [("a,b,c", 1), ("a,b,c", 1)]


def test_thresholds_count_failures_and_all_entries(folder: Folder) -> None:
    text = pipeline(keyed=False).replace("max_group_buffer: 4", "type_error_threshold: 0.4")
    folder.write("pipeline.yaml", text)
    lay_out(folder, {"shop-a.csv": [line(1, 1, "bad"), line(2, 1), line(3, 1), line(4, 2)]})
    assert folder.run().exit_code == 2
    code, _, err = command("run", str(folder.path / "pipeline.yaml"), "--engine", "sail", "--full-refresh", "--error-threshold", "2")
    assert (code, "3 records were rejected" in err) == (3, True)


def test_a_change_of_the_key_settles_anew(folder: Folder) -> None:
    files = {"shop-a.csv": [line(1, 1, "bad"), line(2, 1, dept="books"), line(3, 2, dept="books")]}
    lay_out(folder, files)
    folder.run()
    assert [row["id"] for row in folder.rows("out/big.csv")] == ["3"]
    folder.write("pipeline.yaml", pipeline(keyed=False).replace("correlation_key: sale", "correlation_key: dept"))
    folder.run()
    assert [row["id"] for row in folder.rows("out/big.csv")] == ["2", "3"]
    folder.write("pipeline.yaml", pipeline(keyed=False).replace("      correlation_key: sale\n", ""))
    assert folder.run().exit_code == 2
    assert [(row["id"], row["_cxl_dlq_error_category"]) for row in folder.rows("out/rejected.csv")] == [("1", "type_coercion_failure")]
    assert folder.violations() == []


RECORD_SCOPE = """\
pipeline: { name: scope }
error_handling: { strategy: continue, retraction_scope: record, dlq: { path: out/rejected.csv } }
changelog: { persist: PERSIST }
nodes:
  - type: source
    name: lines
    config:
      name: lines
      type: csv
      path: data/lines.csv
      correlation_key: sale
      schema: [{ name: sale, type: int }, { name: dept, type: string }, { name: qty, type: string }]
  - { type: transform, name: parse, input: lines, config: { cxl: "emit n = qty.to_int()" } }
  - { type: output, name: rows, input: parse, config: { name: rows, type: csv, path: out/rows.csv } }
  - type: aggregate
    name: depts
    input: parse
    config: { group_by: [dept], cxl: "emit total = sum(n)\nemit lines = count(*)\nemit most = max(n)" }
  - { type: transform, name: plausible, input: depts, config: { cxl: "emit share = 100 / (total - 13)" } }
  - { type: output, name: totals, input: plausible, config: { name: totals, type: csv, path: out/totals.csv } }
"""


@pytest.mark.parametrize("persist", ["all", "boundaries"])
def test_mates_count_behind_relaxed_aggregates_alone(folder: Folder, persist: str) -> None:
    """Mates stay counted, and have DLQ entries only where their own rows reach an output."""
    folder.write("pipeline.yaml", RECORD_SCOPE.replace("PERSIST", persist))

    def run(*lines: str) -> tuple[list[str], list[tuple[str, ...]], list[tuple[str, str]]]:
        folder.write("data/lines.csv", "sale,dept,qty\n" + "".join(f"{line}\n" for line in lines))
        folder.run()
        rejected = folder.rows("out/rejected.csv") if (folder.path / "out/rejected.csv").exists() else []
        totals = [(row["dept"], row["total"], row["lines"], row["most"]) for row in folder.rows("out/totals.csv")]
        return [row["qty"] for row in folder.rows("out/rows.csv")], totals, [(row["qty"], row["_cxl_dlq_error_category"]) for row in rejected]

    failed, mate = "type_coercion_failure", "correlated"
    assert run("1,a,5", "1,a,bad", "1,b,7", "2,b,2") == (["2"], [("a", "5", "1", "5"), ("b", "9", "2", "7")], [("5", mate), ("bad", failed), ("7", mate)])
    # a mate that comes later counts too, and a clean group breaks
    broken = run("1,a,5", "1,a,bad", "1,b,7", "2,b,2", "2,b,worse", "1,a,1")
    assert broken == ([], [("a", "6", "2", "5"), ("b", "9", "2", "7")], [("5", mate), ("bad", failed), ("7", mate), ("2", mate), ("worse", failed), ("1", mate)])
    # the total 13 fails behind the aggregate: what was counted in it goes wholly, its mates elsewhere count on
    fallen = run("1,a,5", "1,a,bad", "1,b,7", "2,b,2", "3,b,4", "3,a,3")
    assert fallen == (
        [], [("a", "8", "2", "5")],
        [("5", mate), ("bad", failed), ("7", mate), ("2", mate), ("4", mate), ("3", mate), ("", failed)],
    )  # fmt: skip
    # the whole group goes once the pipeline says so, and comes back into the totals when it no longer does
    broken = ("1,a,5", "1,a,bad", "1,b,7", "2,b,2")
    folder.write("pipeline.yaml", RECORD_SCOPE.replace("PERSIST", persist).replace("scope: record", "scope: group"))
    assert run(*broken) == (["2"], [("b", "2", "1", "2")], [("5", mate), ("bad", failed), ("7", mate)])
    folder.write("pipeline.yaml", RECORD_SCOPE.replace("PERSIST", persist))
    assert run(*broken) == (["2"], [("a", "5", "1", "5"), ("b", "9", "2", "7")], [("5", mate), ("bad", failed), ("7", mate)])
    # repaired: everything comes back by itself
    assert run("1,a,5", "1,a,1", "1,b,7", "2,b,2") == (["5", "1", "7", "2"], [("a", "6", "2", "5"), ("b", "9", "2", "7")], [])
    assert command("verify", str(folder.path / "pipeline.yaml"), "--recompute", "--engine", "sail")[0] == 0


OF_ANY = """\
pipeline: { name: groups }
error_handling: { strategy: continue }
nodes:
  - type: source
    name: lines
    config: { name: lines, type: json, path: lines.ndjson, options: { format: ndjson }, correlation_key: id, schema: [{ name: id, type: int }, { name: k, type: any }, { name: n, type: numeric }] }
  - { type: aggregate, name: counted, input: lines, config: { group_by: [k, n], cxl: "emit c = count(*)" } }
  - { type: transform, name: shares, input: counted, config: { cxl: "emit share = 1 / (c - 1)" } }
  - { type: output, name: out, input: shares, config: { name: out, type: csv, path: out.csv } }
"""


def test_a_cause_names_the_values_of_a_group(tmp_path: Path) -> None:
    """The group that failed: a number by its value, a text literally."""
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", OF_ANY)
    lines = [(1, 'a "b', 2.0), (2, 'a "b', 2), (7, None, 4), (8, None, 4), (3, 3.0, 10), (4, 3, 10), (5, 7, 5), (6, 7.0, 5)]
    for gone in ([], [2, 4, 8]):
        folder.write("lines.ndjson", "".join(json.dumps({"id": id_, "k": k, "n": n}) + "\n" for id_, k, n in lines if id_ not in gone))
        folder.run()
    assert folder.text("out.csv") == "k,n,c,share\n7,5,2,1\n"
    assert [cause for op, cause, id_ in causes(folder, "lines", 2) if id_ in (1, 3, 7)] == ['rollback:counted:a "b,2', "rollback:counted:,4", "rollback:counted:3,10"]


def test_a_record_that_its_source_rejects_is_the_trigger_of_its_group(tmp_path):
    folder = Folder(tmp_path)
    folder.write("lines.csv", "sale,pieces\nS1,2\nS2,one\nS2,2\nS3,?\n")
    folder.write(
        "pipeline.yaml",
        "pipeline: { name: sales }\nerror_handling: { strategy: continue }\nnodes:\n"
        "  - { type: source, name: lines, config: { name: lines, type: csv, path: lines.csv, correlation_key: sale,"
        " schema: [{ name: sale, type: string }, { name: pieces, type: int }] } }\n"
        "  - { type: output, name: out, input: lines, config: { name: out, type: csv, path: out.csv } }\n",
    )
    folder.run()
    shown = [(one["group"], one["records"], one["triggers"], one["collateral"], one["trigger"]) for one in folder.load().dlq_groups()]
    assert shown == [("S2", 2, 1, 1, "lines.csv:2")]


@pytest.mark.parametrize(("before", "after"), [("", "merge: { strategy: snapshot, primary_key: [id] }, "), ("merge: { strategy: snapshot, primary_key: [id] }, ", "")])
def test_dead_letters_wait_for_a_run_where_an_edit_gave_records_other_keys(tmp_path: Path, before: str, after: str) -> None:
    folder = Folder(tmp_path)
    pipeline = """
pipeline: {{ name: p }}
error_handling: {{ strategy: continue }}
nodes:
  - {{ type: source, name: orders, config: {{ name: orders, type: csv, path: o.csv, {merge}schema: [{{ name: id, type: int }}, {{ name: n, type: int }}] }} }}
  - {{ type: output, name: report, input: orders, config: {{ name: report, type: csv, path: report.csv }} }}
"""
    folder.write("o.csv", "id,n\n1,5\n2,none\n")
    path = str(tmp_path / "pipeline.yaml")
    for merge, code in ((before, 0), (after, 64)):
        folder.write("pipeline.yaml", pipeline.format(merge=merge))
        if not code:
            assert command("run", path)[0] == 2
        found, _, stderr = command("dlq", path, "--format", "csv")
        assert (found, "records have other keys" in stderr) == (code, bool(code))
    assert command("run", path)[0] == 2
    assert command("dlq", path, "--format", "csv")[1].splitlines()[1].startswith("orders,o.csv,2,type_coercion_failure,")
