"""Configuration of expectations, as nodes have them under `expect`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import isfinite
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema, field_validator, model_validator

from operators.core.config import Strict, microseconds

Severity = Literal["warn", "reject", "stop"]
"""The effect of a failing row: a warning, a dead letter, the end of the run."""
KINDS = ("not_null", "unique", "values", "range", "matches", "row_count", "freshness", "check")
"""The keys of expectations; each has exactly one."""
MEASURES = ("row_count", "freshness")
"""Expectations of all rows together, which no single row fails."""
ACCEPTED = "accepted"
"""The name under which the rows that are no dead letters go on."""
MOST_VALUES = 1_000
"""The values that `values` lists at most; for more, join a table of them."""
LONGEST = 80
"""Characters of a name that is made of kind and columns."""


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


Columns = Annotated[list[str], BeforeValidator(_listed, json_schema_input_type=str | list[str]), Field(min_length=1)]


def _constant(value: Any) -> Any:
    """A value of YAML that is a text, a finite number or a truth value. Raises ValueError for another."""
    if isinstance(value, str | bool | int) or value is None or (isinstance(value, float) and isfinite(value)):
        return value
    raise ValueError("a value is a text, a number, true or false")


Constant = Annotated[Any, BeforeValidator(_constant), WithJsonSchema({"type": ["string", "number", "boolean", "null"]})]


class Values(Strict):
    """The values that a column may have."""

    column: str = Field(description="The column to look at (E281).", examples=["currency"])
    allowed: list[Constant] = Field(
        alias="in", min_length=1, max_length=MOST_VALUES, description="The values that it may have, at most 1,000: texts, numbers, true and false. Null passes (E282).", examples=[["EUR", "USD"]]
    )


class Range(Strict):
    """The least and the greatest value of a column."""

    column: str = Field(description="The column to look at (E281).", examples=["amount"])
    min: Constant = Field(default=None, description="The least value that passes; dates and times are texts such as 2026-01-31. Null passes (E282).", examples=[0])
    max: Constant = Field(default=None, description="The greatest value that passes (E282).", examples=[10_000])

    @model_validator(mode="after")
    def _is_bounded(self) -> Range:
        if self.min is None and self.max is None:
            raise ValueError("a range has 'min', 'max' or both")
        return self


class Matches(Strict):
    """The pattern of a column of texts."""

    column: str = Field(description="The column of texts to look at (E281).", examples=["code"])
    pattern: str = Field(description="The regular expression that the whole text matches. Null passes (E282).", examples=["[A-Z]{2}[0-9]{4}"])


class RowCount(Strict):
    """How many rows a node has."""

    min: Annotated[int | None, Field(ge=0)] = Field(default=None, description="The fewest rows that are expected.", examples=[1])
    max: Annotated[int | None, Field(ge=0)] = Field(default=None, description="The most rows that are expected.", examples=[1_000_000])
    fall: Annotated[float | None, Field(ge=0, le=1)] = Field(
        default=None, description="The share of its rows that a node may lose from one epoch to the next, from 0 to 1.", examples=[0.2]
    )
    rise: Annotated[float | None, Field(ge=0)] = Field(default=None, description="The share of its rows by which a node may grow from one epoch to the next: 0.5 is half as many more.", examples=[0.5])

    @model_validator(mode="after")
    def _is_bounded(self) -> RowCount:
        if all(value is None for value in (self.min, self.max, self.fall, self.rise)):
            raise ValueError("a row count has 'min', 'max', 'fall' or 'rise'")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError("'min' is greater than 'max'")
        return self

    @property
    def is_relative(self) -> bool:
        """Whether the number is compared with that of the epoch before."""
        return self.fall is not None or self.rise is not None


class Freshness(Strict):
    """How old the newest row of a node may be."""

    column: str = Field(description="The column with the time of each row, of type date or date_time (E281, E283).", examples=["ordered_on"])
    within: str = Field(description="How old the greatest time may be when a run begins, such as 12h or 2d. A node without a time is not fresh.", examples=["2d"])

    @field_validator("within")
    @classmethod
    def _is_duration(cls, value: str) -> str:
        microseconds(value)
        return value


class Expectation(Strict):
    """An expectation: a condition on the rows of a node, and the consequence of a failing row."""

    not_null: Columns | None = Field(default=None, description="The columns, one or a list, that are never null (E281).", examples=[["order_id", "amount"]])
    unique: Columns | None = Field(default=None, description="The columns, one or a list, whose values together occur once. Rows behind the first fail; rows with a null pass (E281).", examples=["order_id"])
    values: Values | None = Field(default=None, description="The values that a column may have.", examples=[{"column": "currency", "in": ["EUR", "USD"]}])
    range: Range | None = Field(default=None, description="The least and the greatest value of a column.", examples=[{"column": "amount", "min": 0}])
    matches: Matches | None = Field(default=None, description="The pattern that the texts of a column match as a whole.", examples=[{"column": "code", "pattern": "[A-Z]{2}"}])
    row_count: RowCount | None = Field(default=None, description="How many rows the node has, also beside the epoch before.", examples=[{"min": 1, "fall": 0.2}])
    freshness: Freshness | None = Field(default=None, description="How old the newest row may be.", examples=[{"column": "ordered_on", "within": "2d"}])
    check: str | None = Field(default=None, description="A CXL predicate that is true for each row; false, null and a failing predicate fail (E284).", examples=["amount >= 0"])
    severity: Severity = Field(
        default="warn", description="warn counts failing rows and reports them, reject makes them dead letters, stop ends the run with exit code 3 before it commits (E285)."
    )
    name: str | None = Field(
        default=None, pattern=r"^[A-Za-z_][A-Za-z0-9_-]{0,127}$", description="The name by which commands know the expectation; by default made of its kind and columns (E280).", examples=["amount_is_known"]
    )
    description: str | None = Field(default=None, description="Text for people, which messages about failing rows show.", examples=["An order has an amount."])

    @model_validator(mode="after")
    def _is_one(self) -> Expectation:
        given = [name for name in KINDS if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"an expectation has one of {', '.join(KINDS)}, not {' and '.join(given) if given else 'none of them'}")
        return self

    @property
    def kind(self) -> str:
        """Which of `KINDS` it is."""
        return next(name for name in KINDS if getattr(self, name) is not None)

    @property
    def columns(self) -> list[str]:
        """The columns that it names, in order."""
        named = getattr(self, self.kind)
        return list(named) if isinstance(named, list) else [named.column] if hasattr(named, "column") else []

    @property
    def made_name(self) -> str:
        """The name of an expectation that has none: its kind and columns."""
        return re.sub(r"[^A-Za-z0-9_-]+", "_", "_".join([self.kind, *self.columns]))[:LONGEST]

    @property
    def text(self) -> str:
        """The expectation in words."""
        return "; ".join(_words(self))


def _words(one: Expectation) -> Iterator[str]:
    """The expectation in words: one phrase for each condition."""
    if one.not_null is not None:
        yield f"{', '.join(one.not_null)} not null"
    elif one.unique is not None:
        yield f"{', '.join(one.unique)} unique"
    elif one.values is not None:
        yield f"{one.values.column} in {', '.join(map(_shown, one.values.allowed[:10]))}{', ...' if len(one.values.allowed) > 10 else ''}"
    elif one.range is not None:
        yield f"{one.range.column} {_bounds(one.range.min, one.range.max)}"
    elif one.matches is not None:
        yield f"{one.matches.column} matches {one.matches.pattern}"
    elif one.row_count is not None:
        yield from _count_words(one.row_count)
    elif one.freshness is not None:
        yield f"newest {one.freshness.column} within {one.freshness.within}"
    else:
        yield " ".join(str(one.check).split())


def _count_words(count: RowCount) -> Iterator[str]:
    if count.min is not None or count.max is not None:
        yield f"rows {_bounds(count.min, count.max)}"
    if count.fall is not None:
        yield f"at most {count.fall:.0%} fewer rows than before"
    if count.rise is not None:
        yield f"at most {count.rise:.0%} more rows than before"


def _bounds(least: Any, most: Any) -> str:
    if least is None:
        return f"at most {_shown(most)}"
    return f"at least {_shown(least)}" if most is None else f"from {_shown(least)} to {_shown(most)}"


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


@dataclass(frozen=True, slots=True)
class Placed:
    """An expectation with its name and its position in the list of its node."""

    position: int
    name: str
    expectation: Expectation

    @property
    def severity(self) -> Severity:
        """The consequence of a failing row."""
        return self.expectation.severity

    @property
    def rejects(self) -> bool:
        """Whether failing rows become dead letters."""
        return self.expectation.severity == "reject"

    @property
    def is_measure(self) -> bool:
        """Whether it looks at all rows together."""
        return self.expectation.kind in MEASURES

    @property
    def message(self) -> str:
        """The condition that a failing row does not meet: the description, or the expectation in words."""
        return f"expectation '{self.name}' failed: {self.expectation.description or self.expectation.text}"


Role = Literal["accepted", "accepted_unique", "failing", "failing_unique", "measure", "measured"]
"""The role of a node made for expectations."""


@dataclass(frozen=True, slots=True)
class ExpectNode:
    """The configuration of a node that the planner makes for expectations.

    Attributes:
        role: What it does.
        of: The node that has the expectations.
        placed: These expectations.
        beside: Whether the paths of problems begin at the one expectation, and not at the list.
    """

    role: Role
    of: str
    placed: tuple[Placed, ...]
    beside: bool = True
