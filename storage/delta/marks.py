"""Marks: a hash of what a version of a Delta table consists of. The ledger keeps the mark of every table that it names.

A mark covers the columns, and each data file's name, size and statistics. It does not cover the version's number, so a table that was
restored to an earlier version has that version's mark again. Reading a mark opens no data file.
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
"""What a restore writes anew for each file."""


def mark_of(table: DeltaTable) -> str:
    """The mark of a table as it was opened."""
    protocol = table.protocol()
    columns = orjson.loads(table.schema().to_json())  # parsed, as its metadata comes in an order by chance
    parts = [columns, [protocol.min_reader_version, protocol.min_writer_version], sorted(_files(table))]
    return blake2b(orjson.dumps(parts, default=str, option=orjson.OPT_SORT_KEYS), digest_size=16).hexdigest()


def _files(table: DeltaTable) -> Iterator[list[Any]]:
    """Of each data file its path, then all that the log says of it: names and values, without what it does not say."""
    actions = table.get_add_actions(flatten=True)
    names = sorted(name for name in actions.schema.names if name not in UNMARKED and name != "path")
    columns = [actions.column(name).to_pylist() for name in names]
    for path, *values in zip(actions.column("path").to_pylist(), *columns, strict=True):
        yield [path, *(f"{name}={value}" for name, value in zip(names, values, strict=True) if value is not None)]
