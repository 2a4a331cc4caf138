"""Builtins and their registry.

A builtin is one `Builtin` that a module of `cxl.functions` registers. No list has to be edited. Several builtins may share a
name, such as `find` of strings and of arrays: the type of the receiver decides.
"""

import importlib
import pkgutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

from cxl.types.types import ANY, BOOL, Kind, Type

TypeRule = Callable[[Type, tuple[Type, ...]], Type]
"""From the types of receiver and arguments to the type of the result. The caller handles nulls."""
Accepts = Type | tuple[Type, ...]
FunctionKind = Literal["method", "aggregate", "window"]


@dataclass(frozen=True, slots=True)
class Param:
    """One parameter of a builtin.

    Args:
        accepts: The types that it accepts.
        regex: Whether it is a regular expression, which must be a literal.
        shown: Whether a value of unknown type is accepted and used as text.
        closure: The type that the closure's body must have. None: the argument is no closure.
        scale: Whether it is a scale, a literal from 0 to 38, which only an Int and a Decimal may leave out (CXL-T013).
    """

    name: str
    accepts: Accepts = ANY
    optional: bool = False
    variadic: bool = False
    regex: bool = False
    shown: bool = False
    closure: Type | None = None
    scale: bool = False

    def takes(self, type_: Type) -> bool:
        """Whether a value of a static type may be passed. Null and a value of unknown type always may; a scale is judged by its value."""
        return self.scale or (self.closure is None and accepts(self.accepts, type_))


@dataclass(frozen=True, slots=True, kw_only=True)
class Builtin:
    """One builtin: signature, documentation with runnable examples, Python and Spark implementation.

    Args:
        receiver: The types of the receiver; None for aggregates and window functions.
        takes_null: Whether a null receiver reaches `python`. Otherwise the result is null.
        null_arguments: Whether null arguments reach `python`. Otherwise the result is null.
        star: Whether the aggregate takes `*`.
        unites: Whether receiver and arguments become one number, so that a Decimal and a Float are refused.
        scale: The scale of a Decimal result, from the scale of the receiver and the values of literal arguments (NOT_CONSTANT for others).
        shown_returns: What the signature says of the result, where `returns` is a rule.
        python: Takes the values of receiver and arguments, closures as Python callables. Raises `cxl.values.failure.CxlFailure`.
        spark: Takes a `cxl.functions.spark_call.Site` and returns a column, or None where the call has none.
    """

    name: str
    receiver: Accepts | None
    params: tuple[Param, ...] = ()
    returns: Type | TypeRule
    doc: str
    examples: tuple[tuple[str, str], ...] = ()
    category: str = ""
    kind: FunctionKind = "method"
    takes_null: bool = False
    null_arguments: bool = False
    star: bool = False
    unites: bool = False
    scale: Callable[[int, tuple[Any, ...]], int] | None = field(default=None, compare=False)
    shown_returns: str = ""
    deterministic: bool = True
    section: str = ""
    python: Callable[..., Any] | None = field(default=None, compare=False)
    spark: Callable[..., Any] | None = field(default=None, compare=False)

    @property
    def needs_scale(self) -> bool:
        """Whether the first argument is a scale."""
        return bool(self.params) and self.params[0].scale

    @property
    def required(self) -> int:
        """How many arguments there must be."""
        return sum(not (param.optional or param.variadic) for param in self.params)

    @property
    def most(self) -> int | None:
        """How many arguments there may be; None for any number."""
        return None if any(param.variadic for param in self.params) else len(self.params)

    def param(self, index: int) -> Param:
        """Return the parameter of the argument at an index, from 0."""
        return self.params[min(index, len(self.params) - 1)]

    def result(self, receiver: Type, arguments: tuple[Type, ...]) -> Type:
        """Return the static type of a call."""
        return self.returns if isinstance(self.returns, Type) else self.returns(receiver, arguments)

    @property
    def signature(self) -> str:
        """The documented signature: `left(n: Int) -> String`."""
        returns = self.shown_returns or (str(self.returns) if isinstance(self.returns, Type) else "Any")
        return f"{self.name}({_shown_params(self.params)}) -> {returns}"


def _shown_params(params: Sequence[Param]) -> str:
    shown = ""
    for param in params:
        kind = f"it => {param.closure}" if param.closure else f"{param.name}: {_shown_accepts(param.accepts)}"
        text = f"{', ' if shown else ''}{kind}{'...' if param.variadic else ''}"
        shown += f"[{text}]" if param.optional else text
    return shown


def _shown_accepts(accepted: Accepts) -> str:
    return " | ".join(one.kind.value for one in accepted) if isinstance(accepted, tuple) else str(accepted)


def accepts(accepted: Accepts, type_: Type) -> bool:
    """Whether a value of a static type may be used where `accepted` is required. Null and a value of unknown type may."""
    kinds = {one.kind for one in accepted} if isinstance(accepted, tuple) else {accepted.kind}
    if Kind.NUMERIC in kinds:
        kinds |= {Kind.INT, Kind.FLOAT}
    if type_.kind is Kind.NUMERIC:
        return bool(kinds & {Kind.ANY, Kind.NUMERIC, Kind.INT, Kind.FLOAT})
    return Kind.ANY in kinds or type_.kind in (Kind.ANY, Kind.NULL) or type_.kind in kinds


_entries: dict[tuple[FunctionKind, str], list[Builtin]] = {}


def register(entry: Builtin) -> Builtin:
    """Register a builtin. Raises ValueError where its name and receiver are registered already."""
    known = _entries.setdefault((entry.kind, entry.name), [])
    if any(other.receiver == entry.receiver for other in known):
        raise ValueError(f"builtin '{entry.name}' is registered twice for {entry.receiver}")
    known.append(entry)
    return entry


@cache
def load() -> Mapping[tuple[FunctionKind, str], tuple[Builtin, ...]]:
    """Return all builtins by kind and name. Imports every module of `cxl.functions` once."""
    package = importlib.import_module("cxl.functions")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"cxl.functions.{module.name}")
    return {key: tuple(entries) for key, entries in _entries.items()}


def overloads(name: str, kind: FunctionKind = "method") -> tuple[Builtin, ...]:
    """Return the builtins of a name; empty where there are none."""
    return load().get((kind, name), ())


def names(kind: FunctionKind = "method") -> list[str]:
    """Return the names of a kind, in the order of registration."""
    return [name for (one, name) in load() if one == kind]


def all_builtins() -> Iterator[Builtin]:
    """Yield every builtin."""
    for entries in load().values():
        yield from entries


PREDICATE = Param("predicate", closure=BOOL)
"""`it => Bool`"""
PROJECTION = Param("projection", closure=ANY)
"""`it => T`"""
