"""`options:` of JSON sources and outputs."""

from __future__ import annotations

from typing import Literal

from storage.formats.base import keys_of
from storage.formats.options import Options


class JsonReadOptions(Options):
    """`options:` of a JSON source.

    Without `format` the content decides: `[` begins an array, lines of whole objects are NDJSON. `record_path` leads to the array of records in the
    document, and with `format: ndjson` in each line. `duplicate_keys` decides what becomes of a record that has a member twice.
    """

    format: Literal["array", "ndjson", "object"] | None = None
    record_path: str | None = None
    duplicate_keys: Literal["reject", "last"] = "reject"

    @property
    def steps(self) -> tuple[str, ...]:
        """The keys that lead to the records."""
        return keys_of(self.record_path or "")


class JsonWriteOptions(Options):
    """`options:` of a JSON output. Under `nested` a dotted column name is a member of an object: `address.city` is `{"address": {"city": ...}}`.

    `decimals: string` writes decimals as strings of their digits, for readers whose numbers are floats.
    """

    format: Literal["array", "ndjson"] = "array"
    pretty: bool = False
    nested: bool = False
    decimals: Literal["number", "string"] = "number"
