"""Answers of databases: asked in one moment, checked against declared types, hashed and spooled to a file, a batch at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import ROUND_CEILING, Context, Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import orjson

from changelog.lazy_imports import pa, pc, pl
from operators.core.config import microseconds
from operators.source.cursors import STORED_TIME, USUAL_TIME, as_text, form, greatest, patterns
from operators.source.databases import CURSORS
from operators.source.file_changes import FileChanges, FileRecord
from operators.source.node import SourceNode
from operators.source.request import InputChanged
from storage.formats.base import ROW, Column, batch_schema
from storage.sql.reading import AnswerColumn, From, Ordered, Reading

if TYPE_CHECKING:
    from storage.sql.reading import Values

LABEL: Final = (1,)
CURSOR: Final = ("config", "merge", "cursor")
_DIGITS: Final = Context(prec=100)
_WORD: Final = 1 << 64
_SEEDS: Final = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F)
_OFFSET_DAYS: Final = 2
"""Days by which the texts of one time may differ: offsets go from -12 to +14 hours."""
_FORMS: Final = {" ": "with a blank", "T": "with T", "day": "as days", "": "in a form of their own"}
_DECLARED: Final = {"number": "int or decimal", "time": "date or date_time", "text": "string"}


@dataclass(frozen=True, slots=True)
class AnswerChanges(FileChanges):
    """An answer as the only file of its source.

    Attributes:
        spool: The file with its rows; None where nothing was asked.
        floor: The value from which on rows were asked for; None for all rows.
        known: The entry of the last epoch.
    """

    spool: Path | None = None
    floor: Any = None
    known: FileRecord | None = None

    @property
    def reason(self) -> str | None:
        """Why the source has to be read."""
        if not self.changed:
            return None
        return "answer: new" if self.known is None else "answer: changed"

    @property
    def to_read(self) -> int:
        """Bytes of the spooled answer."""
        return sum(record.size for record in self.changed)

    def from_nothing(self) -> AnswerChanges:
        """The whole answer, as it was asked for."""
        return AnswerChanges(self.now, changed=self.now, spool=self.spool, known=self.known)


@dataclass(slots=True)
class AnswerHash:
    """A hash of rows that does not depend on their order: two sums of row hashes, and the number of rows."""

    sums: list[int] = field(default_factory=lambda: [0, 0])
    rows: int = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Take the rows of a batch in. Floats count by their bits."""
        columns = {str(at): _by_bits(values) for at, (name, values) in enumerate(zip(batch.schema.names, batch.columns, strict=True)) if name != ROW}
        frame = pl.DataFrame(pa.table(columns))
        for at, seed in enumerate(_SEEDS):
            hashed = frame.hash_rows(seed).to_numpy()
            low, high = int((hashed & 0xFFFFFFFF).sum()), int((hashed >> 32).sum())
            self.sums[at] = (self.sums[at] + low + (high << 32)) % _WORD
        self.rows += batch.num_rows

    @property
    def text(self) -> str:
        """The hash in hexadecimal digits."""
        return f"{self.sums[0]:016x}{self.sums[1]:016x}{self.rows:x}"


def _by_bits(values: pa.Array) -> pa.Array:
    return values.view(pa.int64()) if pa.types.is_float64(values.type) else values


