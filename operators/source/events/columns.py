"""The columns of events, in addition to the stored ones."""

from __future__ import annotations

from typing import Final

from storage.formats.base import ACTIVATES, GOES, PASSED, STANDS, TRUNCATES

__all__ = ["ACTIVATES", "CORRECTS", "GOES", "PASSED", "PATCHES", "STANDS", "TRUNCATES"]

CORRECTS, PATCHES = 5, 6
"""The effect of a record beside the effects of messages: it replaces a row that it expects, or some columns of it."""

COLUMNS: Final = {
    "__of": "binary",
    "__does": "tinyint",
    "__quiet": "boolean",
    "__expects": "boolean",
    "__part": "tinyint",
    "__ref": "binary",
    "__shown": "string",
    "__kept": "string",
    "__version": "binary",
    "__stream": "bigint",
}
"""The content of an event.

`__of`: the key that it acts on; of a reject its place. `__does`: a code such as STANDS. `__quiet`: whether a retraction of nothing is nothing.
`__expects`: whether it expects a live row. `__part`: 1 and 2 for the halves of a record that takes back one key and appends another, else 0.
`__ref`: the key of the other half. `__shown`: the key in words. `__kept`: columns that keep their values, between separators.
`__version`: bytes that compare as versions do. `__stream`: the version of the stream.
"""
PLACE: Final = {"__anchor": "string", "__turn": "bigint"}
"""Where an event comes in the order of files: at a file, and there behind the events with a lower turn. An overwritten file is delivered again, at the end."""
ORDER: Final = ("__place", "__turn", "_row", "__part")
"""The order of events: the place of their anchor, then these."""
ORDER_OF_ANSWERS: Final = ("__place", "__turn", "_file", "_row", "__part")
"""The order of events of a database. Its records have no places: `_file` is a digest of their values, and `_row` their number among equal ones."""

