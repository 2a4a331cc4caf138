"""The types of CXL.

A `Type` is a kind, and whether null is allowed. `ANY`, `ARRAY`, `MAP` and `NUMERIC` are dynamic: only a record shows which
values they hold.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    """The families of values. The value of a member is the name that CXL shows."""

    NULL = "Null"
    BOOL = "Bool"
    INT = "Int"
    FLOAT = "Float"
    STRING = "String"
    DATE = "Date"
    DATE_TIME = "DateTime"
    ARRAY = "Array"
    MAP = "Map"
    NUMERIC = "Numeric"
    ANY = "Any"


@dataclass(frozen=True, slots=True)
class Type:
    """One type: a kind, and whether null is allowed."""

    kind: Kind
    nullable: bool = False

    def __str__(self) -> str:
        return f"Nullable({self.kind.value})" if self.nullable else self.kind.value

    @property
    def base(self) -> "Type":
        """The same type without null."""
        return Type(self.kind) if self.nullable else self

    @property
    def or_null(self) -> "Type":
        """The same type with null allowed."""
        return self if self.nullable or self.kind in (Kind.NULL, Kind.ANY) else Type(self.kind, True)

    @property
    def is_dynamic(self) -> bool:
        """Whether a column of this type holds JSON text."""
        return self.kind in DYNAMIC_KINDS


DYNAMIC_KINDS = frozenset({Kind.ANY, Kind.NUMERIC, Kind.ARRAY, Kind.MAP})

NULL = Type(Kind.NULL)
BOOL = Type(Kind.BOOL)
INT = Type(Kind.INT)
FLOAT = Type(Kind.FLOAT)
STRING = Type(Kind.STRING)
DATE = Type(Kind.DATE)
DATE_TIME = Type(Kind.DATE_TIME)
ARRAY = Type(Kind.ARRAY)
MAP = Type(Kind.MAP)
NUMERIC = Type(Kind.NUMERIC)
ANY = Type(Kind.ANY)

_BY_NAME = {
    "null": NULL, "bool": BOOL, "int": INT, "float": FLOAT, "string": STRING, "date": DATE, "date_time": DATE_TIME,
    "datetime": DATE_TIME, "array": ARRAY, "map": MAP, "numeric": NUMERIC, "any": ANY,
}  # fmt: skip
TYPE_NAMES = tuple(name for name in _BY_NAME if name not in ("null", "datetime"))
"""The spellings that a schema may use."""


def parse_type(text: str) -> Type:
    """Return the type that a schema names: `int`, `nullable(float)`, ... Raises ValueError for any other word."""
    word = text.strip()
    if word.startswith("nullable(") and word.endswith(")"):
        return parse_type(word[len("nullable(") : -1]).or_null
    if word not in _BY_NAME:
        raise ValueError(f"unknown type '{word}'; there are {', '.join(TYPE_NAMES)}")
    return _BY_NAME[word]


def type_name(type_: Type) -> str:
    """Return the schema's spelling of a type, which `parse_type` reads."""
    word = "date_time" if type_.kind is Kind.DATE_TIME else type_.kind.value.lower()
    return f"nullable({word})" if type_.nullable else word


def unify(left: Type, right: Type) -> Type | None:
    """Return the type of two values that meet in an expression, None where they cannot."""
    if left.kind is Kind.NULL:
        return right.or_null
    if right.kind is Kind.NULL:
        return left.or_null
    kind = _unify_kinds(left.kind, right.kind)
    if kind is None:
        return None
    return Type(kind).or_null if left.nullable or right.nullable else Type(kind)


def _unify_kinds(left: Kind, right: Kind) -> Kind | None:
    if left is right or right is Kind.ANY:
        return left
    if left is Kind.ANY:
        return right
    pair = {left, right}
    if pair in ({Kind.INT, Kind.FLOAT}, {Kind.NUMERIC, Kind.FLOAT}):
        return Kind.FLOAT
    return Kind.INT if pair == {Kind.NUMERIC, Kind.INT} else None


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
