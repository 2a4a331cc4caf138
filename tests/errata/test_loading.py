"""What `errata.load` takes beside the pipeline's file: values of variables (CONTRACT, "Python")."""

from __future__ import annotations

from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest

import errata
from tests.pipelines import Folder

SOURCE = "{type: source, name: s, config: {name: s, type: csv, path: s.csv, schema: [{name: v, type: int}]}}"


@pytest.mark.parametrize(
    ("kind", "given", "value"),
    [
        ("bool", True, True), ("bool", "false", False), ("int", 10, 10), ("int", 7.0, 7), ("int", "3", 3), ("float", 2, 2.0), ("float", 0.5, 0.5),
        ("string", "None", "None"), ("string", None, None), ("int", None, None), ("date", date(2026, 1, 2), date(2026, 1, 2)),
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
    errata.load(tmp_path / "ws/pipes/p.yaml").run()
    assert folder.text("ws/pipes/o.csv") == f"w\n{value}\n"


def _project(path: Path, kind: str) -> Folder:
    folder = Folder(path)
    folder.write("pipeline.yaml", f"pipeline: {{name: p, vars: {{pipeline: {{x: {{type: {kind}}}}}}}}}\nnodes:\n  - {SOURCE}\n")
    return folder
