"""Checks of a source node before it runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from cxl import CxlErrors, Program
from cxl.typed.target import Mode
from cxl.types.types import ANY, Kind, Schema, Type
from operators.core.binding import Binding, Problems
from operators.core.config import microseconds
from operators.core.registry import node_type
from operators.core.row_type import RowType, is_reserved
from operators.core.settings import GivenRows, NodeSpec, check_path
from operators.corrections.correction import Correction
from operators.corrections.reading import read_entries
from operators.source.config import DATASET, Column, Files, SourceConfig
from operators.source.corrections_check import fits
from operators.source.databases import check_database, check_no_database
from operators.source.node import SourceNode, correction_key, make_reader, row_type_of
from storage import formats
from storage.files.discovery import PathRefused, path_matcher, pattern_of, size_bound, time_bound
from storage.rest.config import Rest


def _provisional(config: SourceConfig, inputs: Sequence[RowType]) -> Schema:
    return Schema((column.name, _type_or_any(column)) for column in config.schema_)


def _type_or_any(column: Column) -> Type:
    try:
        return column.cxl_type
    except ValueError:
        return ANY


@node_type("source", SourceConfig, wiring="none", provisional=_provisional)
def bind(spec: NodeSpec, binding: Binding) -> SourceNode | None:
    """Check a source and give its operator."""
    config: SourceConfig = spec.config
    problems = binding.problems
    typed = [*_untyped(config, problems)]
    found = _problems_of(config, problems, binding)
    if typed:
        return None
    sound = fits(config, problems)
    reader = None if "cdc" in config.options and config.type != "json" else _reader_of(config, binding)
    if found or not sound or reader is None:
        return None
    data = Schema((column.name, column.cxl_type) for column in config.schema_ if not (config.marks and column.name == config.merge.op))
    programs = _programs(spec, config, binding, data)
    if programs is None:
        return None
    corrections = _corrections(spec, config, data, binding)
    if corrections is None:
        return None
    row = row_type_of(spec.name, config, data, versioned=reader.versioned)
    database = binding.settings.connections[config.connection].kind if config.connection is not None else ""
    node = SourceNode(spec, config, row, reader, programs=programs, fetched=binding.settings.fetched, corrections=corrections, database=database)
    given = binding.settings.given.get(spec.name)
    return node if given is None else _given(node, spec, given, data, binding)


def _corrections(spec: NodeSpec, config: SourceConfig, data: Schema, binding: Binding) -> Sequence[Correction] | None:
    """The corrections of the source's cells; None where something is wrong with them."""
    if config.corrections is None:
        return ()
    place: tuple[str | int, ...] = ("config", "corrections")
    good = check_path(config.corrections.path, (*place, "path"), binding.problems.report_help, binding.settings)
    for at, name in enumerate(config.corrections.key):
        if name not in data or name in config.corrections.key[:at]:
            message = f"there is no column '{name}'" if name not in data else f"'{name}' stands twice in the key"
            binding.problems.report("E481", message, (*place, "key", at), help=binding.problems.similar(name, list(data)) if name not in data else None)
            good = False
    if not good:
        return None
    made, problems = read_entries(binding.settings.corrections.get(spec.name, ()), data, correction_key(config), {}, binding, raw=True)
    if problems:
        binding.problems.cxl(CxlErrors(problems), (*place, "path"))
    return None if problems else made


def _given(node: SourceNode, spec: NodeSpec, given: GivenRows, data: Schema, binding: Binding) -> SourceNode:
    """The source over rows that a program hands to it. Where it reads files, they follow the rows of its files."""
    config = node.config.model_copy(update={
        "type": "parquet", "options": {}, "transport": "file", "path": given.name, "glob": None, "regex": None, "paths": None, "connection": None, "table": None,
        "query": None, "array_paths": [], "format_schema": None, "envelope": None, "merge": node.config.merge.model_copy(update={"cursor": None, "overlap": None}),
    })  # fmt: skip
    programs = {key: program for key, program in (("deleted", node.deleted), ("op", node.operation)) if program is not None}
    made = SourceNode(spec, config, row_type_of(spec.name, config, data, versioned=False), make_reader(config, binding.settings), programs=programs, given=given, corrections=node.corrections)
    files = not (node.versioned or node.config.asks)
    return made.with_attributes(fingerprint=node.fingerprint) if files else made


