"""The logical hash of rows: the same for the same rows, whatever file or batches they are in (ODF's RFC-002, arrow-digest version 0).

Each column is hashed by itself: its type, then its values; a null is one zero byte. The hash of the names and of the columns' hashes is that of the rows.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from changelog.lazy_imports import pa, pc
from storage.odf.multiformats import ARROW0_SHA3_256, Multihash

__all__ = ["LogicalHash", "UnhashedType"]

_UNITS: Final = {"s": 0, "ms": 1, "us": 2, "ns": 3}
_INT, _FLOAT, _BINARY, _TEXT, _BOOL, _DECIMAL, _DATE, _TIME, _TIMESTAMP, _LIST = 1, 2, 3, 4, 5, 6, 7, 8, 9, 11
_NULL: Final = b"\0"
_LISTS: Final = ("list", "large_list", "fixed_size_list")


class UnhashedType(Exception):
    """A type for which the algorithm has no hash, such as a map."""


class LogicalHash:
    """Hashes batches of rows one after the other.

    Args:
        schema: Their columns. Raises UnhashedType.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self._names = hashlib.sha3_256()
        self._columns = [_hash_of_type(type_) for type_ in self._leaves(list(schema), 0)]

    def _leaves(self, fields: list[pa.Field], level: int) -> Iterator[pa.DataType]:
        """The types of the columns without structs, depth first. The names of all fields are hashed."""
        for field in fields:
            name = field.name.encode()
            self._names.update(_length(name) + name + struct.pack("<Q", level))
            plain = _plain_type(field.type)
            if pa.types.is_struct(plain):
                yield from self._leaves([plain.field(at) for at in range(plain.num_fields)], level + 1)
            else:
                yield plain

    def update(self, batch: pa.RecordBatch) -> None:
        """Take the rows of a batch."""
        leaves = (leaf for column in batch.columns for leaf in _flattened(column, None))
        for hasher, leaf in zip(self._columns, leaves, strict=True):
            hasher.update(_content(leaf))

    def result(self) -> Multihash:
        """The hash of all rows."""
        whole = self._names.copy()
        for column in self._columns:
            whole.update(column.digest())
        return Multihash(ARROW0_SHA3_256, whole.digest())


def _length(content: bytes) -> bytes:
    return struct.pack("<Q", len(content))


def _plain_type(type_: pa.DataType) -> pa.DataType:
    """The type of the values, without what a file or a library has around them."""
    if isinstance(type_, pa.BaseExtensionType):
        return _plain_type(type_.storage_type)
    return _plain_type(type_.value_type) if pa.types.is_dictionary(type_) else type_


def _plain(values: pa.Array) -> pa.Array:
    if isinstance(values.type, pa.BaseExtensionType):
        return _plain(values.storage)
    return _plain(values.dictionary_decode()) if pa.types.is_dictionary(values.type) else values


def _flattened(values: pa.Array, valid: pa.Array | None) -> Iterator[pa.Array]:
    """The columns of a struct, with nulls where it is null; other columns as they are."""
    plain = _plain(values)
    if valid is not None:
        plain = pc.if_else(valid, plain, pa.scalar(None, plain.type))
    if not pa.types.is_struct(plain.type):
        yield plain
        return
    inner = plain.is_valid() if plain.null_count else None
    for at in range(plain.type.num_fields):
        yield from _flattened(pc.struct_field(plain, [at]) if inner is None else plain.field(at), inner)


# -- types


def _hash_of_type(type_: pa.DataType) -> Any:
    return hashlib.sha3_256(_type_bytes(type_))


def _type_bytes(type_: pa.DataType) -> bytes:
    """The bytes of a type that are hashed."""
    plain = _plain_type(type_)
    for kinds, tell in _TYPES:
        if _is(plain, kinds):
            return tell(plain)
    raise UnhashedType(f"there is no logical hash of columns of type {type_}")


def _numbered(number: int, *rest: bytes) -> bytes:
    return b"".join((struct.pack("<H", number), *rest))


