"""The operator of an output: the projected rows, with the bytes of their sort order and group."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from changelog.columns import ENVELOPE, column
from changelog.keys.spark import key_column
from changelog.lazy_imports import F
from changelog.rows import Rows
from cxl import Program
from cxl.types.types import Kind, Type, type_name
from operators.core.config import SortKey
from operators.core.json_columns import member_keys
from operators.core.operator import Linear, Operator
from operators.core.row_type import RowType, key_parts, key_type, physical_type, spelling
from operators.core.run_values import RunValues
from operators.core.settings import NodeSpec
from operators.output.config import OutputConfig
from operators.output.declared_columns import NOTHING, Declared
from operators.output.projection import Projection
from operators.output.undeclared_columns import UndeclaredFields, takes_undeclared
from storage import formats
from storage.files.path_tokens import PathTemplate
from storage.formats import FormatError
from storage.sql.names import TableName
from storage.values.decimals import DIGITS

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


MEMBER = "__member:"
"""Before the name of an undeclared field: the column of its values as bytes."""


@dataclass(frozen=True, slots=True)
class Place:
    """The folder that the paths of an output begin at, the layout of its file, and the columns whose digits it declares."""

    folder: Path
    layout: Mapping[str, Any] | None = None
    declared: Declared = NOTHING


class Output(Operator):
    """An output. Its file is written from its changelog.

    `ordered_by` has the bytes of the sort order, `_split` the bytes of a group field that is not written.
    """

    kind = "output"
    is_output = True
    added: tuple[str, ...] = ()
    """The columns that it adds behind all others."""
    closed: Program | None = None
    """Tells the rows of closed periods."""
    ordered_by = "_lookup"
    """The hidden column with the bytes of the sort order, where there is one."""

    def __init__(self, spec: NodeSpec, row: RowType, projection: Projection, place: Place, own: Mapping[str, Any] | None = None) -> None:
        config: OutputConfig = spec.config
        self.group = group_column(config, row, projection)
        self.undeclared = _undeclared(config, row, self.group)
        self.fields = UndeclaredFields.of(config, row, frozenset(projection.data))
        asked = {"_file": by_source_file(config) and "_file" in row.hidden, self.ordered_by: bool(config.sort_order), "_widened": self.fields.taken}
        hidden = [name for name, wanted in (asked | {"_split": self.group == "_split"}).items() if wanted]
        shape = {"columns": [[name, source] for name, source, _ in projection.written], "sort": [key.model_dump() for key in config.sort_order]}
        fingerprint = shape | {"exclude": config.exclude, "mapping": config.mapping, "unmapped": config.include_unmapped}
        form = ("type", "options", "include_header", "preserve_nulls", "split")
        fingerprint |= {"undeclared": self.undeclared} if self.undeclared else {}
        fingerprint |= {"undeclared names": "written"} if self.fields.taken and not self.fields.as_they_are else {}
        digits: dict[str, Any] = {name: type_name(type_) for name, type_ in projection.data.items() if type_.kind is Kind.DECIMAL}
        digits |= {name: list(one) for name, one in place.declared.digits.items() if one.precision != DIGITS}
        fingerprint |= {"decimals": digits} if digits else {}
        fingerprint |= spelling(row.data[key.field] for key in config.sort_order if key.field in row.data)
        fingerprint |= {"layout": place.layout} | {name: config.model_dump(mode="json", include={name})[name] for name in form} | dict(own or {})
        super().__init__(spec.name, (row,), RowType(projection.data, tuple(hidden), key=row.key), fingerprint)
        self.config = config
        self.projection = projection
        self.taken = projection.written
        """The columns that are read of the input, as in a projection."""
        self.layout = place.layout
        self.declared = place.declared
        self.folder = place.folder

    @property
    def target_keys(self) -> tuple[str, ...]:
        """The paths that no other output may write, each in one spelling."""
        config = self.config
        own = [] if self.in_database else [config.path]
        written = [*own, *([f"{config.path}.meta.json"] if config.write_meta else []), *([config.changelog.path] if config.changelog else [])]
        return tuple(path.rstrip("/") if "://" in path else posixpath.normpath(path) for path in written)

    @property
    def in_database(self) -> bool:
        """Whether the output is a table of a database."""
        return self.config.type == "sql"

    @property
    def table(self) -> str:
        """Connection and table of an output in a database, as lineage and the ledger have them."""
        return f"{self.config.connection}:{TableName.parse(str(self.config.table)).shown}"

    @property
    def versioned(self) -> bool:
        """Whether the output is a table with versions, not a file."""
        return formats.writer_type(self.config.type).versioned

    @property
    def may_reject(self) -> bool:
        """A projection rejects nothing."""
        return False

    def with_hidden(self, inputs: Sequence[RowType], wanted: frozenset[str]) -> Self:
        """Return the output with the document of each row where the file's header is made from it. No other hidden column goes on."""
        echoed = ["_doc"] if self.echoed is not None and "_doc" in inputs[0].hidden else []
        return self.with_attributes(inputs=tuple(inputs), output=self.output.carrying(echoed))

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
        where = f"table {self.table}" if self.in_database else f"path {self.config.path}"
        return (f"format: {self.config.type}, {where}", f"columns: {', '.join(self.projection.data)}", *((f"sorted by: {order}",) if order else ()), *((f"closed: {self.config.closed.when}",) if self.config.closed else ()))

    def previewed(self, records: int, folder: Path) -> Self:
        """The same output into one file, alone in a folder of its own, and nothing else: JSON lines where its format is no text."""
        shown = {} if formats.writer_type(self.config.type).legible else {"type": "json", "options": {"format": "ndjson"}}
        place = {"path": str(folder / self.name / "preview"), "if_exists": "overwrite", "write_meta": False, "changelog": None, "connection": None, "table": None}
        if self.config.split:
            place["split"] = self.config.split.model_copy(update={"max_records": None, "max_bytes": None})
        return self.with_attributes(config=self.config.model_copy(update=place | shown))

    def projected(self, frame: DataFrame, beside: Sequence[Column] = ()) -> DataFrame:
        """The written columns of each row, and columns beside them. A row with a null sort key is dropped under `null_order: drop`."""
        frame = frame.withColumns({MEMBER + name: member_keys(column("_widened"), name) for name in self.undeclared}) if self.undeclared else frame
        for key in self.config.sort_order:
            if key.null_order == "drop":
                frame = frame.where(self._value(key.field).isNotNull())
        envelope = [column(name) for name in frame.columns if name in ENVELOPE]
        hidden = [self.fields.written(column(name)).alias(name) if name == "_widened" else column(name) for name in ("_file", "_widened", "_doc") if name in self.output.hidden]
        order = [self._order().alias(self.ordered_by)] if self.config.sort_order else []
        written = [self._written(name, source, type_) for name, source, type_ in self.taken]
        return frame.select(*envelope, *hidden, *order, *self._group(), *written, *beside)

    def _written(self, name: str, source: str, type_: Type) -> Column:
        value = column(source)
        if name in self.declared.digits:
            row = self.inputs[0]
            value = self.declared.written(name, value, {**row.riders, **row.data}[source])
        return value.cast(physical_type(type_)).alias(name)

    def _group(self) -> list[Column]:
        if self.group != "_split" or self.config.split is None or self.config.split.group_key is None:
            return []
        field = self.config.split.group_key
        undeclared = self.config.mapping.get(field, field)
        if undeclared in self.undeclared:
            return [self._value(undeclared).alias("_split")]
        return [key_column([(column(field), key_type(self.inputs[0].data[field]))]).alias("_split")]

    def _order(self) -> Column:
        return F.concat(*(sort_bytes(key, self._value(key.field), self._bytes(key.field)) for key in self.config.sort_order))

    def _value(self, field: str) -> Column:
        """A column that is null where a sort field is."""
        return column(MEMBER + field if field in self.undeclared else field)

    def _bytes(self, field: str) -> Column:
        """Bytes that compare as the values of a sort field."""
        return self._value(field) if field in self.undeclared else key_column(key_parts(column(field), self.inputs[0].data[field]))


