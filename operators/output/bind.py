"""Output nodes: which columns are written, under which names, in which order (user guide, "Output Nodes")."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from changelog.columns import ENVELOPE, column
from changelog.keys.encoding import key_column
from changelog.lazy_imports import F
from cxl.types.types import Schema, Type
from operators.core.binding import Binding, ConfigPath
from operators.core.config import SortKey
from operators.core.json_text import member_keys
from operators.core.operator import Linear
from operators.core.registry import node_type
from operators.core.row_type import CK, META, RowType, is_reserved, key_parts, key_type, physical_type
from operators.core.run_values import RunValues
from operators.core.settings import NodeSpec, check_path
from operators.output.config import OutputConfig, Split
from operators.output.undeclared_columns import UndeclaredFields, names_of, takes_undeclared

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


_MEMBER = "__member:"
"""Before the name of an undeclared field: the column of its values as bytes."""


@dataclass(frozen=True, slots=True)
class Projection:
    """Column by column what is written: name in the file, column of the input, type."""

    written: tuple[tuple[str, str, Type], ...]
    kept: bool = True

    @property
    def data(self) -> Schema:
        """The written columns as a schema."""
        return Schema((name, type_) for name, _, type_ in self.written)


class Output(Linear):
    """An output: a projection whose changelog the file is written from.

    Its rows carry the bytes of their sort order in `_lookup`, and in `_split` those of a group field that is not written.
    """

    kind = "output"

    def __init__(self, spec: NodeSpec, row: RowType, projection: Projection, settings: Any, layout: Mapping[str, Any] | None = None) -> None:
        config: OutputConfig = spec.config
        self.group = group_column(config, row, projection)
        self.undeclared = _undeclared(config, row, self.group)
        self.fields = UndeclaredFields.of(config, row, frozenset(projection.data))
        asked = {"_file": by_source_file(config) and "_file" in row.hidden, "_lookup": bool(config.sort_order), "_widened": self.fields.taken}
        hidden = [name for name, wanted in (asked | {"_split": self.group == "_split"}).items() if wanted]
        shape = {"columns": [[name, source] for name, source, _ in projection.written], "sort": [key.model_dump() for key in config.sort_order]}
        fingerprint = shape | {"exclude": config.exclude, "mapping": config.mapping, "unmapped": config.include_unmapped}
        form = ("type", "options", "include_header", "preserve_nulls", "split")
        fingerprint |= {"undeclared": self.undeclared} if self.undeclared else {}
        fingerprint |= {"undeclared names": "written"} if self.fields.taken and not self.fields.as_they_are else {}
        fingerprint |= {"layout": layout} | {name: config.model_dump(mode="json", include={name})[name] for name in form}
        super().__init__(spec.name, (row,), RowType(projection.data, tuple(hidden), key=row.key), fingerprint)
        self.config = config
        self.projection = projection
        self.layout = layout
        self.folder = settings.folder

    @property
    def target_keys(self) -> tuple[str, ...]:
        """The paths that no other output may write, each in one spelling."""
        config = self.config
        written = [config.path, *([f"{config.path}.meta.json"] if config.write_meta else []), *([config.changelog.path] if config.changelog else [])]
        return tuple(path.rstrip("/") if "://" in path else posixpath.normpath(path) for path in written)

    @property
    def versioned(self) -> bool:
        """Whether the output is a table with versions, not a file."""
        from storage import formats

        return formats.writer_type(self.config.type).versioned

    @property
    def may_reject(self) -> bool:
        """A projection rejects nothing."""
        return False

    def carry(self, inputs: Sequence[RowType], wanted: frozenset[str]) -> None:
        """Nothing rides along beyond an output, but the document where the file's header is made from it."""
        self.inputs = tuple(inputs)
        if self.echoed is not None and "_doc" in inputs[0].hidden:
            self.output = self.output.carrying(["_doc"])

    @property
    def echoed(self) -> str | None:
        """The section of the document from which an interchange's header is made."""
        return self.config.options.get("interchange_from_doc") if "interchange" not in self.config.options else None

    def reads_source(self) -> frozenset[str]:
        """The section that is echoed, and the files of records that are written by file."""
        echoed = frozenset() if self.echoed is None else frozenset([f"doc.{self.echoed}._elements"])
        return echoed | (frozenset(["source.file"]) if by_source_file(self.config) else frozenset())

    def describe(self) -> Sequence[str]:
        """Format, path, columns, order."""
        order = ", ".join(f"{key.field} {key.order}" for key in self.config.sort_order)
        return (f"format: {self.config.type}, path {self.config.path}", f"columns: {', '.join(self.projection.data)}", *((f"sorted by: {order}",) if order else ()))

    def previewed(self, records: int, folder: Path) -> Output:
        """The same output into a file of its own in a folder: JSON lines where its format is no text."""
        from storage import formats

        other = copy(self)
        shown = {} if formats.writer_type(self.config.type).legible else {"type": "json", "options": {"format": "ndjson"}}
        place = {"path": str(folder / f"{self.name}.preview"), "if_exists": "overwrite", "write_meta": False}
        other.config = self.config.model_copy(update=place | shown)
        return other

    def images(self, frame: DataFrame, index: int, values: RunValues) -> DataFrame:
        """The written columns of each row; rows with a null sort key go where `null_order: drop` says so."""
        frame = frame.withColumns({_MEMBER + name: member_keys(column("_widened"), name) for name in self.undeclared}) if self.undeclared else frame
        for key in self.config.sort_order:
            if key.null_order == "drop":
                frame = frame.where(self._value(key.field).isNotNull())
        envelope = [column(name) for name in frame.columns if name in ENVELOPE]
        hidden = [self.fields.written(column(name)).alias(name) if name == "_widened" else column(name) for name in ("_file", "_widened", "_doc") if name in self.output.hidden]
        order = [self._order().alias("_lookup")] if self.config.sort_order else []
        written = [column(source).cast(physical_type(type_)).alias(name) for name, source, type_ in self.projection.written]
        return frame.select(*envelope, *hidden, *order, *self._group(), *written)

    def _group(self) -> list[Column]:
        if self.group != "_split" or self.config.split is None or self.config.split.group_key is None:
            return []
        field = self.config.split.group_key
        undeclared = self.config.mapping.get(field, field)
        if undeclared in self.undeclared:
            return [self._value(undeclared).alias("_split")]
        return [key_column([(column(field), key_type(self.inputs[0].data[field]))]).alias("_split")]

    def _order(self) -> Column:
        return F.concat(*(_sort_bytes(key, self._value(key.field), self._bytes(key.field)) for key in self.config.sort_order))

    def _value(self, field: str) -> Column:
        """What is null where a sort field is."""
        return column(_MEMBER + field if field in self.undeclared else field)

    def _bytes(self, field: str) -> Column:
        """Bytes that compare as the values of a sort field."""
        return self._value(field) if field in self.undeclared else key_column(key_parts(column(field), self.inputs[0].data[field]))


