"""Checks of an output that is a table of a database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from operators.core.binding import Binding
from operators.core.connections import connection_of
from operators.output.config import OutputConfig
from storage.sql.names import TableName

_ABOUT_FILES: Final[dict[str, Any]] = {
    "path": "", "include_header": True, "options": {}, "format_schema": None, "sort_order": [], "split": None, "unique_suffix_width": 0, "write_meta": False,
}  # fmt: skip
"""Keys that a table has nothing for, with their defaults."""
_ABOUT_DATABASES: Final[dict[str, Any]] = {"connection": None, "table": None, "primary_key": [], "key_column": None, "mode": None, "form": None}


def check_no_database(config: OutputConfig, binding: Binding) -> bool:
    """Whether an output of files has no keys of databases; reports them."""
    wrong = [name for name, unset in _ABOUT_DATABASES.items() if getattr(config, name) != unset]
    for name in wrong:
        message = f"output '{config.name or ''}' is of type {config.type}; {name} is about tables of databases"
        binding.problems.report("E346", message, ("config", name), help="type: sql writes such a table")
    return not wrong


def check_database(config: OutputConfig, binding: Binding) -> bool:
    """Whether an output may be a table of a database; reports what is wrong."""
    found: list[None] = []

    def report(code: str, message: str, path: tuple[str | int, ...], help_text: str | None = None) -> None:
        found.append(None)
        binding.problems.report(code, message, path, help=help_text)

    connection_of(config.connection, report, binding, writes=True)
    for name, unset in _ABOUT_FILES.items():
        if getattr(config, name) != unset:
            report("E346", f"a table of a database has no {name}", ("config", name), "remove it")
    if config.schema_ is not None and not config.declared:
        report("E346", "a table of a database has no layout", ("config", "schema"), "schema: [{ name: price, type: decimal, precision: 10, scale: 2 }] gives the digits of its columns")
    if config.if_exists == "unique_suffix":
        report("E346", "a table of a database has one name: unique_suffix is about files", ("config", "if_exists"), "use error or overwrite")
    _check_table(config, report)
    _check_mode(config, report)
    return not found


def _check_table(config: OutputConfig, report: Any) -> None:
    if config.table is None:
        report("E603", "an output of type sql needs the name of its table", ("config",), "table: report, or table: sales.report")
        return
    try:
        TableName.parse(config.table)
    except ValueError as wrong:
        report("E603", str(wrong), ("config", "table"))


def _check_mode(config: OutputConfig, report: Any) -> None:
    if config.form is not None and config.mode != "op_rows":
        report("CFG-004", "'form' belongs to mode op_rows", ("config", "form"))
    for name in ("primary_key", "key_column") if config.mode == "op_rows" else ():
        if getattr(config, name):
            report("CFG-004", f"'{name}' belongs to mode mirror: op rows are told apart by their offset", ("config", name))
    if config.key_column is not None and config.primary_key:
        report("CFG-004", "'key_column' is for a table without primary_key", ("config", "key_column"))


def keyed_by_written(config: OutputConfig, written: Sequence[str], binding: Binding) -> bool:
    """Whether the columns of the primary key are written; reports the others."""
    wrong = [(index, name) for index, name in enumerate(config.primary_key) if name not in written and not binding.input.guessed]
    for index, name in wrong:
        message = f"'{name}' of primary_key is not among the columns that are written"
        binding.problems.report("E251", message, ("config", "primary_key", index), help=binding.problems.similar(name, written))
    return not wrong
