"""Node types by name. The module of a type registers it with `node_type`; there is no list to edit."""

import importlib
import importlib.util
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic import BaseModel

from operators.binding import Binding
from operators.settings import NodeSpec

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
    """The node type of a name, or None. A type `route` lives in the module `operators.route`, imported when it is first asked for."""
    if name not in _TYPES and _is_module(name):
        importlib.import_module(f"operators.{name}")
    return _TYPES.get(name)


def _is_module(name: str) -> bool:
    return name.isidentifier() and importlib.util.find_spec(f"operators.{name}") is not None


@cache
def _load() -> None:
    package = importlib.import_module("operators")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"operators.{module.name}")


def names() -> Sequence[str]:
    """All node types, sorted."""
    _load()
    return sorted(_TYPES)


def configurations() -> Mapping[str, type[BaseModel]]:
    """Configuration models by node type, for the JSON Schema of pipeline files."""
    _load()
    return {name: entry.config for name, entry in sorted(_TYPES.items())}
