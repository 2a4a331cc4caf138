"""A file that is not saved has the diagnostics that `errata check` gives the saved one, at the same places."""

from __future__ import annotations

from pathlib import Path

import pytest

from errata.api.pipeline import load
from errata.core.diagnostics import PipelineErrors
from errata.editor.analysis import Superseded, analyse
from errata.editor.files import kind_of
from errata.project.texts import Texts
from tests.support.editing import SHOP, opened, problems

ROOT = Path(__file__).parents[3]
EXAMPLES = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "examples").rglob("*.yaml"))
WITH_TAX = """\
composition:
  name: with_tax
  requires: [{ name: amount, type: float }]
  params: [{ name: rate, type: float }]
nodes:
  - type: transform
    name: taxed
    input: input
    config: { cxl: "emit tax = amount * $vars.rate" }
"""


def checked(file: Path) -> list[tuple[str, int, int, str]]:
    """The command's diagnostics of a file on the disk."""
    try:
        pipeline = load(file)
        pipeline.check()
        found = pipeline.diagnostics
    except PipelineErrors as errors:
        found = errors.diagnostics
    return [(one.code, one.line, one.column, one.message) for one in found]


@pytest.mark.parametrize(
    "wrong",
    [
        ("input: priced", "input: prised"),
        ("emit label = customer.trim()", "emit label = customr.trim()"),
        ("where: order.customer", "where: oder.customer"),
        ("group_by: [tier]", "group_by: [tear]"),
        ("type: csv", "type: cvs"),
        ("      default: small", "      defaults: small"),
        ("    name: totals", "    name: totals\n  broken"),
        ("rate: { type: float", "rate: { type: flot"),
        ("merge: { strategy", "merge: { stratagy"),
    ],
)
def test_the_diagnostics_are_those_of_the_command(tmp_path, wrong):
    file = tmp_path / "pipeline.yaml"
    file.write_text(SHOP.replace(*wrong), encoding="utf-8")
    expected = checked(file)
    text = file.read_text(encoding="utf-8")
    file.write_text("nodes: [", encoding="utf-8")  # what is saved does not count
    found = analyse(str(file), Texts({str(file): text}), text)
    assert expected
    assert [(one.code, one.line, one.column, one.message) for one in found.diagnostics] == expected


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_have_no_errors(name):
    file = str(ROOT / name)
    text = Path(file).read_text(encoding="utf-8")
    assert [one for one in analyse(file, Texts({file: text}), text).diagnostics if one.is_error] == []


def test_a_composition_that_is_not_saved_counts(tmp_path):
    pipeline = SHOP.replace("input: priced\n    config:\n      conditions", "input: taxed\n    config:\n      conditions") + (
        "  - { type: composition, name: taxed, use: with_tax.comp.yaml, input: priced, config: { rate: 0.2 } }\n"
    )
    file, used = str(tmp_path / "pipeline.yaml"), str(tmp_path / "with_tax.comp.yaml")
    assert problems(analyse(file, Texts({file: pipeline, used: WITH_TAX}), pipeline)) == []
    broken = WITH_TAX.replace("amount *", "amont *")
    found = analyse(file, Texts({file: pipeline, used: broken}), pipeline)
    assert [(one.code, one.file, one.line) for one in found.diagnostics] == [("CXL-R001", used, 9)]


def test_a_composition_by_itself_has_the_fields_that_it_asks_for(tmp_path):
    found = opened(WITH_TAX, tmp_path, "with_tax.comp.yaml")
    assert problems(found.analysis) == []
    wrong = opened(WITH_TAX.replace("emit tax = amount", "emit tax = amount.trim()"), tmp_path, "with_tax.comp.yaml")
    assert problems(wrong.analysis) == [("CXL-T002", 9)]


def test_a_channel_is_checked_over_its_pipeline(tmp_path):
    (tmp_path / "channels").mkdir()
    (tmp_path / "pipeline.yaml").write_text(SHOP, encoding="utf-8")
    text = "channel: { name: acme, target: pipeline.yaml }\nvars: { static: { rate: { type: float, default: no } } }\n"
    file = str(tmp_path / "channels" / "acme.channel.yaml")
    found = analyse(file, Texts({file: text}), text)
    assert [(one.code, one.file, one.line) for one in found.diagnostics] == [("E107", file, 2)]


def test_modules_and_programs_in_files_of_their_own(tmp_path):
    (tmp_path / "rules").mkdir()
    module = opened("fn twice(x) = x * 2\nfn bad(x) = y\n", tmp_path / "rules", "shared.cxl")
    assert problems(module.analysis) == [("CXL-R001", 2)]
    program = opened("emit total = sum(amount)\nfilter 1\n", tmp_path, "totals.cxl")
    assert problems(program.analysis) == [("CXL-T006", 2)]


def test_foreign_files_have_no_diagnostics(tmp_path):
    assert opened("version: '3'\nservices: [\n", tmp_path, "compose.yaml").analysis.diagnostics == ()


@pytest.mark.parametrize(
    ("file", "text", "kind"),
    [
        ("a.yaml", "pipeline: {}", "pipeline"), ("a.yml", "x: [\nnodes:\n", "pipeline"), ("a.comp.yaml", "", "composition"), ("b.yaml", "_compose:", "composition"),
        ("a.channel.yaml", "", "channel"), ("a.cxl", "", "cxl"), ("a.yaml", "a: 1", "other"), ("a.toml", "nodes:", "other"), ("a.yaml", "{pipeline: {}}", "pipeline"),
    ],
)  # fmt: skip
def test_kinds_of_files(file, text, kind):
    assert kind_of(file, text) == kind


def test_a_check_ends_when_nobody_asks_any_more(tmp_path):
    file = str(tmp_path / "pipeline.yaml")
    with pytest.raises(Superseded):
        analyse(file, Texts({file: SHOP}), SHOP, lambda: False)


def test_secrets_are_not_shown(tmp_path, monkeypatch):
    monkeypatch.setenv("SHOP_TOKEN", "hunter22")
    found = opened(SHOP.replace("input: orders", "input: ${secret:SHOP_TOKEN}"), tmp_path)
    assert found.analysis.diagnostics
    assert not any("hunter22" in one.message + one.help for one in found.analysis.diagnostics)