def _programs(spec: NodeSpec, config: SourceConfig, binding: Binding, data: Schema) -> dict[str, Program] | None:
    """The programs that the merge strategy runs on records, by the key of `merge` that has them; None where one does not compile."""
    texts: dict[str, tuple[str, Mode]] = {}
    if config.merge.deleted is not None:
        texts["deleted"] = (config.merge.deleted, "predicate")
    if config.merge.op is not None and config.merge.ops is not None and config.merge.op not in data:
        texts["op"] = (config.merge.op, "expression")
    made = {key: binding.compile(spec, ("config", "merge", key), text, mode, schema=data) for key, (text, mode) in texts.items()}
    sound = {key: program for key, program in made.items() if program is not None}
    return sound if len(sound) == len(made) else None


def _untyped(config: SourceConfig, problems: Problems) -> Iterator[str]:
    """Report decimal columns whose digits are missing or cannot be; yields their names."""
    for index, column in enumerate(config.schema_):
        try:
            _ = column.declared
        except ValueError as wrong:
            key = "scale" if column.scale is not None else "precision" if column.precision is not None else "type"
            problems.report("E225", f"column '{column.name}' {wrong}", ("config", "schema", index, key))
            yield column.name


def _problems_of(config: SourceConfig, problems: Problems, binding: Binding) -> list[None]:
    """Report everything that is wrong; one entry a problem."""
    found: list[None] = []

    def report(code: str, message: str, path: tuple[str | int, ...], help_text: str | None = None) -> None:
        found.append(None)
        problems.report(code, message, path, help=help_text)

    if config.asks:
        check_database(config, report, binding)
    elif _names_a_table(config):
        _check_table(config, report, binding)
    else:
        _check_matchers(config, report, binding)
    if not config.asks:
        check_no_database(config, report)
    if config.dataset:
        _check_dataset(config, report)
    _check_columns(config, report, problems)
    _check_merge(config, report)
    _check_watermark(config, report)
    return found


def _check_paths(config: SourceConfig, matcher: str, report: Any, binding: Binding) -> None:
    value = getattr(config, matcher)
    for index, path in enumerate(value if isinstance(value, list) else [value]):
        place: tuple[str | int, ...] = ("config", matcher, index) if isinstance(value, list) else ("config", matcher)
        check_path(path, place, report, binding.settings, pattern=matcher == "regex", stored="read")


def _check_matchers(config: SourceConfig, report: Any, binding: Binding) -> None:
    given = config.matchers()
    if config.service is not None:
        _check_service(config, given, report)
    if config.publisher is not None:
        _check_address(config.publisher, report)
    if not isinstance(config.transport, str):
        return
    if not given or (given == ["paths"] and not config.paths):
        report("E211", f"source '{config.name}' names no files", ("config", *given[:1]), "give one of path, glob, regex, paths")
    if len(given) > 1:
        report("E210", f"source '{config.name}' has {' and '.join(given)}; only one may be given", ("config", given[1]), "keep one of them; paths lists several files")
    for name in given:
        _check_paths(config, name, report, binding)
    if config.files.take_first is not None and config.files.take_last is not None:
        report("E212", "take_first and take_last exclude each other", ("config", "files"), "keep the one that is meant")
    for place, message in _misread(config):
        report("E223", message, ("config", *place))


