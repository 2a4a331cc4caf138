"""Marks: a hash of the content of a version of a Delta table. The ledger stores the mark of every table that it names.

A mark covers the columns, and the name, size and statistics of each data file. It does not cover the version number, so a table that was restored
to an earlier version has that version's mark again. Computing a mark opens no data file.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deltalake import DeltaTable

__all__ = ["mark_of"]

UNMARKED = ("modification_time",)
"""Properties of a file that a restore changes."""


def mark_of(table: DeltaTable) -> str:
    """Return the mark of the opened version of a table."""
    protocol = table.protocol()
    columns = orjson.loads(table.schema().to_json())  # parsed, because the order of its metadata varies
    parts = [columns, [protocol.min_reader_version, protocol.min_writer_version], sorted(_files(table))]
    return blake2b(orjson.dumps(parts, default=str, option=orjson.OPT_SORT_KEYS), digest_size=16).hexdigest()


def _files(table: DeltaTable) -> Iterator[list[Any]]:
    """Yield the path of each data file, followed by the names and values of its other properties that are known."""
    actions = table.get_add_actions(flatten=True)
    names = sorted(name for name in actions.schema.names if name not in UNMARKED and name != "path")
    columns = [actions.column(name).to_pylist() for name in names]
    for path, *values in zip(actions.column("path").to_pylist(), *columns, strict=True):
        yield [path, *(f"{name}={value}" for name, value in zip(names, values, strict=True) if value is not None)]
