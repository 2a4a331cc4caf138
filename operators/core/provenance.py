"""Provenance: from rows back to input rows, and from keys back to sources and files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from changelog.lazy_imports import F, pa
from operators.core.row_type import KeyShape, RowType

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


INDEX_DIGITS = 8
"""Hexadecimal digits of the index behind a key (`changelog.keys.spark.with_index`)."""


ASKER = "__of"
"""A column of rows whose origins are wanted: who asks. Each origin has the asker of its row."""


def by_key(rows: DataFrame, shape: KeyShape, above: KeyShape) -> DataFrame:
    """The keys of the input rows of rows that each come from one row: the same key, or the key without its index. Columns `__of`, `_key`."""
    key = F.col("_key")
    return rows.select(ASKER, (key if shape == above else without_index(key)).alias("_key")).distinct()


def without_index(key: Column) -> Column:
    """A key without the index behind it."""
    digits = F.hex(key)
    return F.unhex(F.substring(digits, F.lit(1), F.length(digits) - F.lit(INDEX_DIGITS)))


def is_first(key: Column) -> Column:
    """Whether the index behind a key is that of a record's first row."""
    return F.endswith(F.hex(key), F.lit("0" * INDEX_DIGITS))


def of_lookup(rows: DataFrame, placed: DataFrame, by: str = "_lookup") -> DataFrame:
    """The keys of input rows (which have `by`) that have a `by` of the rows. Columns `__of`, `_key`."""
    return placed.select(by, "_key").join(rows.select(by, ASKER).distinct(), by).select(ASKER, "_key").distinct()


_LABEL_STEP = 7
_DEEPEST_LABEL = 8


@dataclass(frozen=True, slots=True)
class FileLabels:
    """Paths by the first bytes of keys: a source's number and the file's label."""

    paths: Mapping[bytes, str] = field(default_factory=dict)


def source_name_of(row: RowType) -> Column:
    """The name of the source that each record came from."""
    return _named(row.key, F.col("_key"))


def _named(shape: KeyShape, key: Column) -> Column:
    if shape.kind == "source":
        return F.lit(shape.source)
    if shape.kind == "merge":
        result = F.lit(None).cast("string")
        for number, part in enumerate(shape.parts):
            result = F.when(_byte(key, 1) == F.lit(bytes([number])), _named(part, _from(key, 2))).otherwise(result)
        return result
    return _named(shape.parts[0], key) if shape.parts else F.lit(None).cast("string")


def file_of(frame: DataFrame, row: RowType, labels: FileLabels) -> tuple[DataFrame, Column]:
    """The frame with what is needed for it, and the path of the file that each record came from; null where there is no single one."""
    own = F.col("_file") if "_file" in row.hidden else F.lit(None).cast("string")
    if not labels.paths or not _has_labels(row.key):
        return frame, own

    prefixes = pa.array(list(labels.paths), pa.binary())
    table = frame.sparkSession.createDataFrame(pa.table({"__prefix": prefixes, "__path": pa.array(labels.paths.values(), pa.string())}))
    marked = frame.withColumn("__prefix", _file_prefix(row.key, F.col("_key")))
    return marked.join(F.broadcast(table), "__prefix", "left"), F.coalesce(own, F.col("__path"))


def _has_labels(shape: KeyShape) -> bool:
    return (shape.kind == "source" and shape.types is None) or any(_has_labels(part) for part in shape.parts)


def _file_prefix(shape: KeyShape, key: Column) -> Column:
    """The bytes of source number and file label; null where the key names no file."""
    nothing = F.lit(None).cast("binary")
    if shape.kind == "source":
        return nothing if shape.types is not None else label_prefix(key)
    if shape.kind == "merge":
        result = nothing
        for number, part in enumerate(shape.parts):
            result = F.when(_byte(key, 1) == F.lit(bytes([number])), _file_prefix(part, _from(key, 2))).otherwise(result)
        return result
    return _file_prefix(shape.parts[0], key) if shape.parts else nothing


def file_scope(row: RowType) -> Column:
    """Bytes that are the same for all records of one file of one source, and for all records that no file is known of."""
    prefix = _file_prefix(row.key, F.col("_key")) if _has_labels(row.key) else F.lit(None).cast("binary")
    named = [F.col("_file").cast("binary")] if "_file" in row.hidden else []
    return F.coalesce(*named, prefix, F.lit(b""))


def label_prefix(key: Column) -> Column:
    """The source's number and the label behind it: steps of 7 bytes up to the one that closes with 00."""
    result = F.lit(None).cast("binary")
    for steps in range(_DEEPEST_LABEL, 0, -1):
        length = 1 + steps * _LABEL_STEP
        result = F.when(_byte(key, length) == F.lit(b"\x00"), key_slice(key, 1, length)).otherwise(result)
    return result


def key_slice(key: Column, at: int, length: int | None = None) -> Column:
    """Return `length` bytes of a key from position `at` (from 1). It slices hexadecimal digits, since an engine slices binary as text."""
    digits = F.substring(F.hex(key), 2 * at - 1, 2 * length if length is not None else 1 << 24)
    return F.unhex(digits)


def _byte(key: Column, at: int) -> Column:
    return key_slice(key, at, 1)


def _from(key: Column, at: int) -> Column:
    return key_slice(key, at)


def numbered_input(key: bytes, inputs: int) -> tuple[int, bytes]:
    """Return the number of the input that a key begins with, and the key without it; the first input where there is none."""
    return (key[0], key[1:]) if key and key[0] < inputs else (0, key)
