"""Validations of a transform, also behind `emit each`: a failing check rejects the record, once and whole."""

from __future__ import annotations

from pathlib import Path

import pytest

import errata
from tests.support.pipelines import Folder, command, standing_in

PIPELINE = """\
pipeline: { name: checked }
error_handling: { strategy: continue, dlq: { path: dlq.csv } }
nodes:
  - { type: source, name: rows, config: { name: rows, type: csv, path: rows.csv, schema: [{ name: id, type: int }, { name: n, type: int }, { name: q, type: string }] } }
  - type: transform
    name: each
    input: rows
    config:
      cxl: |
        emit id = idMORE
        emit each it in q.split("-") {
          emit v = it
        }
      validations: [CHECKS]
WINDOW
  - { type: output, name: out, input: each, config: { name: out, type: csv, path: out.csv, mapping: { id: id, v: v }, include_unmapped: false } }
"""
KINDS = {
    "row by row": ("", ""),
    "by the run": ("\n        emit at = now", ""),
    "behind a window": ("\n        emit s = $window.sum(n)", "      analytic_window: { group_by: [id] }"),
}


def laid_out(tmp_path: Path, checks: str, kind: str = "row by row") -> Folder:
    folder = Folder(tmp_path)
    more, window = KINDS[kind]
    folder.write("pipeline.yaml", PIPELINE.replace("CHECKS", checks).replace("MORE", more).replace("WINDOW\n", f"{window}\n" if window else ""))
    return folder


def stands(folder: Folder) -> tuple[str, list[tuple[str, str, str, str]]]:
    """The rows of the output, and of each reject the source row, the category, the detail and the rule."""
    names = ("source_row", "error_category", "error_detail", "trigger")
    queue = folder.rows("dlq.csv") if (folder.path / "dlq.csv").exists() else []
    return " ".join(f"{row['id']}:{row['v']}" for row in folder.rows("out.csv")), [tuple(row[f"_cxl_dlq_{name}"] for name in names) for row in queue]  # type: ignore[misc]  # as many as there are names


@pytest.mark.parametrize("kind", ["by the run", "behind a window"])
def test_a_check_rejects_a_record_once_and_whole(kind: str, tmp_path: Path) -> None:
    folder = laid_out(tmp_path, '{ check: n > 0, name: pos }, { check: v != "3", name: three, message: no threes }', kind)
    for rows, expected in [
        ("1,1,1-2\n2,-1,3-4-5\n3,1,4-3\n", ("1:1 1:2", [("2", "validation_failure", "validation 'pos' failed", "pos"), ("3", "validation_failure", "no threes", "three")])),
        ("1,1,1-2\n2,1,2-4-5\n3,1,4-3-3\n", ("1:1 1:2 2:2 2:4 2:5", [("3", "validation_failure", "no threes", "three")])),
        ("1,1,1-3\n2,1,2-4-5\n3,1,4-6\n", ("2:2 2:4 2:5 3:4 3:6", [("1", "validation_failure", "no threes", "three")])),
        ("1,1,1\n2,1,\n", ("1:1 2:", [])),
    ]:
        folder.write("rows.csv", f"id,n,q\n{rows}")
        folder.run()
        assert stands(folder) == expected
        assert folder.violations() == []


def test_thresholds_and_warnings_count_records(tmp_path: Path) -> None:
    folder = laid_out(tmp_path, "{ check: n > 0, severity: warn, message: not positive }, { check: n > -5 }")
    folder.write("rows.csv", "id,n,q\n1,1,1-2\n2,-1,3-4-5\n3,0,\n4,-5,1-2-3\n")
    with standing_in(tmp_path):
        code, _, stderr = command("run", "pipeline.yaml", "--error-threshold", "1")
    assert (code, len(stands(folder)[1])) == (2, 1)
    assert "warning: node 'each': not positive (2 records)" in stderr


CHECKED = """\
pipeline: { name: checked }
nodes:
  - type: source
    name: s
    config:
      name: s
      type: json
      path: s.json
      schema: [{ name: id, type: int }, { name: m.q, type: float }, { name: m.t, type: string }, { name: "m. q", type: int, optional: true }, { name: filter, type: int, optional: true }]
  - { type: transform, name: t, input: s, config: { cxl: "emit a = id", validations: [CHECK] } }
  - { type: output, name: out, input: t, config: { name: out, type: csv, path: out.csv } }
error_handling: { strategy: continue }
"""


@pytest.mark.parametrize(
    ("check", "accepted"),
    [
        ("{ field: m.t, check: not_empty }", "1 3"), ("{ field: m.q, check: required }", "1 2"), ("{ field: m.q, check: positive }", "1 2"),
        ("{ field: m.q, check: range, args: { min: 1.0e-8, max: 1 } }", "1"), ("{ field: m.q, check: max, args: { value: 1.0e+19 } }", "1"),
        ("{ field: m.q, check: one_of, args: { values: [1.0e-7, 1.0e+20] } }", "1 2"),
    ],
)  # fmt: skip
def test_named_checks_of_paths_and_of_long_numbers(check: str, accepted: str, tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", CHECKED.replace("CHECK", check))
    folder.write("s.json", '[{"id": 1, "m": {"q": 1e-7, "t": "a"}}, {"id": 2, "m": {"q": 1e20, "t": ""}}, {"id": 3, "m": {"t": "b"}}]')
    folder.run()
    assert " ".join(row["id"] for row in folder.rows("out.csv")) == accepted


@pytest.mark.parametrize("name", ["m. q", "filter"])
def test_named_checks_need_a_name_that_a_program_can_read(name: str, tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", CHECKED.replace("CHECK", f'{{ field: "{name}", check: not_empty }}'))
    folder.write("s.json", "[]")
    with pytest.raises(errata.PipelineErrors) as caught:
        folder.load()
    assert [(one.code, one.message) for one in caught.value.diagnostics] == [("E250", f"'{name}' is no name that CXL can read, which the check 'not_empty' needs")]
