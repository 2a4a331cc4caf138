"""Configuration that node types share: the strict base model, node names, digits of decimals, sort orders, watermarks, durations."""

import re
from datetime import date
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from cxl.types.types import MOST_DIGITS, parse_decimal, parse_type, type_name


class Strict(BaseModel):
    """Base of configuration models; unknown keys are errors."""

    model_config = ConfigDict(defer_build=True, extra="forbid", frozen=True, populate_by_name=True)


NodeName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_-]{0,127}$")]


Digits = Annotated[Any, WithJsonSchema({"type": ["integer", "null"], "minimum": 0, "maximum": MOST_DIGITS})]
"""The scale or precision of a decimal column. Values that cannot be are reported with the column's name (E225, E226)."""
_DECIMAL = re.compile(r"(?:\s*nullable\()*\s*decimal\b")
NO_SCALE = "has no scale: write scale: 2, or decimal(10,2)"


def is_decimal(type_: str) -> bool:
    """Whether a declared type is that of decimals, whatever it says of their digits."""
    return _DECIMAL.match(type_) is not None


def decimal_spelling(type_: str, scale: Any, precision: Any) -> str:
    """Return a declared type in the spelling that has the digits of a decimal, as `parse_type` reads it.

    Raises ValueError, which completes a sentence about the column, where scale or precision are missing, cannot be, or stand beside another type.
    """
    text, nullable = type_.strip(), False
    while text.startswith("nullable(") and text.endswith(")"):
        text, nullable = text[len("nullable(") : -1].strip(), True
    if text != "decimal":
        if scale is not None or precision is not None:
            raise ValueError(f"has a {'precision' if scale is None else 'scale'} beside the type {text}")
        if text.startswith("decimal"):
            return _fitting(text, nullable=nullable)
        return type_name(parse_type(type_))
    if scale is None:
        raise ValueError(NO_SCALE)
    most = MOST_DIGITS if precision is None else precision
    if type(most) is not int or not 1 <= most <= MOST_DIGITS:
        raise ValueError(f"has the precision {precision}, which is no number from 1 to {MOST_DIGITS}")
    if type(scale) is not int or not 0 <= scale <= most:
        raise ValueError(f"has the scale {scale}, which is no number from 0 to {most}, its precision")
    return _fitting(f"decimal({most},{scale})", nullable=nullable)


def _fitting(text: str, *, nullable: bool) -> str:
    try:
        found = parse_decimal(text)
    except ValueError:
        raise ValueError(f"is {text}, which cannot be: the precision is 1 to {MOST_DIGITS}, the scale 0 to the precision") from None
    if found is None:
        raise ValueError(f"is {text}, which has no scale: write decimal(precision,scale)")
    spelled = f"decimal({found[0]},{found[1]})"
    return f"nullable({spelled})" if nullable else spelled


class SortKey(Strict):
    """A field of a sort order; a bare string is ascending."""

    field: str = Field(description="The field to sort by.", examples=["ordered_on"])
    order: Literal["asc", "desc"] = Field(default="asc", description="Ascending or descending.")
    null_order: Literal["first", "last", "drop"] = Field(default="last", description="Where nulls go; drop leaves their rows out.")


def _sort_key(value: Any) -> Any:
    return {"field": value} if isinstance(value, str) else value


SortOrder = list[Annotated[SortKey, BeforeValidator(_sort_key, json_schema_input_type=str | SortKey)]]


class Watermark(Strict):
    """The event time of a source.

    `column`: holds the time of each record. `delay`: moves the event times themselves to earlier ones, so windows move too. `out_of_order`: holds back the
    watermark alone. `idle_timeout`: without effect on results.
    """

    column: str = Field(description="The column with the event time of each record, of type date or date_time (E154, E155).")
    delay: str | None = Field(default=None, description="A duration, such as 1h, that is taken off each event time; windows move too (E157, W105).", examples=["2h"])
    out_of_order: str | None = Field(default=None, description="A duration, such as 1h, by which the watermark stays behind the highest event time (E157).")
    idle_timeout: str | None = Field(default=None, description="Accepted; it has no effect on results.", examples=["30m"])


_UNITS = {"ms": 1_000, "s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000, "d": 86_400_000_000}
_FORM = re.compile(r"(\d+)(ms|s|m|h|d)")
_MOST = (date.max - date(1970, 1, 1)).days
"""Days from 1970, where windows begin, to the last date: what is longer reaches beyond all times, and further on beyond 64 bits."""


def microseconds(text: str) -> int:
    """The microseconds of a duration. Raises ValueError for another form, and for one that is longer than from 1970 to the last date."""
    found = _FORM.fullmatch(text.strip())
    if not found:
        raise ValueError(f"'{text}' is no duration; write a number and one of ms, s, m, h, d")
    number, unit = int(found[1]), _UNITS[found[2]]
    if number * unit > _MOST * _UNITS["d"]:
        raise ValueError(f"'{text}' is longer than from 1970 to the end of 9999; write {_MOST}d or less")
    return number * unit
