"""A digest of the values and the columns of an Arrow table, whatever its chunks, its buffers and the library that made it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import Any

from changelog.lazy_imports import np, pa, pc

DIGEST_BYTES = 16
_CHUNK = 100_000
"""Rows that are digested at a time."""
Feed = Callable[[Any], None]


def table_digest(table: pa.Table) -> str:
    """Return the digest in hexadecimal: equal for tables with equal columns, in the same order, and equal rows, in the same order.

    Texts, binaries and lists count alike with offsets of any size, dictionaries as their values. NaN is one value, and 0.0 is -0.0.
    """
    hasher = hashlib.blake2b(digest_size=DIGEST_BYTES)
    for field, column in zip(table.schema, table.columns, strict=True):
        hasher.update(f"{len(field.name)}:{field.name}:{_type_text(field.type)}:{len(column)};".encode("utf-8", "surrogatepass"))
        for piece in _pieces(column):
            _feed(hasher.update, piece)
    return hasher.hexdigest()


def _pieces(column: pa.ChunkedArray) -> Iterator[pa.Array]:
    """The values of a column in arrays of one length, whatever its chunks are."""
    for start in range(0, len(column), _CHUNK):
        found = column.slice(start, _CHUNK).combine_chunks()
        yield found if isinstance(found, pa.Array) else pa.concat_arrays(found.chunks)


def _type_text(kind: pa.DataType) -> str:
    """The name of a type, without how its values lie in memory."""
    if isinstance(kind, pa.BaseExtensionType):
        return f"{kind.extension_name}[{_type_text(kind.storage_type)}]"
    if pa.types.is_dictionary(kind):
        return _type_text(kind.value_type)
    if pa.types.is_map(kind):
        return f"map<{_type_text(kind.key_type)}, {_type_text(kind.item_type)}>"
    if _is_list(kind):
        return f"list<{_type_text(kind.value_type)}>"
    if pa.types.is_struct(kind):
        return f"struct<{', '.join(f'{one.name}: {_type_text(one.type)}' for one in kind)}>"
    if _is_text(kind):
        return "string"
    return "binary" if _is_binary(kind) else str(kind)


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind) or pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _is_binary(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind) or pa.types.is_fixed_size_binary(kind))


def _feed(feed: Feed, values: pa.Array) -> None:
    """Give the bytes of an array: the places of nulls, then the values."""
    kind = values.type
    if isinstance(kind, pa.BaseExtensionType):
        _feed(feed, values.storage)
    elif pa.types.is_dictionary(kind):
        _feed(feed, values.dictionary_decode())
    elif (plain := _plain_type(kind)) is not None and plain != kind:
        _feed(feed, values.cast(plain))
    else:
        feed(np.packbits(np.asarray(values.is_valid().to_numpy(zero_copy_only=False))))
        _feed_valid(feed, values.drop_null() if values.null_count else values)


def _plain_type(kind: pa.DataType) -> pa.DataType | None:
    """The type as which texts, binaries and lists of all forms are digested; None for other types."""
    if _is_text(kind):
        return pa.large_string()
    if _is_binary(kind):
        return pa.large_binary()
    return pa.large_list(kind.value_type) if _is_list(kind) else None


def _feed_valid(feed: Feed, values: pa.Array) -> None:
    """Give the bytes of an array without nulls."""
    kind = values.type
    if pa.types.is_null(kind):
        return
    if pa.types.is_struct(kind):
        for part in values.flatten():
            _feed(feed, part)
    elif pa.types.is_map(kind):
        _feed_lists(feed, values.cast(pa.list_(pa.struct([("key", kind.key_type), ("value", kind.item_type)]))))
    elif _is_list(kind):
        _feed_lists(feed, values)
    elif _is_text(kind) or _is_binary(kind):
        _feed_texts(feed, values.cast(pa.large_binary()))
    else:
        feed(_numbers(values))


def _feed_lists(feed: Feed, values: pa.Array) -> None:
    feed(_ints(pc.list_value_length(values)))
    _feed(feed, pc.list_flatten(values))


def _feed_texts(feed: Feed, values: pa.Array) -> None:
    feed(_ints(pc.binary_length(values)))
    _, offsets, data = values.buffers()
    if data is not None and len(values):
        ends = np.frombuffer(offsets, np.int64)[values.offset : values.offset + len(values) + 1]
        feed(memoryview(data)[int(ends[0]) : int(ends[-1])])


def _ints(values: pa.Array) -> Any:
    return np.ascontiguousarray(values.cast(pa.int64()).to_numpy(zero_copy_only=False))


def _numbers(values: pa.Array) -> Any:
    """The bytes of values of one width each."""
    kind = values.type
    if pa.types.is_boolean(kind):
        return np.packbits(np.asarray(values.to_numpy(zero_copy_only=False)))
    if pa.types.is_floating(kind):
        found = np.array(values.to_numpy(zero_copy_only=False))
        found[np.isnan(found)] = np.nan
        return found + found.dtype.type(0)  # -0.0 becomes 0.0
    width = kind.bit_width // 8
    data = values.buffers()[1]
    return b"" if data is None else memoryview(data)[values.offset * width : (values.offset + len(values)) * width]
