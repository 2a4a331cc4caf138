"""The format schema of a fixed-width file, which gives the places of the fields, and the `options:`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, ValidationError, field_validator, model_validator

from storage.formats.options import OptionError, Options


class FixedWidthOptions(Options):
    """`options:` of a fixed-width source or output."""

    line_separator: Literal["lf", "crlf", "cr_lf", "none"] = Field(
        default="lf", description="What follows each record: a line feed, carriage return and line feed, or nothing. cr_lf is the same as crlf."
    )

    @property
    def line_end(self) -> bytes:
        """The bytes between two records."""
        return {"lf": b"\n", "none": b""}.get(self.line_separator, b"\r\n")


def _one_byte(value: str) -> str:
    if len(value.encode()) != 1:
        raise ValueError("must be one ASCII character")
    return value


class LayoutField(Options):
    """A field: its place (`start` from 0, `width` or `end`, in bytes), its padding, and what becomes of text that is too long.

    `scale`: the digits behind the point of a decimal that is written. `implied_decimals`: the same, in a text without a point.
    """

    name: str = Field(min_length=1, description="The name of the column.", examples=["amount"])
    type: Literal["string", "integer", "float", "decimal", "boolean", "date", "datetime"] = Field(default="string", description="How the text of the field is read and written.")
    start: int | None = Field(default=None, ge=0, description="The first byte of the field, from 0; by default the byte after the field before it.", examples=[8])
    width: int | None = Field(default=None, gt=0, description="The length of the field in bytes; either width or end is needed.", examples=[10])
    end: int | None = Field(default=None, gt=0, description="The byte after the last one of the field.", examples=[18])
    justify: Literal["left", "right"] | None = Field(default=None, description="On which side the text is; by default numbers are right and others left.")
    pad: Annotated[str, AfterValidator(_one_byte)] = Field(default=" ", description="The character that fills the field up.", examples=["0"])
    trim: bool = Field(default=True, description="Whether padding, and then white space, is stripped when the field is read.")
    truncation: Literal["error", "warn", "silent"] | None = Field(
        default=None, description="What happens to text that is too long for the field: error ends the run, warn cuts it with a warning, silent without one."
    )
    scale: int | None = Field(default=None, ge=0, le=38, description="The digits behind the point with which an output writes a decimal, rounded half to even.", examples=[2])
    implied_decimals: int | None = Field(default=None, ge=0, le=38, description="The digits behind a point that the text does not have: 00001250 is 12.50 with 2.", examples=[2])
    format: str | None = Field(default=None, description="The format of a date or time, such as %Y%m%d.", examples=["%Y%m%d"])

    @model_validator(mode="after")
    def _has_place(self) -> LayoutField:
        if self.width is None and self.end is None:
            raise ValueError(f"field '{self.name}' needs width or end")
        if self.end is not None and self.end <= (self.start or 0):
            raise ValueError(f"field '{self.name}' ends before it starts")
        if self.width is not None and self.end is not None and self.end - (self.start or 0) != self.width:
            raise ValueError(f"field '{self.name}': width and end contradict each other")
        self._check_digits()
        return self

    def _check_digits(self) -> None:
        if (self.scale is not None or self.implied_decimals is not None) and self.type != "decimal":
            raise ValueError(f"field '{self.name}': scale and implied_decimals belong to type decimal, not {self.type}")
        if self.implied_decimals is not None and self.scale not in (None, self.implied_decimals):
            raise ValueError(f"field '{self.name}': implied_decimals: {self.implied_decimals} is the scale, which contradicts scale: {self.scale}")

    @property
    def digits_behind(self) -> int | None:
        """The scale that the field is written with; None where it has that of its column."""
        return self.scale if self.implied_decimals is None else self.implied_decimals

    @property
    def length(self) -> int:
        """Bytes of the field."""
        return self.width if self.width is not None else (self.end or 0) - (self.start or 0)

    @property
    def numeric(self) -> bool:
        """Whether it holds a number."""
        return self.type in ("integer", "float", "decimal")


class Layout(Options):
    """The fields of a record in their order."""

    version: Any = Field(default=None, description="Accepted; it has no effect.", examples=[1])
    format: Any = Field(default=None, description="Accepted; it has no effect.", examples=["fixed_width"])
    encoding: Literal["utf-8"] = Field(default="utf-8", description="The encoding of the text.", examples=["utf-8"])
    fields: tuple[LayoutField, ...] = Field(min_length=1, description="The fields of a record in their order.", examples=[[{"name": "id", "start": 0, "width": 8}]])

    @field_validator("fields")
    @classmethod
    def _each_once(cls, fields: tuple[LayoutField, ...]) -> tuple[LayoutField, ...]:
        names = [one.name for one in fields]
        twice = next((name for index, name in enumerate(names) if name in names[:index]), None)
        if twice is not None:
            raise ValueError(f"there are two fields '{twice}'")
        return fields

    @classmethod
    def of(cls, content: Mapping[str, Any] | None, key: str) -> Layout:
        """The layout in a format schema's content. Raises OptionError with the path of the wrong key, which begins with `key`."""
        if content is None:
            raise OptionError(f"a fixed_width format needs a layout: give {key}, a path or a map with 'fields'", (key,))
        try:
            return cls.model_validate(dict(content))
        except ValidationError as wrong:
            raise OptionError.of(wrong, key) from wrong

    @property
    def places(self) -> tuple[tuple[LayoutField, int], ...]:
        """Each field and where it starts. A field without `start` follows the one before."""
        made, at = [], 0
        for one in self.fields:
            start = one.start if one.start is not None else at
            made.append((one, start))
            at = start + one.length
        return tuple(made)

    @property
    def length(self) -> int:
        """Bytes of a complete record."""
        return max(start + one.length for one, start in self.places)
