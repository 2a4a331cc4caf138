"""`options:` of CSV sources and outputs."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from storage.formats.encodings import IN_WORDS, text_encoding
from storage.formats.options import Options


def _one_ascii(value: str) -> str:
    if len(value) != 1 or not value.isascii() or value in "\r\n\0":
        raise ValueError("must be one ASCII character that is no line end")
    return value


def _known_encoding(value: str) -> str:
    known = text_encoding(value)
    if known is None:
        raise ValueError(f"'{value[:80]}' is no encoding of text: use {IN_WORDS}")
    return known


Character = Annotated[str, AfterValidator(_one_ascii)]
Encoding = Annotated[str, AfterValidator(_known_encoding)]
_CUTTABLE = ("utf-8", "utf-8-sig", "ascii", "iso8859", "latin", "cp125", "cp437", "cp850", "koi8", "mac-", "mac_")
"""Encodings in which the bytes of separators, quotes and line ends never occur inside another character. Such a file can be cut as bytes."""


class CsvReadOptions(Options):
    """`options:` of a CSV source."""

    delimiter: Character = Field(default=",", description="The character between cells.", examples=[";"])
    quote_char: Character = Field(default='"', description="The character around cells that hold delimiters, quotes or line ends.", examples=["'"])
    has_header: bool = Field(default=True, description="Whether the first line has the names; without it columns are called col_0, col_1 and so on.")
    encoding: Encoding = Field(default="utf-8", description="The encoding of the text, such as cp1252.", examples=["cp1252"])

    @property
    def cuttable(self) -> bool:
        """Whether the file can be cut as bytes."""
        return self.encoding.startswith(_CUTTABLE)


class CsvWriteOptions(Options):
    """`options:` of a CSV output. `formula_guard` writes an apostrophe before text that a spreadsheet would run as a formula."""

    delimiter: Character = Field(default=",", description="The character between cells.", examples=[";"])
    formula_guard: bool = Field(default=False, description="Whether an apostrophe is written before text that a spreadsheet would run as a formula.")
