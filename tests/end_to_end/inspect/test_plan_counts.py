"""`errata plan` says how many rows a node goes through, where that is known before the run (issue 7, item 3), and names whatever makes an epoch."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.pipelines import Folder

PIPELINE = """\
pipeline: { name: counted }
changelog: { persist: PERSIST }
nodes:
  - { type: source, name: words, config: { name: words, type: csv, path: words.csv, schema: [{ name: word, type: string }] } }
  - { type: transform, name: sized, input: words, config: { cxl: "emit size = word.length()" } }
  - { type: aggregate, name: sizes, input: sized, config: { group_by: [size], cxl: "emit n = count(*)" } }
  - { type: output, name: out, input: sizes, config: { name: out, type: csv, path: out.csv } }
"""


@pytest.mark.parametrize(("persist", "known"), [("all", 3), ("boundaries", None)])
def test_rows_are_told_where_they_are_known(tmp_path: Path, persist: str, known: int | None) -> None:
    folder = Folder(tmp_path)
    pipeline = PIPELINE.replace("PERSIST", persist)

    def plan(text: str) -> dict[str, tuple[str, int | None]]:
        folder.write("pipeline.yaml", text)
        return {row["node"]: (row["action"], row["rows"]) for row in folder.load().plan_next()}

    folder.write("words.csv", "word\none\nthree\nsix\n")
    assert plan(pipeline) == dict.fromkeys(("words", "sized", "sizes", "out"), ("first", None))
    folder.run()
    assert plan(pipeline) == dict.fromkeys(("words", "sized", "sizes", "out"), ("skip", 0))
    counting = plan(pipeline.replace("count(*)", "count(*) + 1"))
    assert counting == {"words": ("skip", 0), "sized": ("skip", 0), "sizes": ("rebuild", known), "out": ("delta", None)}
    folder.write("words.csv", "word\none\nthree\nsix\nten\n")
    assert plan(pipeline) == dict.fromkeys(("words", "sized", "sizes", "out"), ("delta", None))
    assert plan(pipeline.replace("word.length()", "word.length() + 1"))["sized"] == ("rebuild", None)


def test_what_moves_and_what_goes_is_planned(tmp_path: Path) -> None:
    """A run commits an epoch for each of these, so `plan` names them."""
    folder = Folder(tmp_path)
    folder.write("words.csv", "word\none\nthree\nsix\n")

    def planned(text: str) -> list[tuple[str, ...]]:
        folder.write("pipeline.yaml", text)
        rows = [(row["node"], row["type"], row["action"], row["rows"]) for row in folder.load().plan_next() if row["action"] != "skip"]
        assert folder.run().committed == bool(rows)
        return rows

    pipeline = PIPELINE.replace("PERSIST", "all")
    more = pipeline + "  - { type: output, name: more, input: words, config: { name: more, type: csv, path: more.csv } }\n"
    assert [action for _, _, action, _ in planned(more)] == ["first"] * 5
    assert planned(pipeline) == [("more", "output", "remove", 0)]
    assert planned(pipeline.replace("out.csv", "other.csv")) == [("out", "output", "move", 2)]
    folder.run()
    folder.remove("other.csv")
    (restored,) = (row for row in folder.load().plan_next() if row["action"] != "skip")
    assert (restored["node"], restored["action"], restored["rows"], restored["reason"]) == ("out", "restore", 2, "it is not as the last run left it")
    assert (folder.run().committed, (tmp_path / "other.csv").exists()) == (False, True)
    rejecting = pipeline.replace("type: string", "type: int").replace("word.length()", "word") + "error_handling: { strategy: continue, dlq: { path: DLQ } }\n"
    planned(rejecting.replace("DLQ", "a.csv"))
    assert planned(rejecting.replace("DLQ", "b.csv")) == [("dlq", "dlq", "move", 3)]
    assert planned(rejecting.replace("DLQ", "b.csv")) == []


HELD = """\
pipeline: { name: held }
error_handling: { strategy: continue, dlq: { path: rejects.csv } }
nodes:
  - { type: source, name: s, config: { name: s, type: csv, path: s.csv, correlation_key: [g], schema: [{ name: g, type: string }, { name: v, type: int }] } }
  - { type: transform, name: t, input: s, config: { cxl: "emit share = 12 / v" } }
  - { type: output, name: out, input: t, config: { name: out, type: csv, path: out.csv } }
"""


def test_a_move_is_told_where_records_that_are_held_back_are_tried_again_too(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", HELD)
    folder.write("s.csv", "g,v\na,1\na,0\nb,2\n")
    folder.run()
    folder.write("pipeline.yaml", HELD.replace("out.csv", "moved.csv"))
    (step,) = (row for row in folder.load().plan_next() if row["node"] == "out")
    assert (step["action"], step["rows"], step["reason"]) == ("move", None, "it is written elsewhere; input changed: t")


EDITED = """\
pipeline: { name: edited }
nodes:
  - { type: source, name: words, config: { name: words, type: csv, path: words.csv, schema: [{ name: word, type: string }] } }
  - type: transform
    name: sized
    input: words
    config:
      cxl: |
        emit size = word.length()
        # as people read it
        emit shown = word.upper()
        emit first = word.left(1)
  - type: aggregate
    name: sizes
    input: sized
    config: { group_by: [size], cxl: "emit n = count(*)" }
  - { type: output, name: out, input: sizes, config: { name: out, type: csv, path: out.csv } }
