"""The undeclared fields of an output: which are written, and under which names.

`_widened` of its rows has the written names only, so that images that differ in fields left out are equal.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from operators.core.json_columns import members_shown
from operators.core.row_type import RowType
from operators.output.config import OutputConfig

if TYPE_CHECKING:
    from pyspark.sql import Column


def takes_undeclared(config: OutputConfig, row: RowType) -> bool:
    """Whether undeclared fields reach an output."""
    return row.widened and config.include_unmapped


def names_of(mapping: Mapping[str, str], field: str) -> list[str]:
    """Return the names under which a field is written: those given by `mapping`, else its own."""
    return [name for name, source in mapping.items() if source == field] or [field]


@dataclass(frozen=True, slots=True)
class UndeclaredFields:
    """`taken`: whether any reach the file. `declared`: the columns upstream. `excluded`: names that are left out. `columns`: the names of the written columns. `mapping`: name to the field that is written under it."""

    taken: bool
    declared: frozenset[str]
    excluded: frozenset[str]
    columns: frozenset[str]
    mapping: Mapping[str, str]

    @classmethod
    def of(cls, config: OutputConfig, row: RowType, columns: frozenset[str]) -> UndeclaredFields:
        """Return the undeclared fields of an output with input `row` and these written columns."""
        return cls(takes_undeclared(config, row), frozenset(row.data), frozenset(config.exclude), columns, config.mapping)

    def admits(self, name: str) -> bool:
        """Whether a field is neither excluded nor a column upstream."""
        return self.taken and name not in self.declared and name not in self.excluded

    def names(self, name: str) -> list[str]:
        """The names that a field would be written under if no other had them."""
        return names_of(self.mapping, name)

    def shown(self, name: str, there: Collection[str]) -> list[str]:
        """The names under which a field is written: none where it is left out. A name is a column's first, then that of the field that `mapping` gives it if that is `there`."""
        if not self.admits(name):
            return []
        given = {shown for shown, source in self.mapping.items() if source != name and source in there and self.admits(source)}
        return [shown for shown in self.names(name) if shown not in self.columns and shown not in given]

    @property
    def as_they_are(self) -> bool:
        """Whether all fields have their own names, but for those behind a column of their name."""
        return not self.excluded and self.declared.issuperset(self.mapping.values())

    def written(self, maps: Column) -> Column:
        """The fields of each record, a JSON object as text, under the names that are written; null where there are none."""
        return maps if self.as_they_are else members_shown(maps, self.shown)
