"""Records with dotted columns. Where the schema names the member `m.q` of an object, the object's other members are fields too: `m.r`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from changelog.lazy_imports import pa
from storage.formats.base import Column


@dataclass(frozen=True, slots=True)
class Members:
    """The declared columns with dotted names and their steps, and the objects around them that are no columns themselves."""

    dotted: Mapping[str, Sequence[str]]
    opened: frozenset[str]

    @classmethod
    def of(cls, declared: Iterable[Column]) -> Members:
        """The dotted columns among the declared ones."""
        names = {column.name for column in declared}
        dotted = {name: name.split(".") for name in names if "." in name}
        above = [list(accumulate(steps[:-1], "{}.{}".format)) for steps in dotted.values()]
        return cls(dotted, frozenset(prefix for prefixes in above if names.isdisjoint(prefixes) for prefix in prefixes))

    def record(self, record: Mapping[str, Any]) -> Mapping[str, Any]:
        """A record's values by column name. A member that has a column's whole dotted name wins over the end of its path."""
        if not self.dotted:
            return record
        made = {name: walked(record, steps) for name, steps in self.dotted.items()}
        for name, value in record.items():
            if name in self.opened and (value is None or isinstance(value, dict)):
                self._open(name, value or {}, made)
            else:
                made[name] = value
        return made

    def misfit(self, record: Mapping[str, Any]) -> tuple[str, Any] | None:
        """The name and the value of a member that is neither an object nor null, where the path of a dotted column leads on; None where there is none."""
        for name, steps in self.dotted.items() if self.dotted else ():
            value: Any = None if name in record else record
            for at, step in enumerate(steps):
                if not isinstance(value, dict):
                    if value is not None:
                        return ".".join(steps[:at]), value
                    break
                value = value.get(step)
        return None

    def reached(self, record: Mapping[str, Any]) -> Iterator[str]:
        """The names of the columns that a record has, including null values and members of null objects."""
        if not self.dotted:
            yield from record
            return
        yield from (name for name in self.record(record) if name not in self.dotted or name in record or _leads(record, self.dotted[name]))

    def present(self, fields: Iterable[pa.Field]) -> set[str]:
        """The names of the columns that records with these Arrow fields have, including members of null objects."""
        fields = list(fields)
        by_name = {field.name: field for field in fields}
        return {*self.names(fields), *(name for name, steps in self.dotted.items() if _leads_in(by_name, steps))}

    def _open(self, prefix: str, members: Mapping[str, Any], made: dict[str, Any]) -> None:
        for key, value in members.items():
            name = f"{prefix}.{key}"
            if name in self.opened and (value is None or isinstance(value, dict)):
                self._open(name, value or {}, made)
            else:
                made.setdefault(name, value)

    def names(self, fields: Iterable[pa.Field]) -> Iterator[str]:
        """The column names in records with these Arrow fields, declared or not."""
        for field in fields:
            if field.name not in self.opened or not (pa.types.is_struct(field.type) or pa.types.is_null(field.type)):
                yield field.name
            elif pa.types.is_struct(field.type):
                yield from self.names(pa.field(f"{field.name}.{member.name}", member.type) for member in field.type)


def _leads(record: Any, steps: Iterable[str]) -> bool:
    """Whether a path of keys leads to a value, or ends early at a null."""
    for step in steps:
        if not isinstance(record, dict):
            return record is None
        if step not in record:
            return False
        record = record[step]
    return True


def _leads_in(fields: Mapping[str, pa.Field], steps: Sequence[str]) -> bool:
    """Whether a path of keys leads to an Arrow field, into a map, or ends early at a field of type null."""
    if steps[0] not in fields:
        return False
    kind = fields[steps[0]].type
    if len(steps) == 1 or pa.types.is_null(kind) or pa.types.is_map(kind):
        return True
    return pa.types.is_struct(kind) and _leads_in({kind.field(at).name: kind.field(at) for at in range(kind.num_fields)}, steps[1:])


def walked(record: Any, steps: Iterable[str]) -> Any:
    """The value at the end of a path of keys; None where the path leads nowhere."""
    value = record
    for step in steps:
        value = value.get(step) if isinstance(value, dict) else None
    return value