def by_source_file(config: OutputConfig) -> bool:
    """Whether the path asks for one file for each source file."""
    from storage.files.path_tokens import PathTemplate
    from storage.formats import FormatError

    try:
        template = PathTemplate.parse(config.path)
    except FormatError:
        return False
    return template.by_file


def group_column(config: OutputConfig, row: RowType, projection: Projection) -> str | None:
    """The column of the output's rows that holds groups of a split together: a written one or `_split`; None where there is none.

    The field is named as it comes from upstream; what only has its name in the file is taken where nothing upstream has it. Any other name may be that of
    an undeclared field.
    """
    if config.split is None or config.split.group_key is None:
        return None
    field = config.split.group_key
    shown = next((name for name, source, _ in projection.written if source == field), None)
    if shown is not None or field in row.data:
        return shown or "_split"
    return field if field in projection.data else "_split" if takes_undeclared(config, row) else None


def _undeclared(config: OutputConfig, row: RowType, group: str | None) -> tuple[str, ...]:
    """The fields that nothing upstream declares and by which the records are sorted or held together; only the records tell whether they are there."""
    names = [key.field for key in config.sort_order]
    if group == "_split" and config.split is not None and config.split.group_key not in (None, *row.data):
        names.append(config.mapping.get(str(config.split.group_key), str(config.split.group_key)))
    return tuple(dict.fromkeys(name for name in names if name not in row.data))


def _sort_bytes(key: SortKey, given: Column, value: Column) -> Column:
    """Bytes that compare as the sort key says; a null is before or behind all values whatever the direction."""
    if key.order == "desc":
        inverted = F.translate(F.hex(value), "0123456789ABCDEF", "FEDCBA9876543210")
        value = F.unhex(inverted)
    mark = b"\x00" if key.null_order == "first" else b"\xff"
    return F.when(given.isNull(), F.lit(mark)).otherwise(F.concat(F.lit(b"\x80"), value))


@node_type("output", OutputConfig)
def bind(spec: NodeSpec, binding: Binding) -> Output | None:
    """Check an output and give its operator."""
    from storage import formats

    config: OutputConfig = spec.config
    if config.type not in formats.names():
        known = ", ".join(formats.names())
        binding.problems.report("E217", f"unknown format '{config.type}'", ("config", "type"), help=binding.problems.similar(config.type, formats.names()) or f"known: {known}")
    formed = config.type in formats.names()
    good = [_parsed_path(config.path, ("config", "path"), binding), not formed or _may_stand_there(config, binding), _with_files(config, binding), _changes_placed(config, binding)]
    good += [_sorted_by_known(config, binding), not formed or _may_be_cut(config, binding), _cut_by_known(spec, binding), _named_once(spec, binding)]
    output = _with_layout(spec, binding)
    if output is None or not formed:
        return None
    good += [_written(config, output, binding), _echoes_known(config, output, binding)]
    return output if all(good) else None


