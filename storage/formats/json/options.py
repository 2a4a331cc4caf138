"""`options:` of JSON sources and outputs."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from storage.formats.base import keys_of
from storage.formats.options import Options


class ChangeFeed(Options):
    """A change feed, whose messages have their rows inside."""

    format: Literal["debezium", "singer", "maxwell", "canal"] = Field(description="The format of the messages.")
    table: str | None = Field(default=None, min_length=1, description="The table whose events count: its name, with its schema or database before it where these differ.")
    stream: str | None = Field(default=None, min_length=1, description="The Singer stream whose records count.", examples=["orders"])
    time_unit: Literal["s", "ms", "us", "ns"] = Field(default="ms", description="The unit of numbers in columns of type date_time, where no schema names it.")


def _feed(value: Any) -> Any:
    return {"format": value} if isinstance(value, str) else value


class JsonReadOptions(Options):
    """`options:` of a JSON source.

    Without `format` the content decides: `[` begins an array, lines of whole objects are NDJSON. `record_path` leads to the array of records in the
    document, and with `format: ndjson` in each line. `duplicate_keys` decides what becomes of a record that has a member twice. `cdc` takes rows out of
    the messages of a change feed.
    """

    format: Literal["array", "ndjson", "object"] | None = Field(default=None, description="The form of the file; by default the content decides.")
    record_path: str | None = Field(default=None, description="The keys, with points between them, that lead to the array of records; under ndjson in each line.", examples=["data.orders"])
    duplicate_keys: Literal["reject", "last"] = Field(default="reject", description="What becomes of a record that has a member twice: it is rejected, or the last one counts.")
    cdc: Annotated[ChangeFeed, BeforeValidator(_feed, json_schema_input_type=Literal["debezium", "singer", "maxwell", "canal"] | ChangeFeed)] | None = Field(
        default=None, description="The format of a change feed, whose messages have rows inside an envelope."
    )

    @property
    def steps(self) -> tuple[str, ...]:
        """The keys that lead to the records."""
        return keys_of(self.record_path or "")


class JsonWriteOptions(Options):
    """`options:` of a JSON output. Under `nested` a dotted column name is a member of an object: `address.city` is `{"address": {"city": ...}}`.

    `decimals: string` writes decimals as strings of their digits, for readers whose numbers are floats.
    """

    format: Literal["array", "ndjson"] = Field(default="array", description="One array, or one object a line.")
    pretty: bool = Field(default=False, description="Whether the text is indented.")
    nested: bool = Field(default=False, description="Whether a dotted column name is a member of an object: address.city (E329).")
    decimals: Literal["number", "string"] = Field(default="number", description="Whether decimals are numbers or texts of their digits.")
