"""Entries of the dead letter queue as a table that people fill in: a CSV file or a workbook."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from changelog.lazy_imports import pa
from errata.core.failures import LibraryMissing, Usage
from errata.core.files import replace_file
from errata.core.options import LetterChoice
from errata.inspect.dlq import chosen, letters_of
from errata.inspect.snapshot import Snapshot
from errata.rollback.dead_letters import field_of, source_columns
from storage.formats.base import Column, WritePlan
from storage.formats.csv.write import lines
from storage.formats.xlsx.options import XlsxWriteOptions

if TYPE_CHECKING:
    from storage.formats.xlsx import write as workbooks
else:
    from changelog.lazy_imports import Lazy

    workbooks = Lazy("storage.formats.xlsx.write")  # its library is large, and few exports are workbooks

ID, REASON = "_id", "_reason"
ABOUT = (ID, "_since", "_days", "_group", "_assigned", "_waived", "_source", "_file", "_row", "_stage", "_category", "_detail", "_raw", REASON)
"""The columns of a table before the fields of the records. REASON is empty: it takes why cells are repaired."""
FIELD_PREFIX = "field."
"""The prefix of a field whose name is one of these."""
SIGNS = "=+-@\t\r"
"""Beginnings of cells of a CSV file that a spreadsheet runs as a formula."""
_FORMULA = r"^[=+\-@\t\r']"
_NUMBER = r"^[+-]?[0-9][0-9.,]*$"


def export(reading: Snapshot, choice: LetterChoice, path: Path) -> int:
    """Write the chosen entries, oldest first, as a CSV file or a workbook, and return their number.

    Raises:
        Usage: The file is there already, its name ends otherwise, or a name of an entry is unknown.
        LibraryMissing: It is a workbook, and `errata[excel]` is not installed.
    """
    kind = path.suffix.lower()
    if kind not in (".csv", ".xlsx"):
        raise Usage(f"'{path.name}' is neither a CSV file nor a workbook", help="its name ends in .csv or .xlsx")
    if path.exists():
        raise Usage(f"{path} exists", help="name another file, or remove it")
    letters = chosen(letters_of(reading), choice).sort("epoch", maintain_order=True)
    table = _table(reading, letters)
    replace_file(path, _csv(table) if kind == ".csv" else _workbook(table))
    return table.height


def _table(reading: Snapshot, letters: pl.DataFrame) -> pl.DataFrame:
    """The entries as texts."""
    about = {name: pl.col(name.removeprefix("_")).cast(pl.String).fill_null("") for name in ABOUT if name not in ("_since", "_group", REASON)}
    about |= {"_since": pl.col("since").dt.to_string("%Y-%m-%dT%H:%M:%SZ"), "_group": pl.col("text").fill_null(""), REASON: pl.lit("")}
    fields = source_columns(reading.plan, letters) if reading.plan is not None else []
    return letters.select(*(about[name].alias(name) for name in ABOUT), *(field_of(letters, name).alias(heading(name)) for name in fields))


def heading(field: str) -> str:
    """The heading of a field's column."""
    return FIELD_PREFIX + field if field in ABOUT or field.startswith(FIELD_PREFIX) else field


def _csv(table: pl.DataFrame) -> bytes:
    """The table as CSV. Text that a spreadsheet would run as a formula has an apostrophe before it, and so has text that begins with one."""
    guarded = table.select(
        pl.when(pl.col(name).str.contains(_FORMULA) & ~pl.col(name).str.contains(_NUMBER)).then(pl.concat_str(pl.lit("'"), name)).otherwise(name).alias(name)
        for name in table.columns
    )
    return lines(pl.DataFrame([table.columns], orient="row")) + lines(guarded)


def unguarded(text: str) -> str:
    """The text of a cell without the apostrophe that guards it."""
    return text[1:] if text[:1] == "'" and text[1:2] and text[1] in SIGNS + "'" else text


def _workbook(table: pl.DataFrame) -> bytes:
    """The table as a workbook, whose cells are texts."""
    if find_spec("xlsxwriter") is None:
        raise LibraryMissing("workbooks need the library xlsxwriter, which is not installed", help="pip install 'errata[excel]', or name a file that ends in .csv")
    columns = tuple(Column(name) for name in table.columns)
    session = workbooks.XlsxSession(WritePlan(columns), XlsxWriteOptions(filter=True), "dead letters")
    texts = table.to_arrow().cast(pa.schema([(name, pa.string()) for name in table.columns]))
    return b"".join([session.header(), *(session.render(batch) for batch in texts.to_batches()), session.footer()])
