"""The columns of a dataset: its own four, then the data; as Arrow's schema and as the schema in blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from changelog.lazy_imports import pa
from storage.odf.buffers import Table

__all__ = ["Vocabulary", "data_schema", "field_types"]

_UNITS: Final = ("s", "ms", "us", "ns")
_DEFAULTS: Final = {"offset_column": "offset", "operation_type_column": "op", "system_time_column": "system_time", "event_time_column": "event_time"}


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The names of a dataset's own columns."""

    offset: str = "offset"
    op: str = "op"
    system_time: str = "system_time"
    event_time: str = "event_time"

    @classmethod
    def beside(cls, data: Iterable[str]) -> Vocabulary:
        """The usual names, each with `odf_` ahead as long as the data has a column of that name."""
        taken = set(data)

        def free(name: str) -> str:
            return free(f"odf_{name}") if name in taken else name

        return cls(*map(free, _DEFAULTS.values()))

    @classmethod
    def of(cls, event: Table) -> Vocabulary:
        """The names that a block sets; the usual ones where it does not."""
        return cls(*(event.get(key) or name for key, name in _DEFAULTS.items()))

    @property
    def names(self) -> tuple[str, str, str, str]:
        """All four, in their order."""
        return self.offset, self.op, self.system_time, self.event_time

    def event(self) -> dict[str, Any]:
        """The block that sets them."""
        return dict(zip(_DEFAULTS, self.names, strict=True))


def data_schema(schema: pa.Schema) -> dict[str, Any]:
    """The schema of Arrow columns as blocks have it. A column that may be null is optional."""
    return {"fields": [_field(one) for one in schema]}


def _field(field: pa.Field) -> dict[str, Any]:
    kind = _type_of(field.type)
    return {"name": field.name, "type": ("Option", {"inner": kind}) if field.nullable else kind}


def _type_of(type_: pa.DataType) -> tuple[str, dict[str, Any]]:
    return next(tell(type_) for kind, tell in _TYPES.items() if getattr(pa.types, f"is_{kind}")(type_))


_Told = tuple[str, dict[str, Any]]
_TYPES: Final[Mapping[str, Callable[[pa.DataType], _Told]]] = {
    "boolean": lambda one: ("Bool", {}),
    "integer": lambda one: (f"{'' if pa.types.is_signed_integer(one) else 'U'}Int{one.bit_width}", {}),
    "floating": lambda one: (f"Float{one.bit_width}", {}),
    "decimal": lambda one: ("Decimal", {"precision": one.precision, "scale": one.scale}),
    "date": lambda one: ("Date", {}),
    "timestamp": lambda one: ("Timestamp", {"unit": _UNITS.index(one.unit), **({"timezone": one.tz} if one.tz else {})}),
    "string": lambda one: ("String", {}),
}
"""Every type that a column of Errata has."""


def field_types(schema: Table) -> Mapping[str, Any]:
    """The types of the columns of a schema in a block, by name; whether one may be null is left out."""
    return {one["name"]: _bare(one["type"]) for one in schema.get("fields", ())}


def _bare(kind: tuple[str, Any]) -> tuple[str, Any]:
    return _bare(kind[1]["inner"]) if kind[0] == "Option" else kind
