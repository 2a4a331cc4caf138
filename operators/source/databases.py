"""Checks of a source that asks a database."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from cxl.types.types import Kind
from operators.core.binding import Binding
from operators.core.config import microseconds
from operators.core.connections import connection_of
from operators.source.config import Files, SourceConfig
from storage.sql.names import TableName
from storage.sql.statements import one_statement

Report = Callable[..., Any]
_ABOUT_FILES: Final[dict[str, Any]] = {
    "transport": "file", "path": None, "glob": None, "regex": None, "paths": None, "exclude": [], "modified_after": None, "modified_before": None,
    "min_size": None, "max_size": None, "files": Files(), "options": {}, "array_paths": [], "format_schema": None, "envelope": None, "sort_order": [],
}  # fmt: skip
"""Keys that a database has nothing for, with their defaults."""
_ABOUT_DATABASES: Final = ("connection", "table", "query", "change_token")
CURSORS: Final[Mapping[Kind, str]] = {Kind.INT: "number", Kind.DECIMAL: "number", Kind.DATE: "time", Kind.DATE_TIME: "time", Kind.STRING: "text"}
"""Kinds of columns that can be cursors, and what an overlap of them is."""
_COLLATED: Final = {"mysql": "MySQL", "mssql": "SQL Server", "oracle": "Oracle"}
"""Kinds that compare texts by a collation, which may take two texts for one, or by the language of the session."""


def check_no_database(config: SourceConfig, report: Report) -> None:
    """Report keys of databases in a source of files."""
    for name in _ABOUT_DATABASES:
        if getattr(config, name) is not None:
            report("E346", f"source '{config.name}' is of type {config.type}; {name} is about databases", ("config", name), "type: sql reads a database")
    for name in ("cursor", "overlap"):
        if getattr(config.merge, name) is not None:
            report("E605", f"'{name}' belongs to sources of type sql, not {config.type}", ("config", "merge", name), "remove it: a file is read whole, and compared with what it was")


def check_database(config: SourceConfig, report: Report, binding: Binding) -> None:
    """Report what is wrong with a source that asks a database."""
    connection = connection_of(config.connection, report, binding)
    for name, unset in _ABOUT_FILES.items():
        if getattr(config, name) != unset:
            report("E346", f"source '{config.name}' asks a database; {name} is about files", ("config", name), "remove it")
    if (config.table is None) == (config.query is None):
        both = "table and query" if config.table is not None else "neither table nor query"
        report("E603", f"source '{config.name}' has {both}; exactly one of them is needed", ("config", "query" if config.query is not None else "connection"), None)
    for code, place, text, read in _statements(config):
        try:
            read(text)
        except ValueError as wrong:
            report(code, str(wrong), ("config", place), None)
    _check_cursor(config, report, binding, None if connection is None else connection.kind)


def _statements(config: SourceConfig) -> Iterator[tuple[str, str, str, Callable[[str], object]]]:
    if config.table is not None:
        yield "E603", "table", config.table, TableName.parse
    for name in ("query", "change_token"):
        text = getattr(config, name)
        if text is not None:
            yield "E604", name, text, one_statement


def _check_cursor(config: SourceConfig, report: Report, binding: Binding, kind: str | None) -> None:
    merge = config.merge
    place = ("config", "merge", "cursor")
    if merge.cursor is None:
        if merge.overlap is not None:
            report("E605", "'overlap' belongs to a cursor", ("config", "merge", "overlap"), "name a cursor, or remove overlap")
        return
    if merge.strategy == "snapshot":
        report("E605", "a snapshot has no cursor: rows that went away would go unnoticed", place, "leave the cursor out, or use append, ledger, upsert or changelog")
        return
    column = next((one for one in config.schema_ if one.name == merge.cursor), None)
    if column is None:
        report("E605", f"there is no column '{merge.cursor}' in the schema", place, binding.problems.similar(merge.cursor, [one.name for one in config.schema_]))
        return
    step = CURSORS.get(column.cxl_type.kind)
    if step == "text" and kind in _COLLATED:
        report("E605", f"a text cannot be a cursor: {_COLLATED[kind]} compares texts by a collation", place, "use a column of type int, decimal, date or date_time")
        return
    if step is None:
        report("E605", f"a column of type {column.type} cannot be a cursor", place, "use one of type int, decimal, date, date_time or string")
        return
    _check_overlap(config, step, report)
    if step == "time" and not merge.overlap:
        message = f"source '{config.name}' reads on from the greatest '{merge.cursor}' without an overlap: rows that become visible later, with an earlier time, are never read"
        binding.problems.warn("W601", message, place, help="overlap: 15m asks for the last quarter of an hour again; rows that are known change nothing")


def _check_overlap(config: SourceConfig, step: str, report: Report) -> None:
    """Report an overlap that cannot be taken from the cursor."""
    overlap, place = config.merge.overlap, ("config", "merge", "overlap")
    if overlap is None:
        return
    if step == "text":
        report("E605", "nothing can be taken from a text: a cursor of type string has no overlap", place, "remove overlap, or take a cursor of numbers or times")
    elif step == "number" and (isinstance(overlap, str | bool) or overlap < 0):
        report("E605", f"the overlap of a cursor of numbers is a number, not {overlap!r}", place, "write overlap: 100, for the last 100 values")
    elif step == "time":
        try:
            microseconds(str(overlap))
        except ValueError as wrong:
            report("E605", str(wrong), place, None)

