"""The cells of files that outputs wrote as text, by column: there numbers, dates and short texts are more than bytes among others."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from changelog.lazy_imports import pl
from errata.erasure.spelling import as_cell
from operators.output.config import OutputConfig


def cells_of(content: bytes, config: OutputConfig) -> list[pl.Series] | None:
    """The columns of a CSV or JSON file as texts, by their names upstream; None for a file whose cells cannot be read so, such as one without a header."""
    if config.type == "csv" and config.include_header:
        found = _of_csv(content, config.options)
    elif config.type == "json":
        found = _of_json(content)
    else:
        return None
    return None if found is None else [column.rename(config.mapping.get(column.name, column.name)) for column in found]


def _of_csv(content: bytes, options: Mapping[str, Any]) -> list[pl.Series] | None:
    separator, quote = str(options.get("delimiter", ",")), str(options.get("quote_char", '"'))
    try:
        rows = pl.read_csv(io.BytesIO(content), separator=separator, quote_char=quote, infer_schema=False)
    except pl.exceptions.NoDataError:
        return []
    except (pl.exceptions.PolarsError, ValueError):
        return None
    return [column.str.replace(r"^(-?\d+)\.0+$", "$1").str.replace(r"^(-?\d+\.\d*?)0+$", "$1") for column in rows]


def _of_json(content: bytes) -> list[pl.Series] | None:
    try:
        told = orjson.loads(content)
    except orjson.JSONDecodeError:
        try:
            told = [orjson.loads(line) for line in content.splitlines() if line.strip()]
        except orjson.JSONDecodeError:
            return None
    found: dict[str, set[str]] = {}
    for names, value in _leaves((), told):
        for name in names:
            found.setdefault(name, set()).add(value)
    return [pl.Series(name, sorted(cells), dtype=pl.String) for name, cells in found.items()]


def _leaves(names: tuple[str, ...], told: Any) -> Iterator[tuple[tuple[str, ...], str]]:
    """The values in JSON, each with the names of the members that it is in."""
    if isinstance(told, dict):
        for inner, value in told.items():
            yield from _leaves((*names, inner), value)
    elif isinstance(told, list):
        for value in told:
            yield from _leaves(names, value)
    elif told is not None and not isinstance(told, bool):
        yield names, as_cell(told)
