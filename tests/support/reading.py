"""What the tests of readers share: a reader's batches as plain records."""

from dataclasses import dataclass
from typing import Any

from storage.formats import ERROR, ROW, InputError, Reader


@dataclass(frozen=True)
class Record:
    """A record as a test wants it: number, values by name, text of the reject or null."""

    number: int
    data: dict[str, Any]
    error: str | None


def records_of(reader: Reader, data: bytes, target: int | None = None, name: str | None = None) -> list[Record]:
    """Every record of a file, read whole or, with `target`, range by range."""
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
    """Every record of a file; null where it is an input error, which names the file."""
    try:
        return records_of(reader, data, name="file.x")
    except InputError as wrong:
        if not str(wrong).startswith("file.x: "):
            raise
        return None
