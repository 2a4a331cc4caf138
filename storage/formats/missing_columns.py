"""The error of a file that lacks declared columns: the most similar names of the file, and the ways out."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from difflib import get_close_matches

from storage.files.errors import InputError
from storage.formats.base import Column, ReadPlan

_SEPARATORS = (",", ";", "\t", "|", ":")
_SHOWN = 8
_ALIKE = 0.7


def missing_columns(
    plan: ReadPlan,
    lacking: Sequence[Column],
    names: Collection[str],
    file: str,
    *,
    line: int | None = None,
    text: bytes = b"",
    delimiter: str = "",
    numbered: bool = False,
    noun: str = "column",
    holder: str = "file",
) -> InputError:
    """The error (E238) of a file that lacks declared columns.

    Args:
        plan: what the source reads
        lacking: the columns that the file lacks
        names: the columns that the file has
        file: how messages call the file
        line: the line of the header
        text: the text of the header, where the file has one
        delimiter: the delimiter that cut the header
        numbered: whether the file has no header and its columns are called `col_0`, `col_1`, ...
        noun: what the format calls a column
        holder: what has the columns: a file, or a table or query of a database
    """
    separator = None if numbered or len(lacking) < len(plan.declared) else _separator_in(text, delimiter, plan)
    if separator is not None:
        message = f"E238: none of the declared columns is in the header; its delimiter seems to be {separator!r}: set options.delimiter"
        return InputError(file, message, line=line)
    likely = [(column, _likely(column.name, names, plan)) for column in lacking]
    missing = ", ".join(f"'{column.name}'{f' (it has {found!r})' if found else ''}" for column, found in likely[:_SHOWN])
    more = f" and {len(likely) - _SHOWN} more" if len(likely) > _SHOWN else ""
    what = f"the {holder} lacks the declared {noun}{'s' if len(lacking) > 1 else ''} {missing}{more}"
    return InputError(file, f"E238: {what}; {_way_out(likely, names, noun, holder, numbered=numbered)}", line=line)


def _way_out(likely: Sequence[tuple[Column, str | None]], names: Collection[str], noun: str, holder: str, *, numbered: bool) -> str:
    if numbered:
        return f"without a header its columns are called col_0 to col_{len(names) - 1}: give the column source_name: col_0, or set options.has_header"
    column, found = next(((column, found) for column, found in likely if found), likely[0])
    rename = f"rename it in the {holder}, give the column source_name: {found!r}" if found else f"add the {noun} to the {holder}, write the name that the {holder} has as source_name"
    may = "files" if holder == "file" else f"the {holder}"
    return f"{rename}, or set optional: true where {may} may lack '{column.label}'"


def _likely(name: str, names: Collection[str], plan: ReadPlan) -> str | None:
    """The undeclared name of the file that is most similar to a declared one, case and blanks aside."""
    free = {_plain(other): other for other in names if other not in plan.names}
    close = get_close_matches(_plain(name), free, 1, _ALIKE)
    return free[close[0]] if close else None


def _plain(name: str) -> str:
    return name.strip().casefold()


def _separator_in(text: bytes, delimiter: str, plan: ReadPlan) -> str | None:
    """The other delimiter that gives most of the declared names, or most names where the header has no `delimiter`."""
    header = text.decode("utf-8", "replace")
    wanted = {_plain(name) for name in plan.names}
    counts = {one: [_plain(part).strip("\"'") for part in header.split(one)] for one in _SEPARATORS if one in header and one != delimiter}
    best = max(counts, key=lambda one: (len(wanted.intersection(counts[one])), len(counts[one])), default=None)
    if best is None:
        return None
    return best if wanted.intersection(counts[best]) or delimiter not in header else None
