"""Corrections as they are written, each with its place in its file."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any, Literal

import orjson
from pydantic import Field

from cxl.diagnostics.diagnostics import Diagnostic
from cxl.diagnostics.source import Origin, Span
from operators.core.config import Strict

EntryPath = tuple[str | int, ...]
"""A place within an entry, such as `("set", "amount", "from")`."""


class CellChange(Strict):
    """What a cell says, and what it should say."""

    before: Any = Field(alias="from", description="The value that the record has; the correction waits where it has another one.")
    after: Any = Field(alias="to", description="The value that it gets.")


class CorrectionEntry(Strict):
    """One correction of one record: other values for some columns, or its retraction."""

    key: Any = Field(description="The values of the key columns by name, or the value alone where there is one column.")
    set: dict[str, CellChange] = Field(default_factory=dict, description="By column what it says (from) and what it should say (to).")
    retract: bool = Field(default=False, description="Whether the record is taken back.")
    reason: str = Field(min_length=1, description="Why.")
    author: str | None = Field(default=None, description="Who says so.")
    ticket: str | None = Field(default=None, description="Where it was discussed.")
    status: Literal["active", "draft", "withdrawn"] = Field(default="active", description="Only active corrections are applied.")


@dataclass(frozen=True, slots=True)
class WrittenCorrection:
    """A correction with its place.

    Attributes:
        entry: What is written.
        file: The file, relative to the pipeline's folder.
        line: The line, or the row of a sheet, from 1.
        origin: The text of the file.
        spans: The places of parts of the entry; the place of the whole under `()`.
        texts: The unquoted values of YAML as they are written: a number or a zip code may not be rounded or shortened on the way.
        in_table: Whether it is a row of a table, where an empty cell of a string column is the empty text, as in CSV sources.
    """

    entry: CorrectionEntry
    file: str
    line: int
    origin: Origin
    spans: Mapping[EntryPath, Span]
    in_table: bool = False
    texts: Mapping[EntryPath, str] = field(default_factory=dict)

    @property
    def place(self) -> str:
        """File and line, as messages have them."""
        return f"{self.file}:{self.line}"

    def text(self, path: EntryPath, value: Any) -> str:
        """The text of a value: of YAML the one in the file, else the one of a cell. A key without a name is under `("key",)`."""
        return self.texts.get(path) or self.texts.get(path[:1]) or cell_text(value)

    def exact(self, path: EntryPath, value: Any) -> Any:
        """The value with all digits of the file: a number with more of them than a float holds is a Decimal."""
        if not isinstance(value, float):
            return value
        with suppress(InvalidOperation):
            found = Decimal(self.text(path, value))
            return found if found.is_finite() and found != Decimal(repr(value)) else value
        return value

    def error(self, path: EntryPath, code: str, message: str, help_text: str | None = None) -> Diagnostic:
        """An error at a part of the entry, or at the nearest part around it."""
        while path and path not in self.spans:
            path = path[:-1]
        return Diagnostic(code, message, self.spans.get(path, Span(0, 1)), help=help_text or "", origin=self.origin)


def cell_text(value: Any) -> str:
    """A value as a cell has it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.isoformat() if isinstance(value, date | datetime) else orjson.dumps(value).decode() if isinstance(value, dict | list) else str(value)
