"""The function reference, generated: `python -m cxl.commands.reference` prints it, `make docs` writes `docs/reference/cxl/functions.md`.

Tests run the examples on both backends.
"""

import sys
from collections.abc import Iterator
from datetime import date

from cxl.functions.registry import Builtin, all_builtins
from cxl.types.types import Schema, Type
from cxl.values.dynamic import dumps, plain
from cxl.values.text import scalar_text

SAMPLE_SCHEMA = Schema.of({"profile": "map", "nums": "array"})
SAMPLE: dict[str, object] = {"profile": {"name": "Alice", "address": {"city": "LA"}}, "nums": [10, 20, 30]}
"""The record that examples may read."""
_TITLES = {"method": "Methods", "aggregate": "Aggregate functions", "window": "Window functions"}


def shown(value: object) -> str:
    """Return a value as the reference prints it: texts and dates plain, everything else as JSON."""
    if isinstance(value, str | date):
        return scalar_text(value)
    return plain(dumps(value) or "null")


def markdown() -> str:
    """Return the page: one section for each function, by category and name."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "# CXL functions"
    yield ""
    yield "This page is made from the functions themselves: `make docs` writes it. Tests run every example."
    yield "A null receiver or argument gives null, unless a method says otherwise. Examples may read the record"
    yield f"`{dumps(SAMPLE)}`."
    for kind, title in _TITLES.items():
        entries = sorted((entry for entry in all_builtins() if entry.kind == kind), key=lambda entry: (entry.category, entry.name, _receiver(entry)))
        categories = list(dict.fromkeys(entry.category for entry in entries))
        for category in categories:
            yield from ("", f"## {title if len(categories) == 1 else category}")
            for entry in (one for one in entries if one.category == category):
                yield from _section(entry)


def _section(entry: Builtin) -> Iterator[str]:
    prefix = {"method": f"{_receiver(entry)}.", "window": "$window."}.get(entry.kind, "")
    yield from ("", f"### {entry.name}", "", f"`{prefix}{entry.signature}`", "", entry.doc)
    if entry.examples:
        yield from ("", "```cxl", *(f"{text}  # {expected}" for text, expected in entry.examples), "```")


def _receiver(entry: Builtin) -> str:
    accepted = entry.receiver
    types = (accepted,) if isinstance(accepted, Type) else accepted or ()
    return " | ".join(one.kind.value for one in types)


if __name__ == "__main__":
    sys.stdout.write(markdown())
