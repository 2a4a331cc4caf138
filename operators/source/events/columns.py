"""The columns of events, in addition to the stored ones."""

from __future__ import annotations

from typing import Final

from storage.formats.base import ACTIVATES, GOES, PASSED, STANDS, TRUNCATES

__all__ = ["ACTIVATES", "CORRECTS", "GOES", "PASSED", "PATCHES", "STANDS", "TRUNCATES"]

CORRECTS, PATCHES = 5, 6
"""What a record does beside what messages do: it replaces a row that it expects, or some columns of it."""

COLUMNS: Final = {
    "_of": "binary",
    "_does": "tinyint",
    "_quiet": "boolean",
    "_expects": "boolean",
    "_part": "tinyint",
    "_ref": "binary",
    "_shown": "string",
    "_kept": "string",
    "_version": "binary",
    "_stream": "bigint",
}
"""What an event says.

`_of`: the key that it acts on; of a reject its place. `_does`: a code such as STANDS. `_quiet`: whether a retraction of nothing is nothing.
`_expects`: whether it expects a live row. `_part`: 1 and 2 for the halves of a record that takes back one key and appends another, else 0.
`_ref`: the key of the other half. `_shown`: the key in words. `_kept`: columns that keep their values, between separators.
`_version`: bytes that compare as versions do. `_stream`: the version of the stream.
"""
PLACE: Final = {"_anchor": "string", "_turn": "bigint"}
"""Where an event comes in the order of files: at a file, and there behind the events with a lower turn. An overwritten file is delivered again, at the end."""
ORDER: Final = ("_place", "_turn", "_row", "_part")
"""The order of events: the place of their anchor, then these."""
ORDER_OF_ANSWERS: Final = ("_place", "_turn", "_file", "_row", "_part")
"""The order of events of a database. Its records have no places: `_file` is a digest of their values, and `_row` their number among equal ones."""

