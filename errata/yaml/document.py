"""A YAML document: its value, and the place of everything in it."""

from dataclasses import dataclass, field
from functools import cached_property

from cxl.diagnostics.source import Position
from errata.core.diagnostics import Diagnostic, Label
from errata.yaml.nodes import Node, Path, Scalar, child, key_at, to_value, walk
from errata.yaml.offsets import offsets
from errata.yaml.source import SourceText, Span


class ScalarOrigin:
    """The places of one scalar's characters. `cxl.compile_program` takes it as `origin`."""

    __slots__ = ("_places", "_source")

    def __init__(self, source: SourceText, places: list[int]) -> None:
        self._source = source
        self._places = places

    def locate(self, offset: int) -> Position:
        """Return the place of the character at `offset` of the scalar's value. Beyond its end, the place after the last one."""
        return self._source.locate(self._places[min(max(offset, 0), len(self._places) - 1)])

    def line_text(self, line: int) -> str:
        """Return a line of the file."""
        return self._source.line_text(line)


@dataclass
class Document:
    """A YAML file as plain values with places.

    Args:
        masked: The text with its references masked.
        diagnostics: What `read_yaml` found.
    """

    source: SourceText
    masked: str = field(repr=False)
    root: Node = field(repr=False)
    diagnostics: tuple[Diagnostic, ...] = ()
    secrets: frozenset[str] = field(default=frozenset(), repr=False)

    @property
    def file(self) -> str:
        """The file's name as it was given."""
        return self.source.file

    @cached_property
    def value(self) -> object:
        """The document as dict, list, str, int, float, bool and None. Map keys are text. The caller may change it."""
        return to_value(self.root)

    def shown_value(self) -> object:
        """Return a new value with `${secret:NAME}` unreplaced: for fingerprints, plans and logs."""
        return to_value(self.root, shown=True)

    def has(self, path: Path) -> bool:
        """Whether there is a value at the path."""
        return len(list(walk(self.root, path))) == len(path) + 1

    def span(self, path: Path = ()) -> Span:
        """Return the place of the value at `path`; of the nearest value above it where there is none."""
        node = list(walk(self.root, path))[-1]
        return self.source.span(node.start, node.end)

    def key_span(self, path: Path) -> Span:
        """Return the place of the last key of `path`. For a list's item, or a missing path, the value's place."""
        nodes = list(walk(self.root, path[:-1]))
        key = key_at(nodes[-1], path[-1]) if path and len(nodes) == len(path) else None
        return self.source.span(key.start, key.end) if key else self.span(path)

    def origin(self, path: Path) -> ScalarOrigin:
        """Return the map from offsets in the scalar at `path` to the file. For any other value, offsets count from its start."""
        node = list(walk(self.root, path))[-1]
        if isinstance(node, Scalar):
            return ScalarOrigin(self.source, scalar_places(self.masked, node))
        return ScalarOrigin(self.source, [node.start])

    def error(self, path: Path, code: str, message: str, *, key: bool = False, help: str = "", node: str = "") -> Diagnostic:
        """Return an error at the value at `path`, or at its key."""
        place = self.key_span(path) if key else self.span(path)
        return Diagnostic.at(place, code, message, help=help, node=node, lines=self.source)

    def warning(self, path: Path, code: str, message: str, *, key: bool = False, help: str = "", node: str = "") -> Diagnostic:
        """Return a warning at the value at `path`, or at its key."""
        place = self.key_span(path) if key else self.span(path)
        return Diagnostic.at(place, code, message, severity="warning", help=help, node=node, lines=self.source)

    def label(self, path: Path, text: str, *, key: bool = False) -> Label:
        """Return a label at the value at `path`, or at its key."""
        return Label.at(self.key_span(path) if key else self.span(path), text)

    def node_at(self, path: Path) -> Node | None:
        """Return the node of the tree at the path."""
        node: Node | None = self.root
        for step in path:
            node = child(node, step) if node is not None else None
        return node


def scalar_places(text: str, node: Scalar) -> list[int]:
    """Return the file offset of every character of a scalar's text, and of its end. The characters of a reference have its start."""
    places = offsets(text, node.start, node.end, node.style, node.parsed)
    for found in reversed(node.substitutions):
        places[found.index : found.index + found.length] = [places[found.index]] * len(found.replacement)
    return places
