"""The arguments of `errata.load` beside the pipeline's file, the place of the state, and the result of a run."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

import errata
from errata.core.options import EngineOptions, RunOptions
from tests.support.pipelines import Folder, command

SOURCE = "{type: source, name: s, config: {name: s, type: csv, path: s.csv, schema: [{name: v, type: int}]}}"


@pytest.mark.parametrize(
    ("kind", "given", "value"),
    [
        ("bool", True, True), ("bool", "false", False), ("int", 10, 10), ("int", 7.0, 7), ("int", "3", 3), ("float", 2, 2.0), ("float", 0.5, 0.5),
        ("string", "None", "None"), ("string", None, None), ("int", None, None), ("date", date(2026, 1, 2), date(2026, 1, 2)),
        ("date_time", "2026-01-02 5:04:00+02:00", datetime(2026, 1, 2, 3, 4)), ("date_time", datetime(2026, 1, 2, 3, 4, tzinfo=UTC), datetime(2026, 1, 2, 3, 4)),
        ("date_time", datetime(2026, 1, 2, 3, 4), datetime(2026, 1, 2, 3, 4)), ("date_time", date(2026, 1, 2), datetime(2026, 1, 2)),
    ],
)  # fmt: skip
def test_variables_are_python_values_of_the_declared_type_or_their_texts(tmp_path: Path, kind: str, given: Any, value: Any) -> None:
    found = _project(tmp_path, kind).load(variables={"pipeline.x": given}).plan.settings.variables["pipeline", "x"].default
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(("kind", "given"), [("int", 7.5), ("int", True), ("bool", 1), ("string", 5), ("date", datetime(2026, 1, 2, 3, 4))])
def test_a_python_value_of_another_type_is_refused(tmp_path: Path, kind: str, given: Any) -> None:
    with pytest.raises(errata.PipelineErrors) as caught:
        _project(tmp_path, kind).load(variables={"pipeline.x": given})
    assert [(one.code, f"x={given}: the value is no" in one.message) for one in caught.value.diagnostics] == [("E204", True)]


def test_a_refused_decimal_is_shown_with_the_digits_of_its_declaration(tmp_path: Path) -> None:
    with pytest.raises(errata.PipelineErrors, match=r"x=1000: the value is no decimal\(6,3\)"):
        _project(tmp_path, '"decimal(6,3)"').load(variables={"pipeline.x": "1000"})


def test_a_time_beyond_the_year_9999_in_utc_is_refused(tmp_path: Path) -> None:
    with pytest.raises(errata.PipelineErrors, match="the value is no DateTime"):
        _project(tmp_path, "date_time").load(variables={"pipeline.x": "9999-12-31T23:59:59-00:01"})


@pytest.mark.parametrize(("where", "value"), [(("ws/rules",), "1"), (("ws/rules", "ws/pipes/rules"), "2")], ids=["the workspace's", "that beside the pipeline"])
def test_modules_are_found_beside_the_pipeline_else_in_the_workspace(tmp_path: Path, where: tuple[str, ...], value: str) -> None:
    folder = Folder(tmp_path)
    folder.write("ws/errata.toml", "")
    for number, rules in enumerate(where, 1):
        folder.write(f"{rules}/m.cxl", f"fn one(x) = x * {number}\n")
    output = "{type: output, name: o, input: t, config: {name: o, type: csv, path: o.csv, include_unmapped: false}}"
    transform = '{type: transform, name: t, input: s, config: {cxl: "use m as m\\nemit w = m::one(v)"}}'
    folder.write("ws/pipes/p.yaml", f"pipeline: {{name: p}}\nnodes:\n  - {SOURCE}\n  - {transform}\n  - {output}\n")
    folder.write("ws/pipes/s.csv", "v\n1\n")
    errata.load(tmp_path / "ws/pipes/p.yaml").run(RunOptions(engine=EngineOptions("sail")))
    assert folder.text("ws/pipes/o.csv") == f"w\n{value}\n"


def _project(path: Path, kind: str) -> Folder:
    folder = Folder(path)
    folder.write("pipeline.yaml", f"pipeline: {{name: p, vars: {{pipeline: {{x: {{type: {kind}}}}}}}}}\nnodes:\n  - {SOURCE}\n")
    return folder


STATED = """\
pipeline: { name: stated }
nodes:
  - { type: source, name: s, config: { name: s, type: csv, path: s.csv, schema: [{ name: id, type: int }] } }
  - { type: transform, name: big, input: s, config: { cxl: "filter id > 5" } }
  - { type: output, name: out, input: big, config: { name: out, type: csv, path: "out_{epoch}.csv" } }
"""


def test_the_state_is_where_the_environment_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--state DIR`, `ERRATA_STATE` and `[state] path` of the workspace file name the state, whoever loads the pipeline."""
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", STATED)
    folder.write("errata.toml", "[state]\npath = 'configured'\n")
    assert folder.load().state.root == str(tmp_path / "configured" / "stated")
    monkeypatch.setenv("ERRATA_STATE", str(tmp_path / "named"))
    assert folder.load().state.root == str(tmp_path / "named" / "stated")
    assert folder.load(state=str(tmp_path / "given")).state.root == str(tmp_path / "given" / "stated")


