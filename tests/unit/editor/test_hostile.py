"""Nothing that is typed ends an answer with an exception: random edits of the examples, and hostile texts."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cxl.typed.target import Target
from errata.editor.analysis import analyse
from errata.editor.collect import names_of
from errata.editor.completion import complete
from errata.editor.cxl_completion import cxl_items
from errata.editor.files import kind_of
from errata.editor.fixes import fixes
from errata.editor.formatting import format_cxl, format_yaml
from errata.editor.hover import hover
from errata.editor.navigation import definitions, references
from errata.editor.outline import outline, outline_cxl
from errata.editor.positions import applied
from errata.editor.rename import Refused, rename
from errata.project.texts import Texts
from errata.yaml import parse_yaml
from tests.support.editing import SHOP
from tests.support.examples import examples

ROOT = Path(__file__).parents[3]
TEXTS = {str(path): path.read_text(encoding="utf-8") for path in sorted((ROOT / "examples").rglob("*.yaml"))}
PIECES = ["", " ", "\n", ":", ": ", "- ", "{", "}", "[", "]", "'", '"', "|\n", "&a ", "*a", "!x ", "$", "${X}", ".", "\t", "\U0001f600", "name", "emit ", "match {", "\r\n", "#", "? ", "<<: ", "~", "\u2028"]


def ask_everything(file: str, text: str, place: int) -> None:
    """Ask whatever an editor may ask of a text at a place."""
    texts = Texts({file: text})
    analysis = analyse(file, texts, text)
    names = names_of(analysis)
    document = analysis.documents.get(file)
    complete(analysis, file, text, place)
    complete(None, file, text, place)
    parsed = parse_yaml(text, file=file, env={})
    outline(parsed)
    edits = format_yaml(parsed)
    applied(parsed.source.text, edits)
    list(fixes(analysis.diagnostics, parsed.source))
    definitions(analysis, names, document, file, place)
    references(names, file, place)
    if document is not None:
        hover(analysis, names, document, place)
    with contextlib.suppress(Refused):
        rename(analysis, names, texts, (file, place), "fresh")


@given(st.data())
@examples(400, least=40)
def test_random_edits_of_the_examples(data):
    file = data.draw(st.sampled_from(sorted(TEXTS)))
    text = TEXTS[file]
    place = 0
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(text)))
        end = min(len(text), place + data.draw(st.integers(0, 30)))
        text = text[:place] + data.draw(st.sampled_from(PIECES)) + text[end:]
    ask_everything(file, text, place)


@given(st.data())
@examples(200, least=20)
def test_a_text_that_is_cut_anywhere(data):
    place = data.draw(st.integers(0, len(SHOP)))
    ask_everything(str(ROOT / "examples" / "shop.yaml"), SHOP[:place], place)


@given(st.text(max_size=60), st.sampled_from(["row", "aggregate", "combine", "predicate", "set", "expression"]), st.data())
@examples(200, least=30)
def test_any_text_of_cxl(text, mode, data):
    place = data.draw(st.integers(0, len(text)))
    cxl_items(Target(open=True, window=True), text[:place], text[place:], mode)
    outline_cxl(text, "a.cxl")
    format_cxl(text, "a.cxl")
    analyse("/nowhere/a.cxl", Texts({}), text)


@pytest.mark.parametrize(
    "text",
    [
        "pipeline: &a [*a]\nnodes: *a\n",
        "nodes: " + "[" * 200,
        "nodes:\n" + "".join(f"{' ' * depth}- a:\n" for depth in range(100)),
        "nodes:\n  - " + "x" * 100_000,
        "nodes:\n  - { type: transform, name: t, input: t, config: { cxl: '" + "(" * 5_000 + "' } }",
        'nodes:\n  - { type: composition, name: c, use: "a\\0b", input: c }',
        "nodes:\n  - { type: composition, name: c, use: ../../../../../../etc/passwd }",
        "nodes:\n  - { type: composition, name: [], use: {} }\n  - 3\n  - name: 7\n",
        "nodes: {a: b}\npipeline: 3\n",
        "a: &x [1,1,1,1]\nb: &y [*x,*x,*x,*x]\nc: &z [*y,*y,*y,*y]\nnodes: [*z,*z,*z,*z]\n",
        "nodes:\n" + "  - {}\n" * 3_000,
        "\x00nodes:",
        "\ufeffnodes:\n  - { type: source }\n",
        "nodes:\n  - { type: state, name: s, input: x, config: { scope: [], set: [{ var: 3, cxl: [] }, 4] } }\n",
        "nodes:\n  - { type: route, name: r, input: x, config: { conditions: [1], default: {} } }\n",
        "nodes:\n  - { type: output, name: o, input: x, config: { mapping: [a], sort_order: {}, history: 3 } }\n",
        "nodes:\n  - { type: transform, name: t, input: x, config: { analytic_window: { source: 3, group_by: 4 } } }\n",
        "_compose: 3\nnodes: 4\n",
        "composition: { params: { a: 1 }, requires: 3 }\nnodes:\n  - { type: transform, name: t, input: input, config: { cxl: emit a = b } }\n",
        "channel: { target: [] }\nvars: { source: { a: 3 }, static: [] }\n",
    ],
)  # fmt: skip
def test_hostile_texts(text):
    for file in ("/nowhere/a.yaml", "/nowhere/a.comp.yaml", "/nowhere/a.channel.yaml"):
        for place in (0, len(text) // 2, len(text)):
            ask_everything(file, text, place)
        kind_of(file, text)


def test_a_node_that_is_too_long_is_not_completed():
    text = "nodes:\n  - " + "x, " * 60_000
    assert complete(None, "/nowhere/a.yaml", text, len(text)).items == ()
