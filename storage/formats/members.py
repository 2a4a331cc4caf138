"""Members of records below objects of which the schema names some by dotted names (`m.q`): the others are fields as well, `m.r`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import pyarrow as pa

from storage.formats.contract import Column


@dataclass(frozen=True, slots=True)
class Members:
    """The declared columns with dotted names and their steps, and the objects above them that are no columns themselves."""

    dotted: Mapping[str, Sequence[str]]
    opened: frozenset[str]

    @classmethod
    def of(cls, declared: Iterable[Column]) -> Members:
        """Those of a schema."""
        names = {column.name for column in declared}
        dotted = {name: name.split(".") for name in names if "." in name}
        above = [list(accumulate(steps[:-1], "{}.{}".format)) for steps in dotted.values()]
        return cls(dotted, frozenset(prefix for prefixes in above if names.isdisjoint(prefixes) for prefix in prefixes))

    def record(self, record: Mapping[str, Any]) -> Mapping[str, Any]:
        """A record's values by the names of columns; a member of a column's whole name goes before the end of its path."""
        if not self.dotted:
            return record
        made = {name: walked(record, steps) for name, steps in self.dotted.items()}
        for name, value in record.items():
            if name in self.opened and (value is None or isinstance(value, dict)):
                self._open(name, value or {}, made)
            else:
                made[name] = value
        return made

    def _open(self, prefix: str, members: Mapping[str, Any], made: dict[str, Any]) -> None:
        for key, value in members.items():
            name = f"{prefix}.{key}"
            if name in self.opened and (value is None or isinstance(value, dict)):
                self._open(name, value or {}, made)
            else:
                made.setdefault(name, value)

    def names(self, fields: Iterable[pa.Field]) -> Iterator[str]:
        """The names that records of these fields have by `record`, declared ones or not."""
        for field in fields:
            if field.name not in self.opened or not (pa.types.is_struct(field.type) or pa.types.is_null(field.type)):
                yield field.name
            elif pa.types.is_struct(field.type):
                yield from self.names(pa.field(f"{field.name}.{member.name}", member.type) for member in field.type)


def walked(record: Any, steps: Iterable[str]) -> Any:
    """What stands at the end of a path of keys, null where it leads nowhere."""
    value = record
    for step in steps:
        value = value.get(step) if isinstance(value, dict) else None
    return value
