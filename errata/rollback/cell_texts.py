"""Values as the DLQ and the files of changes write them: the text forms of CSV outputs, empty where there is no value."""

from __future__ import annotations

from typing import Any

from changelog.lazy_imports import pa, pl
from cxl.types.types import Type
from cxl.values.dynamic import loads
from cxl.values.dynamic import plain as cxl_plain
from operators.core.value_text import shown
from storage.formats.base import Column
from storage.formats.values import text_of


def texts(column: pa.ChunkedArray, type_: Type) -> pl.Series:
    """The values of a column as text, empty where there is none."""
    return texts_or_null(column, type_).fill_null("")


def texts_or_null(column: pa.ChunkedArray, type_: Type) -> pl.Series:
    """The same with nulls. Each distinct JSON text of a dynamic type is parsed once."""
    if type_.is_dynamic:
        coded = column.combine_chunks().dictionary_encode()
        known = pl.Series([shown(plain(text, type_)) for text in coded.dictionary.to_pylist()], dtype=pl.String)
        return known.gather(pl.Series(coded.indices))
    return pl.Series(text_of(column.combine_chunks(), Column("", "string"), "csv"), dtype=pl.String)


def plain(value: Any, type_: Type) -> Any:
    """The scalar in JSON text of a dynamic type; any other value unchanged."""
    if value is None or not type_.is_dynamic:
        return value
    found = loads(value)
    return cxl_plain(value) if isinstance(found, (dict, list)) else found


def value_in_words(value: Any, type_: Type) -> str:
    """A value as log lines and messages show it, `null` where there is none."""
    found = plain(value, type_)
    return "null" if found is None else shown(found)
