"""`errata plan` says how many rows a node goes through, where that is known before the run (issue 7, item 3)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pipelines import Folder

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
