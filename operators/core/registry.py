"""Node types by name. The module of a type registers it with `node_type`; there is no list to edit."""

import importlib
import importlib.util
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic import BaseModel

from operators.core.binding import Binding
from operators.core.settings import NodeSpec

_TYPES: dict[str, "NodeType"] = {}


@dataclass(frozen=True, slots=True)
class NodeType:
    """A node type: its configuration model, how it is wired and how it is bound to its inputs.

    `wiring`: `none` (source), `input`, `inputs` (a list), `map` (qualifier to node) or `any`. `bind(spec, binding)` gives the
    operator, or None when problems were reported.
    """

    name: str
    config: type[BaseModel]
    wiring: str
    bind: Callable[[NodeSpec, Binding], Any]
    config_optional: bool = False


def node_type(name: str, config: type[BaseModel], *, wiring: str = "input", config_optional: bool = False) -> Callable[..., Any]:
    """Decorator: the function binds nodes of this type."""

    def register(bind: Callable[[NodeSpec, Binding], Any]) -> Callable[[NodeSpec, Binding], Any]:
        _TYPES[name] = NodeType(name, config, wiring, bind, config_optional)
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
    """All node types, sorted."""
    _load()
    return sorted(_TYPES)


def configurations() -> Mapping[str, type[BaseModel]]:
    """Configuration models by node type, for the JSON Schema of pipeline files."""
    _load()
    return {name: entry.config for name, entry in sorted(_TYPES.items())}
