"""The contract of a format: columns, ranges of a file, readers that give typed batches, writers that give bytes.

A reader turns bytes into Arrow record batches with these columns: the declared ones in schema order, the undeclared ones in file order, ROW (bigint, the
number of the record in its file, from 1) and ERROR. ERROR is null, or the JSON of a `Reject`: then the record is rejected and its data columns mean
nothing. With `ReadPlan.document` the last column is DOCUMENT. A file that cannot be read at all raises `InputError`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, NamedTuple, Protocol, Self, TypeAlias, TypeVar

import orjson
from typing_extensions import TypeVar as DefaultTypeVar

from changelog.constant_columns import constant
from changelog.lazy_imports import np, pa
from storage.files.errors import Buffer, InputError
from storage.formats.limits import check_columns, is_gathered
from storage.formats.options import Options
from storage.values.types import arrow_type, base_type

if TYPE_CHECKING:
    from numpy.typing import NDArray

ROW = "\x00errata row"
ERROR = "\x00errata error"
DOCUMENT = "\x00errata document"
UNDECLARED = "\x00errata undeclared"
"""Columns that a reader adds. No file has columns of these names."""
OWN = "\x00errata "
"""The beginning of their names."""
EVENT, EVENT_VERSION, EVENT_STREAM, EVENT_KEPT = (f"{OWN}event{of}" for of in ("", " version", " stream", " kept"))
"""Columns of change feeds: what the message does, its version, the version of its stream, the columns whose values it does not have."""
SEPARATOR = "\x1f"
"""The separator of names in EVENT_KEPT."""
BEFORE = f"{OWN}before "
"""The beginning of the columns with the key that a message replaces, one for each key column."""
PASSED, STANDS, GOES, TRUNCATES, ACTIVATES = range(5)
"""The effect of a message: nothing, its record is live, its key is not live any more, no earlier key is, no key of an earlier version of the stream is."""
CHUNK_BYTES = 16 << 20
"""Bytes of a file that one task reads."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of records.

    Args:
        name: its name in the file
        type: its declared type, as the source's schema writes it (`int`, `nullable(date)`)
        optional: only some records have the field. A record whose cell is null lacks it; a null that the record has is the JSON text `null`.
        required: every file of the source has it, else the run ends (E238)
        declared: its name in the schema, where `source_name` gives the file another one
        path: the members of a message's envelope that lead to it; empty for a column of the record itself
    """

    name: str
    type: str = "string"
    optional: bool = False
    required: bool = False
    declared: str | None = None
    path: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """The column's name in the reader's batches."""
        return self.declared or self.name


class Piece(NamedTuple):
    """Bytes `start` to `end` of a file: `records` whole records. The first one has number `first_row` in the file."""

    start: int
    end: int
    first_row: int
    records: int


@dataclass(frozen=True, slots=True)
class Range:
    """Bytes `start` to `end` of a (decompressed) file. The first record in them has number `first_row` in the file.

    Args:
        start: the first byte
        end: the byte after the last one
        first_row: the number of the first record, from 1
        head: what a reader needs to know of the file's beginning to read the range (CSV: the header record); empty where the range is the whole file
        pieces: the parts of the range to read; empty where all of it is read
    """

    start: int
    end: int
    first_row: int = 1
    head: bytes = b""
    pieces: tuple[Piece, ...] = ()

    @property
    def size(self) -> int:
        """Bytes to read."""
        return sum(piece.end - piece.start for piece in self.pieces) if self.pieces else self.end - self.start


Starts: TypeAlias = "NDArray[np.int64]"
"""Where records begin, ascending."""


class StartsOfPiece(Protocol):
    """Where the records of a piece of a file begin: an array, or what finds the places that are asked for."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[int]: ...
    def __getitem__(self, numbers: Any, /) -> Any: ...


T = TypeVar("T")


