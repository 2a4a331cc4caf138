"""`errata why`: take the records that it names away and the row is another or gone."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from errata.core.failures import Usage
from errata.core.options import Correction, EngineOptions, RunOptions
from tests.support.audited import LINES, NODES, PRICES, lines, prices, project, with_history
from tests.support.pipelines import Folder

KEYS = {"lines": ("line",), "prices": ("sku", "label", "price")}


def shown(folder: Folder, node: str) -> Counter[tuple[tuple[str, Any], ...]]:
    return Counter(tuple(row.items()) for row in folder.load().show(node))


def behind(folder: Folder, node: str, row: dict[str, Any]) -> dict[str, set[tuple[Any, ...]]]:
    """The live source records that `why` names, by source, as tuples of the values that tell them apart."""
    named: dict[str, set[tuple[Any, ...]]] = {"lines": set(), "prices": set()}
    for found in folder.load().why(node, {name: str(value) for name, value in row.items()}):
        if found["live"]:
            named[found["source"]].add(tuple(found["data"][name] for name in KEYS[found["source"]]))
    return named


def without(records: list[dict[str, Any]], source: str, named: dict[str, set[tuple[Any, ...]]]) -> list[dict[str, Any]]:
    return [record for record in records if tuple(record[name] for name in KEYS[source]) not in named[source]]


@pytest.mark.parametrize("seed", range(3))
def test_without_the_named_records_the_row_is_another_or_gone(seed: int, tmp_path: Path) -> None:
    folder = project(tmp_path / "whole", seed)
    folder.run()
    chance = random.Random(seed)
    for node in NODES:
        before = shown(folder, node)
        if not before:
            continue
        row = chance.choice(sorted(before, key=str))
        named = behind(folder, node, dict(row))
        assert named["lines"]
        rest = Folder(tmp_path / f"rest-{node}")
        rest.write("pipeline.yaml", folder.text("pipeline.yaml"))
        rest.write_csv("lines.csv", LINES, without(lines(seed), "lines", named))
        rest.write_csv("prices.csv", PRICES, without(prices(seed), "prices", named))
        rest.run(ephemeral=False)
        assert shown(rest, node)[row] < before[row], node


@pytest.mark.parametrize("seed", range(2))
def test_records_that_are_not_named_do_not_matter(seed: int, tmp_path: Path) -> None:
    folder = project(tmp_path / "whole", seed)
    folder.run()
    for node in ("priced", "totals", "running"):
        row = min(shown(folder, node), key=str)
        named = behind(folder, node, dict(row))
        kept = {"lines": lines(seed), "prices": prices(seed)}
        only = {source: [one for one in records if one not in without(records, source, named)] for source, records in kept.items()}
        rest = Folder(tmp_path / f"only-{node}")
        rest.write("pipeline.yaml", folder.text("pipeline.yaml"))
        rest.write_csv("lines.csv", LINES, only["lines"])
        rest.write_csv("prices.csv", PRICES, only["prices"] or prices(seed))
        rest.run()
        assert shown(rest, node)[row], node


DISTINCT = """
pipeline: {name: kept}
nodes:
  - {type: source, name: s, config: {name: s, type: csv, path: s.csv, schema: [{name: id, type: int}, {name: a, type: int}, {name: b, type: string}]}}
  - {type: transform, name: t, input: s, config: {cxl: "STATEMENTS"}}
  - {type: output, name: out, input: t, config: {name: out, type: csv, path: out.csv, exclude: [id]}}
"""


@pytest.mark.parametrize(
    ("statements", "named"), [("distinct by a", {1, 2, 3}), ("distinct by a\\ndistinct by b", {1, 2, 3, 4, 5}), ("distinct by b\\ndistinct by a", {1, 2, 3, 4, 6})]
)
def test_records_that_would_stand_in_the_place_of_one_that_is_kept_are_named(statements: str, named: set[int], tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", DISTINCT.replace("STATEMENTS", statements))
    records = [(1, 1, "x"), (2, 1, "x"), (3, 1, "y"), (4, 2, "x"), (5, 2, "z"), (6, 3, "y"), (7, 3, "w")]
    for left in (records, [one for one in records if one[0] not in named]):
        folder.write("s.csv", "id,a,b\n" + "".join(f"{one},{a},{b}\n" for one, a, b in left))
        folder.run()
        if left is records:
            assert {found["data"]["id"] for found in folder.load().why("out", {"a": "1", "b": "x"})} == named
    assert "1,x" not in folder.text("out.csv").splitlines()


ROLLED_BACK = """
pipeline: {name: sales}
error_handling: {strategy: continue}
nodes:
  - {type: source, name: s, config: {name: s, type: csv, path: in.csv, correlation_key: sale, schema: [{name: sale, type: int}, {name: n, type: int}]}}
  - {type: transform, name: t, input: s, config: {cxl: "emit share = 10 / n"}}
  - {type: output, name: out, input: t, config: {name: out, type: csv, path: out.csv}}