class PlainOutput(Output, Linear):
    """An output that writes what its input says now: a projection."""

    def images(self, rows: Rows, index: int, values: RunValues) -> Rows:
        """The written columns of each row."""
        return rows.through(self.projected)

    def keeps_apart(self, names: frozenset[str] | None) -> bool:
        """Where these columns are written as they are, and no null sort key drops a row."""
        drops = any(key.null_order == "drop" for key in self.config.sort_order)
        return names is not None and not drops and names <= {source for name, source, _ in self.taken if name not in self.declared.digits}


def by_source_file(config: OutputConfig) -> bool:
    """Whether the path asks for one file for each source file."""
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


def sort_bytes(key: SortKey, given: Column, value: Column) -> Column:
    """Bytes that compare as the sort key says; a null is before or behind all values whatever the direction."""
    if key.order == "desc":
        inverted = F.translate(F.hex(value), "0123456789ABCDEF", "FEDCBA9876543210")
        value = F.unhex(inverted)
    mark = b"\x00" if key.null_order == "first" else b"\xff"
    return F.when(given.isNull(), F.lit(mark)).otherwise(F.concat(F.lit(b"\x80"), value))


def write_plan(output: Output, columns: Sequence[tuple[str, Type]], interchange: Sequence[str] | None = None, optional: Collection[str] = ()) -> Any:
    """The writer's plan for these columns. `interchange`: the header elements that the file shall echo; `optional`: columns that only some records have."""
    config = output.config
    typed = tuple(formats.Column(name, output.declared.spelled(name, type_name(type_)), name in optional) for name, type_ in columns)
    return formats.WritePlan(typed, config.include_header, config.preserve_nulls, output.layout, None if interchange is None else tuple(interchange), output.name)
