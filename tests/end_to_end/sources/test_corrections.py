"""Deliveries that correct others, against a plain Python model: random files in any order, cut into runs at will."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operators.source import reading
from tests.support import corrections
from tests.support.corrections import COLUMNS, SOURCES, Files, deliveries
from tests.support.examples import examples
from tests.support.pipelines import Folder, command, limited


def deliver(folder: Folder, files: Files) -> None:
    for source in SOURCES:
        for name, records in files.items():
            folder.write_csv(f"{source}/{name}.csv", COLUMNS, records)


def rejects(folder: Folder) -> dict[str, set[tuple[str, int, str]]]:
    found: dict[str, set[tuple[str, int, str]]] = {source: set() for source in SOURCES}
    if (folder.path / "out/rejected.csv").exists():
        for row in folder.rows("out/rejected.csv"):
            path = Path(row["_cxl_dlq_source_file"])
            found[path.parent.name].add((path.stem, int(row["_cxl_dlq_source_row"]), row["_cxl_dlq_error_category"]))
    return found


def check(folder: Folder, files: Files) -> None:
    wrong = rejects(folder)
    for source in SOURCES:
        replayed, found = corrections.replayed(source, files), folder.rows(f"out/{source}.csv")
        assert found == corrections.shown(replayed.live), f"{source}: {found} is not {corrections.shown(replayed.live)}"
        assert wrong[source] == replayed.rejects, f"{source}: {wrong[source]} is not {replayed.rejects}"


def verify(folder: Folder) -> None:
    code, out, _ = command("verify", str(folder.path / "pipeline.yaml"), "--quiet")
    assert code == 0, out


@examples(24, 2)
@given(deliveries(), st.booleans())
def test_what_is_live_depends_on_what_was_delivered_alone(history: list[Files], leave: bool):
    check_history(history, leave=leave)


@pytest.mark.deep
@examples(12, 2)
@given(deliveries(), st.booleans())
def test_large_deliveries_lead_to_the_same(history: list[Files], leave: bool):
    with pytest.MonkeyPatch.context() as patch, limited(small_rows=0, driver_rows=0):
        patch.setattr(reading, "SMALL_BYTES", 0)
        check_history(history, leave=leave)


def check_history(history: list[Files], *, leave: bool) -> None:
    """Deliver a history run by run. Without `leave`, files are removed once they were read."""
    with tempfile.TemporaryDirectory() as place:
        folder, files = Folder(Path(place)), Files()
        folder.write("pipeline.yaml", corrections.pipeline())
        for some in history:
            files |= some
            deliver(folder, some)
            folder.run()
            check(folder, files)
            assert not folder.run().committed
            for source, name in () if leave else ((source, name) for source in SOURCES for name in some):
                folder.remove(f"{source}/{name}.csv")
        verify(folder)
        if leave:
            folder.run(full_refresh=True)
            check(folder, files)


PATCHES = """\
pipeline: { name: patches }
nodes:
  - type: source
    name: feed
    config:
      name: feed
      type: json
      glob: in/*.jsonl
      options: { format: ndjson }
      merge: { strategy: changelog, primary_key: [id], op: op, ops: { append: [full], patch: [part], retract: [gone] } }
      schema: [{ name: id, type: int }, { name: op, type: string }, { name: v, type: string, optional: true }]
  - { type: output, name: rows, input: feed, config: { name: rows, type: json, path: rows.json, preserve_nulls: true } }
"""


def test_a_patch_keeps_undeclared_fields_too(tmp_path: Path):
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", PATCHES)
    folder.write("in/1.jsonl", '{"id": 1, "op": "full", "v": "a", "x": 1.50, "y": "b"}\n{"id": 2, "op": "full", "v": "a"}\n')
    folder.run()
    folder.write("in/3.jsonl", '{"id": 1, "op": "part", "v": null, "y": ""}\n{"id": 2, "op": "part", "x": null, "z": [1]}\n')
    folder.run()
    expected = [{"id": 1, "op": "part", "v": "a", "x": 1.5, "y": ""}, {"id": 2, "op": "part", "v": "a", "z": [1]}]
    assert [{name: value for name, value in row.items() if value is not None} for row in json.loads(folder.text("rows.json"))] == expected
    folder.write("in/2.jsonl", '{"id": 1, "op": "part", "x": 2, "y": "never"}\n')
    folder.run()
    expected[0]["x"] = 2
    assert [{name: value for name, value in row.items() if value is not None} for row in json.loads(folder.text("rows.json"))] == expected


@pytest.mark.parametrize("source", ["plain", "newest"])
def test_an_edited_source_keeps_what_an_overwritten_file_had(tmp_path: Path, source: str):
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", corrections.pipeline([source]))
    old = {"code": "N", "of": None, "v": 1, "w": "old"}
    folder.write_csv(f"{source}/a.csv", COLUMNS, [{**old, "id": 1}, {**old, "id": 2}])
    folder.run()
    folder.write_csv(f"{source}/a.csv", COLUMNS, [{**old, "id": 1, "w": "new"}])
    folder.run()
    values = [(row["id"], row["w"]) for row in folder.rows(f"out/{source}.csv")]
    assert values == [("1", "new"), ("2", "old")]
    folder.write("pipeline.yaml", corrections.pipeline([source]).replace("glob:", "correlation_key: w\n      glob:"))
    folder.run()
    assert [(row["id"], row["w"]) for row in folder.rows(f"out/{source}.csv")] == values
