"""Aggregates: what is provably sorted, and the dead letters of values of type any (aggregate-nodes.txt; SPEC-DECISIONS, "Error handling" 13)."""

from __future__ import annotations

from pathlib import Path

import pytest

import errata
from tests.pipelines import Folder

PIPELINE = """\
pipeline: {{ name: sums }}
error_handling: {{ strategy: continue, dlq: {{ path: dlq.csv }} }}
nodes:
  - type: source
    name: o
    config: {{ name: o, type: csv, path: o.csv, sort_order: {order}, schema: [{{ name: k, type: string }}, {{ name: z, type: int }}, {{ name: v, type: any }}] }}
  - {{ type: aggregate, name: sums, input: o, config: {{ group_by: {by}, strategy: {strategy}, cxl: emit t = sum(v) }} }}
  - {{ type: output, name: out, input: sums, config: {{ name: out, type: csv, path: out.csv }} }}
"""


@pytest.mark.parametrize(
    ("order", "by", "sorted_"),
    [("[k, z]", "[k]", True), ("[k, z]", "[z, k]", True), ("[k, {field: z, order: desc}]", "[k, z]", True), ("[k, z]", "[z]", False), ("[k]", "[k, z]", False), ("[k]", "[]", True)],
)
def test_streaming_needs_a_declared_order_that_holds_groups_together(order: str, by: str, sorted_: bool, tmp_path: Path) -> None:
    """"If your source declares a sort_order: that covers the group-by fields": rows of a group stand together whatever the order of the fields."""
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", PIPELINE.format(order=order, by=by, strategy="streaming"))
    if sorted_:
        folder.load()
        return
    with pytest.raises(errata.PipelineErrors) as caught:
        folder.load()
    assert [one.code for one in caught.value.diagnostics] == ["E241"]


def test_a_dead_letter_shows_plain_text_of_any_value(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", PIPELINE.format(order="[]", by="[k]", strategy="auto"))
    folder.write("o.csv", "k,z,v\na,1,some text\n")
    assert folder.run().exit_code == 2
    (letter,) = folder.rows("dlq.csv")
    assert (letter["_cxl_dlq_error_category"], letter["k"], letter["z"], letter["v"]) == ("aggregate_type_error", "a", "1", "some text")
