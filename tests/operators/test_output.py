"""Outputs: what is said of a `split:` that cannot work before anything is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from errata.diagnostics import PipelineErrors
from tests.operators.histories import heading, source
from tests.pipelines import Folder


@pytest.mark.parametrize(
    ("split", "code", "message"),
    [
        ("{ max_records: 2, group_key: depth }", "E251", "group field 'depth' does not reach this output"),
        ("{ max_records: 2, group_key: dept }, exclude: [dept]", "E251", "group field 'dept' does not reach this output"),
        ("{ max_records: 2, naming: '{when}.csv' }", "E218", "split.naming: unknown token {when}; there are {stem}, {seq:0N} and {ext}"),
        ("{ max_records: 2, naming: all.csv }", "E218", "split.naming: without {seq} all parts would have one name"),
    ],
)
def test_a_split_is_checked_with_the_pipeline(tmp_path: Path, split: str, code: str, message: str) -> None:
    folder = Folder(tmp_path)
    node = f"  - {{ type: output, name: out, input: rows, config: {{ name: out, type: csv, path: out.csv, split: {split} }} }}\n"
    folder.write("pipeline.yaml", heading("cut") + source("rows", {"id": "int", "dept": "string"}) + node)
    with pytest.raises(PipelineErrors) as caught:
        folder.load()
    assert [(one.code, one.message) for one in caught.value.diagnostics] == [(code, message)]
