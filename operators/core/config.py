"""Configuration that node types share: the strict base model, node names, sort orders, watermarks, durations."""

import re
from datetime import date
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field


class Strict(BaseModel):
    """Base of configuration models; unknown keys are errors."""

    model_config = ConfigDict(defer_build=True, extra="forbid", frozen=True, populate_by_name=True)


NodeName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_-]{0,127}$")]


class SortKey(Strict):
    """A field of a sort order; a bare string is ascending."""

    field: str
    order: Literal["asc", "desc"] = "asc"
    null_order: Literal["first", "last", "drop"] = "last"


def _sort_key(value: Any) -> Any:
    return {"field": value} if isinstance(value, str) else value


SortOrder = list[Annotated[SortKey, BeforeValidator(_sort_key, json_schema_input_type=str | SortKey)]]


class Watermark(Strict):
    """The event time of a source.

    `column`: holds the time of each record. `delay`: moves the event times themselves to earlier ones, so windows move too. `out_of_order`: holds back the
    watermark alone. `idle_timeout`: without effect on results.
    """

    column: str
    delay: str | None = None
    out_of_order: str | None = None
    idle_timeout: str | None = None


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
