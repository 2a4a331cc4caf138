"""The rows between operators: row types, system columns and the shape of keys (docs/how-it-works/architecture.md, "A changelog row").

A frame between operators has the columns `_op _key _cause`, the hidden columns of its `RowType` and its data columns.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final

from changelog.columns import TYPES, column
from changelog.frames import known, typed
from changelog.lazy_imports import F
from cxl.types.types import MOST_DIGITS, Kind, OpenSchema, Schema, Type
from cxl.values.dynamic import TRAILING_ZEROS, WHOLE_DECIMAL, plain

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

SYSTEM = ("_op", "_key", "_cause")
"""Columns of every op row that operators see; `_epoch` joins them in the table."""

HIDDEN_TYPES: Mapping[str, str] = {
    "_event_time": "timestamp",
    "_file": "string",
    "_row": "bigint",
    "_source": "string",
    "_widened": "string",
    "_doc": "string",
    "_port": "string",
    "_lookup": "binary",
    "_sorted": "binary",
    "_split": "binary",
    "_status": "tinyint",
    "_corrected": "string",
    "_error": "string",
}
"""Columns that travel beside the data and that CXL reads only as system variables.

`_event_time`: event time less the source's delay. `_file`, `_row`, `_source`: `$source.file`, `.row`, `.name`. `_widened`:
undeclared fields as a JSON object. `_doc`: `$doc` as a JSON object. `_port`: the branch of a route. `_lookup`: bytes of the
key by which an operator looks its rows up, or of an output's sort order. `_sorted`: bytes of the sort order of an output that also looks rows up.
`_split`: bytes of the field that holds an output's groups together, where it is not written. `_status`: a `Status` in rows of a record that is rolled back, in sources and on
the way to relaxed aggregates where such records still count. `_corrected`: the names of the corrections that changed cells of a record as it was read. `_error`: a rejected record's category, detail, stage, route and trigger as a JSON object, null otherwise.
"""

STATUS: Final = "_status"
CORRECTED: Final = "_corrected"


class Status(IntEnum):
    """How a record that is rolled back takes part. All other records have none."""

    SUPPRESSED = 2
    """It takes no part."""
    COUNTED = 3
    """It counts behind relaxed aggregates alone (`retraction_scope: record`)."""


OWN_HIDDEN = frozenset({"_port", "_lookup", "_sorted", "_split", "_corrected", "_error"})
"""Hidden columns that belong to the operator that made them and do not travel."""

META, RECORD, CK = "_meta:", "_record:", "_ck:"
"""Prefixes of metadata columns: typed columns for `$meta.x`, `$record.x` and `$ck.x`."""

_RESERVED = frozenset({*SYSTEM, *HIDDEN_TYPES, "_epoch", "_ck", "_order", "_refused"})
_RESERVED_PREFIXES = ("__", "_cxl_", META, RECORD, CK)


def is_reserved(name: str) -> bool:
    """Whether a field may not have this name, because changelogs and the frames on the way to them have columns of their own by it."""
    return name in _RESERVED or name.startswith(_RESERVED_PREFIXES)


PHYSICAL_TYPES: Mapping[Kind, str] = {
    Kind.STRING: "string",
    Kind.INT: "bigint",
    Kind.FLOAT: "double",
    Kind.BOOL: "boolean",
    Kind.DATE: "date",
    Kind.DATE_TIME: "timestamp",
    Kind.NULL: "string",
}
"""Column type of a CXL type; the dynamic ones (array, map, any, numeric) hold JSON text. That of a Decimal depends on its scale."""


def physical_type(type_: Type) -> str:
    """The engine's column type that stores values of a CXL type."""
    return f"decimal({MOST_DIGITS},{type_.scale})" if type_.kind is Kind.DECIMAL else PHYSICAL_TYPES.get(type_.kind, "string")


def stored_types(columns: Mapping[str, Type]) -> dict[str, str]:
    """Return the stored type of users' columns by name (`storage.delta.columns`); strings are `text` or `json`."""
    strings = {name: "json" if type_.is_dynamic else "text" for name, type_ in columns.items() if physical_type(type_) == "string"}
    return {name: strings.get(name) or physical_type(type_) for name, type_ in columns.items()}


