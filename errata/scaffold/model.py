"""Files as they were sampled, and the guesses about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, slots=True)
class Doubt:
    """Something that the guess was unsure of.

    Args:
        place: The source, or `source.column`.
        text: What was unsure, what was decided, and why.
    """

    place: str
    text: str


@dataclass(frozen=True, slots=True)
class Cells:
    """The values of one field in a sample, as texts.

    Args:
        texts: The text of each value; null where there is none.
        kinds: What the values are: text, int, float, bool, array, map.
        declared: The type that the file's own schema gives the field; None in formats without one.
        occurs: How many records have the field at all.
    """

    texts: pl.Series
    kinds: frozenset[str]
    declared: str | None = None
    occurs: int = 0


@dataclass(frozen=True, slots=True)
class Sample:
    """A sample of one file.

    Args:
        path: The file.
        format: The format of the source.
        options: The options of the source.
        explode: The paths of arrays that are exploded.
        join: The paths of arrays that are joined.
        cells: The fields with their values, in their order.
        records: The number of records in the sample.
        malformed: How many records could not be read, with the reason of the first.
        whole: Whether the sample is the whole file.
        plain: Whether the text is ASCII, so that its encoding does not matter.
        dropped: Fields that are left out.
        kind: What the records are called in the file; empty where it has no name for them.
        alone: Whether the file has no other kind of records.
        inside: The first steps of the names that fields of exploded arrays have; all others are repeated with each element.
        doubts: What was unsure; the place is the column, or empty.
    """

    path: Path
    format: str
    cells: Mapping[str, Cells]
    records: int
    options: Mapping[str, Any] = field(default_factory=dict)
    explode: Sequence[str] = ()
    join: Sequence[str] = ()
    malformed: tuple[int, str] = (0, "")
    whole: bool = True
    plain: bool = False
    dropped: Sequence[str] = ()
    kind: str = ""
    alone: bool = True
    inside: Sequence[str] = ()
    doubts: Sequence[Doubt] = ()


@dataclass(frozen=True, slots=True)
class Guess:
    """The guessed type of a column.

    Args:
        type: The type that the source declares.
        scale: The digits behind the point of a decimal.
        date_format: The format of dates, where it is no built-in one.
        form: The format of dates, also a built-in one; empty for ISO.
        conversion: The CXL expression that makes the value of the text; `{}` is the column. None: the source reads the values.
        becomes: The type after the conversion.
        note: A comment for the column; empty for none.
        doubts: What was unsure.
        money: Whether the values are amounts.
        mark: The sign before decimals that the values show; empty where they leave it open.
    """

    type: str
    scale: int | None = None
    date_format: str | None = None
    form: str = ""
    conversion: str | None = None
    becomes: str = ""
    note: str = ""
    doubts: Sequence[str] = ()
    money: bool = False
    mark: str = ""

    @property
    def final(self) -> str:
        """The type behind the conversion."""
        return self.becomes or self.type


@dataclass(frozen=True, slots=True)
class ColumnGuess:
    """A declared column: its name in the pipeline, its name in the files, its type, whether files or records may lack it."""

    name: str
    source_name: str
    guess: Guess
    optional: bool = False


@dataclass(slots=True)
class SourceGuess:
    """A guessed source.

    Args:
        name: The name of the node.
        samples: What was read of its files.
        columns: The declared columns.
        cells: The values of all samples, by the name of the column in the files.
        key: The columns of the primary key; empty for none.
        strategy: The merge strategy.
        matcher: How the files are found: `path`, `glob` or `paths`, and its value.
        doubts: What was unsure.
    """

    name: str
    samples: Sequence[Sample]
    columns: Sequence[ColumnGuess]
    cells: Mapping[str, Cells]
    matcher: tuple[str, Any]
    key: Sequence[str] = ()
    strategy: str = "snapshot"
    doubts: list[Doubt] = field(default_factory=list)

    @property
    def records(self) -> int:
        """The number of records in the samples."""
        return sum(sample.records for sample in self.samples)

    @property
    def whole(self) -> bool:
        """Whether the samples are the whole files."""
        return all(sample.whole for sample in self.samples)

    def column(self, name: str) -> ColumnGuess:
        """The column of a name."""
        return next(one for one in self.columns if one.name == name)

    def repeats(self, column: ColumnGuess) -> bool:
        """Whether several records have one value of a column, since they are elements of an array of one object."""
        sample = self.samples[0]
        return bool(sample.explode) and column.source_name.removeprefix("@").partition(".")[0] not in sample.inside

    @property
    def converted(self) -> Sequence[ColumnGuess]:
        """The columns that a transform converts."""
        return [one for one in self.columns if one.guess.conversion is not None]


@dataclass(frozen=True, slots=True)
class Link:
    """A column of one source whose values are keys of another.

    Args:
        source, column: Where the values are.
        target, key: The source whose key they are.
        found, values: How many of the distinct values are keys, and how many there are.
    """

    source: str
    column: str
    target: str
    key: str
    found: int
    values: int
