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
