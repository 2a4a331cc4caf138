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


NUMBERS = """\
pipeline: { name: numbers }
nodes:
  - type: source
    name: o
    config: { name: o, type: csv, path: o.csv, schema: [{ name: id, type: int }, { name: v, type: numeric }] }
  - { type: aggregate, name: sums, input: o, config: { group_by: [v], cxl: emit n = count(*) } }
  - { type: transform, name: ranked, input: o, config: { cxl: emit r = $window.rank(), analytic_window: { group_by: [], sort_by: [v] } } }
  - { type: transform, name: once, input: o, config: { cxl: distinct by v } }
  - { type: output, name: sums_out, input: sums, config: { name: sums_out, type: csv, path: sums.csv } }
  - { type: output, name: ranked_out, input: ranked, config: { name: ranked_out, type: csv, path: ranked.csv, sort_order: [{ field: v, order: desc }] } }
  - { type: output, name: once_out, input: once, config: { name: once_out, type: csv, path: once.csv, sort_order: [v] } }
"""


def test_numbers_of_both_kinds_compare_by_their_value(tmp_path: Path) -> None:
    """SPEC-DECISIONS, Operators 21: "Int and Float compare by value"; the type `numeric` is "union of int and float"."""
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", NUMBERS)
    folder.write("o.csv", "id,v\n1,10\n2,9\n3,-3\n4,2.5\n5,1e1\n6,\n")
    folder.run()
    assert folder.text("sums.csv") == "v,n\n-3,1\n2.5,1\n9,1\n10,2\n,1\n"
    assert folder.text("ranked.csv") == "id,v,r\n1,10,4\n5,10,4\n2,9,3\n4,2.5,2\n3,-3,1\n6,,6\n"
    assert folder.text("once.csv") == "id,v\n3,-3\n4,2.5\n2,9\n1,10\n6,\n"
    folder.write("o.csv", "id,v\n2,9\n3,-3\n4,2.5\n5,1e1\n6,\n7,10\n8,9.0\n")
    folder.run()
    assert folder.text("sums.csv") == "v,n\n-3,1\n2.5,1\n9,2\n10,2\n,1\n"
    assert [row["id"] for row in folder.rows("once.csv")] == ["3", "4", "2", "5", "6"]
    assert not folder.violations()
