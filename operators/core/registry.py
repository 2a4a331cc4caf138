"""Node types by name. The module of a type registers it with `node_type`; there is no list to edit."""

import importlib
import importlib.util
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, TypeAlias

from pydantic import BaseModel

from cxl.syntax import ast
from cxl.types.types import ANY, Schema
from operators.core.binding import Binding
from operators.core.provisional import statements
from operators.core.row_type import META, UNKNOWN, RowType
from operators.core.settings import NodeSpec

_TYPES: dict[str, "NodeType"] = {}


Provisional: TypeAlias = Callable[[Any, Sequence[RowType]], Schema | None]
"""The columns that a configuration names, given the rows of the inputs; None where they cannot be known."""


@dataclass(frozen=True, slots=True)
class NodeType:
    """A node type: its configuration model, how it is wired and how it is bound to its inputs.

    Attributes:
        wiring: `none` (source), `input`, `inputs` (a list), `map` (qualifier to node) or `any`.
        bind: Returns the bound node, or None after it reported problems.
        provisional: The columns of a node that could not be bound; None: not known for this type.
        made: Whether the planner makes such nodes, and no file names the type.
    """

    name: str
    config: type[BaseModel]
    wiring: str
    bind: Callable[[NodeSpec, Binding], Any]
    config_optional: bool = False
    provisional: Provisional | None = None
    made: bool = False

    @property
    def joins_inputs(self) -> bool:
        """Whether rows of several inputs come together here."""
        return self.wiring in {"inputs", "map"}

    def provisional_rows(self, spec: NodeSpec, inputs: Sequence[RowType]) -> RowType:
        """Return the rows of a node that could not be bound, so that nodes downstream can be checked; any column where they are not known."""
        data = None if self.provisional is None else self.provisional(spec.config, inputs)
        if data is None:
            return UNKNOWN
        meta = {META + one.name: ANY for one in statements(getattr(spec.config, "cxl", "")) if isinstance(one, ast.EmitMeta)}
        base = inputs[0] if inputs else RowType(data)
        return replace(base.loosened(), data=data, emitted=None, riders={**base.riders, **meta})


def node_type(
    name: str, config: type[BaseModel], *, wiring: str = "input", config_optional: bool = False, provisional: Provisional | None = None, made: bool = False
) -> Callable[..., Any]:
    """Decorate the function that binds nodes of this type."""

    def register(bind: Callable[[NodeSpec, Binding], Any]) -> Callable[[NodeSpec, Binding], Any]:
        _TYPES[name] = NodeType(name, config, wiring, bind, config_optional, provisional, made)
        return bind

    return register


def find(name: str) -> NodeType | None:
    """The node type of a name, or None. The type `route` is in `operators.route` or `operators.route.bind`, imported on first use."""
    if name not in _TYPES and name.isidentifier() and importlib.util.find_spec(f"operators.{name}") is not None:
        _import(name)
    return _TYPES.get(name)


def _import(name: str) -> None:
    package = hasattr(importlib.import_module(f"operators.{name}"), "__path__")
    if package and importlib.util.find_spec(f"operators.{name}.bind"):
        importlib.import_module(f"operators.{name}.bind")


@cache
def _load() -> None:
    for module in pkgutil.iter_modules(importlib.import_module("operators").__path__):
        _import(module.name)


def names() -> Sequence[str]:
    """All node types that files can name, sorted."""
    _load()
    return sorted(name for name, entry in _TYPES.items() if not entry.made)


def configurations() -> Mapping[str, type[BaseModel]]:
    """Configuration models by node type, for the JSON Schema of pipeline files."""
    _load()
    return {name: entry.config for name, entry in sorted(_TYPES.items()) if not entry.made}
