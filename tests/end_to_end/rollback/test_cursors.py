"""`errata run --from-cursors`: only what lies beyond the sources' rollback cursors is read again, and what is suppressed or rejected."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.pipelines import Folder, command

SOURCE = """\
  - type: source
    name: lines
    config:
      name: lines
      type: csv
      glob: data/*.csv
      KEYS
      schema:
        - { name: id, type: int }
        - { name: sale, type: int }
        - { name: pieces, type: string }
"""
PIPELINE = f"""\
pipeline: {{ name: lines }}
error_handling: {{ strategy: continue, dlq: {{ path: rejected.csv }} }}
nodes:
{SOURCE}
  - type: transform
    name: counted
    input: lines
    config: {{ cxl: "emit pieces = pieces.to_int()" }}
  - type: output
    name: result
    input: counted
    config: {{ name: result, type: csv, path: result.csv }}
"""
GROUPED = "correlation_key: sale"
KEYED = "correlation_key: sale\n      merge: { strategy: snapshot, primary_key: [id] }"
Line = tuple[int, int, str]


def project(path: Path, keys: str) -> Folder:
    made = Folder(path)
    made.write("pipeline.yaml", PIPELINE.replace("KEYS", keys) if keys else PIPELINE.replace("      KEYS\n", ""))
    return made


def lay_out(folder: Folder, **files: list[Line]) -> None:
    for name, lines in files.items():
        folder.write_csv(f"data/{name}.csv", ("id", "sale", "pieces"), [dict(zip(("id", "sale", "pieces"), line, strict=True)) for line in lines])


def result(folder: Folder) -> list[Line]:
    return [(int(row["id"]), int(row["sale"]), row["pieces"]) for row in folder.rows("result.csv")]


def changed(lines: list[Line], **new: Any) -> list[Line]:
    return [(number, sale, new.get(f"id{number}", pieces)) for number, sale, pieces in lines]


LINES = [(1, 1, "3"), (2, 1, "4"), (3, 2, "?"), (4, 2, "5"), (5, 3, "6"), (6, 4, "?")]


@pytest.mark.parametrize("keys", [GROUPED, KEYED, ""])
def test_clean_records_up_to_the_cursor_are_not_compared_and_others_are(tmp_path: Path, keys: str) -> None:
    folder = project(tmp_path, keys)
    lay_out(folder, a=LINES)
    assert folder.run().per_source_rollback_cursors == {"lines": 5}
    later = [*changed(LINES, id1="30", id3="7", id6="8"), (7, 5, "9")]
    lay_out(folder, a=later)
    assert folder.run(from_cursors=True).exit_code == 0
    assert result(folder) == changed(later, id1="3")  # row 1 was clean and lies before the cursor
    assert not any(row["data"]["id"] == 1 for row in folder.log("lines") if row["epoch"] == 2)
    assert folder.run().exit_code == 0
    assert result(folder) == later  # a plain run compares all of the file
    assert folder.violations() == []


@pytest.mark.parametrize("keys", [GROUPED, KEYED])
def test_it_is_a_plain_run_where_nothing_lies_before_the_cursors(tmp_path: Path, keys: str) -> None:
    folder = project(tmp_path, keys)
    lay_out(folder, a=LINES[:2])
    folder.run(from_cursors=True)
    lay_out(folder, a=LINES[:2], b=[(8, 2, "1")])
    folder.run(from_cursors=True)
    assert result(folder) == [*LINES[:2], (8, 2, "1")]
    before = folder.state_files()
    assert not folder.run(from_cursors=True).committed
    assert folder.state_files() == before


def test_rows_count_on_across_files(tmp_path: Path) -> None:
    folder = project(tmp_path, GROUPED)
    lay_out(folder, a=[(1, 1, "1"), (2, 2, "2")], b=[(3, 3, "3"), (4, 4, "?")])
    assert folder.run().per_source_rollback_cursors == {"lines": 3}
    lay_out(folder, a=[(1, 1, "10"), (2, 2, "2")], b=[(3, 3, "30"), (4, 4, "4"), (5, 5, "5")])
    folder.run(from_cursors=True)
    assert result(folder) == [(1, 1, "1"), (2, 2, "2"), (3, 3, "3"), (4, 4, "4"), (5, 5, "5")]


@pytest.mark.parametrize("keys", [GROUPED, KEYED])
def test_a_record_that_is_no_longer_there_goes(tmp_path: Path, keys: str) -> None:
    folder = project(tmp_path, keys)
    lay_out(folder, a=LINES)
    folder.run()
    lay_out(folder, a=LINES[:1])
    assert folder.run(from_cursors=True).exit_code == 0
    assert result(folder) == LINES[:1]


# Combine ----------------------------------------------------------------------------------------------------------------
COMBINE = """\
pipeline: { name: priced }
error_handling: { strategy: continue, dlq: { path: rejected.csv } }
nodes:
  - type: source
    name: orders
    config:
      name: orders
      type: csv
      path: data/orders.csv
      GROUPED
      schema: [{ name: id, type: int }, { name: product, type: string }]
  - type: source
    name: products
    config:
      name: products
      type: csv
      path: data/products.csv
      schema: [{ name: product, type: string }, { name: pieces, type: int }]
  - type: combine
    name: priced
    input: { o: orders, p: products }
    config:
      where: "o.product == p.product EXTRA"
      match: MATCH
      on_miss: null_fields
      propagate_ck: driver
      cxl: |
        emit id = o.id
        emit share = 100 / p.pieces
  - type: output
    name: result
    input: priced
    config: { name: result, type: csv, path: result.csv }
"""
ORDERS = "id,product\n1,a\n2,b\n3,c\n4,b\n5,a\n"
PRODUCTS = "product,pieces\na,1\nb,0\nc,3\nd,0\n"


@pytest.mark.parametrize("match", ["first", "all"])
@pytest.mark.parametrize("grouped", ["correlation_key: id", ""])
@pytest.mark.parametrize("extra", ["", "and 100 / p.pieces + o.id > 0"])
def test_a_combine_row_that_fails_rewinds_driver_and_build(tmp_path: Path, match: str, grouped: str, extra: str) -> None:
    folder = Folder(tmp_path)
    text = COMBINE.replace("MATCH", match).replace("EXTRA", extra)
    folder.write("pipeline.yaml", text.replace("GROUPED", grouped) if grouped else text.replace("      GROUPED\n", ""))
    folder.write("data/orders.csv", ORDERS)
    folder.write("data/products.csv", PRODUCTS)
    assert folder.run().per_source_rollback_cursors == {"orders": 1, "products": 1}  # before orders' row 2 and products' row 2
    folder.write("data/products.csv", PRODUCTS.replace("a,1", "a,2").replace("b,0", "b,5"))
    assert folder.run(from_cursors=True).exit_code == 0
    assert [(row["id"], row["share"]) for row in folder.rows("result.csv")] == [("1", "100"), ("2", "20"), ("3", "33"), ("4", "20"), ("5", "100")]


REKEYED = """\
pipeline: { name: rekeyed }
error_handling: { strategy: continue, dlq: { path: rejects.csv } }
nodes:
  - { type: source, name: s, config: { name: s, type: csv, path: s.csv, MERGE schema: [{ name: id, type: string }, { name: v, type: int }] } }
  - { type: source, name: t, config: { name: t, type: csv, path: t.csv, schema: [{ name: id, type: string }, { name: v, type: int }] } }
  - { type: merge, name: both, inputs: [s, t] }
  - { type: transform, name: shares, input: both, config: { cxl: "emit share = 12 / v" } }
  - { type: output, name: out, input: shares, config: { name: out, type: csv, path: out.csv } }
"""


def test_cursors_know_nothing_of_rejects_whose_keys_are_of_another_kind(tmp_path: Path) -> None:
    """The other source is not edited, but its rejects mix with rejects of records with other keys."""
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", REKEYED.replace("MERGE", ""))
    folder.write("s.csv", "id,v\na,0\nb,1\n")
    folder.write("t.csv", "id,v\nc,0\nd,2\n")
    folder.run()
    folder.write("pipeline.yaml", REKEYED.replace("MERGE", "merge: { primary_key: [id] },"))
    code, _, stderr = command("dlq", str(tmp_path / "pipeline.yaml"))
    assert (code, "run it first" in stderr) == (64, True)
    folder.write("t.csv", "id,v\nc,3\nd,2\n")
    folder.run(from_cursors=True)
    assert folder.text("out.csv") == "id,v,share\nb,1,12\nc,3,4\nd,2,6\n"
    assert [row["_cxl_dlq_source_row"] for row in folder.rows("rejects.csv")] == ["1"]
