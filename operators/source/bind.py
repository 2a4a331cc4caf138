"""Source nodes: what is checked of them and which rows they give (user guide, "Source Nodes")."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cxl import Program
from cxl.types.types import STRING, Kind, Schema, Type, parse_type
from operators.core.binding import Binding, Problems
from operators.core.config import microseconds
from operators.core.operator import Operator, OperatorContext, Outcome
from operators.core.registry import node_type
from operators.core.row_type import CK, KeyShape, RowType, is_reserved, key_type
from operators.core.settings import NodeSpec, PipelineSettings, check_path
from operators.source.config import Column, Files, SourceConfig
from operators.source.row_layout import RowShape

if TYPE_CHECKING:
    from operators.source.reading import FileReader


class Source(Operator):
    """A source. Its changelog is made from its files by its merge strategy; `shape` says what its rows carry."""

    kind = "source"
    explain_class = "source"

    def __init__(
        self, spec: NodeSpec, config: SourceConfig, output: RowType, reader: Any, *, deleted: Program | None = None, fetched: Path | None = None
    ) -> None:
        fingerprint = config.model_dump(mode="json", exclude=_unread(config))
        fingerprint["watermark"] = config.event_time and config.event_time.model_dump(exclude={"out_of_order"})  # the rest changes no row
        fingerprint |= {"date_formats": list(reader.plan.date_formats), "format_schema": reader.plan.layout}
        if config.type in ("json", "parquet", "arrow", "delta") and config.on_unmapped.mode == "auto_widen" and any("." in column.name for column in config.schema_):
            fingerprint["members"] = "those beside declared ones too"  # they were lost once
        if deleted is not None:
            fingerprint["merge"]["deleted"] = deleted.normal_text()
        super().__init__(spec.name, (), output, fingerprint)
        self.config = config
        self.deleted = deleted
        self.wanted: frozenset[str] = frozenset()
        self._reader = reader
        self.fetched = fetched
        self.first_records: int | None = None

    @property
    def versioned(self) -> bool:
        """Whether the source is a table with versions, not files."""
        return bool(self._reader.versioned)

    @property
    def keyed(self) -> bool:
        """Whether records are told apart by their values: a primary key, or all of them in a table."""
        return self.output.key.types is not None

    @property
    def keeps_state(self) -> bool:
        """Whether it may keep the lists of its files' stretches (`operators.source.diff.chunk_index`)."""
        return not self.versioned and self.config.merge.strategy == "snapshot"

    @property
    def identity(self) -> Sequence[tuple[str, str]]:
        """The columns of the key, with their types as keys encode them."""
        return identity_of(self.config)

    @property
    def shape(self) -> RowShape:
        """What the source's op rows carry."""
        mark = self.config.event_time
        event_time = (mark.column, microseconds(mark.delay) if mark.delay else 0) if mark else None
        riders = tuple((CK + name, name) for name in self.config.correlation_key)
        key = tuple((name, kind) for name, kind in self.identity) if self.keyed and not self.versioned else ()
        return RowShape(tuple(self.output.data), self.output.hidden, self.keyed, key, event_time, riders, self.config.merge.op)

    def carry(self, inputs: Sequence[RowType], wanted: frozenset[str]) -> None:
        """Keep the row number of each record where a program from here on reads `$source.row`."""
        self.wanted = wanted
        if "source.row" in wanted:
            self.output = self.output.carrying(["_row"])
            self.fingerprint = {**self.fingerprint, "source.row": True}
        if self.documents and any(name.startswith("doc.") for name in wanted):
            self.output = self.output.carrying(["_doc"])
            self.fingerprint = {**self.fingerprint, "doc": True}

    @property
    def documents(self) -> Mapping[str, Mapping[str, Type]]:
        """The sections of the source's documents with the types of their fields, as `$doc` reads them."""
        declared = {section.name: {field.name: parse_type(field.type) for field in section.fields} for section in self._reader.plan.sections}
        return declared | {name: dict.fromkeys(fields, STRING) for name, fields in self._reader.levels().items()}

    @property
    def headers(self) -> Mapping[str, str]:
        """The sections that are whole segments, with their tags."""
        return {section.name: section.where for section in self._reader.plan.sections if section.kind == "segment"}

    def reader(self) -> Any:
        """What reads the source's files: the reader of its format; of a service's kept records that of JSON lines."""
        plan = replace(self._reader.plan, document="_doc" in self.output.hidden)
        if self.config.service is None:
            return replace(self._reader, plan=plan)
        from storage import formats

        return formats.reader("json", {"format": "ndjson"}, replace(plan, array_paths=()))

    def files(self, number: int, folder: Path, local: Callable[[Path], Path] | None = None) -> FileReader:
        """What makes op rows of the source's files. `number`: its first key byte; `folder`: where relative paths start; `local`: where a file is read instead."""
        from operators.source.reading import FileReader

        return FileReader(self.reader(), self.shape, number, folder, self.first_records, self.kept, local)

    def page_reader(self) -> Any:
        """What takes an answer of the source's service apart."""
        return self._reader

    def notes(self) -> Sequence[str]:
        """What the source asks for that its format does not have."""
        return tuple(self._reader.notes())

    @property
    def kept(self) -> Path | None:
        """The file in which the records of a service are kept; None for files, and where nothing was told of a place."""
        return None if self.config.service is None or self.fetched is None else self.fetched / self.name / "records.ndjson"

    def beside(self) -> Mapping[str, Any]:
        """The date formats of the pipeline, and what its format schema says."""
        plan = self._reader.plan
        named = {f"format_schema {self.config.format_schema}": plan.layout} if isinstance(self.config.format_schema, str) else {}
        return {"'date_formats' of the pipeline": list(plan.date_formats), **named}

    def describe(self) -> Sequence[str]:
        """Format, files, merge strategy and key."""
        config = self.config
        where = next((f"{name} {getattr(config, name)}" for name in config.matchers()), "service " + config.service.url if config.service else "file")
        key = f" by {', '.join(config.merge.primary_key)}" if config.merge.primary_key else ""
        return (f"format: {config.type}, {where}", f"merge: {config.merge.strategy}{key}")

    def previewed(self, records: int, folder: Path) -> Source:
        """The same source cut to its first records."""
        other = copy(self)
        other.first_records = records
        return other

    def answer(self, around: OperatorContext) -> Outcome:
        """Sources have no inputs; `operators.source` makes their deltas."""
        raise NotImplementedError("a source's delta comes from its files")

    def rebuild(self, around: OperatorContext, cause: str = "logic") -> Outcome:
        """As `answer`."""
        return self.answer(around)


