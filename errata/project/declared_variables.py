"""The variables that a pipeline file declares, found in its value before it is planned (user guide, "Scoped Variables").

Four registries: `static` (`$vars`), `pipeline`, `source` and `record`; see SPEC-DECISIONS, State 31, for the shapes.
"""

from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass
from typing import Any

from errata.yaml import Document

SCOPES = ("pipeline", "source", "record")
_SCALARS: tuple[tuple[type, str], ...] = ((bool, "bool"), (int, "int"), (float, "float"), (str, "string"))

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Declared:
    """A declaration: its type as written, where it stands, and the map and key that hold it."""

    scope: str
    name: str
    type: str
    path: Path
    holder: MutableMapping[str, Any]
    key: str

    def set_default(self, default: Any) -> None:
        """Replace the default; a scalar stays one where it can."""
        entry = self.holder[self.key]
        if isinstance(entry, dict):
            entry["default"] = default
        else:
            self.holder[self.key] = {"type": self.type, "default": default}


class Registry:
    """The declarations of one document, which changes pass through to its value."""

    def __init__(self, block: MutableMapping[str, Any], found: Iterator[Declared]) -> None:
        """`block` is the pipeline's `vars`, where additions go."""
        self._block = block
        written = list(found)
        self._found = {(one.scope, one.name): one for one in written}
        self._repeated = [one for one in written if self._found[one.scope, one.name] is not one]

    def __iter__(self) -> Iterator[Declared]:
        """Every declaration; of several with one name the last is the one that counts and comes first."""
        yield from self._found.values()
        yield from self._repeated

    def find(self, scope: str, name: str) -> Declared | None:
        """The declaration of a name."""
        return self._found.get((scope, name))

    def set_default(self, scope: str, name: str, type_: str, default: Any) -> None:
        """Override the default, or declare the name."""
        self.add(scope, name, type_)
        self._found[scope, name].set_default(default)

    def add(self, scope: str, name: str, type_: str) -> None:
        """Declare the name, unless it is."""
        if (scope, name) in self._found:
            return
        holder = self._block if scope == "static" else self._block.setdefault(scope, {})
        holder[name] = {"type": type_}
        self._found[scope, name] = Declared(scope, name, type_, ("pipeline", "vars"), holder, name)


def declared(document: Document) -> Registry:
    """The registry of a pipeline's document. What is malformed is passed over: planning reports it."""
    value = document.value if isinstance(document.value, dict) else {}
    pipeline = value.get("pipeline")
    if not isinstance(pipeline, dict):
        pipeline = {}
    block = pipeline.setdefault("vars", {})
    if not isinstance(block, dict):
        block = {}
    nodes = value.get("nodes")
    return Registry(block, _all(block, nodes if isinstance(nodes, list) else []))


def _all(block: MutableMapping[str, Any], nodes: list[Any]) -> Iterator[Declared]:
    for name, entry in block.items():
        path: Path = ("pipeline", "vars", name)
        if is_scope_block(name, entry):
            yield from (Declared(name, inner, _type(one), (*path, inner), entry, inner) for inner, one in entry.items())
        else:
            yield Declared("static", name, _type(entry), path, block, name)
    for index, node in enumerate(nodes):
        yield from _declares(index, node)


def is_scope_block(name: str, entry: Any) -> bool:
    """Whether an entry of `vars` is a block of declarations of a scope and not a variable of that name."""
    return name in SCOPES and isinstance(entry, dict) and all(isinstance(inner, dict) for inner in entry.values())


def _declares(index: int, node: Any) -> Iterator[Declared]:
    """The `declares` list of a transform, as far as its scopes are ones."""
    config = node.get("config") if isinstance(node, dict) else None
    entries = config.get("declares") if isinstance(config, dict) else None
    for position, entry in enumerate(entries if isinstance(entries, list) else []):
        if isinstance(entry, dict) and isinstance(entry.get("name"), str) and entry.get("scope") in SCOPES:
            path: Path = ("nodes", index, "config", "declares", position)
            yield Declared(entry["scope"], entry["name"], _type(entry), path, {"entry": entry}, "entry")


def _type(entry: Any) -> str:
    """The declared type, or that of a scalar."""
    if isinstance(entry, dict):
        return str(entry.get("type", "any"))
    return next((name for kind, name in _SCALARS if isinstance(entry, kind)), "any")
