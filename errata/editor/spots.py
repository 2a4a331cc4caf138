"""Places of a YAML file: the path to each, and whether it is a key or a value."""

from collections.abc import Iterator
from dataclasses import dataclass

from errata.editor.positions import Region
from errata.yaml import Document
from errata.yaml.document import scalar_places
from errata.yaml.nodes import Mapping, Node, Path, Scalar, Sequence, child, key_at


@dataclass(frozen=True, slots=True)
class Spot:
    """A key or a value at a place.

    Args:
        path: The way to it; of a key, the way to its value.
    """

    path: Path
    node: Node
    on_key: bool
    region: Region


def spot_at(document: Document, offset: int) -> Spot:
    """Return the innermost key or value at an offset."""
    path: Path = ()
    node = document.root
    while True:
        step = _step(node, offset)
        if step is None:
            return Spot(path, node, False, Region(document.source, node.start, node.end))
        name, inner, key = step
        path = (*path, name)
        if key is not None:
            return Spot(path, inner, True, Region(document.source, *key))
        node = inner


def _step(node: Node, offset: int) -> tuple[str | int, Node, tuple[int, int] | None] | None:
    """The entry at an offset: its name, its value, and the place of its key where the offset is on it."""
    if isinstance(node, Mapping):
        for name, (key, inner) in node.entries.items():
            if key.start <= offset <= key.end and key.end > key.start:
                return name, inner, (key.start, key.end)
        found = [(name, inner) for name, (key, inner) in node.entries.items() if key.start <= inner.start and _holds(inner, offset)]
        return (*found[-1], None) if found else None
    if isinstance(node, Sequence):
        items = [(index, inner) for index, inner in enumerate(node.items) if node.start <= inner.start and _holds(inner, offset)]
        return (*items[-1], None) if items else None
    return None


def _holds(node: Node, offset: int) -> bool:
    return node.start <= offset < node.end or (isinstance(node, Scalar) and offset == node.end and node.style not in ("|", ">"))


def text_region(document: Document, path: Path, start: int = 0, end: int | None = None) -> Region | None:
    """Return the place of the characters of a text from `start` to `end`; None where there is no text, or a reference is replaced in it.

    Args:
        path: The way to the text.
        end: None: its end.
    """
    node = document.node_at(path)
    return None if not isinstance(node, Scalar) else scalar_region(document, node, start, end)


def scalar_region(document: Document, node: Scalar, start: int = 0, end: int | None = None) -> Region | None:
    """Return the place of the characters of a scalar's text, as `text_region` does."""
    return TextPlaces(document, node).region(start, len(node.parsed) if end is None else end)


class TextPlaces:
    """The places of one text's characters in its file. A text in which a reference is replaced has none."""

    def __init__(self, document: Document, node: Scalar) -> None:
        self._source = document.source
        self._places = [] if node.substitutions else scalar_places(document.masked, node)

    def region(self, start: int, end: int) -> Region | None:
        """Return the place of the characters from `start` to `end`; None where there are none."""
        if not 0 <= start <= end < len(self._places):
            return None
        first = self._places[start]
        return Region(self._source, first, self._places[end - 1] + 1 if end > start else first)

    def offset(self, place: int) -> int | None:
        """Return which character of the text is at an offset of the file: the first one there or behind; None beyond the text."""
        return next((index for index, one in enumerate(self._places) if one >= place), None)


def key_region(document: Document, path: Path) -> Region | None:
    """Return the place of the last key of a path, without its quotes."""
    parent = document.node_at(path[:-1]) if path else None
    key = key_at(parent, path[-1]) if parent is not None else None
    if key is None:
        return None
    quoted = document.source.text[key.start : key.start + 1] in ("'", '"') and key.end - key.start > 1
    return Region(document.source, key.start + quoted, key.end - quoted)


def texts_below(document: Document, path: Path) -> Iterator[tuple[Path, Scalar]]:
    """Yield a text, or the texts of a list, with the way to each."""
    node = document.node_at(path)
    if isinstance(node, Scalar) and isinstance(node.value, str):
        yield path, node
    elif isinstance(node, Sequence):
        yield from (((*path, index), item) for index, item in enumerate(node.items) if isinstance(item, Scalar) and isinstance(item.value, str))


def value_at(document: Document, path: Path) -> object:
    """Return the plain value of a scalar at a path; None where there is none."""
    node = document.node_at(path)
    return node.value if isinstance(node, Scalar) else None


def member(node: Node | None, name: str | int) -> Node | None:
    """Return a member of a map or list; None where there is none."""
    return None if node is None else child(node, name)