def _unread(config: SourceConfig) -> Any:
    """What of a source's configuration does not change the rows that it gives."""
    return dict.fromkeys(("description", "files", "transport", *config.matchers()), True) | {"schema_": {"__all__": {"optional"}}}


def make_reader(config: SourceConfig, settings: PipelineSettings) -> Any:
    """The reader that a source's configuration asks for. Raises storage.formats.OptionError and KeyError (unknown format)."""
    from storage import formats
    from storage.formats.document_sections import sections_in
    from storage.formats.layouts import load_layout

    plan = formats.ReadPlan(
        declared=tuple(
            formats.Column(column.source_name or column.name, column.type, required=not column.optional, declared=column.name) for column in config.schema_
        ),
        on_unmapped=config.on_unmapped.mode,
        date_formats=settings.date_formats,
        array_paths=tuple(formats.ArrayPath(item.path, item.mode, item.separator) for item in config.array_paths),
        layout=load_layout(config.format_schema, settings.folder, "format_schema", confined=not settings.allow_absolute_paths),
        sections=sections_in(config.envelope),
    )
    return formats.reader(config.type, config.options, plan)


@node_type("source", SourceConfig, wiring="none")
def bind(spec: NodeSpec, binding: Binding) -> Source | None:
    """Check a source and give its operator."""
    config: SourceConfig = spec.config
    problems = binding.problems
    found = _problems_of(config, problems, binding)
    reader = _reader_of(config, binding)
    if found or reader is None:
        return None
    data = Schema((column.name, column.cxl_type) for column in config.schema_ if column.name != config.merge.op)
    deleted = None
    if config.merge.deleted is not None:
        deleted = binding.compile(spec, ("config", "merge", "deleted"), config.merge.deleted, "predicate", schema=data)
        if deleted is None:
            return None
    return Source(spec, config, _row_type(spec.name, config, data, versioned=reader.versioned), reader, deleted=deleted, fetched=binding.settings.fetched)


