"""A reader's batches as plain records, for tests of readers."""

from dataclasses import dataclass
from typing import Any

from storage.formats import ERROR, ROW, InputError, Reader


@dataclass(frozen=True)
class Record:
    """A record: its number, its values by name, and the text of its reject or None."""

    number: int
    data: dict[str, Any]
    error: str | None


def records_of(reader: Reader, data: bytes, target: int | None = None, name: str | None = None) -> list[Record]:
    """Every record of a file, read as a whole or, with `target`, range by range."""
    name = name or f"file.{type(reader).__module__.rpartition('.')[2]}"
    parts = [None] if target is None else reader.split(data, name, target)
    found = []
    for part in parts:
        text = data if part is None else data[part.start : part.end]
        for batch in reader.read(text, name, part):
            assert batch.schema.equals(reader.schema())
            found.extend(Record(row.pop(ROW), error=row.pop(ERROR), data=row) for row in batch.to_pylist())
    return found


def records_or_error(reader: Reader, data: bytes) -> list[Record] | None:
    """Every record of a file; None for an input error, which has to name the file."""
    try:
        return records_of(reader, data, name="file.x")
    except InputError as wrong:
        if not str(wrong).startswith("file.x: "):
            raise
        return None
