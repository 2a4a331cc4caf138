"""CSV text to columns, by Arrow's parser."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date
from types import MappingProxyType

from changelog.lazy_imports import np, pa, pacsv, pc
from storage.formats.byte_places import those_in
from storage.formats.csv.options import CsvReadOptions
from storage.formats.csv.scan import CR, LF, Bytes, as_bytes

_BLOCK = 1 << 20
_LOOK = 1 << 17
"""Bytes that are searched at a time. The masks of them fit into the processor's cache."""
_BLANKS, _HEXADECIMAL = b" \t", b"xX"
_SOMETHING = re.compile(rb"[^\r\n]")


def direct_types() -> dict[str, pa.DataType]:
    """Declared types whose cells Arrow's parser reads.

    `storage.values.coerce` gives the same values, except for the cells that `is_plain` and `has_strange` find.
    """
    return {"int": pa.int64(), "float": pa.float64(), "date": pa.date32()}


def parse_cells(
    options: CsvReadOptions, body: bytes, width: int, wanted: Mapping[str, int], types: Mapping[int, pa.DataType] = MappingProxyType({})
) -> pa.Table | None:
    """The wanted cells in columns that are named by their index.

    None where some record has not `width` cells, a quote stays open, or Arrow cannot read a cell as its type.

    Args:
        options: the options of the source
        body: the text of the records (UTF-8)
        width: the number of cells of each record
        wanted: the index of the cell of each column
        types: the `direct_types` of cells by their index; the others are text
    """
    ragged = False

    def refuse(_row: pacsv.InvalidRow) -> str:
        nonlocal ragged
        ragged = True
        return "skip"

    if not width or _SOMETHING.search(body) is None:
        return pa.table({str(index): pa.array([], types.get(index, pa.string())) for index in wanted.values()})
    quoted = options.quote_char.encode() in body
    places = [str(index) for index in range(width)]
    read = pacsv.ReadOptions(use_threads=False, block_size=len(body) + 1 if quoted else _BLOCK, column_names=places)
    parse = pacsv.ParseOptions(delimiter=options.delimiter, quote_char=options.quote_char, newlines_in_values=quoted, invalid_row_handler=refuse)
    try:
        table = pacsv.read_csv(pa.BufferReader(body), read_options=read, parse_options=parse, convert_options=_conversion(places, wanted, types))
    except pa.ArrowInvalid:
        return None
    return None if ragged else table


def _conversion(places: Sequence[str], wanted: Mapping[str, int], types: Mapping[int, pa.DataType]) -> pacsv.ConvertOptions:
    return pacsv.ConvertOptions(
        check_utf8=False,
        include_columns=[str(index) for index in dict.fromkeys(wanted.values())] or places[:1],
        column_types={place: types.get(index, pa.string()) for index, place in enumerate(places)},
        strings_can_be_null=False,
        null_values=[""],
    )


def special_in(options: CsvReadOptions, body: bytes) -> frozenset[int]:
    """Which characters are there that need a closer look: the quote, blanks, and the x of hexadecimal numbers."""
    return those_in(body, options.quote_char.encode() + _BLANKS + _HEXADECIMAL)


def is_plain(options: CsvReadOptions, body: bytes, special: frozenset[int]) -> bool:
    """Whether no cell has blanks at its ends, which Arrow's parser skips, or may be a hexadecimal number. `special` is `special_in`."""
    hexadecimal = any(x in special and bytes([ord("0"), x]) in body for x in _HEXADECIMAL)
    return not hexadecimal and not any(blank in special and _at_an_end(options, body, blank) for blank in _BLANKS)


def _at_an_end(options: CsvReadOptions, body: bytes, blank: int) -> bool:
    """Whether a blank that is there is at an end of the text or next to a character that ends a cell."""
    quote, delimiter = ord(options.quote_char), ord(options.delimiter)
    if blank in (quote, delimiter):
        return quote in body
    view, ends = as_bytes(body), [end for end in (quote, delimiter, LF, CR) if end in body]
    return blank in (view[0], view[-1]) or any(_adjacent(view[max(at - 1, 0) : at + _LOOK], blank, ends) for at in range(0, len(view), _LOOK))


def _adjacent(view: Bytes, blank: int, ends: Sequence[int]) -> bool:
    """Whether a blank is next to one of the `ends`."""
    blanks, bounds = view == blank, np.zeros(len(view), np.bool_)
    for end in ends:
        bounds |= view == end
    return bool((blanks[1:] & bounds[:-1]).any() or (blanks[:-1] & bounds[1:]).any())


def has_strange(table: pa.Table) -> bool:
    """Whether a column holds a NaN, an infinity or a date before the year 1.

    Arrow's parser accepts more spellings of NaN, reads long digits as infinities, and reads dates before the year 1.
    """
    return any(_is_strange(column) for column in table.columns)


def _is_strange(column: pa.ChunkedArray) -> bool:
    if pa.types.is_floating(column.type):
        return pc.all(pc.is_finite(column)).as_py() is False
    return pa.types.is_date(column.type) and pc.less(pc.min(column), pa.scalar(date.min, pa.date32())).as_py() is True
