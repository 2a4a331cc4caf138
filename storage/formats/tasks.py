"""Reading files in tasks: a task is a range of a file; its reader runs on the driver for small files and inside `mapInArrow` for large ones.

A table of tasks has the columns `path, name, start, end, first_row, head, pieces` and any others, which are repeated on each of the task's records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from storage.files.local import buffer_of, bytes_of, is_compressed
from storage.formats.base import CHUNK_BYTES, ROW, Buffer, Column, InputError, Piece, Range, Reader

TASK_SCHEMA = pa.schema(
    [
        pa.field("path", pa.string(), nullable=False),
        pa.field("name", pa.string(), nullable=False),
        pa.field("start", pa.int64(), nullable=False),
        pa.field("end", pa.int64(), nullable=False),
        pa.field("first_row", pa.int64(), nullable=False),
        pa.field("head", pa.binary(), nullable=False),
        pa.field("pieces", pa.binary(), nullable=False),
    ]
)
Finish: TypeAlias = Callable[[pa.RecordBatch, Mapping[str, Any]], pa.RecordBatch]


@dataclass(frozen=True, slots=True)
class Task:
    """A range of a file to read; `name` is how messages call the file, `attached` what every record of it shall carry besides."""

    path: str
    name: str
    part: Range
    attached: Mapping[str, Any] = field(default_factory=dict)


def undeclared_columns(reader: Reader, path: Path, name: str) -> tuple[Column, ...]:
    """`Reader.undeclared` of a file. Raises InputError, also for a section of its envelope that is not what it is declared to be."""
    data = buffer_of(path, name)
    with told_by_line(path, name):
        if reader.plan.sections and not reader.plan.document:
            reader.envelope(data, name)
        return reader.undeclared(data, name)


@contextmanager
def told_by_line(path: Path, name: str) -> Iterator[None]:
    """What is wrong at some byte of a file is told with its line, too."""
    try:
        yield
    except InputError as wrong:
        raise wrong.in_text(buffer_of(path, name)) from None


def tasks_of(reader: Reader, path: Path, name: str, attached: Mapping[str, Any] | None = None, target: int = CHUNK_BYTES) -> list[Task]:
    """The tasks that together read a file. Raises InputError."""
    data = buffer_of(path, name)
    # Nothing in a compressed file can be found by its place: one task reads it all, in pieces.
    with told_by_line(path, name):
        parts = [Range(0, len(data))] if is_compressed(path) else reader.split(data, name, target)
    return [Task(str(path), name, part, attached or {}) for part in parts]


def tail_tasks(
    reader: Reader, path: Path, name: str, start: int, first_row: int, *, attached: Mapping[str, Any] | None = None
) -> list[Task] | None:
    """The tasks that read what stands behind byte `start` of a file, where record `first_row` begins; None where it has to be read as a whole.

    The first task of a long tail may begin before `start`. Raises InputError.
    """
    if is_compressed(path):
        return None
    data = buffer_of(path, name)
    part = reader.tail(data, name, start, first_row)
    if part is None:
        return None
    if part.end - part.start <= 2 * CHUNK_BYTES:
        return [Task(str(path), name, part, attached or {})]
    return [Task(str(path), name, one, attached or {}) for one in reader.split(data, name) if one.end > start]


def read_task(reader: Reader, task: Task) -> Iterator[pa.RecordBatch]:
    """The records of one task. Raises InputError."""
    path = Path(task.path)
    with told_by_line(path, task.name):
        yield from _read_file(reader, path, task)


def _read_file(reader: Reader, path: Path, task: Task) -> Iterator[pa.RecordBatch]:
    if task.part.pieces:
        yield from _read_pieces(reader, buffer_of(path, task.name), task)
        return
    if not is_compressed(path):
        yield from reader.read(bytes_of(path, task.name, task.part), task.name, task.part)
        return
    data = buffer_of(path, task.name)
    for part in reader.split(data, task.name):
        yield from reader.read(data[part.start : part.end], task.name, part)


def _read_pieces(reader: Reader, data: Buffer, task: Task) -> Iterator[pa.RecordBatch]:
    """The records of pieces of a file as if they stood side by side, with the numbers that they have in the file."""
    pieces, head = task.part.pieces, task.part.head
    text = b"".join(data[piece.start : piece.end] for piece in pieces)
    try:
        batches = list(reader.read(text, task.name, Range(task.part.start, task.part.start + len(text), 1, head)))
    except InputError:  # told once more, with the place in the file
        for piece in pieces:
            yield from reader.read(data[piece.start : piece.end], task.name, Range(*piece[:3], head))
        return
    numbers = np.concatenate([np.arange(piece.first_row, piece.first_row + piece.records) for piece in pieces])
    for batch in batches:
        rows = pa.array(numbers[batch.column(ROW).to_numpy() - 1])
        yield batch.set_column(batch.schema.get_field_index(ROW), batch.schema.field(ROW), rows)


def task_table(tasks: Sequence[Task], attached: pa.Schema | None = None) -> pa.Table:
    """Tasks as rows, `attached` being the schema of what they carry besides."""
    extra = attached or pa.schema([])
    rows = [
        {
            "path": task.path, "name": task.name, "start": task.part.start, "end": task.part.end,
            "first_row": task.part.first_row, "head": task.part.head,
            "pieces": np.array(task.part.pieces, "<i8").tobytes(), **task.attached,
        }
        for task in tasks
    ]  # fmt: skip
    return pa.Table.from_pylist(rows, pa.schema([*TASK_SCHEMA, *extra]))


def chunk_reader(
    reader: Reader, attached: pa.Schema | None = None, finish: Finish | None = None
) -> Callable[..., Iterator[pa.RecordBatch]]:
    """The function for `mapInArrow` over a table of tasks: batches of `Reader.schema()` and the attached columns.

    `finish(batch, attached values)` may make something else of each batch where it is read (keys, say). Raises InputError inside the engine;
    `InputError.found_in` gets its message back from the engine's exception.
    """
    extra = attached or pa.schema([])

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row in batch.to_pylist():
                yield from _read_row(reader, row, extra, finish)

    return read


def _read_row(reader: Reader, row: Mapping[str, Any], extra: pa.Schema, finish: Finish | None) -> Iterator[pa.RecordBatch]:
    pieces = tuple(Piece(*piece) for piece in np.frombuffer(row["pieces"], "<i8").reshape(-1, 4).tolist())
    part = Range(row["start"], row["end"], row["first_row"], bytes(row["head"]), pieces)
    values = {name: row[name] for name in extra.names}
    for batch in read_task(reader, Task(row["path"], row["name"], part)):
        yield finish(batch, values) if finish else _attach(batch, extra, values)


def _attach(batch: pa.RecordBatch, extra: pa.Schema, values: Mapping[str, Any]) -> pa.RecordBatch:
    for column in extra:
        repeated = pa.repeat(pa.scalar(values[column.name], column.type), batch.num_rows)
        batch = batch.append_column(column, repeated)
    return batch
