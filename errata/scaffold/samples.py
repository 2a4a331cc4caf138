"""Samples of files: their fields, and the values of the first records. Files of at most `MOST_BYTES` are read whole."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from changelog.lazy_imports import pa, pl
from errata.core.diagnostics import did_you_mean
from errata.core.failures import StorageFailed
from errata.scaffold.columns import are_tolerated, is_no_value
from errata.scaffold.delimited import form_of, is_value
from errata.scaffold.documents import Found, json_records, xml_records
from errata.scaffold.encodings import encoding_of
from errata.scaffold.model import Cells, Doubt, Sample
from storage import formats
from storage.files.errors import Buffer, FormatError, InputError
from storage.files.local import buffer_of, is_compressed
from storage.formats import ArrayPath, Column, Reader, ReadPlan, limits
from storage.formats.base import ERROR, ROW
from storage.formats.csv.header import header_of
from storage.formats.csv.scan import Dialect, as_bytes, records
from storage.formats.options import OptionError

if TYPE_CHECKING:
    from storage.formats.xlsx import read as workbooks
else:
    from changelog.lazy_imports import Lazy

    workbooks = Lazy("storage.formats.xlsx.read")

MOST_BYTES = 32 << 20
"""Bytes of a file that are looked at."""
MOST_RECORDS = 100_000
"""Records of a document or of typed columns that are looked at."""
MOST_CELLS = 2_000_000
_OUTLINE = 4 << 20
"""Bytes in which the records of a document are looked for."""
_SENTENCE = 4
"""Words from which the text of a cell is a sentence."""
_DEEPEST = 8
_HEADER_ROWS = range(2, 12)
"""The rows of a sheet that may have the names of its columns, where the first has none."""
_TOTAL = re.compile(r"(grand |sub)?total|sum|summe|gesamt(summe)?|zwischensumme|somme|suma|totaal|totale|итого", re.IGNORECASE)
"""How a record calls itself that sums up the others."""
_SUFFIXES = {
    ".csv": "csv", ".tsv": "csv", ".tab": "csv", ".txt": "csv", ".psv": "csv", ".json": "json", ".ndjson": "json", ".jsonl": "json", ".geojson": "json", ".xml": "xml",
    ".parquet": "parquet", ".pq": "parquet", ".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow", ".avro": "avro",
    ".xlsx": "xlsx", ".xlsm": "xlsx", ".xlsb": "xlsx", ".xls": "xlsx", ".ods": "xlsx",
}  # fmt: skip
_MAGIC = ((b"PAR1", "parquet"), (b"ARROW1", "arrow"), (b"Obj\x01", "avro"), (b"PK\x03\x04", "xlsx"), (b"\xd0\xcf\x11\xe0", "xlsx"), (b"<?xml", "xml"))


def samples_of(path: Path, name: str) -> list[Sample]:
    """Return a sample of each kind of records of a file.

    Args:
        path: The file.
        name: What messages call it.

    Raises:
        StorageFailed: The file is empty or cannot be read.
    """
    try:
        data = buffer_of(path, name)
        if not data[: 1 << 16].strip(b" \t\r\n\0\xef\xbb\xbf\xff\xfe"):
            raise StorageFailed(f"{name}: the file is empty, so that there is nothing to guess from", help="name a file with some records")
        form = _format_of(path, name, data)
        return _SAMPLERS.get(form, _typed)(path, name, data, form)
    except OptionError as wrong:
        raise StorageFailed(f"{name}: {wrong}", help=wrong.help_text or "") from None
    except FormatError as wrong:
        raise StorageFailed(str(wrong)) from None


def _format_of(path: Path, name: str, data: Buffer) -> str:
    """The format by the ending of the name, else by the first bytes."""
    if data[:16] == b"SQLite format 3\0":
        raise StorageFailed(f"{name}: a SQLite database, which is no file of records", help="declare it as a connection in errata.toml; a source then names a table or query: docs/reference/databases.md")
    suffixes = [suffix.lower() for suffix in path.suffixes]
    suffix = suffixes[-2] if is_compressed(path) and len(suffixes) > 1 else suffixes[-1] if suffixes else ""
    if suffix in _SUFFIXES:
        return _SUFFIXES[suffix]
    head = data[: 1 << 12]
    found = next((form for magic, form in _MAGIC if head.startswith(magic)), None)
    begun = head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    if found or begun in (b"<", b"{", b"["):
        return found or ("xml" if begun == b"<" else "json")
    if b"\0" in head and not head.startswith((b"\xff\xfe", b"\xfe\xff")):
        near = did_you_mean(suffix, _SUFFIXES)
        raise StorageFailed(f"{name}: neither text nor a format that Errata reads", help=near or f"known endings: {', '.join(_SUFFIXES)}")
    return "csv"


# -- CSV


def _csv(path: Path, name: str, data: Buffer, form: str) -> list[Sample]:
    whole = len(data) <= MOST_BYTES
    head = bytes(data[:MOST_BYTES])
    encoding = encoding_of(head, whole=whole)
    text = head.decode(encoding.name, "ignore" if not whole else "replace").removeprefix("\ufeff")
    _check_text(text, name)
    found = form_of(text, name, suffix=path.with_suffix("").suffix.lower() if is_compressed(path) else path.suffix.lower())
    body = _whole_records(text, found.delimiter, found.quote, whole=whole).encode("utf-8", "surrogatepass")
    options = found.options("utf-8")
    reader = formats.reader("csv", options, ReadPlan(()))
    names = list(header_of(reader.options, body, name).names)
    counted = Counter(names)
    dropped = [one for one, count in counted.items() if count > 1]
    kept = [one for one in counted if counted[one] == 1]
    if not kept:
        raise StorageFailed(f"{name}: every column has a name that another one has: '{dropped[0]}'", help="give the columns names of their own in the file")
    table, bad = _read(_with_columns(reader, kept, "string"), body, name, None)
    cells = {one: Cells(_series(table[one].to_pylist()), frozenset(("text",)), occurs=table.num_rows) for one in kept}
    doubts = [Doubt("", text) for text in (encoding.doubt, *found.doubts) if text]
    doubts += [Doubt("", text) for text in _total(cells)]
    doubts += [Doubt(one, f"{counted[one]} columns have the name '{one}': they are left out; rename all but one of them in the file") for one in dropped]
    return [Sample(path, "csv", cells, table.num_rows, found.options(encoding.name), malformed=bad, whole=whole, plain=encoding.plain, dropped=dropped, doubts=doubts)]


def _check_text(text: str, name: str) -> None:
    """Raise StorageFailed for bytes that are no text."""
    strange = sum((one < " " and one not in "\t\r\n\f") or one == "\ufffd" for one in text[:10_000])
    if strange > 0.02 * len(text[:10_000]) and strange > 2:
        raise StorageFailed(f"{name}: the bytes are no text", help="name a file of text, or of another format with its usual ending")


def _whole_records(text: str, delimiter: str, quote: str, *, whole: bool) -> str:
    """The text without its last record, which may be cut off; all of it where it is whole."""
    if whole:
        return text
    data = text.encode("utf-8", "surrogatepass")
    found = records(as_bytes(data), Dialect(ord(delimiter), ord(quote)))
    return data[: int(found.starts[-1])].decode("utf-8", "surrogatepass") if len(found.starts) > 1 else text


def _with_columns(reader: Reader, names: Iterable[str], type_: str) -> Reader:
    """The reader, which reads the named columns as one type and drops others."""
    return replace(reader, plan=replace(reader.plan, declared=tuple(Column(one, type_) for one in names), on_unmapped="drop"))


def _read(reader: Reader, data: Buffer, name: str, most: int | None) -> tuple[pa.Table, tuple[int, str]]:
    """The good records of a file or of its first ones, and how many were malformed, with the reason of the first."""
    batches, bad, reason, count = [], 0, "", 0
    for batch in reader.read(data, name):
        errors = batch.column(ERROR)
        if errors.null_count < batch.num_rows:
            texts = errors.drop_null()
            bad, reason = bad + len(texts), reason or json.loads(texts[0].as_py())["detail"]
        batches.append(batch.filter(errors.is_null()))
        count += batches[-1].num_rows
        if most is not None and count >= most:
            break
    schema = batches[0].schema if batches else pa.schema([(column.label, pa.string()) for column in reader.plan.columns] + [(ROW, pa.int64()), (ERROR, pa.string())])
    table = pa.Table.from_batches(batches, schema)
    return (table if most is None else table.slice(0, most)), (bad, reason)


def _series(values: Sequence[str | None]) -> pl.Series:
    return pl.Series("", values, dtype=pl.String)


# -- JSON and XML


def _document(path: Path, name: str, data: Buffer, form: str) -> list[Sample]:
    head = bytes(data[:_OUTLINE])
    kinds = xml_records(head, name, whole=len(data) <= _OUTLINE) if form == "xml" else json_records(_utf8(head, name), name)
    return [replace(_of_kind(path, name, data, form, found), alone=len(kinds) == 1) for found in kinds]


def _of_kind(path: Path, name: str, data: Buffer, form: str, found: Found) -> Sample:
    """A sample of one kind of records of a document."""
    sample = _records_of(path, name, data, form, found)
    if form == "xml":
        return sample
    explode, doubts = _json_array(sample)
    if explode is None:
        return replace(sample, doubts=(*sample.doubts, *doubts))
    exploded = _records_of(path, name, data, form, replace(found, explode=[explode]))
    inside = tuple(_members(sample.cells[explode].texts))
    return replace(exploded, inside=inside, doubts=(*exploded.doubts, *doubts))


def _utf8(head: bytes, name: str) -> str:
    """The text of JSON. Raises StorageFailed for other encodings than UTF-8, which JSON does not have."""
    encoding = encoding_of(head, whole=False)
    if encoding.name != "utf-8":
        raise StorageFailed(f"{name}: JSON is UTF-8, and this is {encoding.name}", help=f"iconv -f {encoding.name} -t utf-8 {name} > {name}.utf8")
    return head.decode("utf-8", "ignore")


def _records_of(path: Path, name: str, data: Buffer, form: str, found: Found) -> Sample:
    """The first records of a document, with the arrays that were found exploded and joined."""
    options = {} if found.record_path is None else {"record_path": found.record_path}
    paths = tuple([ArrayPath(one, "explode") for one in found.explode] + [ArrayPath(one, "join") for one in found.join])
    own = [] if found.own is None else [Column(found.own, "string", optional=True)]
    plan = ReadPlan((*(Column(one, "array") for one in found.arrays), *own), array_paths=paths)
    reader = formats.reader(form, options, plan)
    gathered = _Gathered(nested=form == "json")
    lines = iter(reader.lines(data, name))
    for line in islice(lines, MOST_RECORDS):
        gathered.add(line)
        if gathered.size > MOST_CELLS:
            break
    whole = next(lines, None) is None
    cells = gathered.cells()
    limits.check_columns(list(cells), name)
    if not cells:
        raise StorageFailed(f"{name}: no record with fields was found", help="an array of objects, objects line by line, or elements that repeat are records")
    doubts = [Doubt("", text) for text in found.doubts]
    doubts += [Doubt("", "a member without a name is left out")] if gathered.unnamed else []
    dropped = [""] if gathered.unnamed else []
    return Sample(path, form, cells, gathered.records, options, found.explode, found.join, gathered.malformed, whole, dropped=dropped, kind=(found.explode[0].rsplit(".", 1)[-1] if found.explode else found.kind), inside=found.inside, doubts=doubts)


def _json_array(sample: Sample) -> tuple[str | None, list[Doubt]]:
    """The array of objects in the records of a JSON file that is exploded, and what was unsure. None where there is none, or its members would hide others."""
    arrays = {name: cells for name, cells in sample.cells.items() if "objects" in cells.kinds}
    if not arrays:
        return None, []
    best = max(arrays, key=lambda name: int(arrays[name].texts.str.len_bytes().sum()))
    members = _members(arrays[best].texts)
    empty = int((arrays[best].texts == "[]").sum())
    hidden = [name for name in members if name in sample.cells and name != best]
    if hidden:
        return None, [Doubt(best, f"an array of objects whose member '{hidden[0]}' has the name of a field around it: it stays one value; array_paths makes records of it")]
    others = [name for name in arrays if name != best]
    more = f"; {', '.join(others)} stay{'s' if len(others) == 1 else ''} one value" if others else ""
    left_out = f"; {empty:,} of {sample.records:,} records {'has none and is' if empty == 1 else 'have none and are'} left out" if empty else ""
    return best, [Doubt(best, f"an array of objects: a record is made of each of them (array_paths){left_out}{more}")]


def _members(texts: pl.Series) -> set[str]:
    return {key for text in texts.drop_nulls().head(1_000) for element in json.loads(text) if isinstance(element, dict) for key in element}


class _Gathered:
    """Records by field: the text of each value, and what kinds of values there are.

    Args:
        nested: Whether a dotted name is a member of an object, and no name of its own.
    """

    def __init__(self, *, nested: bool) -> None:
        self.nested = nested
        self.values: dict[str, list[str | None]] = {}
        self.kinds: dict[str, set[str]] = {}
        self.occurs: dict[str, int] = {}
        self.records, self.size, self.unnamed = 0, 0, 0
        self.malformed = (0, "")

    def add(self, line: bytes) -> None:
        """Take a record as a line of JSON; another text is a malformed one."""
        try:
            record = json.loads(line, parse_float=Decimal)
        except ValueError:
            record = None
        if not isinstance(record, dict):
            self.malformed = (self.malformed[0] + 1, self.malformed[1] or line[:80].decode(errors="replace"))
            return
        for name, value in flattened(record):
            if not name:
                self.unnamed += 1
                continue
            values = self.values.setdefault(name, [])
            values.extend([None] * (self.records - len(values)))
            text, kind = text_of(value)
            values.append(text)
            self.occurs[name] = self.occurs.get(name, 0) + 1
            if kind:
                self.kinds.setdefault(name, set()).add(kind)
            self.size += 1
        self.records += 1

    def cells(self) -> dict[str, Cells]:
        """The fields, in the order in which they came."""
        inside = {name for name in self.values if self.nested and self._is_inside(name)}
        return {
            name: Cells(_series([*values, *[None] * (self.records - len(values))]), frozenset(self.kinds.get(name, ())), occurs=self.occurs[name])
            for name, values in self.values.items()
            if name not in inside and not self._is_opened(name)
        }

    def _is_opened(self, name: str) -> bool:
        """Whether a field is only null where its members are fields elsewhere."""
        return not self.kinds.get(name) and any(other.startswith(f"{name}.") for other in self.values)

    def _is_inside(self, name: str) -> bool:
        """Whether a field is a member of one that has other values elsewhere, and so is one value itself."""
        above = [name[:place] for place, sign in enumerate(name) if sign == "."]
        mixed = [one for one in above if self.kinds.get(one)]
        for one in mixed:
            self.kinds[one].add("map")
        return bool(mixed)


def flattened(record: Mapping[str, Any], prefix: str = "", depth: int = 1) -> Iterator[tuple[str, Any]]:
    """Yield the fields of a record; members of objects have dotted names."""
    for key, value in record.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict) and value and depth < _DEEPEST and "." not in key and all(one and "." not in one for one in value):
            yield from flattened(value, f"{name}.", depth + 1)
        else:
            yield name, value


def text_of(value: Any) -> tuple[str | None, str]:
    """Return a value as text, and its kind; an empty kind for null."""
    if value is None:
        return None, ""
    if isinstance(value, bool):
        return ("true" if value else "false"), "bool"
    if isinstance(value, list):
        return json.dumps(value, default=str), "objects" if value and all(isinstance(one, dict) for one in value) else "array"
    if isinstance(value, dict):
        return json.dumps(value, default=str), "map"
    if isinstance(value, (int, Decimal, float)):
        return (format(value, "f") if isinstance(value, Decimal) and value.is_finite() else str(value)), "int" if isinstance(value, int) else "float"
    return str(value), "text"


# -- typed columns and workbooks


def _typed(path: Path, name: str, data: Buffer, form: str) -> list[Sample]:
    found = _columnar(path, name, data, form, {})
    if found is None:
        raise StorageFailed(f"{name}: it has no columns", help="name a file with some records")
    return [found]


def _workbook(path: Path, name: str, data: Buffer, form: str) -> list[Sample]:
    """A sample of each visible sheet with a table. A workbook with one of them needs no option. The first sample has what is said of the other sheets."""
    formats.reader(form, {}, ReadPlan(()))  # raises where the library is not installed
    titles = workbooks.visible_sheets(data, name)
    if len(titles) < 2:
        return _typed(path, name, data, form)
    sheets = {title: _columnar(path, name, data, form, {"sheet": title}) for title in titles}
    filled = {title: sample for title, sample in sheets.items() if sample is not None and sample.records}
    found = [sample for sample in filled.values() if not _is_prose(sample)] or list(filled.values())
    if not found:
        return _typed(path, name, data, form)
    if len(found) == 1:
        found = [replace(one, options={} if one.kind == titles[0] else one.options) for one in found]
    else:
        found = [replace(one, alone=False) for one in found]
    kept = {one.kind for one in found}
    left = [Doubt("", _why_left_out(title, filled=title in filled)) for title in titles if title not in kept]
    return [replace(found[0], doubts=[*found[0].doubts, *left]), *found[1:]]


def _why_left_out(title: str, *, filled: bool) -> str:
    return f"sheet '{title}' is left out: it has {'sentences in one column, no table' if filled else 'no records'}"


def _is_prose(sample: Sample) -> bool:
    """Whether a sheet has notes and no table: one column of texts, and most of them are sentences."""
    if len(sample.cells) != 1:
        return False
    (header, cells), = sample.cells.items()
    texts = [header, *cells.texts.drop_nulls().to_list()]
    return cells.kinds <= {"text"} and sum(len(text.split()) >= _SENTENCE for text in texts) * 2 > len(texts)


def _columnar(path: Path, name: str, data: Buffer, form: str, options: Mapping[str, Any]) -> Sample | None:
    """A sample of a file with columns; None where it has none."""
    reader = formats.reader(form, options, ReadPlan(()))
    declared = dict(_declared(reader, data, name))
    names = list(declared) or [column.name for column in reader.undeclared(data, name)]
    if not names:
        return None
    doubts = []
    if form == "xlsx" and (unnamed := _odd_header(names)):
        lower = _header_row(data, name, options)
        doubts.append(f"{unnamed}: options.header_row names the row that has them" if lower is None else f"row {lower[0]} has the names of the columns (options.header_row), as {unnamed}")
        if lower is not None:
            options = {**options, "header_row": lower[0]}
            reader, names = formats.reader(form, options, ReadPlan(())), lower[1]
    most = min(MOST_RECORDS, max(MOST_CELLS // len(names), 1))
    table, bad = _read(_with_columns(reader, names, "any"), data, name, most + 1)
    count = min(table.num_rows, most)
    cells = {one: _cells(table[one].slice(0, most), declared.get(one), count) for one in names}
    if form == "xlsx":
        cells = {one: _with_days(found) for one, found in cells.items()}
        doubts += _total(cells) if table.num_rows <= most else ()
    remarks = [Doubt("", text) for text in doubts]
    return Sample(path, form, cells, count, options, malformed=bad, whole=table.num_rows <= most, kind=str(options.get("sheet", "")), doubts=remarks)


def _cells(column: pa.ChunkedArray, declared: str | None, count: int) -> Cells:
    """The cells of a column of JSON texts."""
    found = [text_of(None if text is None else json.loads(text, parse_float=Decimal)) for text in column.to_pylist()]
    return Cells(_series([text for text, _ in found]), frozenset(kind for _, kind in found if kind), declared, count)


def _header_row(data: Buffer, name: str, options: Mapping[str, Any]) -> tuple[int, list[str]] | None:
    """The first lower row of a sheet that has names for most of its columns, from 1, and these names."""
    for row in _HEADER_ROWS:
        reader = formats.reader("xlsx", {**options, "header_row": row}, ReadPlan(()))
        try:
            names = [column.name for column in reader.undeclared(data, name)]
        except InputError:  # the sheet ends here
            return None
        if len(names) > 1 and not _odd_header(names) and sum(map(is_value, names)) * 2 < len(names):
            return row, names
    return None


def _total(cells: Mapping[str, Cells]) -> Iterator[str]:
    """A doubt about a last record that sums up the others."""
    last = [found.texts[-1] or "" for found in cells.values() if len(found.texts)]
    word = next((text.strip().rstrip(":") for text in last if text.strip()), "")
    if len(last) == len(cells) > 1 and _TOTAL.fullmatch(word):
        yield f"the last record, '{word}', looks like a sum of the others: take it out of the file, or filter it in a transform, or it counts among them"


def _with_days(cells: Cells) -> Cells:
    """The cells of a column of a sheet, which has no dates: nearly all are dates where all of its times are midnight."""
    texts = cells.texts.drop_nulls()
    others = texts.filter(~texts.str.contains(r"^\d{4}-\d\d-\d\dT00:00:00$"))
    if len(others) == len(texts) or not are_tolerated(len(others), len(texts)) or others.str.contains(r"^\d{4}-\d\d-\d\dT").any() or is_no_value(others).any():
        return cells
    return replace(cells, declared=None if len(others) else "date", texts=cells.texts.str.strip_suffix("T00:00:00") if len(others) else cells.texts)


def _odd_header(names: Sequence[str]) -> str:
    """A doubt about a header in which most columns have no name; empty for others."""
    unnamed = [one for one in names if one.startswith("col_")]
    return f"{len(unnamed)} of {len(names)} columns have no name in row 1" if len(unnamed) * 2 > len(names) else ""


def _declared(reader: Reader, data: Buffer, name: str) -> Iterator[tuple[str, str | None]]:
    """The columns of a file with a schema, and their types; members of structs have dotted names."""
    files = getattr(reader, "files", None)
    if files is not None:
        yield from _fields(files.schema_of(data, name), "")


def _fields(fields: Iterable[pa.Field], prefix: str, depth: int = 1) -> Iterator[tuple[str, str | None]]:
    for one in fields:
        if pa.types.is_struct(one.type) and one.type.num_fields and depth < _DEEPEST and "." not in one.name:
            yield from _fields(list(one.type), f"{prefix}{one.name}.", depth + 1)
        else:
            yield f"{prefix}{one.name}", _cxl_type(one.type)


def _cxl_type(kind: pa.DataType) -> str | None:
    """The CXL type of an Arrow type; None where the values decide."""
    if pa.types.is_dictionary(kind):
        return _cxl_type(kind.value_type)
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})" if 0 <= kind.scale <= kind.precision <= 38 else "float"
    tests: Sequence[tuple[Callable[[pa.DataType], bool], str]] = (
        (pa.types.is_boolean, "bool"), (pa.types.is_integer, "int"), (pa.types.is_floating, "float"), (pa.types.is_date, "date"), (pa.types.is_timestamp, "date_time"),
        (pa.types.is_list, "array"), (pa.types.is_large_list, "array"), (pa.types.is_map, "any"), (pa.types.is_struct, "any"),
    )  # fmt: skip
    return next((name for test, name in tests if test(kind)), None)


_SAMPLERS: Mapping[str, Callable[[Path, str, Buffer, str], list[Sample]]] = {"csv": _csv, "json": _document, "xml": _document, "xlsx": _workbook}


def is_data(path: Path) -> bool:
    """Return whether a file has the ending of a format, compressed or not; texts (.txt) and pipelines are left out."""
    suffixes = [one.lower() for one in path.suffixes]
    suffix = suffixes[-2] if is_compressed(path) and len(suffixes) > 1 else suffixes[-1] if suffixes else ""
    return suffix in _SUFFIXES and suffix != ".txt"