class Scanned(NamedTuple, Generic[T]):
    """The results of a function over the places where a file's records begin, one for each piece of the file, in order.

    Args:
        head: as in `Range`
        begin: the byte after the header
        results: what the function returned
    """

    head: bytes
    begin: int
    results: Iterator[T]


@dataclass(frozen=True, slots=True)
class Reject:
    """A record that a source rejects: dead-letter category, what is wrong, the record's fields as text, or its raw text."""

    category: Literal["type_coercion_failure", "malformed_record", "unknown_operation"]
    detail: str
    fields: Mapping[str, str | None] = field(default_factory=dict)
    raw: str | None = None

    def json(self) -> str:
        """The text of the ERROR column: members category, detail, fields, raw."""
        return orjson.dumps({"category": self.category, "detail": self.detail, "fields": dict(self.fields), "raw": self.raw}).decode()


def keys_of(path: str) -> tuple[str, ...]:
    """The keys of a path to an array: `data.rows`, with or without JSONPath's `$.` before and `[*]` after it."""
    plain = path.removeprefix("$").removeprefix(".").removesuffix("[*]")
    return tuple(plain.split(".")) if plain else ()


@dataclass(frozen=True, slots=True)
class ArrayPath:
    """A nested array: `explode` makes a record of each element, `join` a text with `separator` between the elements."""

    path: str
    mode: Literal["explode", "join"] = "explode"
    separator: str = ","

    @property
    def steps(self) -> tuple[str, ...]:
        """The path's keys."""
        return keys_of(self.path)


@dataclass(frozen=True, slots=True)
class Section:
    """A section of a document's envelope: where it is found (`xml_path`, `json_pointer` or `segment`) and its typed fields."""

    name: str
    kind: Literal["xml_path", "json_pointer", "segment"]
    where: str
    fields: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class EventPlan:
    """The plan of a change feed, beside the columns.

    Args:
        key: the labels of the key columns
        version: the columns, or the members of the envelope with dots between them, that make the version; empty for none
    """

    key: tuple[str, ...]
    version: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """The plan of reading a source's files, whatever their format.

    Args:
        declared: the columns of the source's schema
        undeclared: further columns that the batches have; `Reader.undeclared` finds the ones of a file
        on_unmapped: what becomes of undeclared columns
        date_formats: the source's own strftime patterns
        array_paths: nested arrays to explode or to join
        layout: the content of the format schema
        sections: the sections of the envelope
        document: whether the batches have the column DOCUMENT, the sections around each record as the JSON text of a map from section to fields
        events: how the messages of a change feed are read; None for records
    """

    declared: tuple[Column, ...]
    undeclared: tuple[Column, ...] = ()
    on_unmapped: Literal["auto_widen", "drop", "reject"] = "auto_widen"
    date_formats: tuple[str, ...] = ()
    array_paths: tuple[ArrayPath, ...] = ()
    layout: Mapping[str, Any] | None = None
    sections: tuple[Section, ...] = ()
    document: bool = False
    events: EventPlan | None = None

    @property
    def columns(self) -> tuple[Column, ...]:
        """The data columns of the batches."""
        return self.declared + self.undeclared

    @property
    def names(self) -> frozenset[str]:
        """The declared columns' names in files."""
        return frozenset(column.name for column in self.declared)

    def lacking(self, names: Collection[str]) -> list[Column]:
        """The required columns that are not among the names."""
        return [column for column in self.declared if column.required and column.name not in names]

    def undeclared_among(self, names: Iterable[str], file: str, line: int | None = None, type_: str = "string") -> tuple[Column, ...]:
        """The undeclared columns among the names of a file, in their order; none where they are dropped.

        Raises:
            InputError: the policy refuses one, there are too many, a name is too long, or (E239) one has the schema's name of a column that files call
                something else
        """
        if self.on_unmapped == "drop":
            return ()
        known = self.names
        found = [name for name in dict.fromkeys(names) if name not in known]
        if found and self.on_unmapped == "reject":
            raise InputError(file, f"undeclared field '{found[0][:200]}': the schema does not name it and on_unmapped is reject", line=line)
        check_columns(found, file, declared=len(self.declared), line=line)
        renamed = {column.label: column.name for column in self.declared}
        if taken := next((name for name in found if name in renamed), None):
            way = "rename it in the file, or set on_unmapped to drop"
            raise InputError(file, f"E239: undeclared column '{taken}' has the name that the schema gives to '{renamed[taken]}': {way}", line=line)
        return tuple(Column(name, type_) for name in found)

    def check_names(self, names: Sequence[str], file: str, line: int | None = None) -> None:
        """Raise InputError (E224) where two columns of a file have one name and are read."""
        counted = Counter(names)
        twice = next((name for name in counted if counted[name] > 1 and (self.on_unmapped != "drop" or name in self.names)), None)
        if twice is not None:
            places = " and ".join(str(place) for place, name in enumerate(names, 1) if name == twice)
            raise InputError(file, f"E224: columns {places} have one name, '{twice}': rename all but one of them in the file", line=line)


