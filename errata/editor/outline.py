"""The outline of a file: nodes with their columns, branches and emitted names; ports, parameters and variables; functions of a module."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from cxl.syntax import ast
from cxl.syntax.parse import parse_program
from errata.editor.positions import Region
from errata.editor.programs import mode_at
from errata.editor.spots import TextPlaces, key_region, text_region
from errata.yaml import Document, SourceText
from errata.yaml.nodes import Mapping, Path, Scalar, Sequence
from operators.core.provisional import walked

Kind = Literal["pipeline", "node", "source", "output", "column", "branch", "emit", "let", "function", "variable", "port", "parameter"]


@dataclass(frozen=True, slots=True)
class Symbol:
    """One entry of the outline.

    Args:
        region: All of it.
        name_region: Its name.
    """

    name: str
    kind: Kind
    detail: str
    region: Region
    name_region: Region
    children: tuple[Symbol, ...] = ()


def outline(document: Document) -> list[Symbol]:
    """Return the outline of a YAML file, also of one that cannot be planned."""
    return [*_head(document), *_nodes(document)]


def outline_cxl(text: str, file: str) -> list[Symbol]:
    """Return the outline of a file of CXL."""
    source = SourceText(text.removeprefix("\ufeff"), file)
    return list(_statements(source.text, lambda start, end: Region(source, start, end)))


def _head(document: Document) -> Iterator[Symbol]:
    for path, kind in ((("pipeline", "vars"), "variable"), (("_compose", "inputs"), "port"), (("_compose", "outputs"), "port"), (("_compose", "config_schema"), "parameter")):
        block = document.node_at(path)
        for name in block.entries if isinstance(block, Mapping) else ():
            made = _keyed(document, (*path, name), kind)
            if made is not None:
                yield made


def _keyed(document: Document, path: Path, kind: Any) -> Symbol | None:
    """An entry whose key is its name."""
    key, node = key_region(document, path), document.node_at(path)
    if key is None or node is None:
        return None
    return Symbol(str(path[-1]), kind, "", Region(document.source, key.start, max(_end(document, node.start, node.end), key.end)), key)


def _end(document: Document, start: int, end: int) -> int:
    """The end of a value without the blank lines behind it."""
    return start + len(document.source.text[start:end].rstrip())


def _nodes(document: Document) -> Iterator[Symbol]:
    nodes = document.node_at(("nodes",))
    for index, node in enumerate(nodes.items if isinstance(nodes, Sequence) else ()):
        path: Path = ("nodes", index)
        name = document.node_at((*path, "name"))
        region = text_region(document, (*path, "name"))
        if not isinstance(node, Mapping) or not isinstance(name, Scalar) or region is None or not str(name.value):
            continue
        type_ = document.node_at((*path, "type"))
        kind = str(type_.value) if isinstance(type_, Scalar) else ""
        whole = Region(document.source, min(node.start, region.start), max(_end(document, node.start, node.end), region.end))
        shown: Kind = "source" if kind == "source" else "output" if kind == "output" else "node"
        yield Symbol(str(name.value), shown, kind, whole, region, tuple(_parts(document, path, kind)))


def _parts(document: Document, path: Path, kind: str) -> Iterator[Symbol]:
    """The columns of a source, the branches of a route, what a program defines."""
    if kind == "source":
        yield from _columns(document, (*path, "config", "schema"))
    elif kind == "route":
        branches = document.node_at((*path, "config", "conditions"))
        made = (_keyed(document, (*path, "config", "conditions", name), "branch") for name in (branches.entries if isinstance(branches, Mapping) else ()))
        yield from (one for one in made if one is not None)
    text = document.node_at((*path, "config", "cxl"))
    if isinstance(text, Scalar) and isinstance(text.value, str) and not text.substitutions and mode_at(kind, ("config", "cxl")) is not None:
        yield from _statements(text.value, TextPlaces(document, text).region)


def _columns(document: Document, path: Path) -> Iterator[Symbol]:
    """The columns that a source declares."""
    schema = document.node_at(path)
    for index, entry in enumerate(schema.items if isinstance(schema, Sequence) else ()):
        name, region = document.node_at((*path, index, "name")), text_region(document, (*path, index, "name"))
        type_ = document.node_at((*path, index, "type"))
        if isinstance(name, Scalar) and region is not None and str(name.value):
            whole = Region(document.source, min(entry.start, region.start), max(_end(document, entry.start, entry.end), region.end))
            yield Symbol(str(name.value), "column", str(type_.value) if isinstance(type_, Scalar) else "", whole, region)


def _statements(text: str, place: Any) -> Iterator[Symbol]:
    """The names that the statements of a program define."""
    kinds: dict[type, Kind] = {ast.Emit: "emit", ast.Let: "let", ast.Fn: "function"}
    for one in walked(parse_program(text).statements):
        if isinstance(one, ast.Emit | ast.Let | ast.Fn):
            whole, name = place(one.span.start, one.span.end), place(one.name_span.start, one.name_span.end)
            if whole is not None and name is not None:
                yield Symbol(one.name, kinds[type(one)], "", whole, name)