def identity_of(config: SourceConfig) -> Sequence[tuple[str, str]]:
    """The columns by which a keyed source or a table tells its records apart, with their types as keys encode them."""
    named = config.merge.primary_key
    if named:
        return [(field, config_type(config, field)) for field in named]
    widened = [("_widened", "string")] if config.on_unmapped.mode == "auto_widen" else []
    return [*((column.name, key_type(column.cxl_type)) for column in config.schema_), *widened]


def _row_type(name: str, config: SourceConfig, data: Schema, *, versioned: bool) -> RowType:
    hidden = ["_error"]
    if config.event_time:
        hidden.append("_event_time")
    if config.on_unmapped.mode == "auto_widen":
        hidden.append("_widened")
    types: tuple[str, ...] | None = None
    if config.merge.primary_key or versioned:
        hidden += ["_file", "_row"]
        types = (*(kind for _, kind in identity_of(config)), *(() if config.merge.primary_key else ("int",)))
    riders = {CK + field: data[field] for field in config.correlation_key}
    ascending = tuple(key.field for key in config.sort_order)
    shape = KeyShape("source", name, types)
    return RowType(data, emitted=tuple(data), sorted_by=ascending, key=shape).carrying(hidden, riders)


def config_type(config: SourceConfig, field: str) -> str:
    """The name of a declared column's type without `nullable`, as keys encode it."""
    column = next(column for column in config.schema_ if column.name == field)
    return key_type(column.cxl_type)


def _problems_of(config: SourceConfig, problems: Problems, binding: Binding) -> list[None]:
    """Report everything that is wrong; one entry a problem."""
    found: list[None] = []

    def report(code: str, message: str, path: tuple[str | int, ...], help_text: str | None = None) -> None:
        found.append(None)
        problems.report(code, message, path, help=help_text)

    if _names_a_table(config):
        _check_table(config, report, binding)
    else:
        _check_matchers(config, report, binding)
    _check_columns(config, report, problems)
    _check_merge(config, report)
    _check_watermark(config, report)
    return found


def _check_paths(config: SourceConfig, matcher: str, report: Any, binding: Binding) -> None:
    value = getattr(config, matcher)
    for index, path in enumerate(value if isinstance(value, list) else [value]):
        place: tuple[str | int, ...] = ("config", matcher, index) if isinstance(value, list) else ("config", matcher)
        check_path(path, place, report, binding.settings, pattern=matcher == "regex")


def _check_matchers(config: SourceConfig, report: Any, binding: Binding) -> None:
    given = config.matchers()
    if config.service is not None:
        _check_service(config, given, report)
        return
    if not given or (given == ["paths"] and not config.paths):
        report("E211", f"source '{config.name}' names no files", ("config", *given[:1]), "give one of path, glob, regex, paths")
    if len(given) > 1:
        report("E210", f"source '{config.name}' has {' and '.join(given)}; only one may be given", ("config", given[1]))
    for name in given:
        _check_paths(config, name, report, binding)
    if config.files.take_first is not None and config.files.take_last is not None:
        report("E212", "take_first and take_last exclude each other", ("config", "files"))
    for place, message in _misread(config):
        report("E223", message, ("config", *place))


