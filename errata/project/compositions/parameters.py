"""Parameters of compositions, and the layers that give them values."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from cxl.types.types import Type
from errata.core.diagnostics import Label

LAYERS = ("composition default", "channel default", "call", "channel fixed")
"""Weakest first: each replaces the ones before it."""


@dataclass(frozen=True, slots=True)
class Layer:
    """The value of a parameter in one layer, and its place."""

    kind: str
    value: Any
    place: Label


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of one call: its type, its value, and every layer with a value."""

    name: str
    type: Type
    value: Any
    layers: Sequence[Layer]

    def explained(self, node: str) -> Iterator[str]:
        """Yield lines for `errata explain --field`: the value, then all layers, weakest first."""
        winner = strongest(self.layers)
        yield f"{node}.{self.name} = {_shown(self.value)}   ({winner.kind if winner else 'no value'})"
        given = {layer.kind: layer for layer in self.layers}
        for kind in LAYERS:
            layer = given.get(kind)
            if layer is None:
                yield f"  {kind:<20}-"
            else:
                yield f"  {kind:<20}{_shown(layer.value)}   {layer.place.file}:{layer.place.line}{'   <- holds' if layer is winner else ''}"


def strongest(layers: Sequence[Layer]) -> Layer | None:
    """Return the layer whose value counts."""
    return max(layers, key=lambda layer: LAYERS.index(layer.kind), default=None)


def _shown(value: Any) -> str:
    return repr(value) if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else "null" if value is None else str(value)
