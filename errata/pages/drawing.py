"""The DAG as boxes and lines with places, laid out by graphlay: from left to right for wide pages, from top to bottom for narrow ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

from errata.pages.values import short

if TYPE_CHECKING:
    import graphlay
else:
    from changelog.lazy_imports import Lazy

    graphlay = Lazy("graphlay")

HEIGHT, MARGIN = 58, 10
SIGN = 8.8
"""The width of a letter."""
WIDE_PAGE = 1300


@dataclass(frozen=True, slots=True)
class Box:
    """A node to draw.

    Attributes:
        name: The node.
        kind: Its type.
        caption: The line below the name.
        change: What the last epoch changed, as texts by their style (`add`, `take`, `fix`).
        inputs: The nodes that it reads.
        href: Where the box leads; empty for nowhere.
    """

    name: str
    kind: str
    caption: str
    inputs: tuple[str, ...]
    change: tuple[tuple[str, str], ...] = ()
    href: str = ""


@dataclass(frozen=True, slots=True)
class Placed:
    """A box with its corner, its size and the texts that fit into it."""

    box: Box
    x: float
    y: float
    width: float
    name: str
    caption: str


@dataclass(frozen=True, slots=True)
class Drawing:
    """Boxes and the lines between them (as paths of SVG) on an area that begins at 0, 0."""

    width: float
    height: float
    boxes: tuple[Placed, ...]
    edges: tuple[str, ...]
    direction: str


@dataclass(frozen=True, slots=True)
class _Style:
    """How a drawing is made: its direction, the least and the greatest width of a box, the distance of boxes side by side."""

    direction: str
    narrowest: int
    widest: int
    gap: int


_ACROSS = _Style("leftright", 112, 236, 22)
_DOWN = _Style("topbottom", 92, 150, 12)


def drawings(boxes: Sequence[Box]) -> tuple[Drawing, ...]:
    """Return the DAG for a wide page and for a narrow one; nothing where there are no boxes."""
    if not boxes:
        return ()
    across, down = _drawn(boxes, _ACROSS), _drawn(boxes, _DOWN)
    wide = across if across.width <= WIDE_PAGE or across.width <= down.width else down
    return wide, down


def _drawn(boxes: Sequence[Box], style: _Style) -> Drawing:
    graph = graphlay.Graph()
    for box in boxes:
        graph.node(box.name, width=_width(box, style), height=HEIGHT)
    known = {box.name for box in boxes}
    for box in boxes:
        for name in box.inputs:
            if name in known:
                graph.edge(name, box.name)
    spacing = {"layer_gap": 36, "node_gap": style.gap, "dummy_gap": min(16, style.gap), "port_gap": 12}
    options = {"direction": style.direction, "spacing": spacing, "routing": {"style": "orthogonal"}}
    found = graphlay.layout(graph, options=options)
    return _at_origin(boxes, found.raw, style.direction)


def _at_origin(boxes: Sequence[Box], raw: Mapping[str, Any], direction: str) -> Drawing:
    """The layout moved so that it begins at the margin."""
    lines = [[(point["x"], point["y"]) for point in edge["points"]] for edge in raw["edges"]]
    corners = [_corner(node) for node in raw["nodes"]]
    far = [(x + node["size"]["width"], y + HEIGHT) for node, (x, y) in zip(raw["nodes"], corners, strict=True)]
    xs, ys = (list(along) for along in zip(*corners, *far, *chain.from_iterable(lines), strict=False))
    left, top = MARGIN - min(xs), MARGIN - min(ys)
    placed = tuple(_placed(box, x + left, y + top, node["size"]["width"]) for box, node, (x, y) in zip(boxes, raw["nodes"], corners, strict=True))
    edges = tuple(_path([(x + left, y + top) for x, y in line]) for line in lines)
    return Drawing(max(xs) + left + MARGIN, max(ys) + top + MARGIN, placed, edges, direction)


def _corner(node: Mapping[str, Any]) -> tuple[float, float]:
    return node["center"]["x"] - node["size"]["width"] / 2, node["center"]["y"] - HEIGHT / 2


def _width(box: Box, style: _Style) -> float:
    signs = max(len(box.name) * SIGN, len(box.caption) * 7.2, sum(len(text) + 1 for text, _ in box.change) * 7.4)
    return float(min(style.widest, max(style.narrowest, round(signs) + 22)))


def _placed(box: Box, x: float, y: float, width: float) -> Placed:
    return Placed(box, x, y, width, short(box.name, int((width - 18) / SIGN)), short(box.caption, int((width - 18) / 6.8)))


def _path(points: Sequence[tuple[float, float]], radius: float = 6) -> str:
    """A path along points with round corners."""
    x, y = points[0]
    parts = [f"M{x:.1f} {y:.1f}"]
    for before, at, after in zip(points, points[1:], points[2:], strict=False):
        (x1, y1), (x2, y2) = _towards(at, before, radius), _towards(at, after, radius)
        parts.append(f"L{x1:.1f} {y1:.1f}Q{at[0]:.1f} {at[1]:.1f} {x2:.1f} {y2:.1f}")
    x, y = points[-1]
    return f"{''.join(parts)}L{x:.1f} {y:.1f}"


def _towards(start: tuple[float, float], end: tuple[float, float], far: float) -> tuple[float, float]:
    """The point on the way from one point to another, at most half of it."""
    dx, dy = end[0] - start[0], end[1] - start[1]
    share = min(far / (abs(dx) + abs(dy) or 1), 0.5)
    return start[0] + dx * share, start[1] + dy * share