def section_notes(plan: ReadPlan, form: str) -> Sequence[str]:
    """The note on declared sections in a format that has none."""
    return (f"envelope: {form} file has no sections, so that $doc is null",) if plan.sections else ()


def batch_schema(columns: Sequence[Column], *, document: bool = False, gathered: bool = False) -> pa.Schema:
    """The data columns, UNDECLARED if `gathered`, ROW, ERROR, and DOCUMENT if `document`."""
    data = [pa.field(column.label, arrow_type(column.type)) for column in columns]
    others = [pa.field(UNDECLARED, pa.string())] if gathered else []
    last = [pa.field(DOCUMENT, pa.string())] if document else []
    return pa.schema([*data, *others, pa.field(ROW, pa.int64()), pa.field(ERROR, pa.string()), *last])


def document_text(sections: Mapping[str, Any]) -> str:
    """Sections as the JSON text of a DOCUMENT cell; dates and times in ISO form."""
    return orjson.dumps(sections).decode()


def with_document(batches: Iterator[pa.RecordBatch], text: str) -> Iterator[pa.RecordBatch]:
    """The batches with the same DOCUMENT, a `document_text`, on every record."""
    for batch in batches:
        yield batch.append_column(pa.field(DOCUMENT, pa.string()), constant(text, pa.string(), batch.num_rows))


OptionsT = DefaultTypeVar("OptionsT", default=Any)


