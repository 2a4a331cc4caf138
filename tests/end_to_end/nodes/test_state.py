"""State nodes: whatever changes, each record sees the variables as its own pass left them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from cxl import compile_program
from cxl.types.types import Schema
from cxl.values.failure import CxlFailure
from errata.core.diagnostics import PipelineErrors
from operators.state.running_aggregates import running
from tests.support.csv_histories import Row, Version, follow, histories
from tests.support.examples import examples
from tests.support.pipelines import Folder, jsonl

HEADERS = {"a": ["id", "k", "v"], "b": ["id", "k", "v"]}
PIPELINE = """
pipeline:
  name: passing
  vars:
    pipeline: {total: {type: int, default: 100}, high: {type: int}}
    source: {tag: {type: string}, seen: {type: int, default: 0}}
    record: {twice: {type: int}, share: {type: int, default: -1}}
error_handling: {strategy: continue, dlq: {path: out/dlq.csv}}
nodes:
  - type: source
    name: rows
    config: {name: rows, type: csv, glob: "*.csv", files: {sort_by: name, on_no_match: skip}, schema: [{name: id, type: int}, {name: k, type: string}, {name: v, type: int}]}
  - {type: state, name: files, input: rows, config: {scope: source, set: [{var: tag, cxl: first(this.k)}, {var: seen, cxl: $source.seen + 1}]}}
  - {type: state, name: each, input: files, config: {scope: record, set: [{var: twice, cxl: v * 2}, {var: share, cxl: 12 / v}]}}
  - {type: state, name: run, input: each, config: {scope: pipeline, set: [{var: total, cxl: $pipeline.total + (v ?? 0)}, {var: high, cxl: max(v)}]}}
  - type: transform
    name: show
    input: run
    config:
      cxl: |
        emit tag = $source.tag
        emit seen = $source.seen
        emit twice = $record.twice
        emit share = $record.share
        emit total = $pipeline.total
        emit high = $pipeline.high
  - {type: output, name: shown, input: show, config: {name: shown, type: json, path: out/shown.ndjson, options: {format: ndjson}, preserve_nulls: true}}
  - {type: aggregate, name: ids, input: run, config: {group_by: [k], cxl: "emit n = count(*)\\nemit top = max($pipeline.total)"}}
  - {type: transform, name: last, input: ids, config: {cxl: "emit end = $pipeline.total"}}
  - {type: output, name: ends, input: last, config: {name: ends, type: json, path: out/ends.ndjson, options: {format: ndjson}, preserve_nulls: true}}
"""
record = st.fixed_dictionaries({"id": st.integers(1, 9), "k": st.sampled_from(["x", "y", "z"]), "v": st.sampled_from([None, 0, 1, 2, 5, -7])})


def passed(version: Version) -> Iterable[Row]:
    """Each record with its variables; one whose share cannot be computed is gone when the run's variables are written."""
    total, high = 100, None
    for name in sorted(version):
        rows = version[name]
        for seen, row in enumerate(rows, 1):
            if row["v"] == 0:
                continue
            v = row["v"]
            total += v or 0
            high = v if high is None else high if v is None else max(high, v)
            share = None if v is None else int(12 / v)
            yield {**row, "tag": rows[0]["k"], "seen": seen, "twice": None if v is None else 2 * v, "share": share, "total": total, "high": high}


def model(version: Version) -> dict[str, list[Row]]:
    rows = list(passed(version))
    groups = {k: [row for row in rows if row["k"] == k] for k in sorted({row["k"] for row in rows})}
    end = rows[-1]["total"] if rows else 100
    ends = [{"k": k, "n": len(found), "top": max(row["total"] for row in found), "end": end} for k, found in groups.items()]
    failing = [{"stage": "each", "category": "type_coercion_failure", "id": row["id"]} for name in version for row in version[name] if row["v"] == 0]
    return {"shown": rows, "ends": ends, "rejected": failing}


@examples(16, 3, suppress_health_check=[HealthCheck.too_slow])
@given(history=histories({"a": record, "b": record}, most=5))
def test_incremental_runs_follow_the_model(history: list[Version]) -> None:
    follow(history, PIPELINE, HEADERS, model)