_STRING: Final = r'("[^"\\]*(?:\\.[^"\\]*)*")'
_WHOLE: Final = _STRING + r"|\.0([,\]}])"
"""A string of a JSON text, which stays unchanged, or the `.0` of a whole number within an array or a map."""
_NO_SIGN: Final = _STRING + r"|([\[,:])-(0[,\]}])"
LOOSE = frozenset({Kind.NUMERIC, Kind.ANY})
"""Kinds whose values, held as JSON text, may be ints and floats."""
_NESTED = frozenset({Kind.ARRAY, Kind.MAP})


def is_inexact(type_: Type) -> bool:
    """Return whether equal values of a type may differ in their bits or in their text."""
    return type_.kind in LOOSE or type_.kind is Kind.FLOAT or type_.kind in _NESTED


def may_have_many_spellings(type_: Type) -> bool:
    """Return whether equal values of a type may be Decimals of several scales in a JSON text."""
    return type_.is_dynamic and type_.holds_decimals


def spelling(types: Iterable[Type]) -> dict[str, int]:
    """The member of a node's fingerprint that tells how its keys spell values of some types: a state that spells them otherwise is made anew."""
    return {"spelling": 1} if any(type_.kind in _NESTED or may_have_many_spellings(type_) for type_ in types) else {}


def is_hashed(type_: Type) -> bool:
    """Return whether equal values of a type have one hash: not those whose bits differ, and not Decimals of several scales."""
    return not is_inexact(type_) and type_.kind is not Kind.DECIMAL


def key_type(type_: Type) -> str:
    """The name under which keys encode a CXL type; dynamic values by their JSON text."""
    names = {Kind.INT: "int", Kind.FLOAT: "float", Kind.DECIMAL: "decimal", Kind.BOOL: "bool", Kind.DATE: "date", Kind.DATE_TIME: "date_time"}
    return names.get(type_.kind, "string")


def key_types(type_: Type) -> tuple[str, ...]:
    """The names under which `key_parts` encodes a value: one that may be an int or a float by its number, then by its text."""
    return ("float", "string") if type_.kind in LOOSE else (key_type(type_),)


def key_parts(value: Column, type_: Type) -> list[tuple[Column, str]]:
    """A value as the parts of a key that compares as the value does: 9 before 10, and 10 is 10.0; of type any, numbers are before all else, `"a"` before `"a b"`."""
    if type_.kind in _NESTED:
        value = by_value(value, type_)
    if type_.kind not in LOOSE:
        return [(value, key_type(type_))]
    number = text = by_value(value, type_)
    if type_.kind is Kind.ANY:
        number, text = F.when(text.rlike("^-?[0-9]"), text), F.regexp_replace(text, '"$', "")
    return list(zip((number.cast("double"), text), key_types(type_), strict=True))


def values_of_parts(parts: Iterable[Any], types: Iterable[Type]) -> list[Any]:
    """Return the values from which `key_parts` made parts. Arrays, maps, values of type any, and numbers that may be ints or floats are returned as text."""
    rest = iter(parts)
    found = []
    for type_ in types:
        value = next(rest)
        if type_.kind in LOOSE:
            value = next(rest)
            value = json.loads(value + '"') if value is not None and value.startswith('"') else value  # without its last quote: see `key_parts`
        if type_.holds_decimals and value is not None:
            value = plain(value)
        found.append(value)
    return found


def by_value(value: Column, type_: Type) -> Column:
    """A value in one spelling: -0.0 is 0.0, and a number that may be int or float is without `.0` where it is whole, also in an array or a map.

    A Decimal has no zeros at its end, and is an Int where it is whole.
    """
    if type_.kind is Kind.FLOAT:
        return value + F.lit(0.0)
    if type_.holds_decimals:
        value = F.regexp_replace(F.regexp_replace(value, WHOLE_DECIMAL, "$1$2$3"), TRAILING_ZEROS, "$1$2$3")
    if not is_inexact(type_):
        return value
    within = F.regexp_replace(F.regexp_replace(value, _WHOLE, "$1$2"), _NO_SIGN, "$1$2$3")
    if type_.kind in _NESTED:
        return within
    whole = F.regexp_replace(value, r"\.0$", "")
    alone = F.when(whole == "-0", "0").otherwise(whole)
    if type_.kind is Kind.NUMERIC:
        return alone
    return F.when(value.rlike(r"^[\[{]"), within).otherwise(alone)