@dataclass(frozen=True, slots=True)
class Reader(Generic[OptionsT]):
    """Reads files of one format. Frozen and picklable: executors get it inside `mapInArrow`."""

    options: OptionsT
    plan: ReadPlan

    Options: ClassVar[type[Options]] = Options
    splittable: ClassVar[bool] = False
    pageable: ClassVar[bool] = False
    """Whether a service can answer in this format."""
    versioned: ClassVar[bool] = False
    """Whether it reads tables with versions instead of files."""
    nested: ClassVar[bool] = False
    """Whether its records have arrays, for `array_paths`."""
    laid_out: ClassVar[bool] = False
    """Whether a format schema gives the places of the fields."""
    sparse: ClassVar[bool] = False
    """Whether a record has only some of the fields of its file."""
    undeclared_type: ClassVar[str] = "string"
    """The type of undeclared columns."""
    delimited: ClassVar[bool] = False
    """Whether a record's cells follow each other in the order of the file's columns."""
    library: ClassVar[str] = ""
    """The module that reads the format, where an extra brings it."""
    extra: ClassVar[str] = ""
    """The extra of pyproject.toml that brings it."""

    def __post_init__(self) -> None:
        """Check what options and plan decide together. Raises OptionError."""

    def notes(self) -> Sequence[str]:
        """Settings of the source that have no effect in this format."""
        return ()

    def nothing_found(self) -> str | None:
        """A warning for a file without records; None where such a file is normal."""
        return None

    @property
    def tells(self) -> bool:
        """Whether it has remarks or counts of files that were read."""
        return False

    def remarks(self, data: Buffer, name: str) -> Sequence[str]:
        """Warnings for a file that was read. Raises InputError."""
        return ()

    def left_out(self, data: Buffer, name: str) -> Sequence[str]:
        """Counts of what a file has that makes no record, and is no fault. Raises InputError."""
        return ()

    def levels(self) -> Mapping[str, Sequence[str]]:
        """Sections that the format adds to the declared ones, with their fields. They may differ between the records of a file."""
        return {}

    def with_undeclared(self, columns: Sequence[Column]) -> Self:
        """The same reader, whose batches have these columns after the declared ones."""
        return replace(self, plan=replace(self.plan, undeclared=tuple(columns)))

    @property
    def gathers(self) -> bool:
        """Whether the undeclared fields are one column, UNDECLARED: a JSON object of the undeclared fields of each record."""
        return self.sparse and is_gathered(len(self.plan.undeclared))

    def undeclared(self, data: Buffer, name: str) -> tuple[Column, ...]:
        """The columns of a file that the schema does not name, in file order; empty unless the policy is auto_widen.

        CSV looks only at the header, self-describing formats at every record. Raises InputError where the policy is reject and there are some.
        """
        return ()

    def cell_order(self, data: Buffer, name: str) -> tuple[str, ...]:
        """The names of a file's columns as the cells of each record follow each other. Only for `delimited` formats. Raises InputError."""
        return ()

    @property
    def separators(self) -> tuple[str, str]:
        """The separator of cells, and the quote around them. Only for `delimited` formats."""
        return ",", '"'

    def split(self, data: Buffer, name: str, target: int = CHUNK_BYTES) -> list[Range]:
        """Ranges of about `target` bytes that together are the file; one range where the file cannot be cut. Raises InputError."""
        return [Range(0, len(data))]

    def record_starts(self, data: Buffer, name: str, look: Callable[[StartsOfPiece], T]) -> Scanned[T] | None:
        """Call `look` in threads with the places where records begin. None where the file cannot be cut before each record.

        Raises InputError, also while the results are read.
        """
        return None

    def may_begin(self, data: Buffer, start: int, place: int) -> bool:
        """Whether a record may begin at `place`, where a line does, by a quick look from `start` on, where one begins. `starts_within` tells surely."""
        return True

    def starts_within(self, data: Buffer, start: int, end: int) -> Starts | None:
        """The places before `end` where records begin, where one may begin at `start`. The last one may be missing. None where they cannot be found so.

        Only for files that `record_starts` takes.
        """
        return None

    def tail(self, data: Buffer, name: str, start: int, first_row: int) -> Range | None:
        """The range from byte `start`, where the file once ended and record `first_row` now begins. None where it cannot be read alone.

        Raises InputError.
        """
        return None

    def read(self, data: Buffer, name: str, part: Range | None = None) -> Iterator[pa.RecordBatch]:
        """The records of `data`: a whole file or, with `part`, exactly the bytes of that range. Raises InputError."""
        raise NotImplementedError

    def lines(self, data: Buffer, name: str) -> Iterator[bytes]:
        """Each record of a page as a line of JSON, arrays exploded or joined; what is no record is unchanged. Only for `pageable` formats."""
        raise NotImplementedError

    def envelope(self, data: Buffer, name: str) -> dict[str, dict[str, Any]]:
        """The declared envelope sections of a file: section, field, value. Raises InputError for a value of another type."""
        return {}

    def documented(self, batches: Iterator[pa.RecordBatch], data: Buffer = b"", name: str = "") -> Iterator[pa.RecordBatch]:
        """The batches, with the sections of the file's envelope in DOCUMENT where the plan asks for it. Raises InputError."""
        return with_document(batches, document_text(self.envelope(data, name))) if self.plan.document else batches

    def schema(self) -> pa.Schema:
        """Schema of the batches."""
        return batch_schema(self.plan.declared if self.gathers else self.plan.columns, document=self.plan.document, gathered=self.gathers)


