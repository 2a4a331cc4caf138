"""Files of corrections: YAML, CSV and workbooks beside the pipeline, read as written, with the place of everything in them."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeGuard

from pydantic import ValidationError

from cxl.diagnostics.diagnostics import Diagnostic as CxlDiagnostic
from cxl.diagnostics.source import Origin, Position, Span, TextOrigin
from errata.core.diagnostics import Diagnostic, from_cxl
from errata.project.findings import Findings
from errata.project.validation import model_problems
from errata.yaml import Document, read_yaml
from errata.yaml.nodes import Node, Scalar
from operators.core.settings import NodeSpec, PipelineSettings
from operators.corrections.entries import CorrectionEntry, EntryPath, WrittenCorrection
from storage.files.discovery import FileQuery, PathRefused, discover
from storage.files.errors import InputError

if TYPE_CHECKING:
    from storage.formats.xlsx import read as workbooks
else:
    from changelog.lazy_imports import Lazy

    workbooks = Lazy("storage.formats.xlsx.read")  # every command that plans loads this module, and few have workbooks

TEXT, SHEETS, YAML = (".csv",), (".xlsx", ".xlsm", ".ods"), (".yaml", ".yml")
_WORDS: Final = ("column", "from", "to", "retract", "reason", "author", "ticket", "status")
"""Columns of a table of corrections. All other columns belong to the key; `key.NAME` is a name for them too."""
_TRUE: Final = ("true", "yes", "1")
MOST_BYTES: Final = 64 << 20
_LINE_END: Final = re.compile(r"\r\n|\r|\n")


def read_corrections(specs: Iterable[NodeSpec], settings: PipelineSettings, findings: Findings) -> dict[str, Sequence[WrittenCorrection]]:
    """The corrections in the files of each corrections node, and of each source that has some. Files that cannot be read, and entries that are none, are reported."""
    return {one.spec.name: list(one.entries()) for spec in specs if (one := _files_of(spec, settings, findings)) is not None}


def _files_of(spec: NodeSpec, settings: PipelineSettings, findings: Findings) -> _Files | None:
    """The files of a node; None where it has none."""
    if spec.config is None or spec.kind not in ("corrections", "source"):
        return None
    if spec.kind == "corrections":
        return _Files(spec, settings, findings, spec.config.path, ("config", "path"))
    own = spec.config.corrections
    return None if own is None else _Files(spec, settings, findings, own.path, ("config", "corrections", "path"))


@dataclass(frozen=True, slots=True)
class _Files:
    """The files of one node."""

    spec: NodeSpec
    settings: PipelineSettings
    findings: Findings
    pattern: str
    place: tuple[str | int, ...]

    def entries(self) -> Iterator[WrittenCorrection]:
        """All corrections, by file and in the order of each."""
        for path, name in self._found():
            if path.suffix.lower() in YAML:
                yield from self._of_yaml(path, name)
            elif path.suffix.lower() in (*TEXT, *SHEETS):
                yield from self._of_table(path, name)
            else:
                self._refuse(f"'{name}' is no file of corrections", "its name ends in .yaml, .csv or .xlsx")

    def _found(self) -> list[tuple[Path, str]]:
        """The files, each with its name below the pipeline's folder."""
        text, pattern = self.pattern, any(sign in self.pattern for sign in "*?[")
        query = FileQuery(glob=text, on_no_match="skip") if pattern else FileQuery(path=text)
        try:
            found = discover(query, self.settings.folder, allow_absolute=self.settings.allow_absolute_paths)
        except (PathRefused, InputError) as error:
            self._refuse(str(error), "make the file, empty if there is nothing to correct, or name a pattern such as corrections/*.yaml")
            return []
        return [(one.path, one.name) for one in found if isinstance(one.path, Path) and not one.path.name.startswith(".")]

    def _refuse(self, message: str, help_text: str | None = None) -> None:
        self.findings.node(self.spec.document, self.spec.path, self.spec.name).report("E480", message, self.place, help=help_text)

    # -- YAML

    def _of_yaml(self, path: Path, name: str) -> Iterator[WrittenCorrection]:
        document = read_yaml(path, env={})
        self.findings.diagnostics.extend(document.diagnostics)
        if any(one.severity == "error" for one in document.diagnostics) or document.value is None:
            return
        if not isinstance(document.value, list):
            self.findings.diagnostics.append(document.error((), "E480", "a file of corrections is a list", help="begin each correction with '- key:'", node=self.spec.name))
            return
        origin = TextOrigin(document.source.text, document.file)
        for at, value in enumerate(document.value):
            try:
                entry = CorrectionEntry.model_validate(value)
            except ValidationError as error:
                self.findings.diagnostics.extend(model_problems(error, document, (at,), CorrectionEntry, node=self.spec.name))
                continue
            parts = dict(_parts(document, at, entry))
            spans = {path: Span(node.start, max(node.end, node.start + 1)) for path, node in parts.items()}
            texts = {path: node.parsed for path, node in parts.items() if _is_unquoted(node)}
            yield WrittenCorrection(entry, name, origin.locate(spans[()].start).line, origin, spans, texts=texts)

    # -- tables

    def _of_table(self, path: Path, name: str) -> Iterator[WrittenCorrection]:
        try:
            rows = list(table_rows(path))
        except UnreadableTable as error:
            self._refuse(f"'{name}' cannot be read: {error}", error.help)
            return
        for line, cells, origin, span in rows:
            written = self._of_row(cells, name, line, origin, span)
            if isinstance(written, WrittenCorrection):
                yield written
            else:
                self.findings.diagnostics.append(written)

    def _of_row(self, cells: Mapping[str, Any], name: str, line: int, origin: Origin, span: Span) -> WrittenCorrection | Diagnostic:
        if cells.get("column") and "to" not in cells:
            return from_cxl(CxlDiagnostic("E480", "the table has no column 'to'", span, help="an empty cell of it is null", origin=origin), node=self.spec.name)
        key = {heading.removeprefix("key."): value for heading, value in cells.items() if heading not in _WORDS}
        value: dict[str, Any] = {word: cells[word] for word in ("reason", "author", "ticket", "status") if cells.get(word) not in (None, "")}
        value |= {"key": key, "retract": str(cells.get("retract") or "").strip().lower() in _TRUE}
        if cells.get("column"):
            value["set"] = {cells["column"]: {"from": cells.get("from"), "to": cells.get("to")}}
        try:
            entry = CorrectionEntry.model_validate(value)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            message = f"'{first['loc'][-1] if first['loc'] else 'the row'}': {first['msg'][:1].lower()}{first['msg'][1:]}"
            return from_cxl(CxlDiagnostic("E480", message, span, help="a row has the columns of the key, and column, from, to, reason", origin=origin), node=self.spec.name)
        return WrittenCorrection(entry, name, line, origin, {(): span}, in_table=True)