INIT = """
pipeline:
  name: early
  vars: {{pipeline: {{cutoff: {{type: int, default: 3}}}}}}
changelog: {{persist: {persist}}}
nodes:
  - {{type: transform, name: high, input: rows, config: {{cxl: "filter v >= $pipeline.cutoff"}}}}
  - {{type: transform, name: named, input: high, config: {{cxl: "emit w = v + 1"}}}}
  - {{type: output, name: kept, input: named, config: {{name: kept, type: csv, path: out/kept.csv}}}}
  - {{type: source, name: rows, config: {{name: rows, type: csv, path: rows.csv, schema: [{{name: v, type: int}}]}}}}
  - {{type: source, name: limits, config: {{name: limits, type: csv, path: limits.csv, schema: [{{name: limit, type: int}}]}}}}
  - {{type: aggregate, name: top, input: limits, config: {{group_by: [], cxl: "emit cap = max(limit)"}}}}
  - {{type: state, name: early, input: top, config: {{scope: pipeline, phase: init, set: [{{var: cutoff, cxl: cap}}]}}}}
"""


@pytest.mark.parametrize("persist", ["all", "boundaries"])
def test_an_init_variable_that_changes_is_read_again(tmp_path: Path, persist: str) -> None:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", INIT.format(persist=persist))
    folder.write("rows.csv", "v\n1\n4\n9\n")
    folder.write("limits.csv", "limit\n2\n4\n")
    assert folder.run().counts["high"] == {"+A": 2}
    folder.write("limits.csv", "limit\n2\n4\n3\n")  # the same maximum: nobody has to do anything
    assert set(folder.run().counts) == {"limits"}
    folder.write("limits.csv", "limit\n2\n5\n")
    assert folder.run().counts["high"] == {"-R": 1}
    assert folder.text("out/kept.csv") == "v,w\n9,10\n"
    assert [(row["op"], row["cause"], row["data"]) for row in folder.log("high")][2:] == [("-R", "recompute", {"v": 4})]
    folder.write("rows.csv", "v\n1\n4\n9\n5\n")
    folder.write("limits.csv", "limit\n1\n")
    folder.run()
    assert folder.text("out/kept.csv") == "v,w\n1,2\n4,5\n9,10\n5,6\n"
    assert folder.violations() == []


CHAINED = """
pipeline: {{name: chained, vars: {{pipeline: {{a: {{type: int, default: 0}}, b: {{type: int, default: 0}}}}}}}}
nodes:
  - {{type: source, name: ones, config: {{name: ones, type: csv, path: ones.csv, schema: [{{name: c, type: int}}]}}}}
  - {{type: source, name: twos, config: {{name: twos, type: csv, path: twos.csv, schema: [{{name: d, type: int}}]}}}}
{init}
  - {{type: source, name: rows, config: {{name: rows, type: csv, path: rows.csv, schema: [{{name: v, type: int}}]}}}}
  - {{type: transform, name: shown, input: rows, config: {{cxl: "emit a = v + $pipeline.a\\nemit b = v + $pipeline.b"}}}}
  - {{type: output, name: out, input: shown, config: {{name: out, type: csv, path: out.csv, include_unmapped: false}}}}
"""


def chained(folder: Folder, *init: tuple[str, str, str, str]) -> None:
    """A pipeline over the lists 1, 2 and 10. Init nodes are given as name, input, variable and program."""
    node = '  - {{type: state, name: {}, input: {}, config: {{scope: pipeline, phase: init, set: [{{var: {}, cxl: "{}"}}]}}}}'
    folder.write("pipeline.yaml", CHAINED.format(init="\n".join(node.format(*one) for one in init)))
    for name, text in (("rows", "v\n0\n"), ("ones", "c\n1\n2\n"), ("twos", "d\n10\n")):
        folder.write(f"{name}.csv", text)


