"""What a file may hold (docs/guide.md, "Limits"), and the errors of what goes beyond: each has the limit and a way out.

A small file must not become a large memory: a reader takes at most 512 MB, or 20 times its largest record. Read a limit when it is needed
(`limits.COLUMNS`), not by name at import: tests lower them.
"""

from collections.abc import Iterable
from math import prod
from typing import Final

from storage.formats.base import InputError

RECORD_BYTES = 64 << 20
"""The text of a record in its file: a line, an element of an array, an XML element."""
MARKUP_BYTES = 8 << 20
"""One XML tag with its attributes, one comment, one instruction. The parser keeps all of it in memory, several times."""
COLUMNS = 10_000
"""Columns of a file, declared and undeclared."""
NAME_BYTES = 64 << 10
"""The name of a column, with the names of the elements around it."""
NAMES = 20_000
"""Different names of elements and attributes in an XML document, read or not."""
NAMES_BYTES = 16 << 20
"""All of these names together, each with the names of the elements around it."""
ATTRIBUTES = 10_000
"""Attributes of an XML element."""
DEPTH = 1000
"""Arrays, objects or elements inside each other."""
SEGMENT_BYTES = 64 << 10
"""A segment of an EDIFACT or X12 file."""
EXPANSION, EXPANSION_FREE = 200, 64 << 20
"""How many times its size a compressed or dictionary-encoded file may unpack to, once that is more than the second number of bytes."""
EXPLODED = 100_000
"""Records that several arrays of one record make of it, as each element of one comes with each of the others."""
CELLS = 4_000_000
"""Cells, filled or not, that are held at a time."""
GATHERED = 256
"""Undeclared fields that are kept as columns while records are read; more are kept as one JSON text a record."""

_SPLIT: Final = "split the file, or keep such values as one array or map"


def too_many_columns(file: str, count: int, *, line: int | None = None, way_out: str = _SPLIT) -> InputError:
    """The error (E228) of a file with at least `count` columns."""
    return InputError(file, f"E228: {count:,} columns or more, where a file may have {COLUMNS:,}: {way_out}", line=line)


def name_too_long(file: str, name: str, *, line: int | None = None) -> InputError:
    """The error (E229) of a column's name."""
    return InputError(file, f"E229: a name is longer than {NAME_BYTES >> 10} KB, '{name[:40]}...': shorten it in the file", line=line)


def too_many_names(file: str, *, line: int | None = None) -> InputError:
    """The error (E228) of an XML document."""
    told = f"E228: more than {NAMES:,} different names of elements and attributes, or {NAMES_BYTES >> 20} MB of them: write keys as text, not as names"
    return InputError(file, told, line=line)


def too_many_attributes(file: str, count: int, *, line: int | None = None) -> InputError:
    """The error (E233) of an XML element."""
    return InputError(file, f"E233: an element has {count:,} attributes, where it may have {ATTRIBUTES:,}: write them as elements of an array", line=line)


def declares(file: str, what: str, *, line: int | None = None) -> InputError:
    """The error (E234) of a document type that declares entities or attributes."""
    return InputError(file, f"E234: the document type declares {what}: remove the declarations, or have the sender write the values out", line=line)


def too_deep(file: str, *, line: int | None = None) -> InputError:
    """The error of a record, or of a document around its records."""
    return InputError(file, f"nested deeper than {DEPTH} levels", line=line)


def record_too_long(file: str, *, line: int | None = None, offset: int | None = None, what: str = "a record") -> InputError:
    """The error (E235) of a record."""
    told = f"E235: {what} is longer than {RECORD_BYTES >> 20} MB: split it, or look for a quote or bracket that is not closed"
    return InputError(file, told, line=line, offset=offset)


def markup_too_long(file: str, *, line: int | None = None) -> InputError:
    """The error (E235) of a piece of XML that no parser can read in parts."""
    return InputError(file, f"E235: a tag or comment is longer than {MARKUP_BYTES >> 20} MB: write long values as text of an element", line=line)


def segment_too_long(file: str, number: int) -> InputError:
    """The error (E235) of a segment of an interchange."""
    told = f"E235: segment {number} is longer than {SEGMENT_BYTES >> 10} KB: the segment terminator may be another than the header says"
    return InputError(file, told)


def check_expansion(file: str, packed: int, unpacked: int) -> None:
    """Raise InputError (E236) for a file of `packed` bytes that has turned out to hold `unpacked` ones, where that is more than it may."""
    if unpacked > EXPANSION_FREE and unpacked > packed * EXPANSION:
        told = f"E236: the file unpacks to more than {EXPANSION} times its size: write it with less compression, or in several files"
        raise InputError(file, told)


def explodes_too_much(sizes: Iterable[int]) -> str | None:
    """The message (E237) on a record whose exploded arrays, which have these sizes, make too many records of it; else None, as always of one array."""
    several = [size for size in sizes if size > 1]
    if len(several) < 2 or prod(several) <= EXPLODED:
        return None
    told = " times ".join(f"{size:,}" for size in several)
    return f"E237: array_paths make {told} records of one, where several arrays may make {EXPLODED:,}: explode one of them, and join or declare the others"


def check_columns(names: list[str] | tuple[str, ...], file: str, *, declared: int = 0, line: int | None = None) -> None:
    """Raise InputError where the names of undeclared columns are too many or one is too long; `declared` columns count too."""
    if declared + len(names) > COLUMNS and names:
        raise too_many_columns(file, declared + len(names), line=line)
    if wrong := next((name for name in names if len(name) > NAME_BYTES), None):
        raise name_too_long(file, wrong, line=line)


def rows_at_once(columns: int, most: int) -> int:
    """How many records with this number of columns are held at a time: `most`, or as many as `CELLS` has room for."""
    return max(1, min(most, CELLS // max(columns, 1)))