@dataclass(frozen=True, slots=True)
class KeyShape:
    """How the key of a row leads back to its source record.

    `kind` is `source` (the key is a record's of `source`), `merge` (one byte chooses among `parts`), `index` (a suffix of 4
    bytes behind the only part), `join` (the first part is the driver's) or `group` (no single record).
    """

    kind: str
    source: str = ""
    types: tuple[str, ...] | None = None
    parts: tuple[KeyShape, ...] = ()

    @property
    def has_values(self) -> bool:
        """Whether a key may be that of a source with a primary key: the record's values, and no label of a file."""
        return (self.kind == "source" and self.types is not None) or any(part.has_values for part in self.parts)

    def sources(self) -> tuple[str, ...]:
        """Names of the sources that a key may lead to, in order."""
        if self.kind == "source":
            return (self.source,)
        return tuple(dict.fromkeys(name for part in self.parts for name in part.sources()))


GROUP_KEY = KeyShape("group")


@dataclass(frozen=True, slots=True)
class RowType:
    """The rows of one port.

    Attributes:
        data: The user's columns in order.
        hidden: Its columns among `HIDDEN_TYPES`.
        emitted: Names that the nearest transform upstream emitted, for `include_unmapped: false`; None: all columns.
        riders: Typed metadata columns of `$meta`, `$record` and `$ck` by column name.
        sorted_by: Fields by which the rows are declared to be sorted.
        key: Shape of `_key`.
        guessed: Whether a node upstream has a problem, so that nothing is reported as missing.
    """

    data: Schema
    hidden: tuple[str, ...] = ()
    emitted: tuple[str, ...] | None = None
    riders: Mapping[str, Type] = field(default_factory=dict)
    sorted_by: tuple[str, ...] = ()
    key: KeyShape = GROUP_KEY
    guessed: bool = False

    def without(self, hidden: str) -> RowType:
        """The same port without a hidden column."""
        return replace(self, hidden=tuple(name for name in self.hidden if name != hidden))

    def loosened(self) -> RowType:
        """Return the same columns of a node with problems. Nothing is reported as missing in its rows."""
        hidden = tuple(name for name in HIDDEN_TYPES if name in {*self.hidden, "_event_time", "_widened"})
        return replace(self, hidden=hidden, key=self.key if self.key.sources() else KeyShape("source"), guessed=True)

    def opened(self) -> RowType:
        """Return the same, with an open schema: any column may exist."""
        return replace(self.loosened(), data=OpenSchema(self.data.items()))

    @property
    def widened(self) -> bool:
        """Whether the rows carry undeclared fields of the sources."""
        return "_widened" in self.hidden

    def columns(self) -> dict[str, str]:
        """Name to engine type of the hidden and the data columns, in table order."""
        return self.hidden_columns() | {name: physical_type(type_) for name, type_ in self.data.items()}

    def hidden_columns(self) -> dict[str, str]:
        """Engine types of the hidden and the metadata columns by name."""
        fixed = {name: HIDDEN_TYPES[name] for name in HIDDEN_TYPES if name in self.hidden}
        return fixed | {name: physical_type(type_) for name, type_ in self.riders.items()}

    def carried(self) -> list[str]:
        """Names of the hidden and the metadata columns that rows carry from operator to operator."""
        return [name for name in self.hidden_columns() if name not in OWN_HIDDEN]

    def stored(self) -> dict[str, str]:
        """The same as tables keep them (`stored_types`)."""
        return self.hidden_columns() | stored_types(self.riders) | stored_types(self.data)

    def shaped(self, rows: DataFrame, names: Sequence[str]) -> DataFrame:
        """Columns of rows of this port, or of its changelog, as they are declared: no engine need be asked for them."""
        shape = known(rows)
        if shape is not None and shape.names == list(names):
            return rows
        types = TYPES | self.columns()
        return typed(rows.select(*map(column, names)), {name: types[name] for name in names})

    def riding(self, prefix: str) -> dict[str, Type]:
        """Return the metadata columns of one namespace by their name in it: `riding(META)` are the fields of `$meta`."""
        return {name.removeprefix(prefix): type_ for name, type_ in self.riders.items() if name.startswith(prefix)}

    def carrying(self, names: Iterable[str], riders: Mapping[str, Type] | None = None) -> RowType:
        """Return the same port with further hidden columns and metadata columns, in canonical order; its own metadata columns win."""
        wanted = {*self.hidden, *names}
        merged = {**(riders or {}), **self.riders}
        return replace(self, hidden=tuple(name for name in HIDDEN_TYPES if name in wanted), riders=merged)


UNKNOWN = RowType(Schema()).opened()
"""The rows of a node that could not be bound."""
