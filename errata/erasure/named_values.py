"""The values of `--key`, read as their columns are: in the same way for an erasure that goes on, and for a later search."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, cast

from changelog.lazy_imports import pa, pl
from cxl.types.types import Kind, Type, type_name
from errata.erasure.spelling import spelled
from errata.erasure.values import Values
from errata.plan.plan import Node, Plan
from operators.source.node import SourceNode
from storage.values.coerce import coerce

AS_TEXT: Final = frozenset({Kind.STRING, Kind.ANY, Kind.ARRAY, Kind.MAP, Kind.NULL})
"""Kinds of columns whose cells say no more than their text."""


@dataclass(frozen=True, slots=True)
class NamedValues:
    """The values of `--key`.

    Attributes:
        values: What can be looked for.
        too_common: The columns whose value says too little to be looked for: yes and no.
    """

    values: Values
    too_common: tuple[str, ...]

    @classmethod
    def of(cls, plan: Plan, key: Mapping[str, str], own: frozenset[str] = frozenset()) -> NamedValues:
        """Read each value by the types that nodes have for its column; where no node has one, as a text. `own`: the words that the state has by itself."""
        found, too_common = Values(own=own), list[str]()
        for name, text in key.items():
            types = dict(types_of(plan, name)) or {Type(Kind.STRING): ()}
            if all(type_.kind is Kind.BOOL for type_ in types):
                too_common.append(name)
            for type_, date_formats in types.items() if name not in too_common else ():
                _add(found, name, text, type_, date_formats)
        return cls(found, tuple(too_common))


def types_of(plan: Plan, name: str) -> Iterator[tuple[Type, tuple[str, ...]]]:
    """The types of a column, each with the formats of its dates: what a source reads comes last, and counts."""
    for node in sorted(plan, key=lambda one: one.is_source):
        if name in node.operator.output.data:
            yield node.operator.output.data[name].base, date_formats_of(plan, node, name)


def date_formats_of(plan: Plan, node: Node, name: str) -> tuple[str, ...]:
    """The formats of dates in a column of a node."""
    return cast("SourceNode", node.operator).date_formats_of(name) if node.is_source else plan.settings.date_formats


def read_as(text: str, type_: Type, date_formats: tuple[str, ...]) -> str | None:
    """A value of the command line as cells of this type are spelled; None for a text that its type cannot read. Texts and dynamic values stay as they are."""
    return text if type_.kind in AS_TEXT or not text else read_cells(pl.Series([text]), type_, date_formats)[0]


def read_cells(texts: pl.Series, type_: Type, date_formats: tuple[str, ...]) -> pl.Series:
    """Texts read by a type, and spelled as its cells are; null for a text that it cannot read."""
    read = coerce(pa.array(texts, pa.string()), type_name(type_.base), date_formats)
    return spelled(pl.Series(texts.name, pl.from_arrow(read.values)))


def _add(found: Values, name: str, text: str, type_: Type, date_formats: tuple[str, ...]) -> None:
    """Add a value of a column; one that its type cannot read as the text of a cell that could not be read."""
    read = None if type_.kind is Kind.BOOL else read_as(text, type_, date_formats)
    if read is None:
        found.add_unread(name, text)
    elif type_.kind in AS_TEXT:
        found.add(name, text)
    else:
        found.cells.setdefault(name, set()).update([read] if read else [])
