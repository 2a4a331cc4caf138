"""The message of `fail_fast` about the record that ended a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from errata.core.failures import Stopped
from tests.support.pipelines import Folder, command, standing_in

PIPELINE = """\
pipeline: { name: ratios, vars: { scale: 2 } }
nodes:
  - type: source
    name: o
    config: { name: o, type: csv, path: o.csv, schema: [{ name: total, type: int }, { name: count, type: int }, { name: what, type: string }, { name: rest, type: any }] }
  - type: transform
    name: compute_ratio
    input: o
    config:
      cxl: |
        let scaled = total * $vars.scale
        filter total > 0
        CXL
  - { type: output, name: out, input: compute_ratio, config: { name: out, type: csv, path: out.csv } }
"""


@pytest.mark.parametrize(
    ("cxl", "expression", "record"),
    [
        ("emit ratio = total / count", "emit ratio = total / count", "{total: 500, count: 0}"),
        ("emit ratio =\n          scaled / (count\n          * 1)", "emit ratio = scaled / (count * 1)", "{count: 0}"),
        ("emit n = what.to_int() + (if rest == null then 1 else 2)", "emit n = what.to_int() + (if rest == null then 1 else 2)", "{what: one, rest: text}"),
        ("filter 1 / count > 0", "filter 1 / count > 0", "{count: 0}"),
        ("emit each x in rest {\n          emit y = x\n        }", "emit each x in rest { emit y = x }", "{rest: text}"),
    ],
)
def test_the_expression_and_the_record_are_told(cxl: str, expression: str, record: str, tmp_path: Path) -> None:
    """"The error message includes the failing expression and the record that triggered it"."""
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", PIPELINE.replace("CXL", cxl))
    folder.write("o.csv", "total,count,what,rest\n0,0,,\n500,0,one,text\n")
    with standing_in(tmp_path):
        code, _, stderr = command("run", "pipeline.yaml", "--engine", "sail", "--quiet")
    assert code == 3
    assert f"\n  expression: {expression}\n  record: {record}\n" in stderr
    assert stderr.startswith("error: node 'compute_ratio': o.csv: record 2: ")


def test_a_failing_check_has_its_own_words(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", PIPELINE.replace("        CXL", "        emit a = 1\n      validations: [{ check: count > 0, message: none are left }]"))
    folder.write("o.csv", "total,count,what,rest\n500,0,one,text\n")
    with pytest.raises(Stopped, match="none are left") as caught:
        folder.run()
    assert not caught.value.details


@pytest.mark.parametrize(("rows", "code"), [("0,0,,\n500,0,one,text\n", 3), ("0,0\n", 4), ("one,0,,\n", 3)])
def test_the_last_line_names_the_file_to_fix(tmp_path: Path, rows: str, code: int) -> None:
    """A second run over the same file would end as the first did, so it is not what helps."""
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", PIPELINE.replace("CXL", "emit ratio = total / count"))
    folder.write("o.csv", "total,count,what,rest\n1,1,,\n")
    folder.run()
    folder.write("o.csv", f"total,count,what,rest\n1,1,,\n{rows}")
    with standing_in(tmp_path):
        ended, _, stderr = command("run", "pipeline.yaml", "--engine", "sail", "--quiet")
    assert ended == code
    assert stderr.endswith("\nEpoch 1 stands; fix o.csv, then run again.\n")


@pytest.mark.parametrize("change", ["", "3,3,,\n"], ids=["unchanged", "another record"])
@pytest.mark.parametrize(("row", "code", "category"), [("500,0,one,text\n", 3, "type_coercion_failure"), ("0,0\n", 4, "malformed_record")])
def test_what_was_let_pass_before_ends_a_run(tmp_path: Path, row: str, code: int, category: str, change: str) -> None:
    """A full run would end at a record that an earlier run rejected under `continue`; repaired, it ends none."""
    folder = Folder(tmp_path)
    strict = PIPELINE.replace("CXL", "emit ratio = total / count")
    folder.write("pipeline.yaml", f"{strict}error_handling: {{ strategy: continue }}\n")
    folder.write("o.csv", f"total,count,what,rest\n1,1,,\n{row}")
    assert folder.run().exit_code == 2
    folder.write("pipeline.yaml", strict)
    folder.write("o.csv", f"total,count,what,rest\n1,1,,\n{row}{change}")
    with standing_in(tmp_path):
        ended, _, stderr = command("run", "pipeline.yaml", "--engine", "sail", "--quiet")
    assert ended == code
    assert f"1 record was rejected by earlier runs and would end a full run: 1 as {category}" in stderr
    assert [one["total"] for one in folder.rows("out.csv")] == ["1"]
    folder.write("o.csv", "total,count,what,rest\n1,1,,\n500,1,one,text\n")
    assert folder.run().exit_code == 0


GROUPS = """\
pipeline: { name: groups }
error_handling: { strategy: STRATEGY, dlq: { path: out/dlq.csv } }
nodes:
  - type: source
    name: rows
    config:
      name: rows
      type: csv
      glob: rows/*.csv
      watermark: { column: at }
      schema: [{ name: at, type: date_time }, { name: g, type: any }, { name: price, type: "decimal(9,2)" }, { name: v, type: int }]
  - { type: aggregate, name: parts, input: rows, config: { group_by: [g, price], cxl: "emit part = 12 / sum(v)"WINDOW } }
  - { type: output, name: out, input: parts, config: { name: out, type: csv, path: out/parts.csv } }
"""


@pytest.mark.parametrize(("window", "named"), [
    ("", ["group g=7, price=2.50: division by zero", "group g=x, y, price=null: division by zero"]),
    (", time_window: { tumbling: { size: 1h } }", [
        "group $window.start=2024-05-01T00:00:00, g=7, price=2.50, $window.end=2024-05-01T01:00:00: division by zero",
        "group $window.start=2024-05-01T01:00:00, g=x, y, price=null, $window.end=2024-05-01T02:00:00: division by zero",
    ]),
])  # fmt: skip
def test_a_failed_group_is_named(tmp_path: Path, window: str, named: list[str]) -> None:
    folder = Folder(tmp_path)
    text = GROUPS.replace("WINDOW", window)
    folder.write("pipeline.yaml", text.replace("STRATEGY", "continue"))
    folder.write("rows/a.csv", 'at,g,price,v\n2024-05-01T00:10:00,7,2.5,0\n2024-05-01T00:20:00,z,1,4\n2024-05-01T01:10:00,"x, y",,0\n')
    folder.run()
    found = [(row["_cxl_dlq_error_detail"], row["g"], row["price"], row["v"]) for row in folder.rows("out/dlq.csv")]
    assert sorted(found) == [(named[0], "7", "2.50", ""), (named[1], "x, y", "", "")]
    folder.write("pipeline.yaml", text.replace("STRATEGY", "fail_fast"))
    with pytest.raises(Stopped) as stopped:
        folder.run(full_refresh=True)
    assert str(stopped.value) == f"node 'parts': {named[0]} (aggregate_finalize)"


def test_a_long_value_of_a_failed_group_is_shortened(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", GROUPS.replace("WINDOW", "").replace("STRATEGY", "continue"))
    long = "a\nb" + 3000 * "x"
    folder.write("rows/a.csv", f'at,g,price,v\n2024-05-01T00:10:00,"{long}",1,0\n')
    folder.run()
    assert [(row["_cxl_dlq_error_detail"], row["g"]) for row in folder.rows("out/dlq.csv")] == [(f"group g=a b{97 * 'x'}..., price=1.00: division by zero", long)]