@dataclass(slots=True)
class Cursor:
    """The cursor of a source: what is asked for, and the greatest value that is read.

    Attributes:
        column: The declared column.
        by_text: Whether values have types of their own (SQLite), so that the stored one is kept.
        asks_more: Whether an answer may have rows before the floor.
        greatest: The greatest value.
        raw: The greatest value in the form that the database has.
        known: The one of the runs before.
        has_texts: Whether numbers are stored as texts.
        has_numbers: Whether texts are stored as numbers.
    """

    column: str
    overlap: str | int | float | None
    by_text: bool
    asks_more: bool = False
    greatest: Any = None
    raw: Any = None
    known: Any = None
    forms: set[str] = field(default_factory=set)
    has_texts: bool = False
    has_numbers: bool = False

    @classmethod
    def of(cls, source: SourceNode, reading: Reading) -> Cursor | None:
        """The cursor of a source; None where it has none."""
        merge = source.config.merge
        return None if merge.cursor is None else cls(merge.cursor, merge.overlap, reading.connection.kind == "sqlite", reading.asks_more)

    def after(self, known: FileRecord | None, ordered: Ordered | None) -> tuple[Any, Any]:
        """The value from which on rows are asked for, as the database compares it and as a typed value; nothing where no epoch knows one. Both are the same value."""
        if known is None or known.cursor is None:
            return None, None
        raw, typed = orjson.loads(known.cursor)["raw"], greatest(known.cursor)
        self.greatest, self.raw, self.known = typed, raw, raw
        if self.by_text and isinstance(typed, date):
            self._note_forms([raw])
        floor = less(typed, self.overlap)
        return (_as_stored(raw, floor, self.overlap) if self.by_text else _as_text(floor, None if ordered is None else ordered.scale)), floor

    def note(self, batch: pa.RecordBatch, values: Values) -> None:
        """Look for a greater value in a batch. `values` are the column as the database gave it."""
        typed = batch.column(self.column)
        if self.by_text:
            self._note_stored(typed, values)
        most = pc.max(typed)
        if not most.is_valid:
            return
        value = most.as_py()
        value = value.replace(tzinfo=None) if isinstance(value, datetime) else value
        if self.greatest is None or value > self.greatest:
            self.greatest = value
            self.raw = values[pc.index(typed, most).as_py()] if self.by_text else None

    def _note_stored(self, typed: pa.Array, values: Values) -> None:
        """Look for values that do not follow each other in the database as they do when they are typed."""
        if pa.types.is_string(typed.type):
            self.has_numbers |= any(isinstance(value, int | float) for value in values)
            return
        read = [value for value, good in zip(values, typed.is_valid().to_pylist(), strict=True) if good]
        if pa.types.is_temporal(typed.type):
            self._note_forms(read)
        else:
            self.has_texts |= any(isinstance(value, str) for value in read)

    def _note_forms(self, values: Iterable[Any]) -> None:
        self.forms.update(form(value) if isinstance(value, str) else "" for value in values)

    def forms_asked(self, floor: Any, formats: Sequence[str]) -> tuple[tuple[str, ...], str]:
        """The forms of texts that compare with the greatest one as times do, and the least text where others are looked for. `formats`: the formats of times that are read beside ISO."""
        if not self.by_text or not isinstance(floor, date):
            return (), ""
        since = max(floor.toordinal() - _OFFSET_DAYS, 1)
        return tuple(patterns(str(self.raw))), "" if formats else date.fromordinal(since).isoformat()

    def asked(self, batch: pa.RecordBatch, values: Values, floor: Any) -> tuple[pa.RecordBatch, Values]:
        """The rows of a batch that are not before the floor, with their stored values. Of SQLite's only times are looked at: `check` has to see numbers among texts."""
        if floor is None or not self.asks_more or (self.by_text and not isinstance(floor, date)):
            return batch, values
        asked = self._from(batch, floor)
        return batch.filter(asked), [value for value, good in zip(values, asked.to_pylist(), strict=True) if good] if self.by_text else values

    def _from(self, batch: pa.RecordBatch, floor: Any) -> pa.Array:
        """Which rows lie at or behind a floor, or have no value."""
        typed = batch.column(self.column)
        bound = pa.scalar(floor, pa.timestamp("us")).cast(typed.type) if isinstance(floor, datetime) else pa.scalar(floor, typed.type)
        return pc.or_kleene(pc.greater_equal(typed, bound), pc.is_null(typed))

    def check(self, source: str) -> None:
        """Raise InputChanged for numbers that are texts, texts that are numbers, and times that do not compare as texts."""
        if self.has_texts:
            raise InputChanged(f"E605: the cursor '{self.column}' of {source} has numbers that are stored as texts: they do not compare as numbers; select them as numbers, by CAST", place=CURSOR)
        if self.has_numbers:
            raise InputChanged(f"E605: the cursor '{self.column}' of {source} is declared as string and has numbers, which do not compare as texts; declare it as int or decimal, or select texts, by CAST", place=CURSOR)
        without_overlap = self.forms - {" ", "T", "day"}
        if len(self.forms) > 1 or "" in self.forms or (without_overlap and self.overlap is not None):
            forms = " and ".join(sorted(_FORMS.get(one, f"as {one}") for one in self.forms))
            example = self.known if isinstance(self.known, str) and STORED_TIME.fullmatch(self.known) else USUAL_TIME
            message = f"E605: the cursor '{self.column}' of {source} has times {forms}: they do not compare as texts; select them in one form, such as {example}"
            raise InputChanged(message, help="if all times have a new form now, run once with --full-refresh", place=CURSOR)

    @property
    def text(self) -> str | None:
        """The members that the ledger keeps."""
        if self.greatest is None:
            return None
        return as_text(self.greatest, self.raw)

    def behind(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of a batch that a run after this one asks for."""
        floor = less(self.greatest, self.overlap)
        return batch if floor is None else batch.filter(self._from(batch, floor))


def less(value: Any, overlap: str | float | None) -> Any:
    """A value without an overlap: a duration of a time, a number of a number. A decimal is rounded up to its own places: the same values lie behind it."""
    if value is None or not overlap:
        return value
    if isinstance(value, datetime | date):
        step = timedelta(microseconds=microseconds(str(overlap)))
        try:
            return value - step if isinstance(value, datetime) else (datetime(value.year, value.month, value.day) - step).date()
        except OverflowError:
            return type(value).min
    if isinstance(value, Decimal):
        return _DIGITS.subtract(value, Decimal(str(overlap))).quantize(value, ROUND_CEILING, _DIGITS)
    return value - (int(overlap) if isinstance(value, int) else overlap)


def _as_text(value: Any, scale: int | None) -> str:
    """A bound as text. A number is rounded up to the decimal places of its column: the same values lie behind it."""
    if isinstance(value, Decimal) and scale is not None:
        value = value.quantize(Decimal(1).scaleb(-scale), ROUND_CEILING, _DIGITS)
    return value.isoformat(sep=" ") if isinstance(value, datetime) else value.isoformat() if isinstance(value, date) else format(value, "f") if isinstance(value, Decimal) else str(value)


def _as_stored(raw: Any, floor: Any, overlap: Any) -> Any:
    """The floor in the form that the database has for its greatest value. Of the texts of a time it is the shortest, which all the others begin with."""
    if isinstance(floor, date) and isinstance(raw, str) and (found := STORED_TIME.fullmatch(raw)):
        return _shortest(floor, found["sign"] or " ") if isinstance(floor, datetime) else floor.isoformat()
    if not overlap:
        return raw
    if isinstance(floor, Decimal) and not isinstance(raw, str):
        return int(floor) if floor == floor.to_integral_value() else float(floor)
    return str(floor) if isinstance(raw, str) else floor


def _shortest(time: datetime, sign: str) -> str:
    """A time without seconds and digits that are zero; midnight is a day."""
    text = time.isoformat(sep=sign, timespec="microseconds")
    text = text.rstrip("0").removesuffix(".") if time.microsecond else text[:19]
    return text if time.microsecond or time.second else text[:16] if time.hour or time.minute else text[:10]


@dataclass(frozen=True, slots=True)
class Answer:
    """A spooled answer: its entry for the ledger, the file, the floor from which on rows were asked for."""

    record: FileRecord
    spool: Path
    floor: Any

    def changes(self, known: FileRecord | None) -> AnswerChanges:
        """The changes of a source with this answer."""
        if known is not None and known.hash == self.record.hash:
            return AnswerChanges((known,), known=known)
        return AnswerChanges((self.record,), changed=(self.record,), spool=self.spool, floor=self.floor, known=known)


def spooled(reading: Reading, source: SourceNode, known: FileRecord | None, spool: Path) -> Answer:
    """Ask for the rows of a source and write them to a file. `known`: its entry in the last epoch; None where everything is asked for.

    Raises:
        DatabaseError: The database failed.
        InputError: The answer lacks declared columns.
        InputChanged: The cursor cannot be followed.
    """
    name = source.config.answer_name
    columns = reading.described(source.ask)
    undeclared = source.reader().undeclared_among([column.name for column in columns], name, "query" if source.config.table is None else "table")
    reader = source.reader().with_undeclared(undeclared)
    wanted = {column.name for column in reader.plan.columns}
    asked = [column for column in columns if column.name in wanted]
    cursor = Cursor.of(source, reading)
    start, floor = (None, None) if cursor is None else _start(cursor, source, known, reading, asked)
    hashed = AnswerHash()
    spool.parent.mkdir(parents=True, exist_ok=True)
    schema = batch_schema(reader.plan.columns)
    with pa.OSFile(str(spool), "wb") as sink, pa.ipc.new_file(sink, schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        for values in reading.batches(source.ask, asked, start):
            for batch in reader.typed(values):
                if cursor is None:
                    hashed.add(batch)
                    writer.write_batch(batch)
                else:
                    asked_for, stored = cursor.asked(batch, values[str(source.cursor_name)], floor)
                    cursor.note(asked_for, stored)
                    writer.write_batch(asked_for)
    if cursor is not None:
        cursor.check(name)
        hashed = _hash_of(cursor, spool)
    extra = tuple((column.name, column.type) for column in undeclared)
    rows = 0 if known is None else known.rows
    record = FileRecord(name, spool.stat().st_size, 0, hashed.text, LABEL, rows=rows, undeclared=extra, cursor=None if cursor is None else cursor.text, dense=False, version=0)
    return Answer(record, spool, floor)


def _start(cursor: Cursor, source: SourceNode, known: FileRecord | None, reading: Reading, asked: Sequence[AnswerColumn]) -> tuple[From | None, Any]:
    """Where a source's rows are asked for from: the place for the statement, None where all are asked for; and the floor. Raises InputChanged where the database has another order."""
    column = next(column for column in asked if column.name == source.cursor_name)
    declared = next(one for one in source.config.schema_ if one.name == cursor.column)
    ordered = reading.ordered(column)
    if column.type and (ordered is None or ordered.order != CURSORS[declared.cxl_type.kind]):
        message = f"E605: the cursor '{cursor.column}' of {source.config.answer_name} is declared as {declared.type}, and the database orders it as {column.type}: rows would be passed over"
        first = "" if ordered is None else f"declare it as {_DECLARED[ordered.order]}, or "
        raise InputChanged(message, help=f"{first}select it in a query by CAST, as the type that is declared", place=CURSOR)
    bound, floor = cursor.after(known, ordered)
    if bound is None:
        return None, floor
    forms, since = cursor.forms_asked(floor, source.reader().plan.date_formats)
    return From(column.name, bound, "" if ordered is None else ordered.bound, forms, since), floor


def _hash_of(cursor: Cursor, spool: Path) -> AnswerHash:
    """The hash of what the next run asks for if nothing changes."""
    hashed = AnswerHash()
    for batch in batches_of(spool):
        hashed.add(cursor.behind(batch))
    return hashed


def batches_of(spool: Path, first: int = 0, last: int | None = None) -> Iterator[pa.RecordBatch]:
    """The batches of a spooled answer by their numbers, `last` exclusive."""
    with pa.memory_map(str(spool)) as source, pa.ipc.open_file(source) as reader:
        for number in range(first, reader.num_record_batches if last is None else last):
            yield reader.get_batch(number)


def count_of(spool: Path) -> tuple[int, int]:
    """The batches and the rows of a spooled answer."""
    rows = [batch.num_rows for batch in batches_of(spool)]
    return len(rows), sum(rows)


def undeclared_columns(record: FileRecord) -> Sequence[Column]:
    """The undeclared columns of an answer."""
    return [Column(name, type_) for name, type_ in record.undeclared]
