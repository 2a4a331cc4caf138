"""A new name for a node, a column or another thing of a pipeline, in all its places at once.

A rename is tried before it is given: the changed texts are checked again, and every place has to mean the same thing as before. A column that a source reads
keeps its name in the files, by `source_name`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from cxl.syntax.tables import keywords
from errata.editor.analysis import Analysis, analyse
from errata.editor.collect import names_of
from errata.editor.names import Name, Names, Occurrence
from errata.editor.positions import Edit, Region, applied
from errata.editor.spots import key_region, spot_at
from errata.project.texts import Texts
from errata.yaml import Document
from operators.core.row_type import is_reserved

_NODE = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,127}")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SAID = {
    "node": "node", "column": "column", "port": "branch or port", "qualifier": "input", "let": "value", "function": "function", "variable": "variable",
    "parameter": "parameter", "module": "module",
}  # fmt: skip


class Refused(Exception):
    """A rename that would change what a pipeline does, or that cannot be made. The message says why."""


def renamed_thing(analysis: Analysis, names: Names, file: str, offset: int) -> Occurrence:
    """Return what would be renamed at a place. Raises Refused."""
    found = names.at(file, offset)
    if found is None:
        raise Refused("there is no name here that can be renamed")
    said = f"{_SAID[found.name.kind]} '{_shown(found.name)}'"
    if found.name.kind == "module" or not names.definitions(found.name):
        raise Refused(f"{said} is not made in these files, so it cannot be renamed here")
    if any(one.is_error for one in analysis.diagnostics):
        raise Refused("the file has errors; mend them first, so that every place of the name is known")
    if found.name.kind == "column" and analysis.signature is not None and any(name in analysis.signature.inputs for name in _owners(names, found.name)):
        raise Refused(f"{said} comes from the pipelines that use this composition; rename it in one of them")
    for one in names.places(found.name):
        if one.region.text != _shown(found.name):
            raise Refused(f"{said} is written in another way in {one.region.file}:{one.region.range.start.line + 1}")
    return found


def rename(analysis: Analysis, names: Names, texts: Texts, place: tuple[str, int], new: str) -> list[Edit]:
    """Return the edits that give the thing at a place a new name. Raises Refused.

    Args:
        place: The file and the offset in it.
    """
    found = renamed_thing(analysis, names, *place)
    old = _shown(found.name)
    if new == old:
        return []
    _check_name(found.name, new)
    if found.name.kind == "column":
        _check_free(analysis, names, found.name, new)
    edits = [Edit(one.region, new) for one in names.places(found.name)]
    edits = [_mapped(analysis, edit, old) if found.name.kind == "column" else edit for edit in edits]
    _try(analysis, names, texts, found, edits)
    return edits


def _shown(name: Name) -> str:
    return name.name.removeprefix("in.").removeprefix("out.") if name.kind == "port" else name.name


def _check_name(name: Name, new: str) -> None:
    form = _NODE if name.kind in ("node", "port") else _WORD
    if not form.fullmatch(new):
        raise Refused(f"'{new}' is no name: letters, digits and _{' and -' if form is _NODE else ''}, not beginning with a digit")
    if form is _WORD and new in {*keywords(), "it"}:
        raise Refused(f"'{new}' is a word of CXL")
    if name.kind == "column" and is_reserved(new):
        raise Refused(f"'{new}' is a name that changelogs use themselves")


def _owners(names: Names, name: Name) -> list[str]:
    """The nodes that a column passes through under its name."""
    wanted = names.group(name)
    return list(dict.fromkeys(one.owner for one in (*(place.name for place in names.found), *names.passes) if one.kind == "column" and names.group(one) == wanted))


def _check_free(analysis: Analysis, names: Names, name: Name, new: str) -> None:
    for owner in _owners(names, name):
        if new in analysis.columns(owner):
            raise Refused(f"'{owner}' has a column '{new}' already")


def _mapped(analysis: Analysis, edit: Edit, old: str) -> Edit:
    """An edit; where it is the declaration of a column by a source, with the name that the column keeps in the files."""
    document = analysis.documents.get(edit.region.file)
    spot = spot_at(document, edit.region.start) if document is not None else None
    if document is None or spot is None or spot.on_key or spot.path[2:4] != ("config", "schema") or spot.path[-1] != "name":
        return edit
    entry = spot.path[:-1]
    is_source = getattr(document.node_at((*spot.path[:2], "type")), "value", None) == "source"
    if not is_source or document.has((*entry, "source_name")) or document.has((*entry, "path")):
        return edit
    written = old if _WORD.fullmatch(old) and old.lower() not in ("true", "false", "null") else json.dumps(old, ensure_ascii=False)
    return Edit(replace(edit.region, end=spot.region.end), f"{edit.text}{_closing(spot.region)}{_between(document, spot.path)}source_name: {written}")


def _closing(scalar: Region) -> str:
    """The quote that ends a quoted text."""
    return scalar.text[-1] if scalar.text[:1] in ("'", '"') else ""


def _between(document: Document, path: tuple[str | int, ...]) -> str:
    """The characters between two entries of a map: a comma, or a line end and the indentation of its keys."""
    parent = document.node_at(path[:-1])
    if parent is not None and document.source.text[parent.start : parent.start + 1] == "{":
        return ", "
    key = key_region(document, path)
    start = key.source.line_bounds(key.range.start.line + 1)[0] if key is not None else 0
    column = key.start - start if key is not None else 0
    return "\n" + " " * column


# The trial --------------------------------------------------------------------------------------------------------------


def _try(analysis: Analysis, names: Names, texts: Texts, found: Occurrence, edits: list[Edit]) -> None:
    """Check the changed texts. Raises Refused where they have an error, or where a place would mean something else."""
    changed = dict(_changed(edits))
    after = analyse(analysis.file, Texts({**texts.unsaved, **changed}), changed.get(analysis.file) or _text(analysis))
    wrong = next((one for one in after.diagnostics if one.is_error), None)
    if wrong is not None:
        raise Refused(f"then {wrong.file}:{wrong.line} would have an error: {wrong.message}")
    fresh = names_of(after)
    expected = {(one.region.file, _moved(one.region.start, one.region.file, edits)) for one in names.places(found.name)}
    first = next(one for one in edits if one.region.key == found.region.key or one.region.start == found.region.start)
    at = fresh.at(first.region.file, _moved(first.region.start, first.region.file, edits))
    actual = {(one.region.file, one.region.start) for one in fresh.places(at.name)} if at is not None else set()
    other = min(actual ^ expected, default=None)
    if other is not None:
        line = changed.get(other[0], "").count("\n", 0, other[1]) + 1
        raise Refused(f"then {other[0]}:{line} would mean something else")
    if _shapes(analysis) != [(kind, [_back(one, edits, found) for one in columns]) for kind, columns in _shapes(after)] and found.name.kind != "column":
        raise Refused("then a node would have other columns")


def _text(analysis: Analysis) -> str:
    return analysis.document.source.text if analysis.document is not None else ""


def _changed(edits: list[Edit]) -> Iterator[tuple[str, str]]:
    """The texts of the files with the edits made."""
    by_file: dict[str, list[Edit]] = {}
    for edit in edits:
        by_file.setdefault(edit.region.file, []).append(edit)
    for file, own in by_file.items():
        yield file, applied(own[0].region.source.text, own)


def _moved(offset: int, file: str, edits: list[Edit]) -> int:
    """Where an offset is once the edits are made."""
    return offset + sum(len(one.text) - (one.region.end - one.region.start) for one in edits if one.region.file == file and one.region.start < offset)


def _shapes(analysis: Analysis) -> list[tuple[str, list[str]]]:
    """The columns of each node, in the order of the plan."""
    specs: Mapping[str, object] = analysis.draft.specs if analysis.draft else {}
    return [(analysis.draft.specs[name].kind if analysis.draft else "", list(analysis.columns(name))) for name in specs]


def _back(column: str, edits: list[Edit], found: Occurrence) -> str:
    """A column by the name that it had before."""
    return column if found.name.kind != "qualifier" or column != edits[0].text else found.name.name