def _misread(config: SourceConfig) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Patterns and bounds of files that cannot be understood, each with its place and why."""

    def instant(text: str) -> object:
        return time_bound(text, datetime.now(UTC))

    checks: list[tuple[tuple[str | int, ...], Any, Callable[[Any], object]]] = [(("regex",), config.regex, pattern_of)]
    checks += [((name,), getattr(config, name), size_bound) for name in ("min_size", "max_size")]
    checks += [((name,), getattr(config, name), instant) for name in ("modified_after", "modified_before")]
    checks += [(("glob",), None if config.glob is None else [config.glob], path_matcher)]
    checks += [(("exclude", index), [pattern], path_matcher) for index, pattern in enumerate(config.exclude)]
    for place, value, read in checks:
        try:
            if value is not None:
                read(value)
        except PathRefused as wrong:
            yield place, str(wrong)


def _names_a_table(config: SourceConfig) -> bool:
    return config.service is None and config.type in formats.names() and formats.reader_type(config.type).versioned


def _check_table(config: SourceConfig, report: Any, binding: Binding) -> None:
    """A table has one path, which may be a URI, and nothing that chooses among files; what it holds is the whole truth."""
    chosen = {"files": Files(), "exclude": [], "modified_after": None, "modified_before": None, "min_size": None, "max_size": None}
    wrong = [name for name in config.matchers() if name != "path"] + [name for name, unset in chosen.items() if getattr(config, name) != unset]
    for name in wrong:
        report("E346", f"source '{config.name}' reads a table; {name} is about files", ("config", name), "name the table by path")
    if config.path is None and not wrong:
        report("E211", f"source '{config.name}' names no table", ("config",), "give its path")
    elif config.path is not None and "://" not in config.path:
        check_path(config.path, ("config", "path"), report, binding.settings)
    elif config.path is not None and config.path.startswith("file:") and not binding.settings.allow_absolute_paths:
        report("E231", f"'{config.path}' is an absolute path", ("config", "path"), "write it relative to the pipeline file, or run with --allow-absolute-paths")
    if config.merge.strategy != "snapshot":
        report("E347", f"a table is always a snapshot of its newest version, not '{config.merge.strategy}'", ("config", "merge"), "use snapshot, with primary_key where there is one")


def _check_dataset(config: SourceConfig, report: Any) -> None:
    """A dataset has one path, columns that are declared, and op rows: nothing chooses among its files."""
    chosen: dict[str, Any] = {
        "exclude": [], "modified_after": None, "modified_before": None, "min_size": None, "max_size": None, "files": Files(on_no_match=config.files.on_no_match),
    }  # fmt: skip
    placed = () if config.publisher else ("path",)
    wrong = [name for name in config.matchers() if name not in placed] + [name for name, unset in chosen.items() if getattr(config, name) != unset]
    for name in wrong:
        report("E664", f"source '{config.name}' reads a dataset; {name} is about files", ("config", name), "name the dataset by path, or by transport")
    if config.on_unmapped.mode != "drop":
        report("E664", f"source '{config.name}' reads a dataset, whose own columns are no data; on_unmapped is 'drop'", ("config", "on_unmapped"), "declare the columns that are wanted")
    if config.merge.strategy not in ("changelog", "append"):
        message = f"a dataset is a changelog, or appended to, and no '{config.merge.strategy}'"
        report("E664", message, ("config", "merge"), "use merge: { primary_key: [...] }, or append where it takes no row back")


def _check_address(transport: Rest, report: Any) -> None:
    """Report misfits in the transport of a service or of a dataset's server."""
    for place, message in transport.misfits():
        report("CFG-004", f"'{place[-1] if place else 'transport'}': {message}", ("config", "transport", *place))


def _check_service(config: SourceConfig, matchers: Sequence[str], report: Any) -> None:
    """Report settings that a source of a service may not have: names of files, formats that are no documents."""
    if config.service is not None:
        _check_address(config.service, report)
    for name in matchers:
        report("E219", f"source '{config.name}' reads a service; {name} names files", ("config", name), "remove it")
    if config.format in formats.names() and not formats.reader_type(config.format).pageable:
        fitting = " or ".join(name for name in formats.names() if formats.reader_type(name).pageable)
        report("E220", f"source '{config.name}' reads a service, whose answers cannot be {config.type}", ("config", "type"), f"use {fitting}")
    if config.envelope is not None:
        report("E218", "a service has no documents with an envelope", ("config", "envelope"), "remove envelope; record_path says where the records of an answer are")


def _check_columns(config: SourceConfig, report: Any, problems: Problems) -> None:
    names = [column.name for column in config.schema_]
    for index, column in enumerate(config.schema_):
        if column.name in names[:index]:
            report("E213", f"column '{column.name}' is declared twice", ("config", "schema", index, "name"), "remove one, or rename it and give its name in the file as source_name")
        twin = next((other for other in config.schema_[:index] if (other.source_name or other.name) == (column.source_name or column.name)), None)
        if twin is not None and twin.name != column.name:
            message = f"columns '{twin.name}' and '{column.name}' are one column of the file, '{column.source_name or column.name}'"
            report("E227", message, ("config", "schema", index, "source_name" if column.source_name else "name"), "give each its own source_name")
        if is_reserved(column.name):
            report("E214", f"'{column.name}' is a name that changelogs use themselves", ("config", "schema", index, "name"), "rename the column in the file, or leave it out")
    for field, code, place in _named_fields(config):
        if field not in names:
            report(code, f"there is no column '{field}' in the schema", place, problems.similar(field, names))


