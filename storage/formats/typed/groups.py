"""Ranges of a file that consist of consecutive groups of records: row groups of Parquet, record batches of Arrow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from changelog.lazy_imports import pa
from storage.files.errors import InputError
from storage.formats.base import Range


@contextmanager
def broken(name: str, message: str) -> Iterator[None]:
    """Turn the exceptions of pyarrow for a damaged file into InputError with this message."""
    try:
        yield
    except (pa.ArrowException, OSError, MemoryError, UnicodeDecodeError, ValueError, NotImplementedError) as wrong:
        reason = (str(wrong).splitlines() or [type(wrong).__name__])[0]
        raise InputError(name, f"{message}: {reason}") from None


def group_ranges(sizes: Sequence[tuple[int, int]], end: int, target: int) -> list[Range]:
    """Ranges of consecutive groups of about `target` bytes. Each has the bytes of the whole file; `head` gives its first and last group.

    Args:
        sizes: the records and bytes of each group
        end: the bytes of the file
        target: the bytes of a range
    """
    parts: list[Range] = []
    first, row, held, records = 0, 1, 0, 0
    for at, (rows, size) in enumerate(sizes):
        held, records = held + size, records + rows
        if held >= target or at == len(sizes) - 1:
            parts.append(Range(0, end, row, b"%d %d" % (first, at)))
            first, row, held, records = at + 1, row + records, 0, 0
    return parts or [Range(0, end)]


def groups_of(part: Range | None, count: int) -> range:
    """The groups of a range, of `count` groups of the file."""
    if part is None or not part.head:
        return range(count)
    first, last = map(int, part.head.split())
    return range(first, last + 1)
