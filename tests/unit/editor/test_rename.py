"""A rename changes every place of a name and no other, and is refused where it would change what a pipeline does."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from errata.editor.analysis import Analysis, analyse
from errata.editor.collect import names_of
from errata.editor.files import kind_of
from errata.editor.rename import Refused, rename
from errata.project.texts import Texts
from tests.support.editing import SHOP, after, marked, opened
from tests.support.examples import examples
from tests.unit.editor.test_answers import BODY, USING

ROOT = Path(__file__).parents[3]
PIPELINES = sorted(str(path) for path in (ROOT / "examples").rglob("*.yaml") if kind_of(str(path), path.read_text(encoding="utf-8")) == "pipeline")


def renamed(tmp_path, at: str, new: str, text: str = SHOP, **others: str) -> dict[str, str]:
    """The files after a rename, by name."""
    found = opened(marked(text, at), tmp_path, **others)
    edits = rename(found.analysis, found.names, found.texts, (found.file, found.place), new)
    files = {file: document.source.text for file, document in found.analysis.documents.items()}
    return {file.rpartition("/")[2]: changed for file, changed in after(edits, files).items()}


def test_a_node(tmp_path):
    changed = renamed(tmp_path, "input: pri§ced", "valued")["pipeline.yaml"]
    assert changed == SHOP.replace("priced", "valued")


def test_a_column_of_a_source_keeps_its_name_in_the_file(tmp_path):
    changed = renamed(tmp_path, "let gross = amo§unt", "sum_due")["pipeline.yaml"]
    expected = SHOP.replace("- name: amount\n", "- name: sum_due\n          source_name: amount\n")
    for line in ("let gross = amount", "emit amount = gross", "large: amount >", "order.amount"):
        expected = expected.replace(line, line.replace("amount", "sum_due"))
    assert changed == expected  # the comment keeps its word


def test_a_column_in_braces_keeps_its_name_in_the_file(tmp_path):
    changed = renamed(tmp_path, "name: ti§er", "level")["pipeline.yaml"]
    assert "{ name: level, source_name: tier, type: string }" in changed
    assert "emit tier = who.level" in changed  # what the combine emits is another column
    assert "group_by: [tier]" in changed


def test_a_column_that_has_a_name_in_the_file_already(tmp_path):
    text = SHOP.replace("{ name: tier, type: string }", "{ name: tier, source_name: Tier, type: string }")
    assert "{ name: level, source_name: Tier, type: string }" in renamed(tmp_path, "name: ti§er", "level", text)["pipeline.yaml"]


def test_a_column_that_is_made(tmp_path):
    changed = renamed(tmp_path, "emit ti§er = who.tier", "level")["pipeline.yaml"]
    assert changed == SHOP.replace("emit tier", "emit level").replace("group_by: [tier]", "group_by: [level]").replace("sort_order: [tier]", "sort_order: [level]")


@pytest.mark.parametrize(
    ("at", "new", "old"),
    [("let gr§oss", "whole", "gross"), ("input: { ord§er:", "bought", "order"), ("order: sized.la§rge", "big", "large"), ("ra§te: { type", "factor", "rate")],
)
def test_other_names(tmp_path, at, new, old):
    changed = renamed(tmp_path, at, new)["pipeline.yaml"]
    found = opened(changed, tmp_path)
    assert [one for one in found.analysis.diagnostics if one.is_error] == []
    assert changed.count(new) == len(names_of(opened(SHOP, tmp_path).analysis).places(opened(marked(SHOP, at), tmp_path).names.at(found.file, marked(SHOP, at).index("§")).name))
    assert old in SHOP


def test_a_column_in_a_composition(tmp_path):
    changed = renamed(tmp_path, "{ name: amo§unt", "due", USING, with_tax__comp__yaml=BODY)
    assert changed["with_tax.comp.yaml"] == BODY.replace("amount", "due")
    assert "{ name: due, source_name: amount, type: float }" in changed["pipeline.yaml"]


@pytest.mark.parametrize(
    ("at", "new", "why"),
    [
        ("let gross = amo§unt", "customer", "has a column 'customer' already"),
        ("let gross = amo§unt", "2nd", "is no name"),
        ("let gross = amo§unt", "emit", "is a word of CXL"),
        ("let gross = amo§unt", "_op", "changelogs use themselves"),
        ("name: pri§ced", "orders", "would have an error"),
        ("strat§egy", "x", "no name here"),
    ],
)
def test_what_is_refused(tmp_path, at, new, why):
    with pytest.raises(Refused, match=why):
        renamed(tmp_path, at, new)


def test_a_name_that_another_would_hide_is_refused(tmp_path):
    text = SHOP.replace("emit label = customer.trim()", "emit label = id + 1")
    with pytest.raises(Refused, match="would mean something else"):
        renamed(tmp_path, "name: i§d", "gross", text)


def test_a_file_with_errors_is_left_alone(tmp_path):
    with pytest.raises(Refused, match="mend them first"):
        renamed(tmp_path, "name: pri§ced", "valued", SHOP.replace("type: aggregate", "type: agregate"))


def shape(analysis: Analysis, new: str, old: str) -> list[tuple[str, list[tuple[str, str]]]]:
    """The columns of all nodes, the renamed one under its old name."""
    assert analysis.draft is not None
    return [
        (spec.kind, [(old if name == new else name, str(type_)) for name, type_ in analysis.columns(spec.name).items()]) for spec in analysis.draft.specs.values()
    ]


@given(st.data())
@examples(60, least=12)
def test_any_rename_of_an_example_leaves_its_meaning(data):
    file = data.draw(st.sampled_from(PIPELINES))
    text = Path(file).read_text(encoding="utf-8")
    analysis = analyse(file, Texts({file: text}), text)
    names = names_of(analysis)
    made = [one for one in names.found if one.name.kind in ("node", "column", "let", "qualifier", "port") and one.region.end > one.region.start]
    found = data.draw(st.sampled_from(sorted(made, key=lambda one: one.region.key)))
    try:
        edits = rename(analysis, names, Texts({file: text}), (found.region.file, found.region.start), "zz_fresh")
    except Refused as refused:
        known = "not made in these files" in str(refused) or found.name.kind == "port"  # the port of a composition without ports has a fixed name
        assert known or "type: corrections" in text, str(refused)  # noqa: PT017 - files of corrections name columns too
        return
    files = {one: document.source.text for one, document in analysis.documents.items()}
    changed = after(edits, files)
    again = analyse(file, Texts(changed), changed[file])
    assert [one for one in again.diagnostics if one.is_error] == []
    assert sum(one.count("zz_fresh") for one in changed.values()) == len(edits)
    assert shape(again, "zz_fresh", found.region.text) == shape(analysis, "zz_fresh", found.region.text) or found.name.kind != "column"
