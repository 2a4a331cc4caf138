"""Output nodes: which columns are written, under which names, in which order (user guide, "Output Nodes")."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from changelog.keys import key_column
from changelog.schema import column
from cxl.types import Schema, Type
from operators.base import Linear
from operators.binding import Binding
from operators.evaluation import RunValues
from operators.output_config import OutputConfig
from operators.paths import check_path
from operators.registry import node_type
from operators.rows import CK, META, RowType, key_type, physical_type
from operators.settings import NodeSpec
from operators.source_config import SortKey

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


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
    """An output: a projection whose changelog the file is written from. Its rows carry the bytes of their sort order in `_lookup`."""

    kind = "output"

    def __init__(self, spec: NodeSpec, row: RowType, projection: Projection, settings: Any) -> None:
        config: OutputConfig = spec.config
        hidden = [*(["_lookup"] if config.sort_order else []), *(["_widened"] if row.widened and config.include_unmapped else [])]
        shape = {"columns": [[name, source] for name, source, _ in projection.written], "sort": [key.model_dump() for key in config.sort_order]}
        fingerprint = shape | {"exclude": config.exclude, "mapping": config.mapping, "unmapped": config.include_unmapped}
        super().__init__(spec.name, (row,), RowType(projection.data, tuple(hidden), key=row.key), fingerprint)
        self.config = config
        self.projection = projection
        self.folder = settings.folder

    @property
    def target_key(self) -> str:
        """What no other output may have: the path as it is written."""
        return self.config.path.removeprefix("./")

    @property
    def may_reject(self) -> bool:
        """A projection rejects nothing."""
        return False

    def carry(self, inputs: Sequence[RowType], wanted: frozenset[str]) -> None:
        """Nothing rides along beyond an output."""
        self.inputs = tuple(inputs)

    def describe(self) -> Sequence[str]:
        """Format, path, columns, order."""
        order = ", ".join(f"{key.field} {key.order}" for key in self.config.sort_order)
        return (f"format: {self.config.type}, path {self.config.path}", f"columns: {', '.join(self.projection.data)}", *((f"sorted by: {order}",) if order else ()))

    def previewed(self, records: int | None, folder: Path) -> Output:
        """The same output into a file of its own in a folder."""
        other = copy(self)
        other.config = self.config.model_copy(update={"path": str(folder / f"{self.name}.preview"), "if_exists": "overwrite", "write_meta": False})
        return other

    def images(self, frame: DataFrame, index: int, values: RunValues) -> DataFrame:
        """The written columns of each row; rows with a null sort key go where `null_order: drop` says so."""
        for key in self.config.sort_order:
            if key.null_order == "drop":
                frame = frame.where(column(key.field).isNotNull())
        envelope = [column(name) for name in frame.columns if name in ("_epoch", "_op", "_key", "_cause")]
        hidden = [F.col("_widened")] if "_widened" in self.output.hidden else []
        order = [self._order().alias("_lookup")] if self.config.sort_order else []
        written = [column(source).cast(physical_type(type_)).alias(name) for name, source, type_ in self.projection.written]
        return frame.select(*envelope, *hidden, *order, *written)

    def _order(self) -> Column:
        row = self.inputs[0]
        return F.concat(*(_sort_bytes(key, row.data[key.field]) for key in self.config.sort_order))


def _sort_bytes(key: SortKey, type_: Type) -> Column:
    """Bytes that compare as the sort key says; a null is before or behind all values whatever the direction."""
    value = key_column([(column(key.field), key_type(type_))])
    if key.order == "desc":
        inverted = F.translate(F.hex(value), "0123456789ABCDEF", "FEDCBA9876543210")
        value = F.unhex(inverted)
    mark = b"\x00" if key.null_order == "first" else b"\xff"
    return F.when(column(key.field).isNull(), F.lit(mark)).otherwise(F.concat(F.lit(b"\x80"), value))


@node_type("output", OutputConfig)
def bind(spec: NodeSpec, binding: Binding) -> Output | None:
    """Check an output and give its operator."""
    from storage import formats
    from storage.path_tokens import PathTemplate

    config: OutputConfig = spec.config
    good = check_path(config.path, ("config", "path"), binding.problems.report_help, binding.settings)
    if config.type not in formats.names():
        known = ", ".join(formats.names())
        binding.problems.report("E217", f"unknown format '{config.type}'", ("config", "type"), help=binding.problems.similar(config.type, formats.names()) or f"known: {known}")
        return None
    try:
        PathTemplate.parse(config.path)
    except formats.FormatError as error:
        binding.problems.report("E219", str(error), ("config", "path"))
        return None
    row = binding.input
    for index, key in enumerate(config.sort_order):
        if key.field not in row.data:
            good = False
            help_text = binding.problems.similar(key.field, list(row.data))
            binding.problems.report("E251", f"sort field '{key.field}' does not reach this output", ("config", "sort_order", index), help=help_text)
    projection = project(config, row)
    output = Output(spec, row, projection, binding.settings)
    try:
        formats.writer(config.type, config.options, write_plan(config, tuple(projection.data.items())))
    except formats.OptionError as error:
        binding.problems.report("E218", str(error), ("config", *error.path))
        return None
    return output if good else None


def write_plan(config: OutputConfig, columns: Sequence[tuple[str, Type]]) -> Any:
    """The writer's plan for these columns."""
    from cxl.types import type_name
    from storage import formats

    layout = config.schema_ if isinstance(config.schema_, dict) else config.format_schema if isinstance(config.format_schema, dict) else None
    typed = tuple(formats.Column(name, type_name(type_)) for name, type_ in columns)
    return formats.WritePlan(typed, config.include_header, config.preserve_nulls, layout)


def project(config: OutputConfig, row: RowType) -> Projection:
    """Apply include_unmapped, exclude, mapping, correlation keys and metadata (SPEC-DECISIONS, Output 17 to 21)."""
    names = list(row.data)
    if not config.include_unmapped and row.emitted is not None and row.emitted:
        names = [name for name in names if name in row.emitted]
    columns = [(name, name, row.data[name]) for name in names]
    if config.include_correlation_keys:
        columns += [(f"$ck.{name}", CK + name, type_) for name, type_ in row.riding(CK).items()]
    columns = [one for one in columns if one[0] not in config.exclude]
    renamed = {source: name for name, source in config.mapping.items()}
    written: dict[str, tuple[str, str, Type]] = {}
    for name, source, type_ in columns:
        shown = renamed.get(name, name)
        written[shown] = (shown, source, type_)
    meta = row.riding(META)
    chosen = meta if config.wanted_metadata == "all" else [name for name in config.wanted_metadata if name in meta]
    for name in chosen:
        written[f"meta.{name}"] = (f"meta.{name}", META + name, meta[name])
    return Projection(tuple(written.values()))
