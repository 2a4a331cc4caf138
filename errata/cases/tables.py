r"""Tables as text: a header and one line a row, with `|` between the cells.

    id | region | amount
    1  | north  | 40
    2  |        | ""

An empty cell is null, `""` is an empty text, `\|` is a bar. A line of dashes below the header is passed over.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from changelog.lazy_imports import pa
from errata.core.diagnostics import did_you_mean
from errata.rendering.rows import cell

_BAR = re.compile(r"(?<!\\)\|")
_RULE = re.compile(r"[-:|+ ]+")
EMPTY = '""'
"""An empty text, where an empty cell is null."""
SHOWN = 20
"""Rows of a difference that are shown."""
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Table:
    """Names of columns, and rows of cells: texts, None for null."""

    names: Sequence[str]
    rows: Sequence[Sequence[str | None]]

    def arrow(self) -> pa.Table:
        """The cells as texts, for a source that reads them as its types."""
        columns = list(zip(*self.rows, strict=True)) or [()] * len(self.names)
        return pa.table({name: pa.array(list(values), pa.string()) for name, values in zip(self.names, columns, strict=True)})


def read_table(written: str | Sequence[Row]) -> Table:
    """A table of text or maps. Raises ValueError where a line has more or fewer cells than the header, or a name is there twice."""
    if isinstance(written, str):
        return _of_text([line for line in written.splitlines() if line.strip()])
    names = list(dict.fromkeys(str(name) for row in written for name in row))
    return Table(names, [[_as_cell(row.get(name)) for name in names] for row in written])


def _of_text(lines: Sequence[str]) -> Table:
    """A table of its lines. Raises ValueError."""
    if not lines:
        raise ValueError("a table has a line with the names of its columns")
    names = [name or "" for name in _cells(lines[0])]
    if "" in names or len(set(names)) < len(names):
        raise ValueError(f"the columns of a table have names, each once, not {lines[0].strip()!r}")
    rows = [_cells(line) for line in lines[1:] if not _is_rule(line.strip())]
    wrong = next((row for row in rows if len(row) != len(names)), None)
    if wrong is not None:
        raise ValueError(f"a row has {len(wrong)} cells, its header {len(names)}: {' | '.join(one or '' for one in wrong)}")
    return Table(names, rows)


def _is_rule(line: str) -> bool:
    """Whether a line is the one of dashes below a header."""
    return "-" in line and _RULE.fullmatch(line) is not None


def _cells(line: str) -> list[str | None]:
    parts = [part.strip().replace("\\|", "|") for part in _BAR.split(line.strip())]
    if len(parts) > 2 and line.strip().startswith("|") and line.strip().endswith("|"):
        parts = parts[1:-1]
    return ["" if part == EMPTY else part or None for part in parts]


def _as_cell(value: Any) -> str | None:
    return None if value is None else cell(value)


def differences(what: str, expected: Table, found: Sequence[Row], names: Sequence[str]) -> Iterator[str]:
    """How rows differ from a table, as text; nothing where they do not. Their order does not count.

    Args:
        what: What the rows are.
        expected: The table; only its columns are compared.
        found: The rows.
        names: The columns that the rows have.
    """
    unknown = [name for name in expected.names if name not in names]
    if unknown:
        hint = did_you_mean(unknown[0], list(names)) or f"its columns: {', '.join(names)}"
        yield f"{what} have no column '{unknown[0]}'; {hint}"
        return
    left = list(found)
    missing = []
    for row in expected.rows:
        at = next((at for at, one in enumerate(left) if _same(row, [one.get(name) for name in expected.names])), None)
        if at is None:
            missing.append(row)
        else:
            del left[at]
    if missing or left:
        extra = [[_as_cell(one.get(name)) for name in expected.names] for one in left]
        yield f"{what}: {_counted(missing, extra)}\n{_shown(expected.names, missing, extra)}"


def _same(cells: Sequence[str | None], values: Sequence[Any]) -> bool:
    return all(_equal(text, value) for text, value in zip(cells, values, strict=True))


def _equal(text: str | None, value: Any) -> bool:
    """Whether a cell is a value: numbers by value, all others by their text."""
    if text is None or value is None:
        return text is None and value is None
    if text == cell(value):
        return True
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return False
    try:
        return Decimal(text) == Decimal(cell(value))
    except InvalidOperation:
        return False


def _counted(missing: Sequence[Any], extra: Sequence[Any]) -> str:
    counts = [f"{len(rows)} {word} row{'s' * (len(rows) != 1)}" for rows, word in ((missing, "missing"), (extra, "unexpected")) if rows]
    return ", ".join(counts)


def _shown(names: Sequence[str], missing: Sequence[Sequence[str | None]], extra: Sequence[Sequence[str | None]]) -> str:
    """The rows that differ: `-` for missing ones, `+` for unexpected ones."""
    lines = [(" ", list(names)), *(("-", [_text(one) for one in row]) for row in missing[:SHOWN]), *(("+", [_text(one) for one in row]) for row in extra[:SHOWN])]
    widths = [max(len(cells[at]) for _, cells in lines) for at in range(len(names))]
    shown = [f"  {sign} {' | '.join(text.ljust(width) for text, width in zip(cells, widths, strict=True))}".rstrip() for sign, cells in lines]
    more = max(len(missing) - SHOWN, 0) + max(len(extra) - SHOWN, 0)
    return "\n".join([*shown, *([f"    and {more} more"] if more else [])])


def _text(value: str | None) -> str:
    return "" if value is None else EMPTY if value == "" else value.replace("|", "\\|").replace("\n", " ")