@dataclass(frozen=True, slots=True)
class WritePlan:
    """The shape of an output, whatever its format.

    Args:
        columns: the columns of the records, with the types of the pipeline (`any`: JSON text)
        include_header: whether a file has a row of names
        preserve_nulls: whether a null is written as a null
        layout: the content of the format schema
        interchange: the header elements of an EDI interchange that is echoed from a document section (its `_elements`)
        name: the output's name
    """

    columns: tuple[Column, ...]
    include_header: bool = True
    preserve_nulls: bool = False
    layout: Mapping[str, Any] | None = None
    interchange: tuple[str, ...] | None = None
    name: str = ""


class Session:
    """A file being written: its bytes are the header, any number of bodies with `separator` between them, and the footer."""

    def header(self) -> bytes:
        """The bytes before the first record."""
        return b""

    def render(self, batch: pa.RecordBatch) -> bytes:
        """The records of a batch that has the columns of the plan. Raises OutputError."""
        raise NotImplementedError

    def separator(self) -> bytes:
        """The bytes between the texts of two batches that both have records."""
        return b""

    def footer(self) -> bytes:
        """The bytes after the last record."""
        return b""


@dataclass(frozen=True, slots=True)
class Writer(Session, Generic[OptionsT]):
    """Writes records of one format. A writer that is not `sequential` has no state: any part of the records may be rendered anywhere.

    For a sequential format each file needs a session of its own (`open`), which gets all records in order.
    """

    options: OptionsT
    plan: WritePlan

    Options: ClassVar[type[Options]] = Options
    splittable: ClassVar[bool] = True
    has_header_row: ClassVar[bool] = False
    """Whether the header is a row of names, without which a file is complete too."""
    sequential: ClassVar[bool] = False
    versioned: ClassVar[bool] = False
    """Whether it writes a table with versions by its changes, and no file."""
    legible: ClassVar[bool] = True
    """Whether it writes text."""
    laid_out: ClassVar[bool] = False
    """Whether a layout gives the places of the fields."""
    flat: ClassVar[frozenset[str]] = frozenset()
    """Types of nested values that no column of the format can hold: `map`, `array`."""
    library: ClassVar[str] = ""
    """The module that writes the format, where an extra brings it."""
    extra: ClassVar[str] = ""
    """The extra of pyproject.toml that brings it."""
    echoes: ClassVar[str | None] = None
    """The segment of a document from which the header of a file can be made (`options.interchange_from_doc`)."""

    @property
    def looks_for_formulas(self) -> bool:
        """Whether `has_formulas` is worth a call for each batch."""
        return False

    def __post_init__(self) -> None:
        """Check what options and plan decide together. Raises OptionError."""

    def open(self) -> Session:
        """The session that writes one file; the writer itself where it has no state."""
        return self

    def held(self) -> Iterable[Column]:
        """The columns that are written."""
        return self.plan.columns

    def unfit(self) -> Column | None:
        """The first column whose values the format cannot hold; None where it can hold all."""
        return next((column for column in self.held() if base_type(column.type) in self.flat), None)

    def clash(self) -> tuple[str, str] | None:
        """The names of two columns that cannot both be written; None where there are none."""
        return None

    def has_formulas(self, batch: pa.RecordBatch) -> bool:
        """Whether a program that opens the file would run some text of the batch. Costs little compared with `render`."""
        return False

    def rows(self, batch: pa.RecordBatch) -> list[bytes]:
        """Each record's own text, for outputs that are cut by size. With the separator between them they are the result of `render`."""
        return [self.render(batch.slice(i, 1)) for i in range(batch.num_rows)]
