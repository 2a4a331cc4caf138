"""The examples on the pages of codes that planning reports: put into a small pipeline, each causes its code and no other."""

from pathlib import Path

import pytest

from errata import project
from errata.codes import pages
from errata.diagnostics import PipelineErrors

BEFORE = """\
pipeline:
  name: example
nodes:
  - type: source
    name: orders
    config:
      name: orders
      type: csv
      path: orders.csv
{correlated}      schema: [{{name: id, type: int}}, {{name: region, type: string}}, {{name: amount, type: float}}]
"""
AFTER = """\
  - type: output
    name: result
    input: orders
    config: {name: result, type: csv, path: result.csv}
"""
EXAMPLES = [(code, one) for code, page in pages().items() for one in page.examples if one.settings in ("pipeline", "correlated")]


def _codes(folder: Path, text: str, *, correlated: bool) -> set[str]:
    file = folder / "pipeline.yaml"
    file.write_text(BEFORE.format(correlated="      correlation_key: id\n" if correlated else "") + text + AFTER)
    try:
        project.load(file)
    except PipelineErrors as errors:
        return {one.code for one in errors.diagnostics if one.is_error}
    return set()


def test_the_pipeline_around_the_examples_is_valid(tmp_path: Path) -> None:
    assert _codes(tmp_path, "", correlated=False) == set()
    assert _codes(tmp_path, "", correlated=True) == set()


@pytest.mark.parametrize(("text", "code"), [(None, "FILE-001"), ("pipeline:\n\tname: x\n", "YAML-001"), ("- a\n", "YAML-010")])
def test_a_file_that_cannot_be_read_has_no_further_problems(text: str | None, code: str, tmp_path: Path) -> None:
    file = tmp_path / "pipeline.yaml"
    if text is not None:
        file.write_text(text)
    with pytest.raises(PipelineErrors) as caught:
        project.load(file)
    assert [one.code for one in caught.value.diagnostics] == [code]


@pytest.mark.parametrize(("code", "example"), EXAMPLES, ids=[code for code, _ in EXAMPLES])
def test_example(code: str, example, tmp_path: Path) -> None:
    assert _codes(tmp_path, example.text, correlated=example.settings == "correlated") == {code}