def test_an_init_node_that_reads_the_variable_of_another_runs_behind_it_in_whatever_order_they_are_written(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    chained(folder, ("second", "twos", "b", "d + $pipeline.a"), ("first", "ones", "a", "c"))
    for name, text, total in (("ones", "c\n1\n", 11), ("ones", "c\n2\n", 12), ("twos", "d\n200\n", 202)):
        folder.write(f"{name}.csv", text)
        folder.run()
        assert [row["b"] for row in folder.rows("out.csv")] == [str(total)]
    assert folder.violations() == []


@pytest.mark.parametrize(
    ("first", "second", "above", "shown"),
    [
        (("a", "c + $pipeline.a"), ("a", "$pipeline.a * 3"), "first", "a,b\n9,0\n"),
        (("a", "c + $pipeline.a"), ("a", "d + $pipeline.a"), "twos", "a,b\n13,0\n"),
        (("a", "c + $pipeline.b"), ("b", "$pipeline.a * 10"), "first", "a,b\n2,20\n"),
    ],
)
def test_init_nodes_that_write_one_variable_follow_each_other_as_they_are_written(tmp_path: Path, first: Any, second: Any, above: str, shown: str) -> None:
    folder = Folder(tmp_path)
    chained(folder, ("first", "ones", *first), ("second", above, *second))
    folder.run()
    assert folder.text("out.csv") == shown


def test_init_nodes_that_wait_for_each_other_are_reported(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    chained(folder, ("second", "twos", "b", "d + $pipeline.a"), ("first", "ones", "a", "c + $pipeline.b"))
    with pytest.raises(PipelineErrors) as raised:
        folder.load()
    assert [one.message for one in raised.value.diagnostics if one.code == "E003"] == ["nodes wait for each other's variables: first -> second -> first"]


JOINED = """
pipeline:
  name: joined
  vars:
    pipeline: {n: {type: int, default: -5}}
    source: {tag: {type: string, default: none}}
nodes:
  - {type: source, name: east, config: {name: east, type: csv, path: east.csv, schema: [{name: id, type: int}]}}
  - {type: source, name: west, config: {name: west, type: csv, path: west.csv, schema: [{name: id, type: int}]}}
  - {type: state, name: mark, input: east, config: {scope: source, set: [{var: tag, cxl: '"e" + first(this.id).to_string()'}]}}
  - {type: state, name: count, input: mark, config: {scope: pipeline, set: [{var: n, cxl: count(*)}]}}
  - {type: merge, name: both, inputs: [count, west]}
  - {type: transform, name: show, input: both, config: {cxl: "emit e = $source.count.tag\\nemit w = $source.west.tag\\nemit n = $pipeline.n"}}
  - {type: output, name: shown, input: show, config: {name: shown, type: csv, path: out/shown.csv}}
"""


def test_variables_through_a_merge(tmp_path: Path) -> None:
    """A record has what its own input wrote; the variables of the other input are not its own, and what nobody wrote starts at the default."""
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", JOINED)
    folder.write("east.csv", "id\n7\n8\n")
    folder.write("west.csv", "id\n1\n")
    folder.run()
    assert folder.text("out/shown.csv") == "id,e,w,n\n7,e7,none,1\n8,e7,none,2\n1,none,none,-5\n"


DYNAMIC = """
pipeline: {name: dynamic, vars: {record: {n: {type: int}}, pipeline: {sum: {type: float, default: 0.0}}}}
error_handling: {strategy: continue, dlq: {path: out/dlq.csv}}
nodes:
  - {type: source, name: rows, config: {name: rows, type: json, path: rows.json, schema: [{name: id, type: int}, {name: any, type: any}]}}
  - {type: state, name: typed, input: rows, config: {scope: record, set: [{var: n, cxl: this.any}]}}
  - {type: state, name: added, input: typed, config: {scope: pipeline, set: [{var: sum, cxl: $pipeline.sum + $record.n}]}}
  - {type: transform, name: show, input: added, config: {cxl: "emit n = $record.n\\nemit sum = $pipeline.sum"}}
  - {type: output, name: shown, input: show, config: {name: shown, type: json, path: out/shown.ndjson, options: {format: ndjson}, exclude: [any]}}
"""


def test_a_value_of_another_type_is_rejected_where_only_the_record_shows_it(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", DYNAMIC)
    folder.write("rows.json", '[{"id": 1, "any": 4}, {"id": 2, "any": "x"}, {"id": 3, "any": 5}]')
    assert folder.run().rejected == 1
    assert jsonl(folder.text("out/shown.ndjson")) == [{"id": 1, "n": 4, "sum": 4}, {"id": 3, "n": 5, "sum": 9}]
    assert "typed" in folder.text("out/dlq.csv")


values = st.lists(st.one_of(st.none(), st.integers(-9, 9), st.floats(allow_nan=False, width=32), st.sampled_from([1e308, -1e308])), min_size=1, max_size=8)


@pytest.mark.parametrize("name", ["first", "last", "any", "min", "max", "sum", "avg", "count", "collect"])
@given(values=values)
def test_running_aggregates_are_those_of_every_prefix(name: str, values: list[Any]) -> None:
    (use,) = compile_program(f"{name}(x)", Schema.of({"x": "any"}), mode="set").calls
    aggregate = running(use)
    state = aggregate.start
    for end, value in enumerate(values, 1):
        state = aggregate.step(state, [value])
        assert repr(aggregate.value(state)) == repr(use.function.python(values[:end]))


def test_a_running_sum_refuses_what_is_no_number() -> None:
    (use,) = compile_program("sum(x)", Schema.of({"x": "any"}), mode="set").calls
    with pytest.raises(CxlFailure, match="expected a number"):
        running(use).step(running(use).start, ["7"])
