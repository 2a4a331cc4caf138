"""A source as the plan knows it: row type, identity of its records, readers of its files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from cxl import Program
from cxl.types.types import STRING, Schema, Type, parse_type
from operators.core.config import microseconds
from operators.core.node import BoundNode
from operators.core.row_type import CK, CORRECTED, KeyShape, RowType, key_type
from operators.core.settings import GivenRows, NodeSpec, PipelineSettings
from operators.corrections.correction import Correction
from operators.source.cell_corrections import CellCorrections
from operators.source.config import ScopePath, SourceConfig
from operators.source.cursors import USUAL_TIME, patterns
from operators.source.databases import CURSORS
from operators.source.reading import FileReader
from operators.source.row_layout import RowShape
from operators.source.scope_paths import ScopePattern
from storage import formats
from storage.formats.base import EventPlan, keys_of
from storage.formats.envelope import sections_in
from storage.formats.layouts import load_layout
from storage.sql.names import TableName
from storage.sql.reading import Ask, From, shown
from storage.sql.statements import one_statement
from storage.stores.places import Place, Places
from storage.values.decimals import DecimalType, decimal_type
from storage.values.types import base_type


class SourceNode(BoundNode):
    """A source. Its merge strategy makes its changelog from its files; `shape` describes its rows, `database` is the kind of one that it asks."""

    kind = "source"
    is_source = True
    explain_class = "source"

    def __init__(
        self, spec: NodeSpec, config: SourceConfig, output: RowType, reader: Any, *, programs: Mapping[str, Program] | None = None, fetched: Path | None = None,
        given: GivenRows | None = None, corrections: Sequence[Correction] = (), database: str = "",
    ) -> None:  # fmt: skip
        fingerprint = config.model_dump(mode="json", exclude=_unread(config))
        _drop_unset(fingerprint)
        fingerprint["watermark"] = config.event_time and config.event_time.model_dump(exclude={"out_of_order"})  # the rest changes no row
        fingerprint |= {"date_formats": list(reader.plan.date_formats), "format_schema": reader.plan.layout}
        if config.type in ("json", "parquet", "arrow", "delta") and config.on_unmapped.mode == "auto_widen" and any("." in column.name for column in config.schema_):
            fingerprint["members"] = "those beside declared ones too"  # they were lost once
        if config.corrections is not None:
            lines = sorted((one.lookup.hex(), one.logic) for one in corrections if one.active)
            fingerprint["corrections"] = {"key": list(correction_key(config)), "digest": hashlib.blake2b(json.dumps(lines).encode(), digest_size=16).hexdigest()}
        programs = programs or {}
        for key, program in programs.items():
            fingerprint["merge"][key] = program.normal_text()
        for part, names in ((fingerprint, ("connection", "table", "query")), (fingerprint["merge"], ("cursor", "overlap"))):
            for name in (name for name in names if part[name] is None):
                del part[name]
        super().__init__(spec.name, (), output, fingerprint)
        self.config = config
        self.deleted = programs.get("deleted")
        self.operation = programs.get("op")
        self.wanted: frozenset[str] = frozenset()
        self._reader = reader
        self.fetched = fetched
        self.given = given
        self.first_records: int | None = None
        self.corrections = tuple(corrections)
        self.database = database

    @property
    def versioned(self) -> bool:
        """Whether the source is a table with versions, not files."""
        return bool(self._reader.versioned)

    @property
    def keyed(self) -> bool:
        """Whether records are identified by values: a primary key, or all columns of a table."""
        return self.output.key.types is not None

    @property
    def keeps_chunks(self) -> bool:
        """Whether it may store chunk lists of its files (`operators.source.diff.chunk_index`)."""
        return not self.versioned and self.config.merge.strategy == "snapshot" and not self.config.remembers

    @property
    def has_memory(self) -> bool:
        """Whether it stores what it knows of earlier deliveries: events, versions, scopes, or the records of a database that it has read."""
        asks = self.config.asks
        return (self.config.remembers and (asks or not self.versioned)) or (asks and self.config.merge.strategy == "changelog")

    @property
    def keeps_state(self) -> bool:
        """Whether it may store more than its rows."""
        return self.keeps_chunks or self.has_memory

    @property
    def identity(self) -> Sequence[tuple[str, str]]:
        """The columns of the key, with their types as keys encode them."""
        return identity_of(self.config)

    @property
    def event_types(self) -> Mapping[str, str]:
        """All columns of a record with their types as keys encode them, the one with the operation as text."""
        types = {column.name: "string" if column.name == self.config.merge.op else key_type(column.cxl_type) for column in self.config.schema_}
        return types | ({"_widened": "string"} if self.config.on_unmapped.mode == "auto_widen" else {})

    @property
    def digits(self) -> Mapping[str, DecimalType]:
        """Precision and scale of the declared decimal columns."""
        kinds = {column.name: decimal_type(base_type(column.declared)) for column in self.config.schema_}
        return {name: digits for name, digits in kinds.items() if digits is not None}

    @property
    def shape(self) -> RowShape:
        """The columns and the key of the source's op rows."""
        mark = self.config.event_time
        event_time = (mark.column, microseconds(mark.delay) if mark.delay else 0) if mark else None
        riders = tuple((CK + name, name) for name in self.config.correlation_key)
        key = tuple((name, kind) for name, kind in self.identity) if self.keyed and not self.versioned else ()
        merge = self.config.merge
        version = () if self.config.feed else tuple((name, config_type(self.config, name)) for name in merge.version_field or ())
        consumed = merge.op if self.config.marks else None
        types = {column.name: column.declared for column in self.config.schema_}
        corrected = CellCorrections.of(correction_key(self.config), types, (one for one in self.corrections if one.active))
        return RowShape(tuple(self.output.data), self.output.hidden, self.keyed, key, event_time, riders, consumed, version, self.config.feed is not None, corrected)

    def with_hidden(self, inputs: Sequence[RowType], wanted: frozenset[str]) -> Self:
        """Return the source with row numbers where a program reads `$source.row`, and documents where one reads `$doc`."""
        asked = {"_row": "source.row" in wanted, "_doc": bool(self.documents) and any(name.startswith("doc.") for name in wanted)}
        names = {"_row": "source.row", "_doc": "doc"}
        fingerprint = {**self.fingerprint, **{names[column]: True for column, is_read in asked.items() if is_read}}
        output = self.output.carrying([column for column, is_read in asked.items() if is_read])
        return self.with_attributes(wanted=wanted, output=output, fingerprint=fingerprint)

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
        """Return the reader of the source's files; the fetched records of a service are JSON lines."""
        plan = replace(self._reader.plan, document="_doc" in self.output.hidden)
        if self.config.service is None:
            return replace(self._reader, plan=plan)

        feed = {"cdc": self.config.options["cdc"]} if plan.events is not None else {}
        return formats.reader("json", {"format": "ndjson", **feed}, replace(plan, array_paths=()))

    def files(self, number: int, places: Places, local: Callable[[Place], Place] | None = None) -> FileReader:
        """The maker of op rows of the source's files. `number`: its first key byte; `places`: where relative paths start; `local`: where a file is read instead."""
        return FileReader(self.reader(), self.shape, number, places, self.first_records, self.kept, local, self.scope_pattern)

    @property
    def scope_pattern(self) -> ScopePattern | None:
        """The pattern of paths that tells the scopes of files; None where fields do, or where there are none."""
        scope = self.config.merge.scope
        if not isinstance(scope, ScopePath):
            return None
        return ScopePattern(scope.path, {column.name: column.declared for column in self.config.schema_ if column.name in scope.names})

    def page_reader(self) -> Any:
        """The reader that takes an answer of the source's service apart."""
        return self._reader

    def notes(self) -> Sequence[str]:
        """Return warnings about options that the format lacks."""
        return tuple(self._reader.notes())

    @property
    def has_own_file(self) -> bool:
        """Whether its records are in one file that Errata made: the answers of a service, or rows that a program handed over."""
        return self.config.service is not None or self.given is not None

    @property
    def kept(self) -> Path | None:
        """The file with the fetched records of a service, or with rows that a program hands over; None for files, and where no place is configured."""
        if self.given is not None:
            return self.given.file
        return None if self.config.service is None or self.fetched is None else self.fetched / self.name / "records.ndjson"

    def date_formats_of(self, name: str) -> tuple[str, ...]:
        """The formats by which dates of a column are read: first the one of its format schema, then the formats of the pipeline."""
        plan = self._reader.plan
        fields = (plan.layout or {}).get("fields", ())
        source_name = next((column.source_name or name for column in self.config.schema_ if column.name == name), name)
        own = (field["format"] for field in fields if isinstance(field, Mapping) and field.get("name") == source_name and field.get("format"))
        return (*own, *plan.date_formats)

    def beside(self) -> Mapping[str, Any]:
        """The date formats of the pipeline, what its format schema says, and its corrections by the path of their files."""
        plan = self._reader.plan
        named = {f"format_schema {self.config.format_schema}": plan.layout} if isinstance(self.config.format_schema, str) else {}
        own = self.config.corrections
        corrected = {} if own is None else {own.path: sorted(one.lookup.hex() + one.logic for one in self.corrections if one.active)}
        return {"'date_formats' of the pipeline": list(plan.date_formats), **named, **corrected}

    def describe(self) -> Sequence[str]:
        """Format, files, merge strategy and key."""
        config = self.config
        where = next((f"{name} {getattr(config, name)}" for name in config.matchers()), "file" if isinstance(config.transport, str) else f"{'service' if config.service else 'dataset'} {config.transport.url}")
        if config.asks:
            where = f"{config.answer_name}, asked by {self.statement}"
        key = f" by {', '.join(config.merge.primary_key)}" if config.merge.primary_key else ""
        active = sum(one.active for one in self.corrections)
        corrected = [] if config.corrections is None else [f"corrections of {config.corrections.path}: {active:,} active of {len(self.corrections):,}"]
        return (f"format: {config.type}, {where}", f"merge: {config.merge.strategy}{key}{self._described()}", *corrected)

    def _described(self) -> str:
        """The settings of the merge strategy beside the key, in words."""
        merge, feed = self.config.merge, self.config.feed
        scope = merge.scope.path if isinstance(merge.scope, ScopePath) else ", ".join(merge.scope or ())
        parts = [f"messages of {feed}"] if feed else []
        parts += [f"groups {', '.join(merge.ops)}"] if merge.ops else []
        parts += [f"newest {', '.join(merge.version_field)}"] if merge.version_field else []
        parts += [f"scope {scope}"] if scope else []
        return "".join(f"; {one}" for one in parts)

    @property
    def ask(self) -> Ask:
        """The table or the query of a source that asks a database."""
        table = self.config.table
        return Ask(query=one_statement(self.config.query or "")) if table is None else Ask(TableName.parse(table))

    @property
    def statement(self) -> str:
        """The statement of a run that goes on from a cursor, in one line; the cursor's value is bound. Times of SQLite have the usual form."""
        start = None
        if self.cursor_name is not None:
            order = CURSORS[next(one for one in self.config.schema_ if one.name == self.config.merge.cursor).cxl_type.kind]
            start = From(self.cursor_name, 0 if order == "number" else "", forms=tuple(patterns(USUAL_TIME)) if order == "time" else ())
        return " ".join(shown(self.database, self.ask, start).split())

    def _named(self, column: str) -> str:
        """The name of a declared column in the database."""
        return next(one.source_name or one.name for one in self.config.schema_ if one.name == column)

    @property
    def cursor_name(self) -> str | None:
        """The column of the cursor, as the database calls it; None without one."""
        cursor = self.config.merge.cursor
        return None if cursor is None else self._named(cursor)

    @property
    def spool(self) -> Path | None:
        """The file with the present answer of a database; None where no place is configured."""
        return None if self.fetched is None else self.fetched / self.name / "answer.arrow"

    def previewed(self, records: int, folder: Path) -> Self:
        """The same source cut to its first records."""
        return self.with_attributes(first_records=records)


