"""The example of every code: the editor shows what the command says, and what a message suggests mends it."""

from __future__ import annotations

from pathlib import Path

import pytest

from errata.api.pipeline import load
from errata.core.diagnostics import Diagnostic, PipelineErrors
from errata.editor.analysis import analyse
from errata.editor.fixes import fixes
from errata.editor.positions import applied
from errata.project.texts import Texts
from errata.yaml import SourceText
from tests.unit.project.test_pipeline_examples import AFTER, BEFORE, CASES, CHANNEL, Case

OWN = [case for case in CASES if case.nodes is not None and CHANNEL not in (case.files or {}) and "--var" not in case.settings and case.code != "E330"]


def written(case: Case, folder: Path) -> tuple[str, str]:
    """The file and the text of a case, with the files beside it."""
    for name, text in (case.files or {}).items():
        (folder / name).write_text(text, encoding="utf-8")
    correlated = case.settings.split()[0] == "correlated"
    text = BEFORE.format(correlated="      correlation_key: id\n" if correlated else "") + (case.nodes or "") + AFTER
    (folder / "pipeline.yaml").write_text(text, encoding="utf-8")
    return str(folder / "pipeline.yaml"), text


def said(file: str) -> list[Diagnostic]:
    """The command's diagnostics."""
    try:
        pipeline = load(file)
        pipeline.check()
        return list(pipeline.diagnostics)
    except PipelineErrors as errors:
        return list(errors.diagnostics)


@pytest.mark.disk
@pytest.mark.parametrize("case", OWN, ids=[case.name for case in OWN])
def test_the_editor_says_what_the_command_says(case, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file, text = written(case, tmp_path)
    found = analyse(file, Texts({file: text}), text).diagnostics
    assert {one for one in said(file) if one.is_error} == {one for one in found if one.is_error}
    source = SourceText(text, file)
    for fix in fixes([one for one in found if one.file == file], source):
        changed = applied(text, [fix.edit])
        again = analyse(file, Texts({file: changed}), changed).diagnostics
        assert (fix.diagnostic.code, fix.diagnostic.line, fix.diagnostic.message) not in [(one.code, one.line, one.message) for one in again], fix.title
