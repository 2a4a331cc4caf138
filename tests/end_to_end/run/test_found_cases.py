"""Pipelines and histories that random tests found to be wrong once, cut down to what made them fail."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from operators.combine import range_join
from tests.support.chunking import small_chunks
from tests.support.pipelines import Folder, limited


@pytest.fixture(autouse=True, scope="module")
def buckets() -> Iterator[None]:
    """Range joins are made by buckets also where rows are few."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(range_join, "FEW_PAIRS", -1)
        yield


ROWS = """\
pipeline: { name: found }
error_handling: { strategy: continue, dlq: { path: out/dlq.csv } }
changelog: { persist: PERSIST }
nodes:
  - type: source
    name: rows
    config: { name: rows, type: csv, glob: rows/*.csv, schema: [{ name: id, type: int }, { name: g, type: int }] }
"""


def output(node: str) -> str:
    return f"  - {{ type: output, name: {node}_out, input: {node}, config: {{ name: {node}_out, type: csv, path: out/{node}.csv }} }}\n"


def steps(place: Path, nodes: str, texts: Sequence[str], persist: str = "all") -> Folder:
    """A folder after a run over each of some texts, one file each."""
    folder = Folder(place)
    folder.write("pipeline.yaml", ROWS.replace("PERSIST", persist) + nodes)
    for at, text in enumerate(texts):
        folder.write(f"rows/{at}.csv", "id,g\n" + text)
        folder.run()
    return folder


def categories(folder: Folder) -> list[str]:
    """Categories of the live rejects."""
    return [row["_cxl_dlq_error_category"] for row in folder.rows("out/dlq.csv")] if (folder.path / "out/dlq.csv").exists() else []


@pytest.mark.parametrize("persist", ["all", "boundaries"])
def test_a_changed_expression_reaches_outputs_through_nodes_that_keep_no_table(tmp_path: Path, persist: str) -> None:
    nodes = (
        '  - { type: transform, name: first, input: rows, config: { cxl: "emit more = g + 1\\nfilter 10 / g > 0" } }\n'
        "  - { type: merge, name: only, inputs: [first] }\n"
        '  - { type: transform, name: second, input: only, config: { cxl: "emit twice = more * 2" } }\n' + output("second")
    )
    folder = steps(tmp_path, nodes, ["1,0\n2,5\n"], persist)
    assert (folder.text("out/second.csv"), len(folder.rows("out/dlq.csv"))) == ("id,g,more,twice\n2,5,6,12\n", 1)
    changed = nodes.replace("g + 1", "g + 2").replace("10 / g", "10 / id")
    folder.write("pipeline.yaml", ROWS.replace("PERSIST", persist) + changed)
    folder.run()
    assert folder.text("out/second.csv") == "id,g,more,twice\n1,0,2,4\n2,5,7,14\n"
    assert not (tmp_path / "out/dlq.csv").exists()
    assert folder.violations() == []


@pytest.mark.parametrize("edited", ["g * 2", "g * 3"])
def test_changelogs_may_be_kept_and_derived_in_turn(tmp_path: Path, edited: str) -> None:
    nodes = (
        '  - { type: transform, name: first, input: rows, config: { cxl: "emit more = g * 2" } }\n'
        '  - { type: transform, name: second, input: first, config: { cxl: "emit part = 12 / g" } }\n' + output("second")
    )
    folder = Folder(tmp_path)
    for number, persist in enumerate(["boundaries", "all", "boundaries", "all"]):
        folder.write("pipeline.yaml", ROWS.replace("PERSIST", persist) + (nodes.replace("g * 2", edited) if number % 2 else nodes))
        folder.write(f"rows/{number}.csv", f"id,g\n{number},4\n-1,0\n")
        assert folder.run().exit_code == 2
        more = 4 * int(edited[-1] if number % 2 else 2)
        shown = [{"id": at, "g": 4, "more": more} for at in range(number + 1)]
        assert folder.rows("out/second.csv") == [{name: str(value) for name, value in (row | {"part": 3}).items()} for row in shown]
        found = [one for one in folder.load().show("first") if one["g"]]
        assert found == shown
        assert folder.violations() == []


