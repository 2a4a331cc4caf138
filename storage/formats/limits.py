"""Limits of what a file may hold, and the errors of files beyond them. Each error states the limit and a way out.

A reader takes at most 512 MB of memory, or 20 times its largest record, however small the file. Read a limit from the module when you need it
(`limits.COLUMNS`) and do not import its name: tests lower limits.
"""

from collections.abc import Iterable
from math import prod
from typing import Final

from storage.files.errors import InputError

RECORD_BYTES = 64 << 20
"""Bytes of a record in its file: a line, an element of an array, an XML element."""
MARKUP_BYTES = 8 << 20
"""One XML tag with its attributes, one comment, one instruction. The parser holds several copies of it in memory."""
COLUMNS = 10_000
"""Columns of a file, declared and undeclared."""
NAME_BYTES = 64 << 10
"""Bytes of a column's name, with the names of the elements around it."""
NAMES = 20_000
"""Distinct names of elements and attributes in an XML document, read or not."""
NAMES_BYTES = 16 << 20
"""Bytes of all these names together, each with the names of the elements around it."""
ATTRIBUTES = 10_000
"""Attributes of an XML element."""
DEPTH = 1000
"""Levels of nested arrays, objects or elements."""
SEGMENT_BYTES = 64 << 10
"""Bytes of a segment of an EDIFACT or X12 file."""
EXPLODED = 100_000
"""Records that several exploded arrays may make of one record: each element of one array with each element of the others."""
CELLS = 4_000_000
"""Cells, filled or not, that are in memory at a time."""
GATHERED = 256
"""Undeclared fields that are columns while records are read. With more, each record has one JSON text of them."""

_SPLIT: Final = "split the file, or keep such values as one array or map"


def too_many_columns(file: str, count: int, *, line: int | None = None, way_out: str = _SPLIT) -> InputError:
    """The error (E228) of a file with at least `count` columns."""
    return InputError(file, f"E228: {count:,} columns or more, where a file may have {COLUMNS:,}: {way_out}", line=line)


def name_too_long(file: str, name: str, *, line: int | None = None) -> InputError:
    """The error (E229) of a column's name."""
    return InputError(file, f"E229: a name is longer than {NAME_BYTES >> 10} KB, '{name[:40]}...': shorten it in the file", line=line)


def too_many_names(file: str, *, line: int | None = None) -> InputError:
    """The error (E228) of an XML document."""
    message = f"E228: more than {NAMES:,} different names of elements and attributes, or {NAMES_BYTES >> 20} MB of them: write keys as text, not as names"
    return InputError(file, message, line=line)


def too_many_attributes(file: str, count: int, *, line: int | None = None) -> InputError:
    """The error (E233) of an XML element."""
    return InputError(file, f"E233: an element has {count:,} attributes, where it may have {ATTRIBUTES:,}: write them as elements of an array", line=line)


def declares(file: str, what: str, *, line: int | None = None) -> InputError:
    """The error (E234) of a document type that declares entities or attributes."""
    return InputError(file, f"E234: the document type declares {what}: remove the declarations, or have the sender write the values out", line=line)


def too_deep(file: str, *, line: int | None = None) -> InputError:
    """The error of a record, or of the document around its records."""
    return InputError(file, f"nested deeper than {DEPTH} levels", line=line)


def record_too_long(file: str, *, line: int | None = None, offset: int | None = None, what: str = "a record") -> InputError:
    """The error (E235) of a record."""
    message = f"E235: {what} is longer than {RECORD_BYTES >> 20} MB: split it, or look for a quote or bracket that is not closed"
    return InputError(file, message, line=line, offset=offset)


def markup_too_long(file: str, *, line: int | None = None) -> InputError:
    """The error (E235) of a piece of XML that no parser can read in parts."""
    return InputError(file, f"E235: a tag or comment is longer than {MARKUP_BYTES >> 20} MB: write long values as text of an element", line=line)


def segment_too_long(file: str, number: int) -> InputError:
    """The error (E235) of a segment of an interchange."""
    message = f"E235: segment {number} is longer than {SEGMENT_BYTES >> 10} KB: the segment terminator may be another than the header says"
    return InputError(file, message)


def explodes_too_much(sizes: Iterable[int]) -> str | None:
    """The message (E237) for a record whose exploded arrays of these sizes make too many records; None where they do not, or for one array."""
    several = [size for size in sizes if size > 1]
    if len(several) < 2 or prod(several) <= EXPLODED:
        return None
    message = " times ".join(f"{size:,}" for size in several)
    return f"E237: array_paths make {message} records of one, where several arrays may make {EXPLODED:,}: explode one of them, and join or declare the others"


def check_columns(names: list[str] | tuple[str, ...], file: str, *, declared: int = 0, line: int | None = None) -> None:
    """Raise InputError where a file has too many columns, `declared` ones included, or a name is too long."""
    if declared + len(names) > COLUMNS and names:
        raise too_many_columns(file, declared + len(names), line=line)
    if wrong := next((name for name in names if len(name) > NAME_BYTES), None):
        raise name_too_long(file, wrong, line=line)


def is_gathered(undeclared: int) -> bool:
    """Whether this number of undeclared fields is one JSON text a record."""
    return undeclared > GATHERED


def rows_at_once(columns: int, most: int) -> int:
    """The number of records of `columns` columns to hold in memory: `most`, or fewer where they would have more than `CELLS` cells."""
    return max(1, min(most, CELLS // max(columns, 1)))
