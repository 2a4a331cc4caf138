"""Quick fixes mend what they say, and formatting gives what `cxl fmt` gives."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from cxl.syntax.format import format_text
from errata.editor.analysis import analyse
from errata.editor.fixes import fixes
from errata.editor.formatting import format_cxl, format_yaml
from errata.editor.positions import applied
from errata.project.texts import Texts
from errata.yaml import parse_yaml
from tests.support.editing import SHOP, opened
from tests.support.examples import examples

ROOT = Path(__file__).parents[3]
EXAMPLES = sorted(str(path) for path in (ROOT / "examples").rglob("*.yaml"))


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("input: priced", "input: prised"),
        ("order: sized.large", "order: sizes.large"),
        ("order: sized.large", "order: sized.larg"),
        ("emit label = customer.trim()", "emit label = custmer.trim()"),
        ("emit label = customer.trim()", "emit label = customer.trm()"),
        ("emit tier = who.tier", "emit tier = who.teir"),
        ("emit revenue = sum(total)", "emit revenue = summ(total)"),
        ("group_by: [tier]", "group_by: [teir]"),
        ("primary_key: [id]", "primary_key: [ids]"),
        ("type: aggregate", "type: agregate"),
        ("default: small", "defualt: small"),
        ("strategy: snapshot", "strategi: snapshot"),
        ("$vars.rate", "$vars.rates"),
        ("field: label", "field: lable"),
    ],
)
def test_a_fix_mends_its_diagnostic(tmp_path, right, wrong):
    assert right in SHOP
    text = SHOP.replace(right, wrong, 1)
    found = opened(text, tmp_path)
    (fix,) = fixes(found.analysis.diagnostics, found.document.source)
    assert applied(text, [fix.edit]) == SHOP
    assert fix.title.startswith("Replace '")


UGLY = "let   x=1\nemit a =   x+1 # why\n\n\nemit b= if x>1 then 2 else 3\n"


def test_formatting_is_that_of_cxl_fmt(tmp_path):
    indented = "".join(f"        {line}\n" if line else "\n" for line in UGLY.splitlines())
    text = SHOP.replace("        emit revenue = sum(total)\n", "        emit revenue   =   sum( total )\n").replace(
        "        # a comment: amount stays\n        let gross = amount * $vars.rate\n        emit amount = gross\n        emit label = customer.trim()\n", indented
    )
    changed = applied(text, format_yaml(parse_yaml(text)))
    programs = [node["config"]["cxl"] for node in yaml.safe_load(changed)["nodes"] if "cxl" in node["config"]]
    assert programs[0] == format_text(UGLY)
    assert "        emit revenue = sum(total)\n" in changed
    assert format_yaml(parse_yaml(changed)) == []


@pytest.mark.parametrize(
    "scalar",
    ['"emit  a=1"', "emit  a=1", ">\n        emit  a=1\n", "|\n        emit a = (\n", "|\n        emit  a='${HOME}'\n"],
)
def test_what_is_left_alone(scalar):
    text = f"pipeline: {{ name: p }}\nnodes:\n  - type: transform\n    name: t\n    input: s\n    config:\n      cxl: {scalar}\n"
    assert format_yaml(parse_yaml(text)) == []


def test_line_ends_of_windows_stay():
    text = "nodes:\r\n  - type: transform\r\n    name: t\r\n    config:\r\n      cxl: |\r\n        emit  a=1\r\n        emit  b=2\r\n"
    assert applied(text, format_yaml(parse_yaml(text))) == text.replace("a=1", "a = 1").replace("b=2", "b = 2").replace("emit  ", "emit ")


def test_a_file_of_cxl():
    assert applied(UGLY, format_cxl(UGLY, "a.cxl")) == format_text(UGLY)
    assert format_cxl("emit a = (", "a.cxl") == []
    assert format_cxl(format_text(UGLY), "a.cxl") == []


@given(st.sampled_from(EXAMPLES), st.lists(st.sampled_from(["|", "|-", "|+"]), min_size=1, max_size=1))
@examples(30, least=8)
def test_formatting_changes_programs_alone_and_once(name, marks):
    text = Path(name).read_text(encoding="utf-8").replace("cxl: |\n", f"cxl: {marks[0]}\n")
    changed = applied(text, format_yaml(parse_yaml(text)))
    assert format_yaml(parse_yaml(changed)) == []
    before, again = (analyse(name, Texts({name: one}), one) for one in (text, changed))
    assert [one.code for one in before.diagnostics] == [one.code for one in again.diagnostics]
    if before.draft is not None and again.draft is not None:
        assert [node.fingerprint() for node in before.draft.nodes.values()] == [node.fingerprint() for node in again.draft.nodes.values()]