def _misread(config: SourceConfig) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Patterns and bounds of files that cannot be understood, each with its place and why."""
    from storage.files.discovery import PathRefused, path_matcher, pattern_of, size_bound, time_bound

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
    from storage import formats

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


def _check_service(config: SourceConfig, matchers: Sequence[str], report: Any) -> None:
    """What a source of a service may not say: names of files, formats that are no documents."""
    from storage import formats

    for place, message in config.service.misfits() if config.service else ():
        report("CFG-004", f"'{place[-1] if place else 'transport'}': {message}", ("config", "transport", *place))
    for name in matchers:
        report("E219", f"source '{config.name}' reads a service; {name} names files", ("config", name), "remove it")
    if config.type in formats.names() and not formats.reader_type(config.type).pageable:
        fitting = " or ".join(name for name in formats.names() if formats.reader_type(name).pageable)
        report("E220", f"source '{config.name}' reads a service, whose answers cannot be {config.type}", ("config", "type"), f"use {fitting}")
    if config.envelope is not None:
        report("E218", "a service has no documents with an envelope", ("config", "envelope"))


def _check_columns(config: SourceConfig, report: Any, problems: Problems) -> None:
    names = [column.name for column in config.schema_]
    for index, column in enumerate(config.schema_):
        if column.name in names[:index]:
            report("E213", f"column '{column.name}' is declared twice", ("config", "schema", index, "name"))
        twin = next((other for other in config.schema_[:index] if (other.source_name or other.name) == (column.source_name or column.name)), None)
        if twin is not None and twin.name != column.name:
            told = f"columns '{twin.name}' and '{column.name}' are one column of the file, '{column.source_name or column.name}'"
            report("E227", told, ("config", "schema", index, "source_name" if column.source_name else "name"), "give each its own source_name")
        if is_reserved(column.name):
            report("E214", f"'{column.name}' is a name that changelogs use themselves", ("config", "schema", index, "name"), "rename the column in the file, or leave it out")
    for field, code, place in _named_fields(config):
        if field not in names:
            report(code, f"there is no column '{field}' in the schema", place, problems.similar(field, names))


def _named_fields(config: SourceConfig) -> Sequence[tuple[str, str, tuple[str | int, ...]]]:
    """Fields that the configuration names besides the schema, with the code and place of a wrong one."""
    named: list[tuple[str, str, tuple[str | int, ...]]] = []
    named += [(field, "E153", ("config", "correlation_key")) for field in config.correlation_key]
    named += [(field, "E215", ("config", "merge", "primary_key")) for field in config.merge.primary_key]
    named += [(field, "E215", ("config", "merge", "compare")) for field in config.merge.compare or ()]
    named += [(config.merge.op, "E215", ("config", "merge", "op"))] if config.merge.op else []
    named += [(key.field, "E215", ("config", "sort_order", index)) for index, key in enumerate(config.sort_order)]
    named += [(config.event_time.column, "E154", ("config", "watermark", "column"))] if config.event_time else []
    return named


def _check_merge(config: SourceConfig, report: Any) -> None:
    """The keys go together; the field of operations holds codes or words and is consumed, so that nothing else can be made of it."""
    merge = config.merge
    for message in merge.misfits():
        report("CFG-004", f"'merge': {message}", ("config", "merge"))
    if merge.strategy != "changelog":
        return
    column = next((column for column in config.schema_ if column.name == merge.op), None)
    if column is not None and column.cxl_type.kind not in (Kind.STRING, Kind.INT, Kind.ANY):
        report("E222", f"the operations in '{column.name}' are words or codes, not {column.type}", ("config", "merge", "op"), "declare it as string or int")
    if merge.op is None:
        return
    mark = [config.event_time.column] if config.event_time else []
    for field, place in ((merge.primary_key, ("merge", "primary_key")), (config.correlation_key, ("correlation_key",)), (mark, ("watermark", "column"))):
        if merge.op in field:
            report("E222", f"'{merge.op}' holds the operations; it is no field of the records", ("config", *place))


def _check_watermark(config: SourceConfig, report: Any) -> None:
    mark = config.event_time
    if mark is None:
        return
    column: Column | None = next((column for column in config.schema_ if column.name == mark.column), None)
    if column is not None and column.cxl_type.kind not in (Kind.DATE, Kind.DATE_TIME):
        report("E155", f"the watermark column '{mark.column}' is {column.type}, not date_time or date", ("config", "watermark", "column"))
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
    from storage import formats

    problems = binding.problems
    if config.type not in formats.names():
        known = ", ".join(formats.names())
        help_text = problems.similar(config.type, formats.names()) or f"known: {known}"
        problems.report("E217", f"unknown format '{config.type}'", ("config", "type"), help=help_text)
        return None
    path = config.format_schema
    if isinstance(path, str) and not check_path(path, ("config", "format_schema"), problems.report_help, binding.settings):
        return None
    try:
        return make_reader(config, binding.settings)
    except formats.OptionError as error:
        problems.report("E218", str(error), ("config", *error.path), on_key=error.unknown)
        return None