"""


@pytest.mark.parametrize(
    ("node", "conditions", "message"),
    [("s", {"sale": "1"}, "2 records of these values are"), ("out", {"sale": "1", "n": "5"}, "1 record of these values is"), ("out", {"share": "7"}, "2 records are")],
)
def test_what_is_rolled_back_is_in_the_dead_letter_queue(node: str, conditions: dict[str, str], message: str, tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", ROLLED_BACK)
    folder.write("in.csv", "sale,n\n1,5\n1,0\n2,2\n")
    folder.run()
    with pytest.raises(Usage) as refused:
        list(folder.load().why(node, conditions))
    assert refused.value.help == f"{message} rejected or rolled back: errata dlq lists them and says why"


def test_rejects_of_another_source_are_no_answer(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    other = "  - {type: source, name: r, config: {name: r, type: csv, path: r.csv, schema: [{name: sale, type: int}]}}\n  - {type: output, name: rest, input: r, config: {name: rest, type: csv, path: rest.csv}}\n"
    folder.write("pipeline.yaml", ROLLED_BACK + other)
    folder.write("in.csv", "sale,n\n1,5\n1,0\n2,2\n")
    folder.write("r.csv", "sale\n3\n")
    folder.run()
    with pytest.raises(Usage) as refused:
        list(folder.load().why("rest", {"sale": "1"}))
    assert refused.value.help == "errata show PIPELINE rest lists the live rows; a value is compared whole"


def test_a_record_brings_the_chain_of_its_versions(tmp_path: Path) -> None:
    folder = with_history(tmp_path)
    standing = next(row for row in folder.load().show("lines") if row["line"] == "l02")
    found = list(folder.load().why("lines", {"line": "l02"}))
    assert [(row["epoch"], row["op"], row["live"]) for row in found] == [(1, "+A", False), (3, "+C", True)]
    assert found[-1]["data"] == standing
    assert {row["file"] for row in found} == {"lines.csv"}


def test_a_row_that_does_not_stand_and_a_field_that_is_not_there_are_told(tmp_path: Path) -> None:
    folder = project(tmp_path)
    folder.run()
    with pytest.raises(Usage, match="no live row of 'totals' has label=nothing"):
        list(folder.load().why("totals", {"label": "nothing"}))
    with pytest.raises(Usage, match="has no field 'lable'"):
        list(folder.load().why("totals", {"lable": "x"}))


def test_a_pipeline_that_changed_since_has_to_run_first(tmp_path: Path) -> None:
    folder = project(tmp_path)
    folder.run()
    folder.write("pipeline.yaml", folder.text("pipeline.yaml").replace("qty > 0", "qty > 1"))
    with pytest.raises(Usage, match="is not the one of epoch 1: wanted"):
        list(folder.load().why("totals", {"label": "x"}))


DYNAMIC = """
pipeline: {name: loose}
nodes:
  - {type: source, name: s, config: {name: s, type: json, path: s.json, merge: {strategy: snapshot, primary_key: [k]}, schema: [{name: k, type: any}, {name: n, type: int}]}}
  - {type: output, name: out, input: s, config: {name: out, type: csv, path: out.csv}}
"""


@pytest.mark.parametrize(("text", "expected"), [("a b", [1]), ("7", [3, 2]), ('"7"', [3]), ("", [4]), ("[1]", [5])])
def test_a_dynamic_value_is_named_as_it_is_shown(text: str, expected: list[int], tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", DYNAMIC)
    folder.write("s.json", '[{"k": "a b", "n": 1}, {"k": 7, "n": 2}, {"k": "7", "n": 3}, {"k": "", "n": 4}, {"k": [1], "n": 5}]')
    folder.run()
    for node in ("s", "out"):
        assert [found["data"]["n"] for found in folder.load().why(node, {"k": text})] == expected
    if len(expected) == 1:
        folder.load().correct(Correction("s", {"k": text}, {"n": "9"}, "wrong"), RunOptions(engine=EngineOptions("sail")))
        assert [row["n"] for row in folder.load().show("s")].count(9) == 1


@pytest.mark.parametrize(("text", "expected"), [("2.20", [1, 2]), ("2.2", [1, 2]), ("7", [3, 4]), ("7.00", [3, 4]), ("2.200001", []), ("-0", [5])])
def test_a_decimal_among_dynamic_values_is_named_by_its_value(text: str, expected: list[int], tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    source = "{type: source, name: s, config: {name: s, type: csv, path: s.csv, schema: [{name: n, type: int}, {name: p, type: decimal, scale: 2}, {name: i, type: int}]}}"
    folder.write("pipeline.yaml", f'pipeline: {{name: held}}\nnodes:\n  - {source}\n  - {{type: transform, name: t, input: s, config: {{cxl: "emit v = if i.is_null() then [p, p.try_decimal(1)][n % 2] else [i][0]"}}}}\n')
    folder.write("s.csv", "n,p,i\n1,2.20,\n2,2.20,\n3,7,\n4,,7\n5,0,\n")
    folder.run()
    if expected:
        assert sorted(found["data"]["n"] for found in folder.load().why("t", {"v": text})) == expected
    else:
        with pytest.raises(Usage, match="no live row"):
            list(folder.load().why("t", {"v": text}))
