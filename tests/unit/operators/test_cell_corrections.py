"""Corrections of a source's cells: reading the file with them gives what the corrected file gives."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st

from operators.corrections.correction import Correction, RawText
from operators.corrections.entries import CorrectionEntry, WrittenCorrection
from operators.source.cell_corrections import CellCorrections
from storage import formats
from storage.formats.base import ERROR, Column, ReadPlan
from storage.formats.tasks import read_task, tasks_of

if TYPE_CHECKING:
    import pyarrow as pa

TYPES = {"id": "string", "pieces": "int", "price": "decimal(38,2)", "day": "date"}
GOOD = {"id": "ab", "pieces": "3", "price": "1.50", "day": "2026-01-02"}
TEXTS = {"id": ["ab", "cd", "e"], "pieces": ["3", "007", "x", ""], "price": ["1.5", "1;5", "2", ""], "day": ["2026-01-02", "soon", ""]}
KEYS = ("id", "pieces")

records = st.lists(st.fixed_dictionaries({name: st.sampled_from(texts) for name, texts in TEXTS.items()}), min_size=1, max_size=8)


def read(rows: list[dict[str, str]], tmp: Any) -> pa.RecordBatch:
    path = tmp / "a.csv"
    path.write_text("\n".join([",".join(TYPES), *(",".join(row[name] for name in TYPES) for row in rows)]) + "\n", encoding="utf-8")
    reader = formats.reader("csv", {}, ReadPlan(tuple(Column(name, type_) for name, type_ in TYPES.items())))
    [batch] = [batch for task in tasks_of(reader, path, "a.csv", {}) for batch in read_task(reader, task)]
    return batch


def typed(rows: list[dict[str, str]], tmp: Any) -> dict[tuple[str, str], Any]:
    """The value of each text in its column; RawText of one that does not convert."""
    batch = read(rows, tmp)
    found = {}
    for name in TYPES:
        for row, value in zip(rows, batch.column(name).to_pylist(), strict=True):
            found[name, row[name]] = RawText(row[name]) if value is None and row[name] else value
    return found


def correction(key: dict[str, str], column: str, before: str, after: str, values: dict[tuple[str, str], Any]) -> Correction:
    entry = CorrectionEntry.model_validate({"key": key, "set": {column: {"from": before, "to": after}}, "reason": "test"})
    written = WrittenCorrection(entry, "a.yaml", 1, origin=None, spans={})  # type: ignore[arg-type]  # no place is shown
    return Correction(written, json.dumps(key).encode(), key, tuple(values[name, key[name]] for name in KEYS), column, values[column, before], values[column, after])


@given(records, st.data())
def test_reading_with_corrections_is_reading_the_corrected_file(tmp_path_factory, rows, data) -> None:
    tmp = tmp_path_factory.mktemp("cells")
    values = typed([*rows, GOOD], tmp)
    if len({tuple(values[name, row[name]] for name in KEYS) for row in rows}) < len({tuple(row[name] for name in KEYS) for row in rows}):
        return  # two spellings of one key: a correction names both
    found, cells = [], {}
    for row in rows:
        column, named = data.draw(st.sampled_from(list(TYPES))), tuple(row[name] for name in KEYS)
        if (named, column) not in cells:
            before = data.draw(st.sampled_from([row, *rows]))[column]
            cells[named, column] = values[column, before]
            found.append(correction(dict(zip(KEYS, named, strict=True)), column, before, GOOD[column], values))
    corrected = []
    for row in rows:
        named = tuple(row[name] for name in KEYS)
        holds = {name for name in TYPES if (named, name) in cells and cells[named, name] == values[name, row[name]]}
        corrected.append({name: GOOD[name] if name in holds else text for name, text in row.items()})
    batch, marks = CellCorrections.of(KEYS, TYPES, found).applied(read(rows, tmp))
    expected = read(corrected, tmp)
    assert [batch.column(name).to_pylist() for name in TYPES] == [expected.column(name).to_pylist() for name in TYPES]
    assert [error and json.loads(error)["detail"] for error in batch.column(ERROR).to_pylist()] == [error and json.loads(error)["detail"] for error in expected.column(ERROR).to_pylist()]
    changed = [before != after for before, after in zip(rows, corrected, strict=True)]
    assert all(mark is not None for mark, differs in zip(marks.to_pylist(), changed, strict=True) if differs)
