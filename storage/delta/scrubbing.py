"""Scrubbing: rows leave the data files of a table for good, with the older versions and the log that had them."""

from __future__ import annotations

import io
import re
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote
from uuid import uuid4

import orjson

from changelog.columns import EPOCH, ERROR, OP
from changelog.lazy_imports import pa, pc
from storage import durable
from storage.delta.data_files import DataFile, TableFiles, removed
from storage.errors import StorageError, storing
from storage.lazy_deltalake import deltalake
from storage.stores.folders import Folder

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from deltalake.transaction import AddAction, RemoveAction

__all__ = ["LOG", "Change", "file_rows", "purge", "rewriting", "superseded_rows", "version_of"]

Change = Callable[["pa.Table"], "pa.Table"]
"""Takes the rows of a data file, and returns the ones that stay. The same object: nothing changes."""

LOG: Final = "_delta_log/"
"""The folder of a table's log, in the names of its files."""
_VERSION: Final = re.compile(r"_delta_log/(\d{20})\.")
_POINTER: Final = "_delta_log/_last_checkpoint"
_BOUNDED: Final = (EPOCH, OP)


def file_rows(table: DeltaTable) -> Iterator[tuple[DataFile, pa.Table]]:
    """Yield each data file of the opened version with its rows, in the fields that are stored."""
    import pyarrow.parquet as pq

    store = TableFiles(table)
    for file in store.all():
        yield file, pq.read_table(io.BytesIO(store.content(file)), coerce_int96_timestamp_unit="us")


def superseded_rows(folder: Folder, present: Collection[str]) -> Iterator[pa.Table]:
    """Yield the rows of the data files below a table's folder that its present version, with these files, does not have. A file that cannot be read is passed over."""
    import pyarrow.parquet as pq

    known = {unquote(name) for name in present}
    for name in list(folder.names()):
        if name.endswith(".parquet") and not name.startswith(LOG) and name not in known:
            with suppress(pa.ArrowException, OSError):
                yield pq.read_table(io.BytesIO(folder.read(name)), coerce_int96_timestamp_unit="us")


def rewriting(table: DeltaTable, change: Change) -> list[AddAction | RemoveAction]:
    """Write the data files whose rows change anew, and return the actions of the commit that replaces them. Of a file without rows nothing stays."""
    store, actions = TableFiles(table), list[Any]()
    for file, rows in file_rows(table):
        kept = change(rows)
        if kept is not rows:
            actions += [removed(file), *([_written(store, kept)] if kept.num_rows else [])]
    return actions


def _written(store: TableFiles, rows: pa.Table) -> AddAction:
    from deltalake.transaction import AddAction
    from pyarrow import parquet as pq

    sink = io.BytesIO()
    pq.write_table(rows, sink, compression="snappy", write_statistics=[name for name in rows.column_names if name in (*_BOUNDED, "_key")])
    path, content = f"part-{uuid4()}.snappy.parquet", sink.getvalue()
    store.put(path, content)
    return AddAction(path, len(content), {}, time.time_ns() // 1_000_000, data_change=True, stats=_stats(rows))


def _stats(rows: pa.Table) -> str:
    """The statistics of a file for the log: bounds of epochs and operations, and how many rows are rejects. They hold no value of the data."""
    bounds = {name: pc.min_max(rows.column(name)).as_py() for name in _BOUNDED if name in rows.column_names}
    nulls = {name: rows.column(name).null_count for name in (*_BOUNDED, ERROR) if name in rows.column_names}
    return orjson.dumps({
        "numRecords": rows.num_rows,
        "minValues": {name: bound["min"] for name, bound in bounds.items() if bound["min"] is not None},
        "maxValues": {name: bound["max"] for name, bound in bounds.items() if bound["max"] is not None},
        "nullCount": nulls,
    }).decode()  # fmt: skip


def version_of(name: str) -> int | None:
    """Return the version that a file of the log is of, by its name inside the table; None for any other file."""
    found = _VERSION.match(name)
    return None if found is None else int(found[1])


def purge(folder: Folder, uri: str, base: int, label: str) -> int:
    """Remove what only versions of a table before `base` need: their data files, their log, their checkpoints. `base` has a checkpoint.

    One durable step a file. Removing again goes on where an earlier attempt ended. Returns the number of removed files. Raises StorageError for a log that
    cannot be read.
    """
    needed, gone = _needed(folder, uri, base), 0
    for name in list(folder.names()):
        version = version_of(name)
        if (name in needed) if version is None else (version >= base):
            continue
        durable.step(f"purge:{label}", lambda name=name: folder.remove(name))  # type: ignore[misc]  # a lambda's default
        gone += 1
    return gone


def _needed(folder: Folder, uri: str, base: int) -> set[str]:
    """The data files of version `base` and of all later ones."""
    with storing(uri):
        found = {_POINTER, *_files(deltalake.DeltaTable(uri, version=base))}
    for name in folder.names(LOG):
        version = version_of(name)
        if version is not None and name.endswith(".json") and version > base:
            found |= {unquote(action["add"]["path"]) for action in _actions(uri, name, folder.read(name)) if "add" in action}
    return found


def _actions(uri: str, name: str, content: bytes) -> list[dict[str, Any]]:
    try:
        return [orjson.loads(line) for line in content.splitlines() if line]
    except ValueError as problem:
        raise StorageError(uri, f"{name} cannot be read: {problem}") from problem


def _files(table: DeltaTable) -> set[str]:
    return {unquote(str(path)) for path in table.get_add_actions(flatten=True).column("path").to_pylist()}