PARTS = '  - { type: aggregate, name: parts, input: rows, config: { group_by: [id], cxl: "emit part = 12 / sum(g)" } }\n' + output("parts")


def test_rejects_go_with_the_node_that_goes(tmp_path: Path) -> None:
    folder = steps(tmp_path, PARTS + output("rows"), ["1,0\n"])
    assert categories(folder) == ["aggregate_finalize"]
    folder.write("pipeline.yaml", ROWS.replace("PERSIST", "all") + output("rows"))
    folder.write("rows/b.csv", "id,g\n2,3\n")
    assert folder.run().exit_code == 0
    assert not (tmp_path / "out/dlq.csv").exists()


@pytest.mark.parametrize("name", ["more", "rows"])
def test_suppressed_records_go_with_their_source(tmp_path: Path, name: str) -> None:
    """Whether it is gone or has another name."""
    head, source = ROWS.replace("PERSIST", "all").replace("glob: rows/*.csv", "glob: rows/*.csv, correlation_key: g").split("nodes:\n")
    other = source.replace("name: rows", f"name: {name}2")
    folder = Folder(tmp_path)
    folder.write("rows/a.csv", "id,g\n1,7\nno,7\n3,8\n")
    for nodes in (source + source.replace("rows", "more") + output("rows"), other + output(f"{name}2"), source + output("rows")):
        folder.write("pipeline.yaml", f"{head}nodes:\n{nodes}")
        folder.write("more/a.csv", "id,g\n1,7\nno,7\n")
        assert folder.run().exit_code == 2
        assert folder.violations() == []
    assert folder.text("out/rows.csv") == "id,g\n3,8\n"
    assert sorted(categories(folder)) == ["correlated", "type_coercion_failure"]