@pytest.mark.parametrize("broken", [STATED.replace("filter id", "filter idd"), STATED.replace("pipeline: { name: stated }", "pipeline:\n  name: stated\n  nothing: 1")])
def test_what_the_state_tells_is_found_where_the_workspace_keeps_it(tmp_path: Path, broken: str) -> None:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", STATED)
    folder.write("errata.toml", "[state]\npath = 'configured'\n")
    folder.write("s.csv", "id\n7\n")
    folder.run()
    folder.write("pipeline.yaml", broken)
    code, out, _ = command("show", str(tmp_path / "pipeline.yaml"), "big", "--format", "jsonl")
    assert (code, out) == (0, '{"id":7}\n')


def test_a_result_counts_every_node_and_names_every_output(tmp_path: Path) -> None:
    """`.counts[node]` and `.outputs` cover what a run did not change too."""
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", STATED)
    folder.write("s.csv", "id\n1\n")
    first = folder.run()
    assert (first.counts["s"], first.counts["big"]) == ({"+A": 1}, {})
    second = folder.run()
    assert (second.committed, second.counts["s"]) == (False, {})
    assert second.outputs == first.outputs == {"out": tmp_path / "out_1.csv"}


@pytest.mark.parametrize(
    ("words", "header"),
    [
        (("show", "big"), "id"),
        (("log", "big"), "epoch,offset,op,op_code,node,cause,key,id"),
        (("log", "big", "--form", "single"), "epoch,offset,op,op_code,node,cause,key,id,old_id"),
        (("log", "big", "--form", "debezium"), "op,ts_ms,source,id,old_id"),
        (("log", "big", "--form", "odf"), "offset,op,system_time,event_time,id"),
        (("dlq",), "source,file,row,category,detail,stage,route,trigger,epoch"),
        (("dlq", "groups"), "group,source,records,triggers,collateral,trigger,category,stage,detail"),
    ],
)
def test_an_answer_without_rows_has_its_header_in_csv(tmp_path: Path, words: tuple[str, ...], header: str) -> None:
    """As it would have it with rows; a program reads its columns from there."""
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", STATED)
    name, *rest = words
    said = []
    for records in ("1\n", "1\n7\n"):
        folder.write("s.csv", f"id\n{records}")
        folder.run()
        said.append(command(name, str(tmp_path / "pipeline.yaml"), *rest, "--format", "csv"))
    assert [(code, out.splitlines()[0]) for code, out, _ in said] == [(0, header)] * 2


@pytest.mark.parametrize("words", [("show", "big"), ("log", "big"), ("log",), ("diff", "big", "--from", "1", "--to", "2"), ("why", "big", "id=1")])
def test_before_the_first_run_there_is_nothing_to_show(tmp_path: Path, words: tuple[str, ...]) -> None:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", STATED)
    name, *rest = words
    code, out, errors = command(name, str(tmp_path / "pipeline.yaml"), *rest)
    assert (code, out) == (64, "")
    assert errors == "error: no run yet, so there is nothing to show\n  = help: `errata run` makes the first epoch\nNothing was changed.\n"


def test_a_node_that_came_since_the_last_run_has_nothing_to_show(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", STATED)
    folder.write("s.csv", "id\n7\n")
    folder.run()
    folder.write("pipeline.yaml", STATED + "  - { type: transform, name: more, input: s, config: { cxl: 'emit id = id' } }\n")
    code, out, errors = command("show", str(tmp_path / "pipeline.yaml"), "more")
    assert (code, out) == (64, "")
    assert errors.startswith("error: node 'more' has not run yet\n")


def test_csv_has_the_columns_of_its_rows(tmp_path: Path) -> None:
    """Not the nodes that only earlier epochs had."""
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", STATED.replace("schema:", "on_unmapped: { mode: auto_widen }, schema:"))
    for text in ("id,x\n7,z\n", "id\n7\n"):
        folder.write("s.csv", text)
        folder.run()
    shown = [command("show", str(tmp_path / "pipeline.yaml"), "out", "--format", "csv", *at)[1] for at in ((), ("--at", "1"))]
    assert shown == ["id\n7\n", "id,x\n7,z\n"]


def test_date_times_are_shown_as_files_have_them(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", STATED.replace("{ name: id, type: int }", "{ name: at, type: date_time }").replace("filter id > 5", "filter true").replace("{epoch}", "x"))
    folder.write("s.csv", "at\n2026-01-02T03:04:05.123\n2026-01-02T03:04:06.1234\n2026-01-02T03:04:07\n")
    folder.run()
    shown = command("show", str(tmp_path / "pipeline.yaml"), "out", "--format", "csv")[1]
    assert shown == folder.text("out_x.csv") == "at\n2026-01-02T03:04:05.123\n2026-01-02T03:04:06.1234\n2026-01-02T03:04:07\n"
