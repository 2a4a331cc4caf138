"""Checks of `history` of an output, and what it says of times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cxl import Program
from cxl.types.types import Kind, Schema, type_name
from operators.core.binding import Binding, ConfigPath
from operators.core.settings import NodeSpec
from operators.output.config import History, OutputConfig
from operators.output.history import Times
from operators.output.projection import Projection
from storage import formats

FORMATS = ("csv", "json", "xml", "parquet", "arrow", "delta", "sql")
"""Formats that have a place for a history."""
TIMES = frozenset({Kind.DATE, Kind.DATE_TIME, Kind.INT})


def may_have_history(config: OutputConfig, binding: Binding) -> bool:
    """Whether the format of an output has a place for a history, where one is wanted (E470)."""
    if config.history is None:
        return True
    if config.type not in FORMATS:
        message = f"a {config.type} output has no place for a history"
        binding.problems.report("E470", message, ("config", "type"), help=f"formats that have: {', '.join(FORMATS)}")
        return False
    if config.mode == "op_rows":
        binding.problems.report("E470", "a table of op rows has no place for a history", ("config", "mode"), help="mode: mirror holds rows as they are now")
        return False
    holds_rows = _default_mode(config.type)
    mode = config.options.get("mode", holds_rows)
    if mode != holds_rows:
        message = f"a table in mode '{mode}' holds op rows: it has no place for a history"
        binding.problems.report("E470", message, ("config", "options", "mode"), help=f"mode: {holds_rows} holds rows as they are now")
        return False
    return True


def _default_mode(kind: str) -> Any:
    """The mode in which a table holds rows as they are now: the default of its option. None for files."""
    option = formats.writer_type(kind).Options.model_fields.get("mode")
    return None if option is None else option.default


def times_of(spec: NodeSpec, projection: Projection, binding: Binding) -> Times | None:
    """The key and the times of an output's history; None where a problem was reported."""
    config: OutputConfig = spec.config
    assert config.history is not None  # the caller looked
    history = config.history
    key = _key(history, projection, binding)
    good, time = _time(history, projection, binding)
    deleted = None if history.deleted is None else _deleted(spec, history.deleted, projection, binding)
    if key is None or not good or (deleted is None) != (history.deleted is None):
        return None
    times = Times(key, time, history.recorded or ("run" if history.valid_from is None else None), deleted)
    return times if _free(times, projection, binding) else None


def _key(history: History, projection: Projection, binding: Binding) -> tuple[str, ...] | None:
    """The columns of the input that name the thing. The output has to write them."""
    found = []
    for at, name in enumerate(history.key):
        source, written = source_of(name, projection, binding)
        place = ("config", "history", "key", at)
        if source is None:
            _missing(f"key '{name}' of the history does not reach this output", name, place, projection, binding)
        elif not written:
            binding.problems.report("E471", f"'{name}' is a key of the history, and the output does not write it", place, help="a row without its key tells nobody's history")
        else:
            found.append(source)
    return tuple(dict.fromkeys(found)) if len(found) == len(history.key) else None


def _time(history: History, projection: Projection, binding: Binding) -> tuple[bool, str | None]:
    """Whether nothing is wrong with the column that `valid_from` names, and that column of the input."""
    if history.valid_from is None:
        return True, None
    name, place = history.valid_from, ("config", "history", "valid_from")
    source, _ = source_of(name, projection, binding)
    if source is None:
        _missing(f"'{name}', from when a row holds, does not reach this output", name, place, projection, binding)
        return False, None
    type_ = binding.input.data[source]
    if type_.kind not in TIMES and not binding.input.guessed:
        binding.problems.report("E473", f"'{name}' is of type {type_name(type_)}, which has no time", place, help="valid_from names a column of type date, date_time or int")
        return False, None
    return True, source


def _missing(message: str, name: str, place: ConfigPath, projection: Projection, binding: Binding) -> None:
    known = list(dict.fromkeys([*binding.input.data, *projection.data]))
    binding.problems.report("E473", message, place, help=binding.problems.similar(name, known) or f"known: {', '.join(known)}")


def source_of(name: str, projection: Projection, binding: Binding) -> tuple[str | None, bool]:
    """The column of the input that a name in `history` means, None where there is none, and whether it is written.

    The name is one of the input's columns first, then one of the file's.
    """
    sources = {source for _, source, _ in projection.written}
    if name in binding.input.data and name in sources:
        return name, True
    shown = {shown: source for shown, source, _ in projection.written if source in binding.input.data}
    if name in shown:
        return shown[name], True
    return (name if name in binding.input.data else None), False


def _deleted(spec: NodeSpec, text: str, projection: Projection, binding: Binding) -> Program | None:
    """The predicate for rows that say that the thing ended, over the input's columns and the columns that the file has by other names."""
    data = binding.input.data
    more = ((name, type_) for name, _, type_ in projection.written if name not in data)
    schema = data if binding.input.guessed else Schema([*data.items(), *more])
    return binding.compile(spec, ("config", "history", "deleted"), text, "predicate", schema=schema)


def _free(times: Times, projection: Projection, binding: Binding) -> bool:
    """Whether no column has a name that the history writes, except the one that `valid_from` names (E472)."""
    taken = [name for name, source, _ in projection.written if name in times.names and not (name == times.names[0] and source == times.time)]
    for name in taken:
        _report_taken(name, times.names, binding)
    return not taken


def _report_taken(name: str, names: Sequence[str], binding: Binding) -> None:
    message = f"a column is written as '{name}', which is a name of the history"
    binding.problems.report("E472", message, ("config", "history"), help=f"exclude it, or map it to another name than {', '.join(names)}", on_key=True)
