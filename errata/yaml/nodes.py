"""The tree of a YAML document: values and keys with their offsets."""

from collections.abc import Iterator
from dataclasses import dataclass, field

Path = tuple[str | int, ...]
"""The way from the root to a value: keys of maps, positions in lists."""


@dataclass(frozen=True, slots=True)
class Substitution:
    """A reference inside a scalar: `length` characters of the parsed text at `index` become `replacement`."""

    index: int
    length: int
    replacement: str = field(repr=False)
    written: str = ""


@dataclass(frozen=True, slots=True)
class Scalar:
    """One value.

    Args:
        shown: The value for fingerprints and logs, where secrets remain references.
        parsed: The text before references were replaced.
        style: "" for plain, else one of ' " | >.
    """

    start: int
    end: int
    value: object
    shown: object
    parsed: str
    style: str
    substitutions: tuple[Substitution, ...] = ()

    @property
    def size(self) -> int:
        """One node."""
        return 1


@dataclass(frozen=True, slots=True)
class Key:
    """The key of a map's entry and its offsets."""

    text: str
    start: int
    end: int


@dataclass(slots=True)
class Sequence:
    """A list. `size` counts its nodes with aliases expanded."""

    start: int
    end: int
    items: "list[Node]" = field(default_factory=list)
    size: int = 1


@dataclass(slots=True)
class Mapping:
    """A map in its order. `size` counts its nodes with aliases expanded."""

    start: int
    end: int
    entries: "dict[str, tuple[Key, Node]]" = field(default_factory=dict)
    size: int = 1


Node = Scalar | Sequence | Mapping


def to_value(node: Node, *, shown: bool = False) -> object:
    """Return the plain Python value. An aliased value is a copy at every place."""
    if isinstance(node, Scalar):
        return node.shown if shown else node.value
    if isinstance(node, Sequence):
        return [to_value(item, shown=shown) for item in node.items]
    return {name: to_value(value, shown=shown) for name, (_, value) in node.entries.items()}


def child(node: Node, step: str | int) -> Node | None:
    """Return the value one step further, None where there is none."""
    if isinstance(node, Mapping):
        entry = node.entries.get(str(step))
        return entry[1] if entry else None
    if isinstance(node, Sequence) and isinstance(step, int) and 0 <= step < len(node.items):
        return node.items[step]
    return None


def walk(node: Node, path: Path) -> Iterator[Node]:
    """Yield the nodes along a path, the root first, as far as it exists."""
    yield node
    for step in path:
        inner = child(node, step)
        if inner is None:
            return
        node = inner
        yield node


def key_at(node: Node, step: str | int) -> Key | None:
    """Return the key of a map's entry."""
    entry = node.entries.get(str(step)) if isinstance(node, Mapping) else None
    return entry[0] if entry else None


def substituted(text: str, substitutions: tuple[Substitution, ...], *, written: bool = False) -> str:
    """Return the text with its references replaced by their values, or as they were written."""
    for found in reversed(substitutions):
        text = text[: found.index] + (found.written if written else found.replacement) + text[found.index + found.length :]
    return text
