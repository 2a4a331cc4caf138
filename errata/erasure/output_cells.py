"""The cells of files that outputs wrote as text, by column: there numbers, dates and short texts are more than bytes among others.

A cell is its text, and what each type that a node has for its column reads in it: a time may be written with `T` or a blank, with `Z`, an offset or a fraction, or in a format of the pipeline.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from typing import Any

from changelog.lazy_imports import pl
from cxl.types.types import Kind
from errata.erasure.named_values import AS_TEXT, read_cells, types_of
from errata.erasure.spelling import plain_digits
from errata.plan.plan import Plan
from operators.output.config import OutputConfig
from operators.output.operator import Output


def written_cells(plan: Plan, node: str, content: bytes) -> list[pl.Series] | None:
    """The columns of a file that a node or the dead letter queue wrote; None where its cells cannot be read."""
    if node == DLQ:
        texts = _of_csv(content, {})
    else:
        operator = plan[node].operator if node in plan.nodes else None
        texts = texts_of(content, operator.config) if isinstance(operator, Output) else None
    return None if texts is None else [*texts, *(cells for column in texts for cells in _by_types(plan, column))]


DLQ = "dlq"
"""The name of the dead letter queue in the ledger."""


def _by_types(plan: Plan, column: pl.Series) -> Iterator[pl.Series]:
    """The cells of a column, read by each type that it may have."""
    for type_, date_formats in dict(types_of(plan, column.name)).items():
        if type_.kind not in {*AS_TEXT, Kind.BOOL}:
            yield read_cells(column, type_, date_formats).drop_nulls()


def texts_of(content: bytes, config: OutputConfig) -> list[pl.Series] | None:
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
    return [_without_guards(column.drop_nulls().unique()) for column in rows]


def _without_guards(cells: pl.Series) -> pl.Series:
    """Cells, also without the apostrophe that keeps a spreadsheet from taking one for a formula."""
    guarded = cells.filter(cells.str.contains(r"^'[=+\-@\t\r]"))
    return pl.concat([cells, guarded.str.slice(1)])


def _of_json(content: bytes) -> list[pl.Series] | None:
    try:
        document = _parsed(content)
    except ValueError:
        try:
            document = [_parsed(line) for line in content.splitlines() if line.strip()]
        except ValueError:
            return None
    found: dict[str, set[str]] = {}
    for names, value in _leaves((), document):
        for name in (*names, ".".join(names)):
            found.setdefault(name, set()).add(value)
    return [pl.Series(name, sorted(cells), dtype=pl.String) for name, cells in found.items()]


def _parsed(content: bytes) -> Any:
    """JSON with the digits of its numbers as texts."""
    return json.loads(content, parse_float=plain_digits, parse_int=str)


def _leaves(names: tuple[str, ...], document: Any) -> Iterator[tuple[tuple[str, ...], str]]:
    """The values in JSON, each with the names of the members that it is in."""
    if isinstance(document, dict):
        for inner, value in document.items():
            yield from _leaves((*names, inner), value)
    elif isinstance(document, list):
        for value in document:
            yield from _leaves(names, value)
    elif document is not None and not isinstance(document, bool):
        yield names, str(document)
