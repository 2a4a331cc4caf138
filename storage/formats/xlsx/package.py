"""Workbooks that are archives of XML: checked before anything reads them, and what the library that reads cells does not tell.

That is where tables and merged cells are, which formulas have no value, and how far apart cells are.
"""

from __future__ import annotations

import posixpath
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from io import BytesIO
from xml.parsers import expat

from storage.files.errors import Buffer, InputError
from storage.files.local import check_expansion
from storage.formats.xlsx.extent import MOST_CELLS, Extent, of_binary, of_open_document, of_xml
from storage.formats.xlsx.places import Area, column_number

OLE = bytes.fromhex("d0cf11e0a1b11ae1")
_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
_BLOCK = 1 << 20
_EMPTY_FORMULA = re.compile(
    rb"""<(?:\w+:)?c\s(?P<at>[^>]*)>\s*<(?:\w+:)?f\b(?:[^>]*/>|[^>]*>[^<]*</(?:\w+:)?f>)\s*(?:<(?:\w+:)?v\s*/>|<(?:\w+:)?v\s*>\s*</(?:\w+:)?v>)?\s*</(?:\w+:)?c>"""
)
_BINARY_SHEET = re.compile(r"xl/(?:work|chart|dialog|macro)sheets/[^/]+\.bin")
_PLACE = re.compile(rb"""\br=["']([A-Za-z]{1,3})([0-9]{1,7})["']""")
_TEXT = re.compile(rb"""\bt=["']str["']""")
_MERGED = re.compile(rb"""<(?:\w+:)?mergeCell\s[^>]*?ref=["']([A-Za-z0-9:$]+)["']""")


