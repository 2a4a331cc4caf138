"""CXL in canonical format: whole files of it, and the programs in block scalars of YAML."""

from __future__ import annotations

from collections.abc import Iterator

from cxl.diagnostics.diagnostics import CxlErrors
from cxl.syntax.format import format_text
from errata.editor.positions import Edit, Region
from errata.editor.programs import STATEMENTS, mode_at
from errata.yaml import Document, SourceText
from errata.yaml.nodes import Mapping, Node, Path, Scalar, Sequence


def format_cxl(text: str, file: str) -> list[Edit]:
    """Return the edit that formats a file of CXL; none where it is formatted, or has errors."""
    try:
        formatted = format_text(text.removeprefix("\ufeff"), file)
    except CxlErrors:
        return []
    if "\r\n" in text:
        formatted = formatted.replace("\n", "\r\n")
    return [Edit(Region(SourceText(text, file), 0, len(text)), formatted)] if formatted != text else []


def format_yaml(document: Document) -> list[Edit]:
    """Return the edits that format the programs of a YAML file. Programs with errors, and other texts, stay as they are."""
    edits = [edit for path, node in _programs(document) for edit in _formatted(document, path, node)]
    return list({edit.region.key: edit for edit in edits}.values())


def _programs(document: Document) -> Iterator[tuple[Path, Scalar]]:
    nodes = document.node_at(("nodes",))
    for index, node in enumerate(nodes.items if isinstance(nodes, Sequence) else ()):
        kind = node.entries.get("type") if isinstance(node, Mapping) else None
        name = kind[1].value if kind is not None and isinstance(kind[1], Scalar) else None
        yield from (found for found in _texts(node, ("nodes", index)) if mode_at(name, found[0][2:]) in STATEMENTS)


def _texts(node: Node, path: Path) -> Iterator[tuple[Path, Scalar]]:
    if isinstance(node, Scalar):
        yield path, node
    elif isinstance(node, Mapping):
        yield from (found for name, (_, inner) in node.entries.items() for found in _texts(inner, (*path, name)))


def _formatted(document: Document, path: Path, node: Scalar) -> Iterator[Edit]:
    if node.style != "|" or node.substitutions or not node.parsed.strip():
        return
    try:
        formatted = format_text(node.parsed, document.file)
    except CxlErrors:
        return
    region = _content(document.source, node)
    if region is None or not formatted:
        return
    indent = region.text[: len(region.text) - len(region.text.lstrip(" "))]
    end = "\r\n" if "\r\n" in region.text else "\n"
    lines = (f"{indent}{line}" if line else "" for line in formatted.rstrip("\n").split("\n"))
    text = end.join(lines)
    if text != region.text and _is_plain(region, indent):
        yield Edit(region, text)


def _content(source: SourceText, node: Scalar) -> Region | None:
    """The lines of a block scalar, from the first to the last that is not empty."""
    header = source.text.find("\n", node.start, node.end)
    if header < 0:
        return None
    start, end = header + 1, node.end
    while end > start and source.text[end - 1] in " \r\n":
        end -= 1
    while start < end and not source.text[start : source.text.find("\n", start)].strip():
        start = source.text.find("\n", start) + 1
    return Region(source, start, end) if start < end else None


def _is_plain(region: Region, indent: str) -> bool:
    """Whether every line has the indentation of the first, so that nothing but the program is replaced."""
    return all(line.startswith(indent) or not line.strip() for line in region.text.splitlines())