def _named_fields(config: SourceConfig) -> Sequence[tuple[str, str, tuple[str | int, ...]]]:
    """Fields that the configuration names outside the schema, each with the code and the place of its diagnostic."""
    named: list[tuple[str, str, tuple[str | int, ...]]] = []
    named += [(field, "E153", ("config", "correlation_key")) for field in config.correlation_key]
    named += [(field, "E215", ("config", "merge", "primary_key")) for field in config.merge.primary_key]
    named += [(field, "E215", ("config", "merge", "compare")) for field in config.merge.compare or ()]
    op = config.merge.op
    named += [(op, "E215", ("config", "merge", "op"))] if op and (config.marks or op.isidentifier()) else []
    named += [(key.field, "E215", ("config", "sort_order", index)) for index, key in enumerate(config.sort_order)]
    named += [(config.event_time.column, "E154", ("config", "watermark", "column"))] if config.event_time else []
    return named


def _check_merge(config: SourceConfig, report: Any) -> None:
    """The keys go together; the field of operations holds codes or words and is consumed, so that nothing else can be made of it."""
    merge = config.merge
    for message in merge.misfits(of_answers=config.asks, feed="cdc" in config.options):
        report("CFG-004", f"'merge': {message}", ("config", "merge"))
    if merge.strategy != "changelog" or merge.ops is not None or "cdc" in config.options:
        return
    column = next((column for column in config.schema_ if column.name == merge.op), None)
    if column is not None and _type_or_any(column).kind not in (Kind.STRING, Kind.INT, Kind.ANY):
        report("E222", f"the operations in '{column.name}' are words or codes, not {column.type}", ("config", "merge", "op"), "declare it as string or int")
    if merge.op is None:
        return
    mark = [config.event_time.column] if config.event_time else []
    for field, place in ((merge.primary_key, ("merge", "primary_key")), (config.correlation_key, ("correlation_key",)), (mark, ("watermark", "column"))):
        if merge.op in field:
            report("E222", f"'{merge.op}' holds the operations; it is no field of the records", ("config", *place), "name another column here")


def _check_watermark(config: SourceConfig, report: Any) -> None:
    mark = config.event_time
    if mark is None:
        return
    column: Column | None = next((column for column in config.schema_ if column.name == mark.column), None)
    if column is not None and _type_or_any(column).kind not in (Kind.DATE, Kind.DATE_TIME):
        report("E155", f"the watermark column '{mark.column}' is {column.type}, not date_time or date", ("config", "watermark", "column"), "declare it as date_time or date, or name another column")
    if mark.delay is not None and mark.out_of_order is not None:
        message = f"the watermark of source '{config.name}' has delay and out_of_order; only one may be given"
        report("E157", message, ("config", "watermark"), "keep out_of_order: it leaves windows where the events are")
    for name in ("delay", "out_of_order", "idle_timeout"):
        text = getattr(mark, name)
        if text is not None:
            try:
                microseconds(text)
            except ValueError as error:
                report("E216", str(error), ("config", "watermark", name))


def _reader_of(config: SourceConfig, binding: Binding) -> Any:
    """The reader of a source; None where its format or an option of it was reported."""
    problems = binding.problems
    if config.format not in formats.names():
        known = (*formats.names(), DATASET)
        help_text = problems.similar(config.type, known) or f"known: {', '.join(sorted(known))}"
        problems.report("E217", f"unknown format '{config.type}'", ("config", "type"), help=help_text)
        return None
    path = config.format_schema
    if isinstance(path, str) and not check_path(path, ("config", "format_schema"), problems.report_help, binding.settings):
        return None
    try:
        return make_reader(config, binding.settings)
    except formats.OptionError as error:
        problems.report(error.code, str(error), ("config", *error.path), help=error.help_text, on_key=error.unknown)
        return None
