"""Hover and completion in a file of CXL."""

from __future__ import annotations

from cxl.compiler import module_findings, notes_of
from cxl.typed.modules import NO_MODULES, Module, read_module
from cxl.typed.notes import Note
from cxl.typed.target import Target
from errata.editor.analysis import Analysis
from errata.editor.completion import Completion
from errata.editor.cxl_completion import cxl_items
from errata.editor.hover import Hover, note_at, said_of
from errata.editor.positions import Region
from errata.editor.programs import is_module, program_target
from errata.editor.session import View


def hover_cxl(view: View, offset: int) -> Hover | None:
    """Return what is said at a place of a file of CXL."""
    found = note_at(_notes(view), offset)
    return None if found is None else said_of(view.analysis, view.names, found, Region(view.source, found.span.start, found.span.end))


def _notes(view: View) -> tuple[Note, ...]:
    text, rules = view.source.text, view.analysis.rules or NO_MODULES
    if is_module(text):
        notes: list[Note] = []
        module: Module = read_module("module", text, view.file)
        module_findings(module, rules, notes)
        return tuple(notes)
    target, _ = program_target(text, view.file, rules)
    return notes_of(text, target)


def complete_cxl(analysis: Analysis | None, file: str, text: str, offset: int) -> Completion:
    """Return what a file of CXL may go on with at an offset."""
    rules = analysis.rules if analysis is not None and analysis.rules is not None else NO_MODULES
    items, typed = cxl_items(Target(open=True, window=True, modules=rules), text[:offset], text[offset:], "row")
    return Completion(tuple(items), typed)
