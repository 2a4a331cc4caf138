"""Charts over epochs as places of bars, lines and labels. Each has an axis of epochs with dates and one of values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import isfinite
from typing import Any

LEFT, RIGHT, TOP, BOTTOM = 80, 14, 14, 46
WIDTH = 640
TICKS = 6
"""The number of epochs that an axis names, about."""


@dataclass(frozen=True, slots=True)
class Tick:
    """A place on an axis with its label, and a second line of it."""

    at: float
    label: str
    below: str = ""


@dataclass(frozen=True, slots=True)
class Bar:
    """A part of a stacked bar."""

    x: float
    y: float
    width: float
    height: float
    style: str
    title: str


@dataclass(frozen=True, slots=True)
class Dot:
    """A point on a line."""

    x: float
    y: float
    title: str


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart. `across` are the ticks of epochs, `up` ticks of values; `line` is a path of SVG."""

    label: str
    width: float
    height: float
    across: tuple[Tick, ...]
    up: tuple[Tick, ...]
    bars: tuple[Bar, ...] = ()
    line: str = ""
    dots: tuple[Dot, ...] = ()
    left: float = LEFT
    right: float = WIDTH - RIGHT

    @property
    def floor(self) -> float:
        """Where the axis of epochs lies."""
        return self.height - BOTTOM


Moments = Mapping[int, datetime]


def bars(label: str, counts: Mapping[int, Mapping[str, float]], moments: Moments, height: float = 200) -> Chart | None:
    """Return stacked bars, one an epoch, of amounts by style; None where there is nothing to draw."""
    if not counts:
        return None
    most = max((sum(parts.values()) for parts in counts.values()), default=0) or 1
    step, room = (WIDTH - LEFT - RIGHT) / len(counts), height - TOP - BOTTOM
    found = []
    for at, (epoch, parts) in enumerate(counts.items()):
        top = height - BOTTOM
        for style, amount in parts.items():
            size = room * amount / most
            top -= size
            if size:
                found.append(Bar(LEFT + at * step, top, max(1.0, min(step - 2, 40)), size, style, f"epoch {epoch}: {style} {amount:,.6g}"))
    return Chart(label, WIDTH, height, _across(list(counts), moments, step, min(step, 42) / 2), _up(0, most, height), bars=tuple(found))


def steps(label: str, values: Mapping[int, Any], moments: Moments, height: float = 180) -> Chart | None:
    """Return a value over epochs as a line of steps, each epoch a dot; None where there is nothing to draw."""
    numbers = _finite(values.values())
    if not numbers:
        return None
    low, high = min(numbers), max(numbers)
    low, high = (low, high) if high > low else (low - 1, high + 1)
    step, room, span = (WIDTH - LEFT - RIGHT) / len(values), height - TOP - BOTTOM, high / 2 - low / 2
    shares = [(number / 2 - low / 2) / span if span else 0.5 for number in numbers]
    places = [(LEFT + (at + 0.5) * step, TOP + room * (1 - share)) for at, share in enumerate(shares)]
    path = f"M{places[0][0]:.1f} {places[0][1]:.1f}" + "".join(f"H{x:.1f}V{y:.1f}" for x, y in places[1:])
    dots = (Dot(x, y, f"epoch {epoch}: {shown_number(value)}") for (x, y), (epoch, value) in zip(places, values.items(), strict=True))
    return Chart(label, WIDTH, height, _across(list(values), moments, step, step / 2), _up(low, high, height), line=path, dots=tuple(dots))


def _finite(values: Iterable[Any]) -> list[float]:
    """The values as floats; none where one of them is too large for a chart."""
    try:
        numbers = [float(value) for value in values]
    except OverflowError:
        return []
    return numbers if all(map(isfinite, numbers)) else []


def shown_number(value: Any) -> str:
    """Return a number with separators of thousands."""
    return f"{value:,}" if isinstance(value, (int, float)) else str(value)


def _up(low: float, high: float, height: float) -> tuple[Tick, ...]:
    room = height - TOP - BOTTOM
    return tuple(Tick(TOP + room * (1 - share), _compact(low * (1 - share) + high * share)) for share in (0, 0.5, 1))


def _compact(number: float) -> str:
    size = abs(number)
    for limit, sign in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e4, "k")):
        if 1e15 > size >= limit:
            return f"{number / (limit if limit > 1e4 else 1e3):.4g}{sign}"
    return f"{number:,.6g}" if size < 1e15 else f"{number:.3g}"


def _across(epochs: Sequence[int], moments: Moments, step: float, middle: float) -> tuple[Tick, ...]:
    """Ticks at some epochs. A date is named where it differs from the one of the tick before; the time where all are of one day."""
    every = max(1, -(-len(epochs) // TICKS))
    days = {moments[epoch].date() for epoch in epochs if epoch in moments}
    found, last = [], ""
    for at in range(0, len(epochs), every):
        moment = moments.get(epochs[at])
        date = "" if moment is None else f"{moment:%Y-%m-%d}" if len(days) > 1 or at == 0 else f"{moment:%H:%M}"
        found.append(Tick(LEFT + at * step + middle, f"epoch {epochs[at]}" if at == 0 else str(epochs[at]), "" if date == last else date))
        last = date
    return tuple(found)
