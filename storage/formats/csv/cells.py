"""CSV text to columns of text, by Arrow's parser."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.csv as pacsv

from storage.formats.csv import CsvReadOptions

_BLOCK = 1 << 20


def parse_cells(options: CsvReadOptions, body: bytes, width: int, wanted: Mapping[str, int]) -> pa.Table | None:
    """The wanted cells as text, columns named by position; null when some record is not `width` cells wide or a quote stays open."""
    ragged = False

    def refuse(_row: pacsv.InvalidRow) -> str:
        nonlocal ragged
        ragged = True
        return "skip"

    if not body.strip(b"\r\n") or not width:
        return pa.table({str(index): pa.array([], pa.string()) for index in wanted.values()})
    quoted = options.quote_char.encode() in body
    places = [str(index) for index in range(width)]
    try:
        table = pacsv.read_csv(
            pa.BufferReader(body),
            read_options=pacsv.ReadOptions(use_threads=False, block_size=len(body) + 1 if quoted else _BLOCK, column_names=places),
            parse_options=pacsv.ParseOptions(
                delimiter=options.delimiter, quote_char=options.quote_char, newlines_in_values=quoted, invalid_row_handler=refuse
            ),
            convert_options=pacsv.ConvertOptions(
                check_utf8=False,
                include_columns=[str(index) for index in dict.fromkeys(wanted.values())] or places[:1],
                column_types=dict.fromkeys(places, pa.string()),
                strings_can_be_null=False,
            ),
        )
    except pa.ArrowInvalid:
        return None
    return None if ragged else table
