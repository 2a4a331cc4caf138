"""The types of CXL.

A `Type` is a kind, and whether null is allowed; a Decimal has a scale too. `ANY`, `ARRAY`, `MAP` and `NUMERIC` are dynamic: only
a record shows which values they hold. How a Decimal is carried in columns and texts: `cxl.values.decimals`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum


class Kind(Enum):
    """The families of values. The value of a member is the name that CXL shows."""

    NULL = "Null"
    BOOL = "Bool"
    INT = "Int"
    FLOAT = "Float"
    DECIMAL = "Decimal"
    STRING = "String"
    DATE = "Date"
    DATE_TIME = "DateTime"
    ARRAY = "Array"
    MAP = "Map"
    NUMERIC = "Numeric"
    ANY = "Any"


MOST_DIGITS = 38
"""The digits that a Decimal has at most, and the greatest scale."""


@dataclass(frozen=True, slots=True)
class Type:
    """One type.

    Args:
        nullable: Whether null is allowed.
        scale: The digits of a Decimal behind the point; 0 for every other kind.
        holds_decimals: Whether a dynamic value may be or contain a Decimal, because CXL made it of one. Values that a source read never do.
            Types that differ in this alone are equal.
    """

    kind: Kind
    nullable: bool = False
    scale: int = 0
    holds_decimals: bool = field(default=False, compare=False)

    def __str__(self) -> str:
        shown = _decimal_name(self.scale) if self.kind is Kind.DECIMAL else self.kind.value
        return f"Nullable({shown})" if self.nullable else shown

    @property
    def base(self) -> "Type":
        """The same type without null."""
        return replace(self, nullable=False) if self.nullable else self

    @property
    def or_null(self) -> "Type":
        """The same type with null allowed."""
        return self if self.nullable or self.kind in (Kind.NULL, Kind.ANY) else replace(self, nullable=True)

    @property
    def is_dynamic(self) -> bool:
        """Whether a column of this type holds JSON text."""
        return self.kind in DYNAMIC_KINDS

    @property
    def may_be_decimal(self) -> bool:
        """Whether a value of the type may be a Decimal, or contain one."""
        return self.kind is Kind.DECIMAL or self.holds_decimals


DYNAMIC_KINDS = frozenset({Kind.ANY, Kind.NUMERIC, Kind.ARRAY, Kind.MAP})

NULL = Type(Kind.NULL)
BOOL = Type(Kind.BOOL)
INT = Type(Kind.INT)
FLOAT = Type(Kind.FLOAT)
DECIMAL = Type(Kind.DECIMAL)
"""A Decimal of any scale, where types are accepted; as the type of a value, one of scale 0."""
STRING = Type(Kind.STRING)
DATE = Type(Kind.DATE)
DATE_TIME = Type(Kind.DATE_TIME)
ARRAY = Type(Kind.ARRAY)
MAP = Type(Kind.MAP)
NUMERIC = Type(Kind.NUMERIC)
ANY = Type(Kind.ANY)


def element_of(holder: Type) -> Type:
    """Return the type of an element of an array or a map."""
    return replace(ANY, holds_decimals=holder.may_be_decimal)


def decimal_of(scale: int) -> Type:
    """Return the type of Decimals with a scale from 0 to 38."""
    return Type(Kind.DECIMAL, scale=scale)


def _decimal_name(scale: int) -> str:
    return f"decimal({MOST_DIGITS},{scale})"


_BY_NAME = {
    "null": NULL, "bool": BOOL, "int": INT, "float": FLOAT, "string": STRING, "date": DATE, "date_time": DATE_TIME,
    "datetime": DATE_TIME, "array": ARRAY, "map": MAP, "numeric": NUMERIC, "any": ANY,
}  # fmt: skip
TYPE_NAMES = (*(name for name in _BY_NAME if name not in ("null", "datetime")), "decimal(precision,scale)")
"""The spellings that a schema may use."""
_DECIMAL = re.compile(r"decimal\(\s*([0-9]{1,4})\s*,\s*([0-9]{1,4})\s*\)", re.ASCII)


def parse_decimal(text: str) -> tuple[int, int] | None:
    """Return precision and scale of `decimal(10,2)`, None for a text of another form. Raises ValueError where they cannot be."""
    found = _DECIMAL.fullmatch(text.strip())
    if found is None:
        return None
    precision, scale = int(found[1]), int(found[2])
    if not (1 <= precision <= MOST_DIGITS and scale <= precision):
        raise ValueError(f"'{text.strip()}' cannot be: precision is 1 to {MOST_DIGITS}, scale 0 to the precision")
    return precision, scale


def parse_type(text: str) -> Type:
    """Return the type that a schema names: `int`, `nullable(float)`, `decimal(10,2)`, ... Raises ValueError for any other text.

    The type of `decimal(10,2)` has the scale alone. `parse_decimal` also returns the precision.
    """
    word = text.strip()
    if word.startswith("nullable(") and word.endswith(")"):
        return parse_type(word[len("nullable(") : -1]).or_null
    digits = parse_decimal(word)
    if digits is not None:
        return decimal_of(digits[1])
    if word.startswith("decimal"):
        raise ValueError(f"'{word}' has no scale: write decimal(precision,scale), such as decimal(10,2)")
    if word not in _BY_NAME:
        raise ValueError(f"unknown type '{word}'; there are {', '.join(TYPE_NAMES)}")
    return _BY_NAME[word]


def type_name(type_: Type) -> str:
    """Return the schema's spelling of a type, which `parse_type` reads."""
    word = "date_time" if type_.kind is Kind.DATE_TIME else str(type_.base).lower()
    return f"nullable({word})" if type_.nullable else word