"""


@pytest.mark.parametrize(
    ("edits", "node", "reason"),
    [
        ({"upper()": "lower()"}, "sized", "expression changed at line 11"),
        ({"# as people read it": "# in capitals", "left(1)": "left(2)"}, "sized", "expression changed at line 12"),
        ({"        emit first = word.left(1)\n": ""}, "sized", "expression changed at line 11"),
        ({"upper()\n": "upper()\n        emit more = 1\n", "left(1)": "left(2)"}, "sized", "expression changed at line 12"),
        ({"[size]": "[size, shown]"}, "sizes", "'group_by' changed at line 16"),
        ({"count(*)": "count(*) + 1", "[size]": "[shown]"}, "sizes", "expression changed at line 16; 'group_by' changed at line 16"),
        ({"path: out.csv": "path: out.csv, exclude: [n]"}, "out", "'exclude' changed at line 17"),
    ],
)
def test_the_line_of_an_edit_is_told(tmp_path: Path, edits: dict[str, str], node: str, reason: str) -> None:
    """The reason names the line, such as "expression changed at line 14"."""
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", EDITED)
    folder.write("words.csv", "word\none\nthree\nsix\n")
    folder.run()
    text = EDITED
    for old, new in edits.items():
        assert old in text
        text = text.replace(old, new)
    folder.write("pipeline.yaml", text)
    reasons = {row["node"]: row["reason"] for row in folder.load().plan_next() if row["action"] == "rebuild"}
    assert reasons.pop(node) == reason
    assert all(" changed" in why and why.startswith("the columns of ") for why in reasons.values())


def test_what_is_no_edit_of_the_file_is_told_without_a_line(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", EDITED.replace("name: edited", "name: edited, vars: { pipeline: { least: { type: int, default: 1 } } }").replace("word.length()", "word.length() + $pipeline.least"))
    folder.write("words.csv", "word\none\nthree\nsix\n")
    folder.run()
    (step,) = (row for row in folder.load(variables={"pipeline.least": 2}).plan_next() if row["action"] == "rebuild")
    assert (step["node"], step["reason"]) == ("sized", "$pipeline.least changed")


BESIDE = """\
pipeline: { name: beside, date_formats: ["%d.%m.%Y"], vars: { pipeline: { least: { type: int, default: 1 } } } }
nodes:
  - type: source
    name: fixed
    config: { name: fixed, type: fixed_width, path: fixed.txt, format_schema: layout.yaml, schema: [{ name: a, type: string }, { name: at, type: date }] }
  - { type: composition, name: call, input: fixed, use: part.comp.yaml, config: { most: 9 } }
  - { type: transform, name: kept, input: call, config: { cxl: "use sizes\\nfilter a.length() >= $pipeline.least\\nemit b = sizes::sized(a)" } }
  - { type: output, name: out, input: kept, config: { name: out, type: csv, path: out.csv } }
"""
FILES = {
    "layout.yaml": "fields:\n  - { name: a, start: 0, width: 2 }\n  - { name: at, start: 2, width: 10 }\n",
    "part.comp.yaml": """\
_compose:
  name: part
  inputs: { rows: { schema: [{ name: a, type: string }] } }
  outputs: { rows: short }
  config_schema: { most: { type: int, required: true } }
nodes:
  - { type: transform, name: short, input: rows, config: { cxl: "filter a.length() < $vars.most" } }
""",
    "rules/sizes.cxl": "fn sized(s) = s.length() + 1\n",
    "fixed.txt": "aa01.02.2024\nbb03.04.2024\n",
}


@pytest.mark.parametrize(
    ("file", "edit", "node", "reason"),
    [
        ("pipeline.yaml", ("default: 1", "default: 2"), "kept", "$pipeline.least changed"),
        ("pipeline.yaml", ("%d.%m", "%m.%d"), "fixed", "'date_formats' of the pipeline changed"),
        ("layout.yaml", ("start: 0, width: 2", "start: 0, width: 1"), "fixed", "format_schema layout.yaml changed"),
        ("rules/sizes.cxl", ("+ 1", "+ 2"), "kept", "module sizes changed"),
        ("pipeline.yaml", ("most: 9", "most: 8"), "call/short", "$vars.most changed"),
        ("part.comp.yaml", ("<", "<="), "call/short", "expression changed at line 7 of part.comp.yaml"),
    ],
)
def test_what_changed_beside_a_node_is_named(tmp_path: Path, file: str, edit: tuple[str, str], node: str, reason: str) -> None:
    folder = Folder(tmp_path)
    for name, text in {**FILES, "pipeline.yaml": BESIDE}.items():
        folder.write(name, text)
    folder.run()
    assert edit[0] in folder.text(file)
    folder.write(file, folder.text(file).replace(*edit))
    assert {row["node"]: row["reason"] for row in folder.load().plan_next() if row["action"] == "rebuild"}[node] == reason