def _width(type_: pa.DataType) -> bytes:
    return struct.pack("<Q", type_.bit_width)


def _unit(type_: pa.DataType) -> bytes:
    return struct.pack("<H", _UNITS[type_.unit])


def _zone(type_: pa.DataType) -> bytes:
    zone = None if type_.tz is None else type_.tz.encode()
    return _NULL if zone is None else _length(zone) + zone


_TYPES: Final[Sequence[tuple[Sequence[str], Callable[[pa.DataType], bytes]]]] = (
    (("boolean",), lambda one: _numbered(_BOOL)),
    (("integer",), lambda one: _numbered(_INT, b"\1" if pa.types.is_signed_integer(one) else b"\0", _width(one))),
    (("floating",), lambda one: _numbered(_FLOAT, _width(one))),
    (("decimal",), lambda one: _numbered(_DECIMAL, _width(one), struct.pack("<Qq", one.precision, one.scale))),
    (("date",), lambda one: _numbered(_DATE, _width(one), struct.pack("<H", int(pa.types.is_date64(one))))),
    (("time",), lambda one: _numbered(_TIME, _width(one), _unit(one))),
    (("timestamp",), lambda one: _numbered(_TIMESTAMP, _unit(one), _zone(one))),
    (("binary", "large_binary", "binary_view", "fixed_size_binary"), lambda one: _numbered(_BINARY)),
    (("string", "large_string", "string_view"), lambda one: _numbered(_TEXT)),
    (_LISTS, lambda one: _numbered(_LIST, _type_bytes(one.value_type))),
)


def _is(type_: pa.DataType, kinds: Sequence[str]) -> bool:
    """Whether a type is of one of some kinds, as `pyarrow.types` calls them."""
    return any(getattr(pa.types, f"is_{kind}")(type_) for kind in kinds)


# -- values


def _content(values: pa.Array) -> memoryview | bytes:
    """The bytes of the values of a column that are hashed."""
    plain = _plain(values)
    if not plain.null_count and _has_one_width(plain.type):
        width, content = plain.type.bit_width // 8, plain.buffers()[1]
        return b"" if content is None else memoryview(content)[plain.offset * width : (plain.offset + len(plain)) * width]
    cells = _cells(plain)
    offsets, content = cells.buffers()[1], cells.buffers()[2]
    if not len(cells) or content is None:
        return b""
    first, last = (struct.unpack_from("<q", offsets, 8 * at)[0] for at in (cells.offset, cells.offset + len(cells)))
    return memoryview(content)[first:last]


def _has_one_width(type_: pa.DataType) -> bool:
    return bool(pa.types.is_primitive(type_) or pa.types.is_decimal(type_)) and not pa.types.is_boolean(type_)


def _cells(values: pa.Array) -> pa.Array:
    """The bytes of each value that are hashed; one zero byte for a null."""
    plain = _plain(values)
    if pa.types.is_boolean(plain.type):
        made = _as_bytes(pc.add(plain.cast(pa.uint8()), pa.scalar(1, pa.uint8())))
    elif _has_one_width(plain.type):
        made = _as_bytes(plain)
    elif _is(plain.type, _LISTS):
        lists = plain.cast(pa.large_list(plain.type.value_type)) if not pa.types.is_large_list(plain.type) else plain
        items = pa.LargeListArray.from_arrays(lists.offsets, _cells(lists.values), mask=lists.is_null() if lists.null_count else None)
        made = _with_lengths(pc.list_value_length(lists), pc.binary_join(items, pa.scalar(b"", pa.large_binary())))
    else:
        content = plain.cast(pa.large_binary())
        made = _with_lengths(pc.binary_length(content), content)
    return pc.fill_null(made, pa.scalar(_NULL, made.type))


def _as_bytes(values: pa.Array) -> pa.Array:
    return values.view(pa.binary(values.type.bit_width // 8)).cast(pa.large_binary())


def _with_lengths(lengths: pa.Array, contents: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(_as_bytes(lengths.cast(pa.int64())), contents, pa.scalar(b"", pa.large_binary()))