def unify(left: Type, right: Type) -> Type | None:
    """Return the type of two values that meet in an expression, None where they cannot."""
    if left.kind is Kind.NULL:
        return right.or_null
    if right.kind is Kind.NULL:
        return left.or_null
    kind = _unify_kinds(left.kind, right.kind)
    return None if kind is None else combined(kind, left, right)


def combined(kind: Kind, left: Type, right: Type) -> Type:
    """Return a type of a kind for values of both types: with null where one has it, with the greater scale."""
    scale = max(left.scale, right.scale) if kind is Kind.DECIMAL else 0
    holds = kind in DYNAMIC_KINDS and (left.may_be_decimal or right.may_be_decimal)
    type_ = Type(kind, scale=scale, holds_decimals=holds)
    return type_.or_null if left.nullable or right.nullable else type_


def _unify_kinds(left: Kind, right: Kind) -> Kind | None:
    if left is right or right is Kind.ANY:
        return left
    if left is Kind.ANY:
        return right
    return _UNIFIED.get(frozenset({left, right}))


_UNIFIED: Mapping[frozenset[Kind], Kind] = {
    frozenset({Kind.INT, Kind.FLOAT}): Kind.FLOAT, frozenset({Kind.NUMERIC, Kind.FLOAT}): Kind.FLOAT, frozenset({Kind.NUMERIC, Kind.INT}): Kind.INT,
    frozenset({Kind.INT, Kind.DECIMAL}): Kind.DECIMAL, frozenset({Kind.NUMERIC, Kind.DECIMAL}): Kind.ANY,
}  # fmt: skip
"""The kind of two kinds that differ. A Decimal and a Float do not go together."""


class Schema(Mapping[str, Type]):
    """The fields of a row in order: name to type. Immutable."""

    __slots__ = ("_fields",)

    def __init__(self, fields: Iterable[tuple[str, Type]] = ()) -> None:
        self._fields = dict(fields)

    @classmethod
    def of(cls, fields: Mapping[str, str]) -> "Schema":
        """Return a schema from type names: `Schema.of({"a": "int"})`. Raises ValueError for an unknown type."""
        return cls((name, parse_type(text)) for name, text in fields.items())

    def __getitem__(self, name: str) -> Type:
        return self._fields[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)

    def __repr__(self) -> str:
        return f"Schema({', '.join(f'{name}: {type_name(type_)}' for name, type_ in self.items())})"

    def with_fields(self, fields: Mapping[str, Type]) -> "Schema":
        """Return this schema with fields replaced in place or appended."""
        return type(self)({**self._fields, **fields}.items())


class OpenSchema(Schema):
    """A schema with unknown fields: any other name is a field of type any."""

    __slots__ = ()

    def __getitem__(self, name: str) -> Type:
        return self._fields.get(name, ANY)

    def __contains__(self, name: object) -> bool:
        return True
