"""The form of a delimited text file, guessed from its first bytes: delimiter, quote, header."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from changelog.lazy_imports import np
from errata.core.failures import StorageFailed
from storage.formats.csv.options import CsvReadOptions
from storage.formats.csv.scan import Dialect, as_bytes, records

_DELIMITERS = (",", ";", "\t", "|", ":", "~", "^")
_ENOUGH = 0.7
_LINES = 2_000
_VALUE = re.compile(r"[-+(]?[€$£¥]?\s?[\d.,'\s\u00a0]*\d[\d.,'\s\u00a0]*\)?\s?[%€$£¥]?|\d{1,4}[-./]\d{1,2}[-./]\d{1,4}([T ].*)?|true|false|yes|no", re.IGNORECASE)
"""The pattern of a value, in contrast to the name of a column."""


@dataclass(frozen=True, slots=True)
class Form:
    """The form of a file.

    Args:
        delimiter, quote, header: Its options.
        width: The number of cells of most records.
        doubts: What was unsure.
    """

    delimiter: str = ","
    quote: str = '"'
    header: bool = True
    width: int = 1
    doubts: Sequence[str] = ()

    def options(self, encoding: str) -> dict[str, object]:
        """The options of the source that are not the defaults."""
        chosen = {"delimiter": self.delimiter, "quote_char": self.quote, "has_header": self.header, "encoding": encoding}
        defaults = {"delimiter": ",", "quote_char": '"', "has_header": True, "encoding": "utf-8"}
        return {name: value for name, value in chosen.items() if value != defaults[name]}


class _Counted(NamedTuple):
    """How records look under a delimiter: the cells of most records, the share of these records, whether the first record is one of them."""

    width: int
    share: float
    first: bool

    @property
    def rank(self) -> tuple[bool, bool, float, int]:
        """The rank of a delimiter: the greatest one is the best."""
        return self.width > 1 and self.share >= _ENOUGH, self.first, round(self.share, 2), self.width


def form_of(text: str, name: str, *, suffix: str = "") -> Form:
    """Return the form of a file.

    Args:
        text: The text of its first records, without byte order mark.
        name: What messages call the file.
        suffix: The end of the file's name, such as `.tsv`.

    Raises:
        StorageFailed: Lines before the header keep the file from being read.
    """
    quote = _quote(text)
    data = text[: 1 << 20].encode("utf-8", "replace")
    counted = {one: _count(data, one, quote) for one in _DELIMITERS}
    best = max(_DELIMITERS, key=lambda one: (counted[one].rank, one == "\t" and suffix in (".tsv", ".tab"), -_DELIMITERS.index(one)))
    found = counted[best]
    if not found.rank[0]:
        best, found = ("\t" if suffix in (".tsv", ".tab") else ","), counted[","]
        return Form(best, quote, *_header(_rows(data, best, quote), found.width))
    rows = _rows(data, best, quote)
    _check_beginning(data, Dialect(ord(best), ord(quote)), found, name)
    near = [one for one in _DELIMITERS if one != best and counted[one].rank[:3] == found.rank[:3]]
    doubts = [f"'{_shown(one)}' would fit as the delimiter too ({counted[one].width} cells a record): '{_shown(best)}' was taken, with {found.width}" for one in near]
    header, width, more = _header(rows, found.width)
    return Form(best, quote, header, width, (*doubts, *more))


def _shown(delimiter: str) -> str:
    return "\\t" if delimiter == "\t" else delimiter


def _quote(text: str) -> str:
    """The character around cells: an apostrophe only where it is at the ends of cells more often than the double quote."""
    ends = r"(?m)(?:^|[,;\t|])%s[^\n]*?%s(?=[,;\t|\r]|$)"
    single, double = (len(re.findall(ends % (one, one), text[: 1 << 16])) for one in ("'", '"'))
    return "'" if single > 2 * double and single > 2 else '"'


def _count(data: bytes, delimiter: str, quote: str) -> _Counted:
    cells = records(as_bytes(data), Dialect(ord(delimiter), ord(quote))).cells[:_LINES] if data else np.array([], np.int64)
    if not len(cells):
        return _Counted(1, 0.0, first=True)
    counts = Counter(cells.tolist())
    width = max(counts, key=lambda one: (counts[one], one))
    return _Counted(int(width), counts[width] / len(cells), first=int(cells[0]) == width)


def _rows(data: bytes, delimiter: str, quote: str) -> list[list[str]]:
    """The cells of the first records."""
    found = records(as_bytes(data), Dialect(ord(delimiter), ord(quote))) if data else None
    if found is None:
        return []
    pairs = zip(found.starts[:100].tolist(), found.ends[:100].tolist(), strict=True)
    return [split_record(data[start:end].decode("utf-8", "replace"), delimiter, quote) for start, end in pairs]


def split_record(text: str, delimiter: str, quote: str) -> list[str]:
    """Return the cells of one record."""
    from csv import field_size_limit, reader

    field_size_limit(max(field_size_limit(), len(text)))
    return next(iter(reader([text], delimiter=delimiter, quotechar=quote)), [])


def _check_beginning(data: bytes, dialect: Dialect, found: _Counted, name: str) -> None:
    """Raise StorageFailed where the first lines are no header: a title, or a comment."""
    each = records(as_bytes(data), dialect)
    place = next((place for place, cells in enumerate(each.cells[:100].tolist()) if cells == found.width), 0)
    if place and found.share >= _ENOUGH:
        before = data[: int(each.starts[place])].count(b"\n")
        lines = "line 1 has" if before == 1 else f"lines 1 to {before} have"
        ways = f"remove the lines before the header, for example: tail -n +{before + 1} {name} > {name}.clean"
        raise StorageFailed(f"{name}: {lines} another number of cells than the {found.width} of most lines, so that the header is not the first line", help=ways)


def _header(rows: Sequence[Sequence[str]], width: int) -> tuple[bool, int, tuple[str, ...]]:
    """Whether the first record has the names of the columns, the width, and what is unsure about it."""
    if not rows:
        return True, width, ()
    first, rest = [cell.strip() for cell in rows[0]], rows[1:]
    values = [cell for cell in first if cell and _VALUE.fullmatch(cell)]
    texts = [cell for cell in first if cell and not _VALUE.fullmatch(cell)]
    if values and not _looks_like_years(values, rest, first):
        doubt = f"the first line has values such as '{values[0]}': read as a record, and the columns are called col_0, col_1 and so on"
        return False, width, (doubt,)
    below = [cell.strip() for row in rest for cell in row]
    if rest and texts and not any(_VALUE.fullmatch(cell) for cell in below if cell):
        return True, width, (f"all cells are texts, so that nothing tells the first line from the others: '{texts[0][:40]}' and so on are taken as the names of the columns",)
    return True, width, ()


def _looks_like_years(values: Sequence[str], rest: Sequence[Sequence[str]], first: Sequence[str]) -> bool:
    """Whether the values of the first line may be names all the same: years or numbers of months beside other names."""
    if not rest or len(values) == len([cell for cell in first if cell]) or not all(value.isdecimal() and len(value) <= 4 for value in values):
        return False
    numbers = [int(value) for value in values]
    consecutive = len(numbers) > 2 and all(two - one == 1 for one, two in itertools.pairwise(numbers))
    return consecutive or all(re.fullmatch("(19|20)[0-9][0-9]", value) for value in values)


def is_value(text: str) -> bool:
    """Return whether a text looks like a value rather than the name of a column."""
    return _VALUE.fullmatch(text) is not None


def checked_options(options: dict[str, object]) -> CsvReadOptions:
    """Return the options as the reader takes them."""
    return CsvReadOptions.model_validate(options)
