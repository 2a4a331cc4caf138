"""A pipeline's nodes and a run's changes as inline SVG, without scripts, fonts or links."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

BOX_WIDTH, BOX_HEIGHT, GAP_X, GAP_Y, MARGIN = 172, 46, 56, 20, 12
OPS = {"+A": "add", "-R": "take", "-C": "from", "+C": "to"}
"""The CSS class of each op's bars."""


@dataclass(frozen=True, slots=True)
class Box:
    """A node of the picture: its name, the line below it, and the nodes that it reads."""

    name: str
    caption: str
    inputs: tuple[str, ...]


def dag(boxes: Sequence[Box]) -> str:
    """Return the nodes from left to right, each after its inputs."""
    places = _places(boxes)
    width = max(x for x, _ in places.values()) + BOX_WIDTH + MARGIN if places else MARGIN
    height = max(y for _, y in places.values()) + BOX_HEIGHT + MARGIN if places else MARGIN
    edges = [_edge(places[name], places[box.name]) for box in boxes for name in box.inputs if name in places]
    return _picture(width, height, "the pipeline's nodes", [*edges, *(_box(box, places[box.name]) for box in boxes)])


def _places(boxes: Sequence[Box]) -> dict[str, tuple[int, int]]:
    depth: dict[str, int] = {}
    rows: dict[int, int] = {}
    places: dict[str, tuple[int, int]] = {}
    for box in boxes:
        depth[box.name] = at = 1 + max((depth.get(name, 0) for name in box.inputs), default=-1)
        row = rows[at] = rows.get(at, -1) + 1
        places[box.name] = (MARGIN + at * (BOX_WIDTH + GAP_X), MARGIN + row * (BOX_HEIGHT + GAP_Y))
    return places


def _edge(start: tuple[int, int], end: tuple[int, int]) -> str:
    x1, y1, x2, y2 = start[0] + BOX_WIDTH, start[1] + BOX_HEIGHT // 2, end[0], end[1] + BOX_HEIGHT // 2
    middle = (x1 + x2) // 2
    return f'<path class="edge" d="M{x1} {y1} C{middle} {y1} {middle} {y2} {x2} {y2}"/>'


def _box(box: Box, place: tuple[int, int]) -> str:
    x, y = place
    lines = ((box.name, "name", 20), (box.caption, "caption", 36))
    texts = "".join(f'<text class="{kind}" x="{x + 10}" y="{y + down}">{escape(_cut(text))}</text>' for text, kind, down in lines)
    shown = escape(f"{box.name}: {box.caption}")
    return f'<g><title>{shown}</title><rect x="{x}" y="{y}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="6"/>{texts}</g>'


def _cut(text: str, length: int = 24) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"


def bars(counts: Mapping[int, Mapping[str, int]], height: int = 120) -> str:
    """Return the rows of each op by epoch, one stacked bar for each epoch. The tallest fills the height."""
    most = max((sum(ops.values()) for ops in counts.values()), default=0) or 1
    step = max(4, min(36, 900 // max(1, len(counts))))
    parts = []
    for at, (epoch, ops) in enumerate(counts.items()):
        top = float(height)
        for op, style in OPS.items():
            size = height * ops.get(op, 0) / most
            top -= size
            if size:
                title = escape(f"epoch {epoch}: {op} {ops[op]:,}")
                parts.append(f'<rect class="{style}" x="{MARGIN + at * step}" y="{top:.1f}" width="{step - 2}" height="{size:.1f}"><title>{title}</title></rect>')
    return _picture(2 * MARGIN + step * len(counts), height, "rows by op and epoch", parts)


def _picture(width: int, height: int, label: str, parts: Sequence[str]) -> str:
    inner = "\n".join(parts)
    return f'<svg role="img" aria-label="{escape(label)}" viewBox="0 0 {width} {height}" width="{width}" height="{height}">\n{inner}\n</svg>'
