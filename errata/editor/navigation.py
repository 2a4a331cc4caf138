"""Where a thing is made, and every place where it is used."""

from __future__ import annotations

import re
from os.path import normpath
from pathlib import Path as FilePath

from errata.editor.analysis import Analysis
from errata.editor.names import Names
from errata.editor.positions import Region
from errata.editor.spots import Spot, spot_at
from errata.project import workspace
from errata.yaml import Document, SourceText
from errata.yaml.nodes import Path, Scalar

FILE_KEYS = (("use",), ("config", "format_schema"), ("config", "schema"))
"""Keys of a node whose text is the path of a file of the project."""


def definitions(analysis: Analysis, names: Names, document: Document | None, file: str, offset: int) -> list[Region]:
    """Return where the thing at a place is made: a node, a column, a variable, a function; or the file or connection that is named there."""
    named = (_named_file(analysis, document, offset) or _named_connection(analysis, document, offset)) if document is not None else None
    if named is not None:
        return [named]
    found = names.at(file, offset)
    return [] if found is None else names.definitions(found.name)


def references(names: Names, file: str, offset: int, *, declarations: bool = True) -> list[Region]:
    """Return every place of the thing at a place.

    Args:
        declarations: Whether the places where it is made belong to them.
    """
    found = names.at(file, offset)
    places = [] if found is None else names.places(found.name)
    return [one.region for one in places if declarations or not one.defines]


def _named_file(analysis: Analysis, document: Document, offset: int) -> Region | None:
    """The beginning of the file whose path is at a place."""
    spot = spot_at(document, offset)
    if spot.on_key or not isinstance(spot.node, Scalar) or not isinstance(spot.node.value, str) or not _names_file(spot):
        return None
    folder = FilePath(document.file).parent
    if spot.path[-1] != "use" and analysis.draft is not None:
        folder = analysis.draft.settings.folder
    path = normpath(folder / spot.node.value) if "\0" not in spot.node.value else ""
    return Region(SourceText("", path), 0, 0) if path and FilePath(path).is_file() else None


def _named_connection(analysis: Analysis, document: Document, offset: int) -> Region | None:
    """The heading of the connection, in the workspace's settings, that is named at a place."""
    spot = spot_at(document, offset)
    if spot.on_key or spot.path[:1] != ("nodes",) or spot.path[2:] != ("config", "connection") or not isinstance(spot.node, Scalar) or analysis.draft is None:
        return None
    connection = analysis.draft.settings.connections.get(str(spot.node.value))
    files = [connection.folder / name for name in workspace.FILES] if connection is not None else []
    file = next((one for one in files if one.is_file()), None)
    text = file.read_text("utf-8", "replace") if file is not None else ""
    heading = re.search(rf'(?m)^[ \t]*\[[ \t]*connections[ \t]*\.[ \t]*["\']?{re.escape(str(spot.node.value))}["\']?[ \t]*\]', text)
    return Region(SourceText(text, str(file)), heading.start(), heading.end()) if heading else None


def _names_file(spot: Spot) -> bool:
    path: Path = spot.path
    return (path[:1] == ("nodes",) and path[2:] in FILE_KEYS) or path == ("channel", "target")