def _parsed_path(path: str, place: ConfigPath, binding: Binding) -> bool:
    """Whether a path has the tokens that there are."""
    from storage import formats
    from storage.files.path_tokens import PathTemplate

    try:
        PathTemplate.parse(path)
    except formats.FormatError as error:
        binding.problems.report("E324", str(error), place)
        return False
    return True


def _written(config: OutputConfig, output: Output, binding: Binding) -> bool:
    """Whether the format takes its options."""
    from storage import formats

    try:
        formats.writer(config.type, config.options, write_plan(output, tuple(output.projection.data.items())))
    except formats.OptionError as error:
        binding.problems.report("E218", str(error), ("config", *error.path), on_key=error.unknown)
        return False
    return True


def _echoes_known(config: OutputConfig, output: Output, binding: Binding) -> bool:
    """Whether a source has the section of which the header of an interchange is made."""
    from storage import formats

    tag, section = formats.writer_type(config.type).echoes, output.echoed
    if tag is None or section is None or binding.headers.get(section) == tag or binding.input.guessed:
        return True
    known = [name for name, found in binding.headers.items() if found == tag]
    declared = f'a source declares one with envelope: {{sections: {{{section}: {{extract: {{segment: "{tag}"}}}}}}}}'
    help_text = binding.problems.similar(section, known) or (f"its sections of this kind: {', '.join(known)}" if known else declared)
    message = f"no source above this output has a section '{section}' with its {tag} segment"
    binding.problems.report("E325", message, ("config", "options", "interchange_from_doc"), help=help_text)
    return False


def _may_stand_there(config: OutputConfig, binding: Binding) -> bool:
    """Whether the path may stand in a pipeline file; a table may be in an object store."""
    from storage import formats

    place = ("config", "path")
    if not formats.writer_type(config.type).versioned:
        if config.path.lower().endswith((".gz", ".zst", ".zip", ".bz2", ".xz")):
            binding.problems.report("E327", f"'{config.path}' would hold what is not compressed", place, help="outputs are written plain: leave the last ending out")
            return False
        return check_path(config.path, place, binding.problems.report_help, binding.settings)
    if config.write_meta:
        binding.problems.report("E348", "a table has no sidecar file: its log says who wrote it", ("config", "write_meta"))
        return False
    if by_source_file(config):
        binding.problems.report("E324", "a table is one for all source files; {source_file} has no value here", place)
        return False
    if config.path.startswith("file:"):
        return check_path(config.path.removeprefix("file:"), place, binding.problems.report_help, binding.settings)
    return "://" in config.path or check_path(config.path, place, binding.problems.report_help, binding.settings)


def _with_files(config: OutputConfig, binding: Binding) -> bool:
    """Whether the rows have the source files that the path asks for."""
    if by_source_file(config) and not binding.input.key.sources():
        message = "{source_file} in a path needs rows that come from single records; those of an aggregate do not"
        binding.problems.report("E324", message, ("config", "path"))
        return False
    return True


def _changes_placed(config: OutputConfig, binding: Binding) -> bool:
    """Whether the file of changes may be where it shall be."""
    if config.changelog is None:
        return True
    place = ("config", "changelog", "path")
    good = check_path(config.changelog.path, place, binding.problems.report_help, binding.settings)
    return _parsed_path(config.changelog.path, place, binding) and good


def _sorted_by_known(config: OutputConfig, binding: Binding) -> bool:
    if takes_undeclared(config, binding.input):
        return True
    wrong = [(index, key.field) for index, key in enumerate(config.sort_order) if key.field not in binding.input.data]
    for index, name in wrong:
        help_text = binding.problems.similar(name, list(binding.input.data))
        binding.problems.report("E251", f"sort field '{name}' does not reach this output", ("config", "sort_order", index), help=help_text)
    return not wrong


UNCUT = {
    "edifact": ("E323", "an edifact output is one interchange, which cannot be split"),
    "x12": ("E338", "an x12 output is one interchange, which cannot be split"),
}
"""Formats whose files are one whole, with the code for a `split` of them and what is told."""


def _may_be_cut(config: OutputConfig, binding: Binding) -> bool:
    from storage import formats

    if config.split is None or formats.writer_type(config.type).splittable:
        return True
    code, message = UNCUT.get(config.type, ("E345", f"a {config.type} output is not written in parts"))
    binding.problems.report(code, message, ("config", "split"))
    return False


