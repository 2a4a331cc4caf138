"""Buckets: the partition in which an arrangement keeps the rows of one lookup key (DESIGN section 4, "Arrangements").

A bucket is the CRC-32 of the key's bytes, modulo the number of buckets; the same on every engine and in Python.
"""

from typing import TYPE_CHECKING
from zlib import crc32

from changelog.lazy_imports import F, pa

if TYPE_CHECKING:
    from pyspark.sql import Column

__all__ = ["bucket_array", "bucket_column", "bucket_of"]


def bucket_of(key: bytes | None, count: int) -> int:
    """The bucket of a key, 0 for none."""
    return crc32(key) % count if key is not None else 0


def bucket_array(keys: "pa.ChunkedArray", count: int) -> "pa.Array":
    """The buckets of a binary Arrow column, as int32."""
    return pa.array([bucket_of(key, count) for key in keys.to_pylist()], pa.int32())


def bucket_column(key: "Column", count: int) -> "Column":
    """The bucket of a binary Column, as int."""
    return F.coalesce(F.crc32(key) % count, F.lit(0)).cast("int")
