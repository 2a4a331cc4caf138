"""Files read in tasks. A task is a range of a file: small files are read on the driver, large ones inside `mapInArrow`.

A table of tasks has the columns `path, name, start, end, first_row, head, pieces`. It may have further ones, which each of the task's records repeats.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from changelog.lazy_imports import np, pa
from storage.files.errors import Buffer, InputError
from storage.files.local import buffer_of, by_places, bytes_of, is_compressed
from storage.formats.base import CHUNK_BYTES, ROW, Column, Piece, Range, Reader
from storage.stores.places import HERE, Place, Places

Finish: TypeAlias = "Callable[[pa.RecordBatch, Mapping[str, Any]], pa.RecordBatch]"


@dataclass(frozen=True, slots=True)
class Task:
    """A range of a file to read. Messages call the file `name`; `attached` are further values for each of its records."""

    path: Place
    name: str
    part: Range
    attached: Mapping[str, Any] = field(default_factory=dict)


def undeclared_columns(reader: Reader, path: Place, name: str) -> tuple[Column, ...]:
    """The undeclared columns of a file (`Reader.undeclared`). Raises InputError, also for a section of the envelope that is not of its declared type."""
    data = buffer_of(path, name)
    with line_numbers(path, name):
        if reader.plan.sections and not reader.plan.document:
            reader.envelope(data, name)
        return reader.undeclared(data, name)


@contextmanager
def line_numbers(path: Place, name: str) -> Iterator[None]:
    """Add the line to input errors that have only a byte offset."""
    try:
        yield
    except InputError as wrong:
        raise wrong.in_text(buffer_of(path, name)) from None


def tasks_of(reader: Reader, path: Place, name: str, attached: Mapping[str, Any] | None = None, target: int = CHUNK_BYTES) -> list[Task]:
    """The tasks that together read a file. Raises InputError."""
    data = buffer_of(path, name)
    # A compressed file has no random access: one task reads all of it, in pieces.
    with line_numbers(path, name):
        parts = [Range(0, len(data))] if is_compressed(path) else reader.split(data, name, target)
    return [Task(path, name, part, attached or {}) for part in parts]


def tail_tasks(
    reader: Reader, path: Place, name: str, start: int, first_row: int, *, attached: Mapping[str, Any] | None = None
) -> list[Task] | None:
    """The tasks that read a file from byte `start` on, where record `first_row` begins. None where the whole file has to be read.

    The first task of a long tail may begin before `start`. Raises InputError.
    """
    if is_compressed(path):
        return None
    data = buffer_of(path, name)
    part = reader.tail(data, name, start, first_row)
    if part is None:
        return None
    if part.end - part.start <= 2 * CHUNK_BYTES:
        return [Task(path, name, part, attached or {})]
    return [Task(path, name, one, attached or {}) for one in reader.split(data, name) if one.end > start]


def read_task(reader: Reader, task: Task) -> Iterator[pa.RecordBatch]:
    """The records of one task. Raises InputError."""
    with line_numbers(task.path, task.name):
        yield from _read_file(reader, task.path, task)


def _read_file(reader: Reader, path: Place, task: Task) -> Iterator[pa.RecordBatch]:
    if task.part.pieces:
        yield from _read_pieces(reader, buffer_of(path, task.name), task)
        return
    if not is_compressed(path):
        yield from reader.read(bytes_of(path, task.name, task.part.start, task.part.end), task.name, task.part)
        return
    data = buffer_of(path, task.name)
    for part in reader.split(data, task.name):
        yield from reader.read(data[part.start : part.end], task.name, part)


def _read_pieces(reader: Reader, data: Buffer, task: Task) -> Iterator[pa.RecordBatch]:
    """The records of some pieces of a file, read together, with their numbers in the file."""
    pieces, head = task.part.pieces, task.part.head
    text = b"".join(data[piece.start : piece.end] for group in by_places(data, pieces) for piece in group)
    try:
        batches = list(reader.read(text, task.name, Range(task.part.start, task.part.start + len(text), 1, head)))
    except InputError:  # raised again below, with the place in the file
        for piece in pieces:
            yield from reader.read(data[piece.start : piece.end], task.name, Range(*piece[:3], head))
        return
    numbers = np.concatenate([np.arange(piece.first_row, piece.first_row + piece.records) for piece in pieces])
    for batch in batches:
        rows = pa.array(numbers[batch.column(ROW).to_numpy() - 1])
        yield batch.set_column(batch.schema.get_field_index(ROW), batch.schema.field(ROW), rows)


def task_table(tasks: Sequence[Task], attached: pa.Schema | None = None, *, places: Places = HERE) -> pa.Table:
    """Tasks as rows. `places` makes texts of their paths, `attached` is the schema of their further values."""
    fields = {"path": pa.string(), "name": pa.string(), "start": pa.int64(), "end": pa.int64(), "first_row": pa.int64(), "head": pa.binary(), "pieces": pa.binary()}
    rows = [
        {
            "path": places.text(task.path), "name": task.name, "start": task.part.start, "end": task.part.end,
            "first_row": task.part.first_row, "head": task.part.head,
            "pieces": np.array(task.part.pieces, "<i8").tobytes(), **task.attached,
        }
        for task in tasks
    ]  # fmt: skip
    return pa.Table.from_pylist(rows, pa.schema([*(pa.field(name, kind, nullable=False) for name, kind in fields.items()), *(attached or ())]))


def chunk_reader(
    reader: Reader, attached: pa.Schema | None = None, finish: Finish | None = None, *, places: Places = HERE
) -> Callable[..., Iterator[pa.RecordBatch]]:
    """The function for `mapInArrow` over a table of tasks. Its batches have the columns of `Reader.schema()` and the attached ones.

    The function raises InputError inside the engine; `InputError.found_in` finds its message in the engine's exception.

    Args:
        reader: reads the files
        attached: the schema of the tasks' further values
        finish: turns a batch and the attached values into another batch, where it is read
        places: knows the stores of files, without their secrets
    """
    extra = attached or pa.schema([])

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row in batch.to_pylist():
                yield from _read_row(reader, places, row, extra, finish)

    return read


def _read_row(reader: Reader, places: Places, row: Mapping[str, Any], extra: pa.Schema, finish: Finish | None) -> Iterator[pa.RecordBatch]:
    pieces = tuple(Piece(*piece) for piece in np.frombuffer(row["pieces"], "<i8").reshape(-1, 4).tolist())
    part = Range(row["start"], row["end"], row["first_row"], bytes(row["head"]), pieces)
    values = {name: row[name] for name in extra.names}
    for batch in read_task(reader, Task(places.read(row["path"]), row["name"], part)):
        yield finish(batch, values) if finish else _attach(batch, extra, values)


def _attach(batch: pa.RecordBatch, extra: pa.Schema, values: Mapping[str, Any]) -> pa.RecordBatch:
    for column in extra:
        repeated = pa.repeat(pa.scalar(values[column.name], column.type), batch.num_rows)
        batch = batch.append_column(column, repeated)
    return batch
