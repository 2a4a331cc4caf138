"""What every format promises: columns, ranges of a file, readers that give typed batches, writers that give bytes.

A reader turns bytes into Arrow record batches: the declared columns in schema order, then the undeclared ones in file order,
then ROW (bigint, the record's number in its file, from 1) and ERROR (null, or the JSON of a `Reject`: such a row is
a rejected record and its data columns are of no use). A file that is broken as a whole raises `InputError`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from mmap import mmap
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, NamedTuple, Self, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from changelog.lazy_imports import np, pa

if TYPE_CHECKING:
    from numpy.typing import NDArray

Buffer: TypeAlias = bytes | mmap
"""A file's bytes, read or mapped."""
ROW = "\x00errata row"
ERROR = "\x00errata error"
DOCUMENT = "\x00errata document"
UNDECLARED = "\x00errata undeclared"
"""The columns beside those of the file, by names as no file has them."""
CHUNK_BYTES = 16 << 20


class FormatError(Exception):
    """Base of what goes wrong between files and records."""


def begins_a_line(data: Buffer, at: int) -> bool:
    """Whether what ended at byte `at` ended with its line."""
    return data[at - 1 : at] in (b"\n", b"\r") or data[at : at + 1] in (b"\n", b"\r")


def line_behind(before: bytes) -> int:
    """The number of the line that goes on behind some text."""
    return len(before.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n"))


def _in_words(error: Any) -> str:
    """What a model finds wrong with a value, without the library's names for it."""
    if error["type"] in ("too_short", "too_long"):
        bound, word = ("min_length", "least") if error["type"] == "too_short" else ("max_length", "most")
        count = error["ctx"][bound]
        return f"must have at {word} {count} {'entry' if count == 1 else 'entries'}, not {error['ctx']['actual_length']}"
    return str(error["msg"]).removeprefix("Value error, ").replace("Input should", "must")


class OptionError(FormatError):
    """A configuration that no file can satisfy (exit 1). `path` leads to the key concerned, below the node's `config`; `unknown`: there is no such key."""

    def __init__(self, message: str, path: Sequence[str | int] = (), *, unknown: bool = False) -> None:
        super().__init__(message)
        self.path = tuple(path)
        self.unknown = unknown

    @classmethod
    def of(cls, wrong: ValidationError, key: str) -> OptionError:
        """What a model finds wrong first with what stands under a key."""
        first = wrong.errors()[0]
        path = (key, *(part for part in first["loc"] if part != "[key]"))
        unknown = first["type"] == "extra_forbidden"
        said = "there is no such key" if unknown else _in_words(first)
        given = f", not {first['input']!r}" if first["type"] == "literal_error" else ""
        return cls(f"{'.'.join(map(str, path))}: {said}{given}", path, unknown=unknown)


class OutputError(FormatError):
    """A value that a format cannot hold, or a target that cannot be written (exit 4)."""


class InputError(FormatError):
    """A file that cannot be read as what it is said to be (exit 4).

    `line` counts lines or records from 1, `offset` bytes from 0; either may be unknown. The text is
    `file: line 3, byte 57: message`, from which `found_in` recovers the error when an engine only hands its text on.
    """

    _MARK: ClassVar[re.Pattern[str]] = re.compile(r"InputError: (?P<text>[^\n]+)")

    def __init__(self, file: str, message: str, *, line: int | None = None, offset: int | None = None) -> None:
        self.file, self.message, self.line, self.offset = file, message, line, offset
        super().__init__(": ".join(filter(None, (file, self.place, message))))

    @property
    def place(self) -> str:
        """`line 3, byte 57`, as far as it is known."""
        told = (f"{name} {number}" for name, number in (("line", self.line), ("byte", self.offset)) if number is not None)
        return ", ".join(told)

    def in_text(self, data: Buffer) -> InputError:
        """The same error with the line of its byte, which is one of this file's."""
        if self.line is not None or self.offset is None:
            return self
        return InputError(self.file, self.message, line=line_behind(data[: self.offset]), offset=self.offset)

    def __reduce__(self) -> tuple[Any, ...]:
        return (_input_error, (self.file, self.message, self.line, self.offset))

    @classmethod
    def found_in(cls, text: str) -> str | None:
        """The message of an input error inside the text of an engine's exception; null when it tells of something else."""
        found = cls._MARK.search(text)
        return found["text"].strip() if found else None


def _input_error(file: str, message: str, line: int | None, offset: int | None) -> InputError:
    return InputError(file, message, line=line, offset=offset)


@dataclass(frozen=True, slots=True)
class Column:
    """A column of records: its name in the file and its declared type, as the source's schema writes it (`int`, `nullable(date)` ...).

    `optional`: a field that only some records have. A record whose cell is null lacks it; a null that it does have is the JSON text `null`.
    `required`: every file of a source has it, else the run ends (E225).
    `declared`: the name in the schema, where `source_name` gives the file another.
    """

    name: str
    type: str = "string"
    optional: bool = False
    required: bool = False
    declared: str | None = None

    @property
    def label(self) -> str:
        """The column's name in the batches that a reader gives."""
        return self.declared or self.name


class Piece(NamedTuple):
    """Bytes `start` to `end` of a file: so many whole `records`, of which the first has number `first_row` in the file."""

    start: int
    end: int
    first_row: int
    records: int


@dataclass(frozen=True, slots=True)
class Range:
    """Bytes `start` to `end` of a (decompressed) file; its first record has number `first_row` in the file.

    `head` is what a reader must know of the file's beginning to read the range (CSV: the header record); without it the range is the whole file.
    `pieces`: what alone is read of the range, where that is not all of it.
    """

    start: int
    end: int
    first_row: int = 1
    head: bytes = b""
    pieces: tuple[Piece, ...] = ()

    @property
    def size(self) -> int:
        """Bytes to be read."""
        return sum(piece.end - piece.start for piece in self.pieces) if self.pieces else self.end - self.start


Starts: TypeAlias = "NDArray[np.int64]"
"""Where records begin, ascending."""
T = TypeVar("T")


class Looked(NamedTuple, Generic[T]):
    """What was made of the places where a file's records begin, piece by piece and in order; `head` as `Range.head`, `begin`: where the header ends."""

    head: bytes
    begin: int
    looked: Iterator[T]


@dataclass(frozen=True, slots=True)
class Reject:
    """A record that a source rejects: DLQ category, what is wrong, the record's fields as text, or its raw text."""

    category: Literal["type_coercion_failure", "malformed_record"]
    detail: str
    fields: Mapping[str, str | None] = field(default_factory=dict)
    raw: str | None = None

    def json(self) -> str:
        """The text of the `_error` column: members category, detail, fields, raw."""
        import orjson

        return orjson.dumps({"category": self.category, "detail": self.detail, "fields": dict(self.fields), "raw": self.raw}).decode()


class Options(BaseModel):
    """Base of the `options:` models: unknown keys are refused."""

    model_config = ConfigDict(defer_build=True, extra="forbid", frozen=True)


def keys_of(path: str) -> tuple[str, ...]:
    """The keys of a path to an array: `data.rows`, with or without the `$.` before it and the `[*]` behind it that JSONPath has."""
    plain = path.removeprefix("$").removeprefix(".").removesuffix("[*]")
    return tuple(plain.split(".")) if plain else ()


@dataclass(frozen=True, slots=True)
class ArrayPath:
    """How a nested array becomes records or text (user guide, "Array paths")."""

    path: str
    mode: Literal["explode", "join"] = "explode"
    separator: str = ","

    @property
    def steps(self) -> tuple[str, ...]:
        """The path's keys."""
        return keys_of(self.path)


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """How a source wants its files read, whatever their format.

    `undeclared` are the columns beyond the schema that the batches shall have (`Reader.undeclared` finds those of a file).
    `layout` is the content of a format schema, already loaded; `sections` the envelope's sections. With `document` the batches have one more column,
    `_doc`: the sections around each record as the JSON text of a map from section to fields.
    """

    declared: tuple[Column, ...]
    undeclared: tuple[Column, ...] = ()
    on_unmapped: Literal["auto_widen", "drop", "reject"] = "auto_widen"
    date_formats: tuple[str, ...] = ()
    array_paths: tuple[ArrayPath, ...] = ()
    layout: Mapping[str, Any] | None = None
    sections: tuple[Section, ...] = ()
    document: bool = False

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

    def beside(self, names: Iterable[str], file: str, line: int | None = None, type_: str = "string") -> tuple[Column, ...]:
        """The undeclared columns among the names of a file, in their order, as far as the policy keeps them.

        Raises InputError for one that the policy refuses, for more than a file may have or one with too long a name (`storage.formats.limits`), and (E226)
        for one with the name of a declared column that is called otherwise in files.
        """
        if self.on_unmapped == "drop":
            return ()
        from storage.formats.limits import check_columns

        known = self.names
        found = [name for name in dict.fromkeys(names) if name not in known]
        if found and self.on_unmapped == "reject":
            raise InputError(file, f"undeclared field '{found[0][:200]}': the schema does not name it and on_unmapped is reject", line=line)
        check_columns(found, file, declared=len(self.declared), line=line)
        renamed = {column.label: column.name for column in self.declared}
        if taken := next((name for name in found if name in renamed), None):
            way = "rename it in the file, or set on_unmapped to drop"
            raise InputError(file, f"E226: undeclared column '{taken}' has the name that the schema gives to '{renamed[taken]}': {way}", line=line)
        return tuple(Column(name, type_) for name in found)

    def check_names(self, names: Sequence[str], file: str, line: int | None = None) -> None:
        """Raise InputError (E224) where two columns of a file have one name, unless nothing is read of them."""
        counted = Counter(names)
        twice = next((name for name in counted if counted[name] > 1 and (self.on_unmapped != "drop" or name in self.names)), None)
        if twice is not None:
            places = " and ".join(str(place) for place, name in enumerate(names, 1) if name == twice)
            raise InputError(file, f"E224: columns {places} have one name, '{twice}': rename all but one of them in the file", line=line)


def without_sections(plan: ReadPlan, form: str) -> Sequence[str]:
    """What there is to say of sections of a format that has none."""
    return (f"envelope: {form} file has no sections, so that $doc is null",) if plan.sections else ()


@dataclass(frozen=True, slots=True)
class Section:
    """A section of a document's envelope: where it is found (`xml_path`, `json_pointer` or `segment`) and its typed fields."""

    name: str
    kind: Literal["xml_path", "json_pointer", "segment"]
    where: str
    fields: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads files of one format. Frozen and picklable: it travels to the executors inside `mapInArrow`."""

    options: Any
    plan: ReadPlan

    Options: ClassVar[type[Options]] = Options
    splittable: ClassVar[bool] = False
    pageable: ClassVar[bool] = False
    """Whether an answer of a service can be of this format."""
    versioned: ClassVar[bool] = False
    """Whether it reads tables with versions instead of files."""
    nested: ClassVar[bool] = False
    """Whether its records have arrays, which `array_paths` makes records or text of."""
    laid_out: ClassVar[bool] = False
    """Whether a format schema says where the fields are."""
    sparse: ClassVar[bool] = False
    """Whether a record has only some of the fields of its file."""
    undeclared_type: ClassVar[str] = "string"
    """The type of columns that the schema does not name."""

    def __post_init__(self) -> None:
        """Check what options and plan together decide; raises OptionError."""

    def notes(self) -> Sequence[str]:
        """What the source asks for that its format does not have, and that changes nothing."""
        return ()

    def nothing_found(self) -> str | None:
        """What there is to say of a file in which no record was found; None where that is nothing strange."""
        return None

    def levels(self) -> Mapping[str, Sequence[str]]:
        """Sections that the format supplies besides the declared ones, with their fields; they may differ between the records of a file."""
        return {}

    def with_undeclared(self, columns: Sequence[Column]) -> Self:
        """The same reader, whose batches have these columns behind the declared ones."""
        return replace(self, plan=replace(self.plan, undeclared=tuple(columns)))

    @property
    def gathers(self) -> bool:
        """Whether the undeclared fields are one column, UNDECLARED: a JSON object of the undeclared fields of each record."""
        from storage.formats import limits

        return self.sparse and len(self.plan.undeclared) > limits.GATHERED

    def undeclared(self, data: Buffer, name: str) -> tuple[Column, ...]:
        """The columns of a file that the schema does not name, in file order; empty unless the policy is auto_widen.

        Raises InputError when the policy is reject and there are some. CSV looks at the header only, self-describing formats at every record.
        """
        return ()

    def split(self, data: Buffer, name: str, target: int = CHUNK_BYTES) -> list[Range]:
        """Ranges of about `target` bytes that together are the file; one for formats and files that cannot be cut. Raises InputError."""
        return [Range(0, len(data))]

    def record_starts(self, data: Buffer, name: str, look: Callable[[Starts], T]) -> Looked[T] | None:
        """What `look`, called in threads, makes of the places where records begin; None where the file cannot be cut before each of them.

        Raises InputError, also while the answer is read.
        """
        return None

    def tail(self, data: Buffer, name: str, start: int, first_row: int) -> Range | None:
        """The range behind byte `start`, at which a file once ended and record `first_row` now begins; None where it cannot be read by itself.

        Raises InputError.
        """
        return None

    def read(self, data: Buffer, name: str, part: Range | None = None) -> Iterator[pa.RecordBatch]:
        """The records of `data`, which is a whole file or, with `part`, exactly the bytes of that range. Raises InputError."""
        raise NotImplementedError

    def lines(self, data: Buffer, name: str) -> Iterator[bytes]:
        """Each record of a page as a line of JSON, arrays exploded or joined; what is no record stays as it is. Only formats of `pageable` readers."""
        raise NotImplementedError

    def envelope(self, data: Buffer, name: str) -> dict[str, dict[str, Any]]:
        """The declared envelope sections of a file: section, field, value; raises InputError for a value of another type."""
        return {}

    def documented(self, batches: Iterator[pa.RecordBatch], data: Buffer = b"", name: str = "") -> Iterator[pa.RecordBatch]:
        """The batches, where documents are wanted each with the sections of the file's envelope in `_doc`. Raises InputError."""
        if not self.plan.document:
            return batches
        from storage.formats.batches import document_text, with_document

        return with_document(batches, document_text(self.envelope(data, name)))

    def refuse_sections_but(self, kind: str, form: str) -> None:
        """Raise OptionError for an envelope section that is not found as this format finds them."""
        wrong = next((section for section in self.plan.sections if section.kind != kind), None)
        if wrong is not None:
            path = ("envelope", "sections", wrong.name, "extract")
            raise OptionError(f"envelope section '{wrong.name}': {form} source takes {kind}, not {wrong.kind}", path)

    def schema(self) -> pa.Schema:
        """Schema of the batches."""
        from storage.formats.batches import batch_schema

        return batch_schema(self.plan.declared if self.gathers else self.plan.columns, document=self.plan.document, gathered=self.gathers)


@dataclass(frozen=True, slots=True)
class WritePlan:
    """How an output wants its records written. The columns' types are those of the pipeline (`any`: JSON text).

    `interchange`: the header elements of an EDI interchange that is echoed from a document section (its `_elements`).
    """

    columns: tuple[Column, ...]
    include_header: bool = True
    preserve_nulls: bool = False
    layout: Mapping[str, Any] | None = None
    interchange: tuple[str, ...] | None = None


class Session:
    """A file being written: header, then any number of bodies (joined by `separator`), then footer, make its bytes."""

    def header(self) -> bytes:
        """What stands before the first record."""
        return b""

    def render(self, batch: pa.RecordBatch) -> bytes:
        """The records of a batch, whose columns are those of the plan. Raises OutputError."""
        raise NotImplementedError

    def separator(self) -> bytes:
        """What stands between the texts of two batches that both have records."""
        return b""

    def footer(self) -> bytes:
        """What stands behind the last record."""
        return b""


@dataclass(frozen=True, slots=True)
class Writer(Session):
    """Writes records of one format. Where `sequential` is false a writer has no state: any part of the records may be rendered anywhere.

    Where it is true, each file needs a session of its own (`open`), which sees all records in order.
    """

    options: Any
    plan: WritePlan

    Options: ClassVar[type[Options]] = Options
    splittable: ClassVar[bool] = True
    has_header_row: ClassVar[bool] = False
    """Whether the header is a row of names, without which a file is whole too."""
    sequential: ClassVar[bool] = False
    versioned: ClassVar[bool] = False
    """Whether it is a table with versions, which is written by what changed and not as a file."""
    legible: ClassVar[bool] = True
    """Whether what it writes is text."""
    laid_out: ClassVar[bool] = False
    """Whether a layout says where the fields are."""
    echoes: ClassVar[str | None] = None
    """The segment of a document from which the header of a file can be made (`options.interchange_from_doc`)."""

    @property
    def looks_for_formulas(self) -> bool:
        """Whether `has_formulas` has to be asked of each batch."""
        return False

    def __post_init__(self) -> None:
        """Check what options and plan together decide; raises OptionError."""

    def open(self) -> Session:
        """What writes one file: the writer itself where it has no state."""
        return self

    def has_formulas(self, batch: pa.RecordBatch) -> bool:
        """Whether a program that opens the file would run some text of a batch. Costs little beside `render`."""
        return False

    def rows(self, batch: pa.RecordBatch) -> list[bytes]:
        """Each record's own text, for outputs that are cut by size: joined by the separator they are `render`'s."""
        return [self.render(batch.slice(i, 1)) for i in range(batch.num_rows)]
