"""What a builtin is, and where all of them are found.

A builtin is one `Builtin` entry that some module of `cxl.functions` registers; there is no list to edit. Several entries may
share a name (`find` of strings and of arrays): the receiver decides.
"""

import importlib
import pkgutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

from cxl.types.types import ANY, BOOL, Kind, Type

TypeRule = Callable[[Type, tuple[Type, ...]], Type]
"""From the receiver's type and the arguments' types to the result's type (nulls are handled by the caller)."""
Accepts = Type | tuple[Type, ...]
FunctionKind = Literal["method", "aggregate", "window"]


@dataclass(frozen=True, slots=True)
class Param:
    """One parameter: what it accepts; `closure` is the type that the closure's body must have; `regex` a literal pattern.

    `shown`: values whose type only the record tells are taken whatever they are, the builtin shows them as text.
    """

    name: str
    accepts: Accepts = ANY
    optional: bool = False
    variadic: bool = False
    regex: bool = False
    shown: bool = False
    closure: Type | None = None

    def takes(self, type_: Type) -> bool:
        """Whether a value of a static type may be passed; a type that is not known always may, and so may null."""
        return self.closure is None and accepts(self.accepts, type_)


@dataclass(frozen=True, slots=True, kw_only=True)
class Builtin:
    """One builtin: signature, documentation with runnable examples, Python, Spark.

    `receiver` is None for aggregates and window functions. `python` gets the receiver's value and the arguments' values
    (closures as Python callables) and raises `cxl.values.failure.CxlFailure`; unless `takes_null`, a null receiver never
    reaches it. `null_arguments` says that null arguments reach it too; otherwise they give null.
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
    deterministic: bool = True
    section: str = ""
    python: Callable[..., Any] | None = field(default=None, compare=False)
    spark: Callable[..., Any] | None = field(default=None, compare=False)

    @property
    def required(self) -> int:
        """How many arguments there must be."""
        return sum(not (param.optional or param.variadic) for param in self.params)

    @property
    def most(self) -> int | None:
        """How many arguments there may be; None is any number."""
        return None if any(param.variadic for param in self.params) else len(self.params)

    def param(self, index: int) -> Param:
        """The parameter that argument number `index` (from 0) belongs to."""
        return self.params[min(index, len(self.params) - 1)]

    def result(self, receiver: Type, arguments: tuple[Type, ...]) -> Type:
        """The static type of a call."""
        return self.returns if isinstance(self.returns, Type) else self.returns(receiver, arguments)

    @property
    def signature(self) -> str:
        """As it is documented: `left(n: Int) -> String`."""
        returns = str(self.returns) if isinstance(self.returns, Type) else "Any"
        return f"{self.name}({_shown_params(self.params)}) -> {returns}"


def _shown_params(params: Sequence[Param]) -> str:
    shown = ""
    for param in params:
        kind = f"it => {param.closure}" if param.closure else f"{param.name}: {_shown_accepts(param.accepts)}"
        text = f"{', ' if shown else ''}{kind}{'...' if param.variadic else ''}"
        shown += f"[{text}]" if param.optional else text
    return shown


def _shown_accepts(accepted: Accepts) -> str:
    return " | ".join(map(str, accepted)) if isinstance(accepted, tuple) else str(accepted)


def accepts(accepted: Accepts, type_: Type) -> bool:
    """Whether a static type may stand where `accepted` is asked for. Types that are not known may, and so may null."""
    kinds = {one.kind for one in accepted} if isinstance(accepted, tuple) else {accepted.kind}
    if Kind.NUMERIC in kinds:
        kinds |= {Kind.INT, Kind.FLOAT}
    if type_.kind is Kind.NUMERIC:
        return bool(kinds & {Kind.ANY, Kind.NUMERIC, Kind.INT, Kind.FLOAT})
    return Kind.ANY in kinds or type_.kind in (Kind.ANY, Kind.NULL) or type_.kind in kinds


_entries: dict[tuple[FunctionKind, str], list[Builtin]] = {}


def register(entry: Builtin) -> Builtin:
    """Make a builtin known. Raises ValueError where the same name and receiver is there already."""
    known = _entries.setdefault((entry.kind, entry.name), [])
    if any(other.receiver == entry.receiver for other in known):
        raise ValueError(f"builtin '{entry.name}' is registered twice for {entry.receiver}")
    known.append(entry)
    return entry


@cache
def load() -> Mapping[tuple[FunctionKind, str], tuple[Builtin, ...]]:
    """All builtins by kind and name; imports every module of `cxl.functions` once."""
    package = importlib.import_module("cxl.functions")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"cxl.functions.{module.name}")
    return {key: tuple(entries) for key, entries in _entries.items()}


def overloads(name: str, kind: FunctionKind = "method") -> tuple[Builtin, ...]:
    """The entries of a name; empty when there is none."""
    return load().get((kind, name), ())


def names(kind: FunctionKind = "method") -> list[str]:
    """Every name of a kind, in the order of registration."""
    return [name for (one, name) in load() if one == kind]


def all_builtins() -> Iterator[Builtin]:
    """Every entry."""
    for entries in load().values():
        yield from entries


PREDICATE = Param("predicate", closure=BOOL)
"""`it => Bool`"""
PROJECTION = Param("projection", closure=ANY)
"""`it => T`"""