def _parts(document: Document, at: int, entry: CorrectionEntry) -> Iterator[tuple[EntryPath, Node]]:
    """The parts of an entry in its file: the whole under `()`, then key and cells."""
    keys = [("key", name) for name in entry.key] if isinstance(entry.key, Mapping) else []
    cells = [("set", name) for name in entry.set]
    for path in ((), ("key",), *keys, *cells, *((*cell, side) for cell in cells for side in ("from", "to"))):
        node = document.node_at((at, *path))
        if node is not None:
            yield path, node


def _is_unquoted(node: Node) -> TypeGuard[Scalar]:
    """Whether a part is a value whose text says more than what YAML makes of it."""
    return isinstance(node, Scalar) and not node.style and not node.substitutions and node.value is not None


class UnreadableTable(Exception):
    """A table that cannot be read.

    Args:
        help: The way out.
    """

    def __init__(self, message: str, help_text: str | None = None) -> None:
        super().__init__(message)
        self.help = help_text


_Row = tuple[int, Mapping[str, Any], Origin, Span]


def table_rows(path: Path) -> Iterator[_Row]:
    """The rows of a CSV file, or of a workbook's first sheet: line, cells by column (null where they are empty), and their place. Raises UnreadableTable."""
    return _sheet(path) if path.suffix.lower() in SHEETS else _cells(path)


def _content(path: Path) -> bytes:
    """The bytes of a table."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise UnreadableTable(f"it is larger than {MOST_BYTES >> 20} MB")
        return path.read_bytes()
    except OSError as error:
        raise UnreadableTable(error.strerror or str(error)) from None


def _cells(path: Path) -> Iterator[_Row]:
    """The rows of a CSV file; empty cells are null."""
    try:
        text = _content(path).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UnreadableTable("it is no UTF-8", "save it as CSV in UTF-8") from None
    origin = TextOrigin(text, str(path))
    starts = [0, *(found.end() for found in _LINE_END.finditer(text))]
    csv.field_size_limit(max(csv.field_size_limit(), len(text)))
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header: list[str] | None = None
        before = 0
        for row in reader:
            line, before = before + 1, reader.line_num
            if not any(row):
                continue
            if header is None:
                header = _named([name.strip() for name in row])
                continue
            if len(row) != len(header):
                raise UnreadableTable(f"line {line} has {len(row)} cells, the header {len(header)}")
            span = Span(starts[line - 1], starts[line - 1] + len(origin.line_text(line)))
            yield line, dict(zip(header, [cell or None for cell in row], strict=False)), origin, span
    except csv.Error as error:
        raise UnreadableTable(f"line {reader.line_num}: {error}") from None


def _named(header: list[str]) -> list[str]:
    """The names of a header. Raises UnreadableTable where one stands twice."""
    twice = next((name for at, name in enumerate(header) if name and name in header[:at]), None)
    if twice is not None:
        raise UnreadableTable(f"the column '{twice}' is there twice")
    return header


@dataclass(frozen=True, slots=True)
class _SheetRow:
    """The place of a row of a sheet. A workbook has no text to show."""

    file: str
    row: int

    def locate(self, offset: int) -> Position:
        """The row."""
        return Position(self.file, self.row, 1)

    def line_text(self, line: int) -> str:
        """Nothing."""
        return ""


def _sheet(path: Path) -> Iterator[_Row]:
    """The rows of a workbook's first sheet."""
    if find_spec("fastexcel") is None:
        raise UnreadableTable("workbooks need the library fastexcel, which is not installed", "pip install 'errata[excel]'")
    try:
        _, book = workbooks.opened(_content(path), path.name)
        table = book.load_sheet(0, header_row=None).to_arrow().to_pylist()
    except InputError as error:
        raise UnreadableTable(str(error), "save it as .xlsx, without a password") from None
    except ValueError as error:
        raise UnreadableTable(" ".join(str(error).split())[:200], "save it as .xlsx, without a password") from None
    rows = [(at, list(row.values())) for at, row in enumerate(table, 1)]
    if not rows:
        return
    header = _named(["" if name is None else str(name).strip() for name in rows[0][1]])
    for at, values in rows[1:]:
        if any(value not in (None, "") for value in values):
            yield at, {name: _plain(value) for name, value in zip(header, values, strict=True) if name}, _SheetRow(str(path), at), Span(0, 1)


def _plain(value: Any) -> Any:
    """The value of a cell. Sheets have floats for whole numbers."""
    if value == "":
        return None
    return int(value) if isinstance(value, float) and value.is_integer() else value
