"""Edits that mend a diagnostic: the name that it suggests takes the place of the one that is there."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from errata.core.diagnostics import Diagnostic
from errata.editor.positions import Edit, Region
from errata.yaml import SourceText

_SUGGESTED = re.compile(r"did you mean '([^']+)'\?")
_WORD = re.compile(r"\$?[A-Za-z_][A-Za-z0-9_-]*")


@dataclass(frozen=True, slots=True)
class Fix:
    """An edit, the diagnostic that it mends, and what it says of itself."""

    title: str
    diagnostic: Diagnostic
    edit: Edit


def fixes(diagnostics: Iterable[Diagnostic], source: SourceText) -> Iterator[Fix]:
    """Yield the fixes of the diagnostics of a text."""
    for one in diagnostics:
        suggested = _SUGGESTED.search(one.help)
        region = region_of(one, source)
        if suggested is None or region is None:
            continue
        wrong = _nearest(region, suggested[1], one.message)
        if wrong is not None and wrong.text != suggested[1]:
            yield Fix(f"Replace '{wrong.text}' by '{suggested[1]}'", one, Edit(wrong, suggested[1]))


def region_of(one: Diagnostic, source: SourceText) -> Region | None:
    """Return the place of a diagnostic in a text; None where it has none in it."""
    if not 0 < one.line <= source.line_count:
        return None
    start, end = source.line_bounds(one.line)
    first = min(start + max(one.column - 1, 0), end)
    return Region(source, first, min(first + max(one.length, 0), end))


def _nearest(region: Region, suggested: str, message: str) -> Region | None:
    """The word of a region that the suggestion is about: the one that the message names and that is most like it."""
    words = [Region(region.source, region.start + found.start(), region.start + found.end()) for found in _WORD.finditer(region.text)]
    if region.text == region.text.strip() and f"'{region.text}'" in message:
        words.append(region)
    named = [one for one in words if f"'{one.text}'" in message or f".{one.text}'" in message or f"'{one.text}." in message]
    return max(named or words, key=lambda one: difflib.SequenceMatcher(None, one.text.lower(), suggested.lower()).ratio(), default=None)