@pytest.mark.parametrize("persist", ["all", "boundaries"])
def test_nodes_that_are_back_go_on_from_where_they_stood(tmp_path: Path, persist: str) -> None:
    """Also a source, whose number no other has got meanwhile."""
    head, source = ROWS.replace("PERSIST", persist).split("nodes:\n")
    other, third = (source.replace("rows", name) for name in ("more", "most"))
    both = "  - { type: merge, name: both, inputs: [rows, more] }\n" + PARTS.replace("input: rows", "input: both")
    also = other + '  - { type: transform, name: told, input: more, config: { cxl: "emit at = $source.file.file_stem()" } }\n' + output("told")
    whole = source + also + both
    folder = Folder(tmp_path)
    for number, nodes in enumerate([whole, source + output("rows"), source + third + output("most"), whole, whole]):
        for name in ("rows", "more", "most"):
            folder.write(f"{name}/{number}.csv", f"id,g\n{number},{number}\n")
        folder.write("more/0.csv", f"id,g\n0,{number % 3}\n")
        folder.write("pipeline.yaml", f"{head}nodes:\n{nodes}")
        folder.run()
        assert folder.violations() == []
        if nodes == whole:
            sums = {at: 2 * at for at in range(1, number + 1)} | {0: number % 3}
            assert folder.rows("out/parts.csv") == [{"id": str(at), "part": str(12 // total)} for at, total in sorted(sums.items()) if total]
            assert [row["at"] for row in folder.rows("out/told.csv")] == [str(at) for at in range(number + 1)]
            assert categories(folder) == ["aggregate_finalize"] * (sums[0] == 0)


def test_a_global_aggregate_stays_as_it_is_when_all_that_comes_is_rejected(tmp_path: Path) -> None:
    nodes = '  - { type: aggregate, name: all, input: rows, config: { group_by: [], cxl: "emit low = min(g)" } }\n' + output("all")
    folder = steps(tmp_path, nodes, ["1,4\n", "2,many\n"])
    assert folder.text("out/all.csv") == "low\n4\n"
    assert folder.violations() == []


def test_a_rank_is_compared_with_what_stood(tmp_path: Path) -> None:
    nodes = (
        "  - type: transform\n    name: ranked\n    input: rows\n"
        '    config: { analytic_window: { partition_by: [], sort_by: [g] }, cxl: "emit place = $window.dense_rank()" }\n' + output("ranked")
    )
    folder = steps(tmp_path, nodes, ["1,4\n", "2,3\n"])
    assert folder.text("out/ranked.csv") == "id,g,place\n1,4,2\n2,3,1\n"


def test_divisors_of_unmatched_rows_are_no_failure(tmp_path: Path) -> None:
    joined = "where: l.g == r.id and l.id >= t.g, match: all, on_miss: skip, propagate_ck: driver"
    nodes = (
        "  - type: combine\n    name: joined\n    input: { l: rows, r: rows, t: rows }\n"
        f'    config: {{ {joined}, cxl: "emit t_id = t.id\\nemit part = 12 / r.g" }}\n' + output("joined")
    )
    folder = steps(tmp_path, nodes, ["6,\n", "9,3\n", "3,9\n"])
    assert folder.text("out/joined.csv") == "t_id,part\n9,1\n3,1\n9,4\n"


def test_a_range_join_whose_build_brings_rejects_alone(tmp_path: Path) -> None:
    nodes = (
        "  - { type: combine, name: joined, input: { l: rows, r: rows }, "
        'config: { where: "l.id >= r.g and l.g < r.id", match: all, propagate_ck: driver, cxl: "emit id = l.id\\nemit r_id = r.id" } }\n' + output("joined")
    )
    folder = steps(tmp_path, nodes, ["1,5\n4,2\n", "9,many\n"])
    assert folder.text("out/joined.csv") == "id,r_id\n1,\n4,4\n"
    assert folder.violations() == []


KEYED = "{ strategy: snapshot, primary_key: [id] }"


@pytest.mark.parametrize(("before", "after"), [("snapshot", KEYED), (KEYED, "snapshot"), (KEYED, "append")])
def test_records_get_keys_of_another_kind(tmp_path: Path, before: str, after: str) -> None:
    def declared(merge: str) -> str:
        return ROWS.replace("PERSIST", "all").replace("glob: rows/*.csv", f"glob: rows/*.csv, merge: {merge}") + output("rows")

    folder = Folder(tmp_path)
    for merge in (before, after):
        folder.write("pipeline.yaml", declared(merge))
        folder.write("rows/a.csv", "id,g\n2,1\n1,1\n")
        folder.run()
    assert folder.text("out/rows.csv") == ("id,g\n1,1\n2,1\n" if after == KEYED else "id,g\n2,1\n1,1\n")
    assert folder.violations() == []
    folder.write("rows/a.csv", "id,g\n2,1\n1,1\n3,1\n")
    assert folder.run().counts == {"rows": {"+A": 1}, "rows_out": {"+A": 1}}


@pytest.mark.parametrize("merges", [("snapshot", KEYED), (KEYED, "snapshot")])
def test_records_of_large_files_with_other_undeclared_columns_get_keys_of_another_kind(tmp_path: Path, merges: Sequence[str]) -> None:
    folder = Folder(tmp_path)
    folder.write("rows/a.csv", "id,g,note\n" + "".join(f"{number},1,p\n" for number in range(10, 20)))
    folder.write("rows/b.csv", "id,g\n" + "".join(f"{number},1\n" for number in range(20, 30)))
    with small_chunks():
        for merge in merges:
            folder.write("pipeline.yaml", ROWS.replace("PERSIST", "all").replace("glob: rows/*.csv", f"glob: rows/*.csv, merge: {merge}") + output("rows"))
            folder.run()
            assert folder.rows("out/rows.csv") == [{"id": str(number), "g": "1", "note": "p" if number < 20 else ""} for number in range(10, 30)]
    assert folder.violations() == []


@pytest.mark.parametrize("persist", ["all", "boundaries"])
@pytest.mark.parametrize("merges", [("snapshot", KEYED), (KEYED, "snapshot")])
def test_what_is_read_of_files_follows_records_that_get_keys_of_another_kind(tmp_path: Path, persist: str, merges: Sequence[str]) -> None:
    nodes = (
        '  - { type: state, name: counted, input: rows, config: { scope: source, set: [{ var: seen, cxl: "sum(g)" }] } }\n'
        '  - { type: transform, name: told, input: counted, config: { cxl: "emit seen = $source.seen\nemit at = $source.file" } }\n'
    )
    pipeline = ROWS.replace("PERSIST", persist).replace("found }", "found, vars: { source: { seen: { type: int, default: 0 } } } }") + nodes + output("told")
    folder = Folder(tmp_path)
    folder.write("rows/a.csv", "id,g\n1,5\n2,1\n")
    for merge in merges:
        folder.write("pipeline.yaml", pipeline.replace("glob: rows/*.csv", f"glob: rows/*.csv, merge: {merge}"))
        folder.run()
        assert folder.text("out/told.csv").replace(str(tmp_path) + "/", "") == "id,g,seen,at\n1,5,5,rows/a.csv\n2,1,6,rows/a.csv\n"
    assert folder.violations() == []


def test_undeclared_fields_go_when_the_source_drops_them(tmp_path: Path) -> None:
    nodes = '  - { type: transform, name: more, input: rows, config: { cxl: "emit two = 2" } }\n' + output("more")
    folder = Folder(tmp_path)
    folder.write("rows/a.csv", "id,g,extra\n1,1,x\n")
    for mode, text in (("auto_widen", "id,g,two,extra\n1,1,2,x\n"), ("drop", "id,g,two\n1,1,2\n"), ("auto_widen", "id,g,two,extra\n1,1,2,x\n")):
        folder.write("pipeline.yaml", ROWS.replace("PERSIST", "all").replace("glob: rows/*.csv", f"glob: rows/*.csv, on_unmapped: {mode}") + nodes)
        folder.run()
        assert folder.text("out/more.csv") == text
    assert folder.violations() == []


def test_sums_of_groups_that_a_changed_filter_took_away_begin_anew(tmp_path: Path) -> None:
    nodes = '  - { type: aggregate, name: counted, input: rows, config: { group_by: [g], cxl: "filter id > 1\\nemit n = count(*)" } }\n' + output("counted")
    folder = steps(tmp_path, nodes, ["2,7\n6,8\n"])
    folder.write("pipeline.yaml", ROWS.replace("PERSIST", "all") + nodes.replace("id > 1", "id > 5"))
    folder.run()
    assert folder.text("out/counted.csv") == "g,n\n8,1\n"
    folder.write("rows/b.csv", "id,g\n9,7\n")
    folder.run()
    assert folder.text("out/counted.csv") == "g,n\n7,1\n8,1\n"
    assert folder.violations() == []


@pytest.mark.parametrize("persist", ["all", "boundaries"])
def test_sources_of_one_merge_exchange_the_kinds_of_their_keys(tmp_path: Path, persist: str) -> None:
    def declared(first: str, second: str) -> str:
        one = ROWS.replace("PERSIST", persist).replace("glob: rows/*.csv", f"glob: rows/*.csv, merge: {first}")
        other = one.split("nodes:\n")[1].replace("rows", "more").replace(f"merge: {first}", f"merge: {second}")
        return one + other + "  - { type: merge, name: both, inputs: [rows, more] }\n" + output("both")

    folder = Folder(tmp_path)
    folder.write("rows/a.csv", "id,g\n2,1\n1,\n")
    folder.write("more/a.csv", "id,g\n4,1\n3,x\n")
    for kinds in (("snapshot", KEYED), (KEYED, "snapshot"), ("snapshot", KEYED)):
        folder.write("pipeline.yaml", declared(*kinds))
        folder.run()
        assert folder.violations() == []
    assert folder.text("out/both.csv") == "id,g\n2,1\n1,\n4,1\n"


def test_a_group_fails_as_a_whole_where_the_statements_on_its_sums_fail(tmp_path: Path) -> None:
    nodes = '  - { type: aggregate, name: mean, input: rows, config: { group_by: [], cxl: "emit mean = sum(id) / count(g)" } }\n' + output("mean")
    folder = steps(tmp_path, nodes, ["1,\n"])
    rejects = [(row["_cxl_dlq_error_category"], row["_cxl_dlq_stage"], row["id"]) for row in folder.rows("out/dlq.csv")]
    assert (folder.text("out/mean.csv"), rejects) == ("mean\n", [("aggregate_finalize", "mean", "")])
    folder.write("rows/b.csv", "id,g\n3,1\n")
    folder.run()
    assert folder.text("out/mean.csv") == "mean\n4\n"
    assert categories(folder) == []
    assert folder.violations() == []


def test_a_group_that_goes_on_failing_is_one_reject(tmp_path: Path) -> None:
    nodes = '  - { type: aggregate, name: parts, input: rows, config: { group_by: [g], cxl: "emit part = 12 / sum(id)" } }\n' + output("parts")
    folder = steps(tmp_path, nodes, ["1,7\n-1,7\n3,8\n"])
    for more, parts, failed in (("2,7\n-2,7\n", "8,4\n", 1), ("6,7\n", "7,2\n8,4\n", 0), ("-6,7\n", "8,4\n", 1)):
        folder.write("rows/more.csv", folder.text("rows/more.csv") + more if (tmp_path / "rows/more.csv").exists() else "id,g\n" + more)
        folder.run()
        assert (folder.text("out/parts.csv"), categories(folder)) == ("g,part\n" + parts, ["aggregate_finalize"] * failed)
    assert folder.violations() == []


def test_a_group_may_have_the_key_of_the_record_that_fails_in_it(tmp_path: Path) -> None:
    nodes = '  - { type: aggregate, name: parts, input: rows, config: { group_by: [id], cxl: "emit part = 32 / sum(g + 25 / g - 10)" } }\n' + output("parts")
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", ROWS.replace("PERSIST", "all").replace("glob: rows/*.csv", f"glob: rows/*.csv, merge: {KEYED}") + nodes)
    record, group = "type_coercion_failure", "aggregate_finalize"
    for g, parts, failed in (("0", "", [record]), ("5", "", [group]), ("0", "", [record]), ("1", "1,2\n", []), ("5", "", [group]), ("1", "1,2\n", [])):
        folder.write("rows/a.csv", f"id,g\n1,{g}\n")
        folder.run()
        assert (folder.text("out/parts.csv"), categories(folder)) == ("id,part\n" + parts, failed)
    assert folder.violations() == []


def test_a_record_and_a_group_of_one_key_fail_apart(tmp_path: Path) -> None:
    """Record 2 is of group 9, and group 2 is of record 7: what becomes of the group says nothing of the record."""
    nodes = '  - { type: aggregate, name: parts, input: rows, config: { group_by: [g], cxl: "emit part = 32 / sum(v + 25 / v - 10)" } }\n' + output("parts")
    folder = Folder(tmp_path)
    source = ROWS.replace("PERSIST", "all").replace("glob: rows/*.csv", f"glob: rows/*.csv, merge: {KEYED}").replace("{ name: g, type: int }", "{ name: g, type: int }, { name: v, type: int }")
    folder.write("pipeline.yaml", source + nodes)
    record, group = "type_coercion_failure", "aggregate_finalize"
    steps = ((0, 5, "", [group, record]), (0, 1, "2,2\n", [record]), (0, 5, "", [group, record]), (1, 5, "9,2\n", [group]), (0, 5, "", [group, record]), (1, 1, "2,2\n9,2\n", []))
    for of_record, of_group, parts, failed in steps:
        folder.write("rows/a.csv", f"id,g,v\n2,9,{of_record}\n7,2,{of_group}\n")
        folder.run()
        assert (folder.text("out/parts.csv"), sorted(categories(folder))) == ("g,part\n" + parts, failed)
        assert folder.violations() == []


def test_best_values_of_no_rows_in_the_engine(tmp_path: Path) -> None:
    best = '  - { type: aggregate, name: best, input: rows, config: { group_by: [g], cxl: "emit most = max(id)" } }\n' + output("best")
    with limited(small_rows=-1):
        folder = steps(tmp_path, best, [""])
        folder.write("pipeline.yaml", ROWS.replace("PERSIST", "all") + best.replace("max(id)", "max(id + 1)"))
        folder.run()
    assert folder.rows("out/best.csv") == []
