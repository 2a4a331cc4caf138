"""Texts about the thing at a place: a key, a node, a column, a builtin, a variable."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cxl.functions.registry import Builtin
from cxl.typed.notes import Note
from cxl.types.types import Type
from errata.editor.analysis import Analysis
from errata.editor.files import kind_of
from errata.editor.keys import described, details
from errata.editor.names import Name, Names, Occurrence
from errata.editor.positions import Region
from errata.editor.programs import mode_at
from errata.editor.spots import Spot, TextPlaces, spot_at
from errata.yaml import Document
from errata.yaml.nodes import Path, Scalar

MOST_COLUMNS = 40
"""How many columns of a node are shown."""


@dataclass(frozen=True, slots=True)
class Hover:
    """Markdown, and what it is about."""

    text: str
    region: Region


def hover(analysis: Analysis, names: Names, document: Document, offset: int) -> Hover | None:
    """Return what is said at a place of a YAML file; None where there is nothing to say."""
    spot = spot_at(document, offset)
    if spot.on_key and mode_at(_kind(document, spot.path), spot.path[2:]) is None:
        found = names.at(document.file, offset)
        return _of_name(analysis, names, found) if found is not None and found.name.kind in ("parameter", "qualifier", "port", "column") else _of_key(document, spot)
    if mode_at(_kind(document, spot.path), spot.path[2:]) is not None and not spot.on_key:
        return in_cxl(analysis, names, document, spot, offset)
    found = names.at(document.file, offset)
    return _of_name(analysis, names, found) if found is not None else _of_value(document, spot)


def _kind(document: Document, path: Path) -> object:
    """The type of the node that a path leads into; None where it leads into none."""
    node = document.node_at((*path[:2], "type")) if len(path) > 1 and path[0] == "nodes" else None
    return node.value if isinstance(node, Scalar) else None


def _of_key(document: Document, spot: Spot) -> Hover | None:
    kind = kind_of(document.file, document.source.text)
    text = described(kind, document.value, spot.path)
    more = details(kind, document.value, spot.path)
    shown = "\n\n".join(one for one in (f"**{spot.path[-1]}**", text, more) if one)
    return Hover(shown, spot.region) if text or more else None


def _of_value(document: Document, spot: Spot) -> Hover | None:
    """The description of the key whose value it is, where the value is one word."""
    if not isinstance(spot.node, Scalar) or not spot.path or spot.node.style in ("|", ">"):
        return None
    path = spot.path if isinstance(spot.path[-1], str) else spot.path[:-1]
    return _of_key(document, Spot(path, spot.node, True, spot.region)) if path else None


# Names ------------------------------------------------------------------------------------------------------------------


def _of_name(analysis: Analysis, names: Names, found: Occurrence, type_: Type | None = None) -> Hover | None:
    name = found.name
    if name.kind == "node":
        return Hover(node_text(analysis, name), found.region)
    if name.kind == "column":
        return Hover(column_text(analysis, names, name, type_), found.region)
    if name.kind in ("variable", "parameter"):
        shown = f"$vars.{name.name}" if name.kind == "parameter" else f"${name.owner}.{name.name}"
        return Hover("\n\n".join([_code(shown, type_), *_declared(names, name)]), found.region)
    said = {"port": "A port or a branch.", "qualifier": "An input of the combine.", "let": "A value of this program.", "function": "A function.", "module": "A module."}
    places = _declared(names, name) if name.kind in ("function", "module") else []
    return Hover("\n\n".join([_code(name.name.removeprefix("in.").removeprefix("out."), type_), said[name.kind], *places]), found.region)


def _declared(names: Names, name: Name) -> list[str]:
    return [f"Declared in {_place(region)}: `{_line(region)}`" for region in names.definitions(name)[:1]]


def _code(name: str, type_: Type | None) -> str:
    return f"```cxl\n{name}{'' if type_ is None else f': {type_}'}\n```"


def node_text(analysis: Analysis, name: Name) -> str:
    """Return what is said of a node: its type and its columns."""
    spec = None
    if analysis.draft is not None:
        specs = analysis.draft.specs.values()
        spec = next((one for one in specs if one.document.file == name.owner and one.name.rpartition("/")[2] == name.name), None)
    behind = analysis.draft.expansion.outputs.get(name.name) if analysis.draft is not None else None
    if spec is None and behind is None:
        return f"**{name.name}**"
    columns = analysis.columns(behind or "" if spec is None else spec.name)
    lines = [f"**{name.name}** ({'composition' if spec is None else spec.kind})"]
    lines += ["| column | type |\n|---|---|\n" + "\n".join(f"| {one} | {type_} |" for one, type_ in list(columns.items())[:MOST_COLUMNS])] if columns else []
    return "\n\n".join([*lines, *([f"and {len(columns) - MOST_COLUMNS} more columns"] if len(columns) > MOST_COLUMNS else [])])


def column_text(analysis: Analysis, names: Names, name: Name, type_: Type | None = None) -> str:
    """Return what is said of a column: its type, where it is made, and the columns of sources that it comes from."""
    type_ = type_ or analysis.columns(name.owner).get(name.name)
    lines = [_code(name.name, type_)]
    for maker in names.makers(name):
        region = names.definitions(maker)[0]
        lines.append(f"Made by `{maker.owner}` in {_place(region)}: `{_line(region)}`")
    origins = sorted(origins_of(analysis, names, name))
    lines += [f"From {', '.join(f'`{source}.{column}`' for source, column in origins)}"] if origins else []
    return "\n\n".join(lines)


def origins_of(analysis: Analysis, names: Names, name: Name) -> set[tuple[str, str]]:
    """Return the columns of sources behind a column, as pairs of source and column."""
    found: set[tuple[str, str]] = set()
    seen: set[Name] = set()
    turn = [name]
    while turn:
        for maker in names.makers(turn.pop()):
            if maker in seen:
                continue
            seen.add(maker)
            node = analysis.draft.specs.get(maker.owner) if analysis.draft else None
            if node is not None and node.kind == "source":
                found.add((maker.owner, maker.name))
            else:
                turn += analysis.column_inputs.get((maker.owner, maker.name), ())
    return found


def _place(region: Region) -> str:
    return f"{region.file.rpartition('/')[2]}:{region.range.start.line + 1}"


def _line(region: Region) -> str:
    return region.source.line_text(region.range.start.line + 1).strip().removeprefix("- ").replace("`", "'")


# CXL --------------------------------------------------------------------------------------------------------------------


def in_cxl(analysis: Analysis, names: Names, document: Document, spot: Spot, offset: int) -> Hover | None:
    """Return what is said at a place of a CXL text."""
    programs = analysis.programs_at(document.file, spot.path)
    if not programs or not isinstance(spot.node, Scalar):
        return None
    places = TextPlaces(document, spot.node)
    at = places.offset(offset)
    found = None if at is None else note_at(analysis.notes(programs[0]), at)
    region = None if found is None else places.region(found.span.start, found.span.end)
    if found is None or region is None:
        return None
    return said_of(analysis, names, found, region)


def note_at(notes: tuple[Note, ...], at: int) -> Note | None:
    """Return the note of the innermost name at a character of a text."""
    here = [one for one in notes if one.span.start <= at < one.span.end] or [one for one in notes if one.span.end == at]
    return min(here, key=lambda one: one.span.length, default=None)


def said_of(analysis: Analysis, names: Names, note: Note, region: Region) -> Hover | None:
    """Return what is said of a name of a CXL text."""
    if note.builtins:
        return Hover(builtin_text(note.builtins, note.type), region)
    found = names.at(region.file, region.end)
    if found is not None and found.name.name.removeprefix("in.") in (note.name, note.name.rpartition(".")[2]):
        return _of_name(analysis, names, Occurrence(region, found.name, found.defines), note.type)
    return Hover("\n\n".join([_code(f"${note.name}" if note.kind == "system" else note.name, note.type), *_system(note)]), region)


def _system(note: Note) -> Iterator[str]:
    if note.kind == "system":
        yield "A value that Errata fills in." if note.type is not None else ""


def builtin_text(entries: tuple[Builtin, ...], type_: Type | None = None) -> str:
    """Return the page of a builtin: signatures, what it does, examples."""
    parts: list[str] = []
    for entry in dict.fromkeys(entries):
        parts.append(f"```cxl\n{prefix_of(entry)}{entry.signature}\n```")
        parts.append(entry.doc)
        if entry.examples:
            parts.append("```cxl\n" + "\n".join(f"{text}  # {expected}" for text, expected in entry.examples) + "\n```")
    if type_ is not None:
        parts.append(f"Here: `{type_}`")
    return "\n\n".join(parts)


def prefix_of(entry: Builtin) -> str:
    """Return the words before a call of a builtin: the type of its receiver, or `$window`."""
    if entry.kind == "window":
        return "$window."
    accepted = entry.receiver
    types = accepted if isinstance(accepted, tuple) else (accepted,) if accepted is not None else ()
    return f"{' | '.join(one.kind.value for one in types)}." if types else ""