def _unread(config: SourceConfig) -> Any:
    """Return the configuration keys that do not affect the rows."""
    return dict.fromkeys(("description", "files", "transport", "change_token", "corrections", *config.matchers()), True) | {"schema_": {"__all__": {"optional"}}}


def _drop_unset(fingerprint: dict[str, Any]) -> None:
    """Leave out keys that say nothing: a pipeline without them has the fingerprint of one that does not know them."""
    merge = fingerprint.get("merge", {})
    for key in ("ops", "on_unknown", "of", "version_field", "scope"):
        if merge.get(key) is None:
            merge.pop(key, None)
    for column in fingerprint.get("schema_", ()):
        if column.get("path") is None:
            column.pop("path", None)


def make_reader(config: SourceConfig, settings: PipelineSettings) -> Any:
    """The reader that a source's configuration asks for. Raises storage.formats.OptionError and KeyError (unknown format)."""
    filled = config.merge.scope.names if isinstance(config.merge.scope, ScopePath) else ()
    plan = formats.ReadPlan(
        declared=tuple(
            formats.Column(column.source_name or column.name, column.declared, required=not (column.optional or column.name in filled), declared=column.name, path=keys_of(column.path or ""))
            for column in config.schema_
        ),
        on_unmapped=config.on_unmapped.mode,
        date_formats=settings.date_formats,
        array_paths=tuple(formats.ArrayPath(item.path, item.mode, item.separator) for item in config.array_paths),
        layout=load_layout(config.format_schema, settings.folder, "format_schema", confined=not settings.allow_absolute_paths),
        sections=sections_in(config.envelope),
        events=EventPlan(tuple(config.merge.primary_key), tuple(config.merge.version_field or ())) if config.feed else None,
    )
    return formats.reader(config.format, config.options, plan)


def correction_key(config: SourceConfig) -> Sequence[str]:
    """The columns by which corrections of a source's cells name a record."""
    marked = config.merge.op if config.marks else None
    given = config.corrections.key if config.corrections is not None else []
    return given or config.merge.primary_key or [column.name for column in config.schema_ if column.name != marked]


def identity_of(config: SourceConfig) -> Sequence[tuple[str, str]]:
    """The columns by which a keyed source or a table tells its records apart, with their types as keys encode them."""
    named = config.merge.primary_key
    if named:
        return [(field, config_type(config, field)) for field in named]
    widened = [("_widened", "string")] if config.on_unmapped.mode == "auto_widen" else []
    columns = sorted(config.schema_, key=lambda column: column.name != config.merge.cursor)  # rows with a cursor come in its order
    return [*((column.name, key_type(column.cxl_type)) for column in columns), *widened]


def row_type_of(name: str, config: SourceConfig, data: Schema, *, versioned: bool) -> RowType:
    """The row type of a source: declared columns, hidden columns, shape of the key."""
    hidden = ["_error"] if config.corrections is None else ["_error", CORRECTED]
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
