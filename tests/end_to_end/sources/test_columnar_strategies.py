"""Files of typed columns go through every merge strategy as files of text do: against the same plain Python model."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given

from operators.source import reading
from tests.end_to_end.sources.test_strategies import check_nothing_to_do, outputs, rejects
from tests.support import merge_strategies as sources
from tests.support.columnar import FILES
from tests.support.examples import examples
from tests.support.merge_strategies import STRATEGIES, Folders, Model
from tests.support.pipelines import Folder

DELIVERED = ("ledger", "changes", "upsert")
TYPES = {"op": pa.string(), "id": pa.int32(), "v": pa.large_string(), "w": pa.string()}


def as_deliveries(history: list[Folders]) -> list[Folders]:
    """The same history with each delivery in a file of its own: a file of typed columns does not grow."""
    made: list[Folders] = []
    for step, folders in enumerate(history):
        before = history[step - 1] if step else {}
        delivered = dict(folders)
        for name in DELIVERED:
            files = dict(made[-1][name]) if made else {}
            for file, rows in folders[name].items():
                old = before.get(name, {}).get(file, [])
                fresh = rows[len(old) :] if rows[: len(old)] == old else rows
                if fresh:
                    files[f"{step}{file}"] = fresh
            delivered[name] = files
        made.append(delivered)
    return made


def written(folder: Folder, folders: Folders, form: str) -> None:
    for name, files in folders.items():
        (folder.path / name).mkdir(exist_ok=True)
        for stale in {file.stem for file in (folder.path / name).iterdir()} - files.keys():
            folder.remove(f"{name}/{stale}.bin")
        for file, rows in files.items():
            target = folder.path / name / f"{file}.bin"
            content = FILES[form](pa.table({column: pa.array([_text(row[column]) if column == "v" else row[column] for row in rows], TYPES[column]) for column in sources.header(name)}))
            if not target.exists() or target.read_bytes() != content:
                target.write_bytes(content)


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def pipeline(form: str) -> str:
    return sources.pipeline().replace("type: csv\n      glob: ", f"type: {form}\n      glob: ").replace("/*.csv\n", "/*.bin\n")


@pytest.mark.parametrize(("form", "driver"), [("parquet", 0), ("arrow", reading.SMALL_BYTES)])
@given(history=sources.histories())
@examples(16, 3, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_strategy_over_typed_columns(form: str, driver: int, history: list[Folders], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "SMALL_BYTES", driver)
    with tempfile.TemporaryDirectory() as place:
        folder, model = Folder(Path(place)), Model()
        folder.write("pipeline.yaml", pipeline(form))
        for folders in as_deliveries(history):
            written(folder, folders, form)
            folder.run()
            rows, wrong = model.step(folders)
            assert outputs(folder) == {name: sources.shown(rows[name]) for name in STRATEGIES}
            assert rejects(folder) == wrong
            check_nothing_to_do(folder)
        assert folder.violations() == []