def damaged(name: str, reason: str) -> InputError:
    """The error (E621) of a file that cannot be read as a workbook."""
    return InputError(name, f"E621: cannot be read as a workbook: {reason}")


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a workbook: its name, its sheet and its cells."""

    name: str
    sheet: str
    area: Area


@dataclass(frozen=True, slots=True)
class Package:
    """The parts of a workbook that is an archive, by their paths; none of another one."""

    name: str
    parts: Mapping[str, bytes]

    @classmethod
    def of(cls, data: Buffer, name: str) -> Package:
        """Check the file and unpack what describes sheets. Raises InputError (E621; E236 where it unpacks to too much)."""
        head = bytes(data[:8])
        if head == OLE:
            if data.find(_ENCRYPTED) >= 0:
                raise InputError(name, "E621: the workbook is encrypted: save it without a password")
            return cls(name, {})
        if not head.startswith(b"PK"):
            raise damaged(name, "it is neither an archive nor of the older form")
        return cls(name, dict(_unpacked(bytes(data), name)))

    @property
    def has_sheets(self) -> bool:
        """Whether its sheets are XML that this class reads: `.xlsx` and `.xlsm`."""
        return "xl/workbook.xml" in self.parts

    @property
    def has_formulas(self) -> bool:
        """Whether a sheet may have a formula. True also where another element begins with the same letter."""
        return any(sign in text for path, text in self.parts.items() if "sheet" in path for sign in (b"<f", b":f"))

    def sheet(self, title: str) -> bytes:
        """The XML of a sheet; empty where it is not known."""
        return self.parts.get(self._sheets().get(title, ""), b"")

    def tables(self) -> Iterator[Table]:
        """The tables of all sheets. Raises InputError."""
        for title, path in self._sheets().items():
            for kind, target in self._relations(path).values():
                if kind.endswith("/table") and target in self.parts:
                    for tag, given in _elements(self.parts[target], self.name):
                        area = Area.parse(given.get("ref", "")) if tag == "table" else None
                        if area is not None:
                            yield Table(given.get("displayName") or given.get("name", ""), title, area)

    def check_size(self) -> None:
        """Raise InputError (E621) where the cells of a sheet are too far apart."""
        try:
            wrong = next((path for path, text in self.parts.items() for extent in _extents(path, text) if extent.is_too_large), None)
        except (expat.ExpatError, ValueError) as reason:
            raise damaged(self.name, str(reason)) from None
        if wrong is not None:
            title = next((title for title, path in self._sheets().items() if path == wrong), None)
            which = "a sheet" if title is None else f"sheet '{title}'"
            raise damaged(self.name, f"the cells of {which} are too far apart, a rectangle of more than {MOST_CELLS:,}: remove what stands far away")

    @property
    def hidden(self) -> frozenset[str]:
        """The names of the hidden sheets."""
        text = self.parts.get("xl/workbook.xml", b"")
        return frozenset(given.get("name", "") for tag, given in _elements(text, self.name) if tag == "sheet" and given.get("state", "visible") != "visible")

    def merged(self, title: str) -> Iterator[Area]:
        """The merged cells of a sheet."""
        for found in _MERGED.finditer(self.sheet(title)):
            area = Area.parse(found[1].decode())
            if area is not None:
                yield area

    def formulas_without_value(self, title: str) -> Iterator[tuple[int, int]]:
        """The places, row and column from 0, of formulas that nobody has computed."""
        for found in _EMPTY_FORMULA.finditer(self.sheet(title)):
            at = _PLACE.search(found["at"])
            if at is not None and not _TEXT.search(found["at"]):
                yield int(at[2]) - 1, column_number(at[1].decode())

    def _sheets(self) -> dict[str, str]:
        """The paths of sheets by their names."""
        if not self.has_sheets:
            return {}
        found, relations = {}, self._relations("xl/workbook.xml")
        for tag, given in _elements(self.parts["xl/workbook.xml"], self.name):
            relation = next((value for key, value in given.items() if key.rpartition(":")[2] == "id" and ":" in key), "")
            if tag == "sheet" and relation in relations:
                found[given.get("name", "")] = relations[relation][1]
        return found

    def _relations(self, path: str) -> dict[str, tuple[str, str]]:
        """The relations of a part: kind and path by id."""
        folder, _, file = path.rpartition("/")
        text = self.parts.get(f"{folder}/_rels/{file}.rels", b"")
        given = [attributes for tag, attributes in _elements(text, self.name) if tag == "Relationship"]
        return {one.get("Id", ""): (one.get("Type", ""), posixpath.normpath(posixpath.join("/" + folder, one.get("Target", ""))).lstrip("/")) for one in given}


def _unpacked(data: bytes, name: str) -> Iterator[tuple[str, bytes]]:
    """The parts that describe sheets. All others are unpacked too, to see how large they are and that they are whole."""
    size = 0
    try:
        with zipfile.ZipFile(BytesIO(data)) as archive:
            for member in archive.infolist():
                if member.flag_bits & 1:
                    raise InputError(name, "E621: the workbook is encrypted: save it without a password")
                wanted, kept = _describes_sheets(member.filename), []
                for block in _blocks(data, member):
                    size += len(block)
                    check_expansion(name, len(data), size)
                    if wanted:
                        kept.append(block)
                if wanted:
                    yield member.filename, b"".join(kept)
    except (zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, ValueError, NotImplementedError) as wrong:
        raise damaged(name, str(wrong) or type(wrong).__name__) from None


def _describes_sheets(path: str) -> bool:
    """Whether a part says where sheets, cells and tables are."""
    return path == "content.xml" or (path.startswith("xl/") and path.endswith((".xml", ".rels"))) or bool(_BINARY_SHEET.match(path))


def _extents(path: str, text: bytes) -> list[Extent]:
    """The extents of the sheets in a part. Raises ExpatError and ValueError."""
    if path == "content.xml":
        return of_open_document(text)
    if _BINARY_SHEET.match(path):
        return [of_binary(text)]
    return [of_xml(text)] if "sheet" in path else []


def _blocks(data: bytes, member: zipfile.ZipInfo) -> Iterator[bytes]:
    """The unpacked content of a member, whatever the archive says of its size. Raises BadZipFile where it differs from that."""
    label, extra = struct.unpack_from("<HH", data, member.header_offset + 26)
    start = member.header_offset + 30 + label + extra
    packed = memoryview(data)[start : start + member.compress_size]
    size, total = 0, zlib.crc32(b"")
    for block in _inflated(packed) if member.compress_type == zipfile.ZIP_DEFLATED else _stored(packed, member):
        size, total = size + len(block), zlib.crc32(block, total)
        yield block
    if size != member.file_size or total != member.CRC:
        raise zipfile.BadZipFile(f"the part {member.filename} is not whole")


def _stored(packed: memoryview, member: zipfile.ZipInfo) -> Iterator[bytes]:
    if member.compress_type != zipfile.ZIP_STORED:
        raise zipfile.BadZipFile(f"the part {member.filename} is packed by a method that workbooks do not have")
    for at in range(0, len(packed), _BLOCK):
        yield bytes(packed[at : at + _BLOCK])


def _inflated(packed: memoryview) -> Iterator[bytes]:
    inflate, rest = zlib.decompressobj(-zlib.MAX_WBITS), bytes(packed)
    while not inflate.eof:
        block = inflate.decompress(rest, _BLOCK)
        rest = inflate.unconsumed_tail
        if not block and not rest and not inflate.eof:
            raise zipfile.BadZipFile("a part ends early")
        yield block


def _elements(text: bytes, name: str) -> Iterator[tuple[str, Mapping[str, str]]]:
    """The elements of a small part with their attributes. Raises InputError (E621), also for declarations."""
    found: list[tuple[str, Mapping[str, str]]] = []
    parser = expat.ParserCreate()
    parser.StartElementHandler = lambda tag, attributes: found.append((tag.rpartition(":")[2], attributes))
    parser.StartDoctypeDeclHandler = lambda *_: _refuse(name)
    try:
        if text:
            parser.Parse(text, True)
    except expat.ExpatError as wrong:
        raise damaged(name, str(wrong)) from None
    yield from found


def _refuse(name: str) -> None:
    raise damaged(name, "its XML has a document type")
