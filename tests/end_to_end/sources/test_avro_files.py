"""Avro in and out: a history of corrections ends as one full run, and an output's changes are Avro files too."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import fastavro
import pytest

from operators.source import reading
from tests.support.columnar import avro_file
from tests.support.pipelines import Folder, command

PIPELINE = """\
pipeline: { name: orders }
error_handling: { strategy: continue, dlq: { path: dlq.csv } }
nodes:
  - type: source
    name: orders
    config:
      name: orders
      type: avro
      path: in.avro
      merge: { strategy: snapshot, primary_key: [id] }
      on_unmapped: drop
      schema: [{ name: id, type: int }, { name: at.city, type: string }, { name: amount, type: decimal, scale: 2 }, { name: tags, type: array }]
  - { type: transform, name: named, input: orders, config: { cxl: "emit place = $source.row" } }
  - type: output
    name: daily-report
    input: named
    config:
      name: daily-report
      type: avro
      path: out.avro
      mapping: { city: at.city }
      schema: [{ name: amount, type: decimal, scale: 1 }]
      changelog: { path: "log/{epoch:6}.avro", format: avro }
"""
CITY = {"type": "record", "name": "City", "fields": [{"name": "city", "type": "string"}]}
FIELDS = {
    "id": "long", "at": ["null", CITY], "amount": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 3}], "tags": {"type": "array", "items": "string"},
}  # fmt: skip
HISTORY = [
    [(1, "x", "1.250", ["a"]), (2, None, None, []), (3, "z", "1.005", [])],
    [(1, "x", "1.350", ["a"]), (3, "z", "1.000", ["b", "c"])],
    [(3, "z", "1.000", ["b", "c"]), (4, "w", "7.000", [])],
]


def delivered(folder: Folder, rows) -> None:
    made = [{"id": key, "at": city and {"city": city}, "amount": amount and Decimal(amount), "tags": tags} for key, city, amount, tags in rows]
    (folder.path / "in.avro").write_bytes(avro_file(FIELDS, made, interval=1))


def records(path: Path):
    with path.open("rb") as stream:
        return list(fastavro.reader(stream))


def model(rows):
    tenth = Decimal("0.1")
    return [
        {"id": key, "city": city, "amount": amount and Decimal(amount).quantize(tenth), "tags": "[" + ",".join(f'"{tag}"' for tag in tags) + "]", "place": place}
        for place, (key, city, amount, tags) in enumerate(rows, 1)
        if amount != "1.005"
    ]


@pytest.mark.parametrize("driver", [0, reading.SMALL_BYTES])
def test_a_history_of_avro_files_ends_as_one_full_run(tmp_path: Path, driver: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "SMALL_BYTES", driver)
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", PIPELINE)
    for rows in HISTORY:
        delivered(folder, rows)
        folder.run()
        found = [{name: row[name] for name in ("id", "city", "amount", "tags", "place")} for row in records(folder.path / "out.avro")]
        assert sorted(found, key=lambda row: row["id"]) == model(rows)
        assert (folder.path / "dlq.csv").exists() == any(row[2] == "1.005" for row in rows)
    assert folder.violations() == []
    kept = (folder.path / "out.avro").read_bytes()
    changes = [[(row["op"], row["id"], row["tags"]) for row in records(file)] for file in sorted((folder.path / "log").iterdir())]
    assert len(changes[0]) == 2
    assert {(1, 2, "[]"), (0, 3, '["b","c"]')} <= set(changes[1])
    folder.run(full_refresh=True)
    assert (folder.path / "out.avro").read_bytes() == kept


def test_columns_that_avro_forbids(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    for text in (PIPELINE.replace("      mapping: { city: at.city }\n", ""), PIPELINE.replace("city: at.city", "the city: at.city").replace("type: avro\n      path: out.avro", "type: csv\n      path: out.csv")):
        folder.write("pipeline.yaml", text)
        code, _, stderr = command("check", str(tmp_path / "pipeline.yaml"))
        assert (code, "E631" in stderr) == (1, True)


def test_undeclared_columns_that_avro_forbids_end_the_run(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", PIPELINE.replace("type: avro\n      path: in.avro", "type: csv\n      path: in.csv").replace("      on_unmapped: drop\n", "").replace("at.city", "town"))
    folder.write("in.csv", "id,town,amount,tags,the note\n1,x,1,[],y\n")
    code, _, stderr = command("run", str(tmp_path / "pipeline.yaml"), "--engine", "sail")
    assert (code, "E631" in stderr, "the note" in stderr, (tmp_path / "out.avro").exists()) == (4, True, True, False)


def test_without_the_library_check_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storage.formats.find_spec", lambda name: None if name == "fastavro" else object())
    Folder(tmp_path).write("pipeline.yaml", PIPELINE)
    code, _, stderr = command("check", str(tmp_path / "pipeline.yaml"))
    assert (code, "E606" in stderr, "pip install 'errata[avro]'" in stderr) == (1, True, True)