def _cut_by_known(spec: NodeSpec, binding: Binding) -> bool:
    """Whether the parts can be named, and the field that holds groups together comes from upstream, written or not."""
    config: OutputConfig = spec.config
    if config.split is None:
        return True
    named, projection = _parts_named(config.split, binding), project(config, binding.input)
    group = config.split.group_key
    if group is None or group_column(config, binding.input, projection) is not None or "mapping" in spec.partial:
        return named
    known = list(dict.fromkeys([*binding.input.data, *projection.data]))
    help_text = binding.problems.similar(group, known)
    binding.problems.report("E251", f"group field '{group}' does not reach this output", ("config", "split", "group_key"), help=help_text)
    return False


def _parts_named(split: Split, binding: Binding) -> bool:
    from storage import formats
    from storage.formats.splitting import SplitPlan

    try:
        SplitPlan(**split.model_dump())
    except formats.OptionError as error:
        binding.problems.report("E218", str(error), ("config", *error.path), on_key=error.unknown)
        return False
    return True


def _with_layout(spec: NodeSpec, binding: Binding) -> Output | None:
    """The operator with its layout loaded; None where that was reported."""
    from storage import formats
    from storage.formats.layouts import load_layout

    config: OutputConfig = spec.config
    key = "schema" if config.schema_ is not None else "format_schema"
    given = config.schema_ if config.schema_ is not None else config.format_schema
    if isinstance(given, str) and not check_path(given, ("config", key), binding.problems.report_help, binding.settings):
        return None
    try:
        layout = load_layout(given, binding.settings.folder, key, confined=not binding.settings.allow_absolute_paths)
    except formats.OptionError as error:
        binding.problems.report("E218", str(error), ("config", *error.path), on_key=error.unknown)
        return None
    return Output(spec, binding.input, project(config, binding.input), binding.settings, layout)


def write_plan(output: Output, columns: Sequence[tuple[str, Type]], interchange: Sequence[str] | None = None, optional: Collection[str] = ()) -> Any:
    """The writer's plan for these columns. `interchange`: the header elements that the file shall echo; `optional`: columns that only some records have."""
    from cxl.types.types import type_name
    from storage import formats

    config = output.config
    typed = tuple(formats.Column(name, type_name(type_), name in optional) for name, type_ in columns)
    return formats.WritePlan(typed, config.include_header, config.preserve_nulls, output.layout, None if interchange is None else tuple(interchange))


def project(config: OutputConfig, row: RowType) -> Projection:
    """Apply include_unmapped, exclude, mapping, correlation keys and metadata (SPEC-DECISIONS, Output 17 to 21)."""
    written = {shown: (shown, source, type_) for shown, source, type_ in _shown(config, row)}
    meta = row.riding(META)
    for name in meta if config.wanted_metadata == "all" else config.wanted_metadata:
        if name in meta:
            written[f"meta.{name}"] = (f"meta.{name}", META + name, meta[name])
    return Projection(tuple(written.values()))


def _shown(config: OutputConfig, row: RowType) -> Iterator[tuple[str, str, Type]]:
    """The selected columns under the names that they are written with."""
    return ((shown, source, type_) for name, source, type_ in _selected(config, row) for shown in names_of(config.mapping, name))


def _named_once(spec: NodeSpec, binding: Binding) -> bool:
    """Whether no two columns are written under one name."""
    if "exclude" in spec.partial:
        return True
    config: OutputConfig = spec.config
    reserved = [name for name in config.mapping if is_reserved(name)]
    for name in reserved:
        binding.problems.report("E214", f"'{name}' is a name that changelogs use themselves", ("config", "mapping", name), help="write the field by another name", on_key=True)
    first: dict[str, str] = {}
    for shown, source, _ in _shown(config, binding.input):
        if first.setdefault(shown, source) != source:
            message = f"two columns would be written as '{shown}': {first[shown]} and {source}"
            binding.problems.report("E326", message, ("config", "mapping", shown), help="exclude one of them, or map it to another name")
            return False
    return not reserved


def _selected(config: OutputConfig, row: RowType) -> Iterator[tuple[str, str, Type]]:
    """The columns that are not excluded, with where they come from: data, then correlation keys."""
    emitted = row.emitted if not config.include_unmapped else None
    columns = [(name, name, type_) for name, type_ in row.data.items() if not emitted or name in emitted]
    if config.include_correlation_keys:
        columns += [(f"$ck.{name}", CK + name, type_) for name, type_ in row.riding(CK).items()]
    return (one for one in columns if one[0] not in config.exclude)
