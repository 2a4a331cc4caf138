"""Tables of the page: Markdown, and figures as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from benchmarks.results import Result


def section(title: str, text: Sequence[str]) -> Iterator[str]:
    """A heading, and lines of text below it."""
    yield from (f"## {title}", "", *text, "")


def table(head: Iterable[str], rows: Iterable[Iterable[str]], measured: Iterable[Result]) -> Iterator[str]:
    """A Markdown table, ahead of it the machines, days and loads of its results, and the empty line after it."""
    loads: dict[str, list[float]] = {}
    for one in measured:
        loads.setdefault(one.machine, []).append(one.load)
    for machine, found in loads.items():
        yield from (f"{machine} Load average {min(found):.1f} to {max(found):.1f}.", "")
    head = tuple(head)
    yield f"| {' | '.join(head)} |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield f"| {' | '.join(row)} |"
    yield ""


def rows_of(size: float) -> str:
    """A number of rows, or a scale."""
    return f"{size:,.0f}" if size >= 1 else f"{size:g}"


def seconds(value: float | None) -> str:
    """Seconds with two decimals."""
    return "" if value is None else f"{value:.2f} s"


def megabytes(value: float | None) -> str:
    """MB of memory."""
    return "" if value is None else f"{value:,.0f} MB"


def ratio(value: float | None, base: float | None) -> str:
    """How many times the base."""
    return "" if value is None or not base else f"{value / base:.2f}"


def share(value: float | None, base: float | None) -> str:
    """Percent of a first run. A later run that takes longer than a first one is called slower."""
    if value is None or not base:
        return ""
    return f"{value / base:.1%}" if value <= base else f"{value / base:.0%}, slower than in full"
