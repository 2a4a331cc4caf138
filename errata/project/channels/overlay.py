"""Channels: one pipeline under several configurations.

`apply` changes the declarations of a document in place, before it is planned: variables and parameters of compositions. What a
pipeline file cannot express is in the `Overlay`.
"""

import datetime as dt
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cxl.typed.target import PIPELINE, SOURCE
from cxl.types.types import parse_decimal, parse_type, type_name
from errata.core.diagnostics import Diagnostic, Label, did_you_mean
from errata.project.channels.files import Channel, VariableEntry, find_channel, load_channel
from errata.project.compositions.parameters import Layer
from errata.project.variables import Declared, declared
from errata.yaml import Document, read_yaml
from storage.values.decimals import decimal_type, value_of
from storage.values.types import base_type

__all__ = ["RESERVED", "Channel", "Overlay", "apply", "find_channel", "load_channel", "parameter_names"]

Path_ = tuple[str | int, ...]

RESERVED: Mapping[str, frozenset[str]] = {
    "static": frozenset(),
    "pipeline": frozenset(PIPELINE),
    "source": frozenset(SOURCE),
    "record": frozenset(),
}
"""Fields that the engine fills, by scope. A channel cannot shadow them (E110)."""

_KINDS: Mapping[str, tuple[type, ...]] = {
    "int": (int,),
    "float": (int, float),
    "string": (str,),
    "bool": (bool,),
    "date": (str,),
    "date_time": (str,),
}


@dataclass(slots=True)
class Overlay:
    """The changes of a channel.

    Args:
        file: The channel's file.
        source_variables: Type and default by source node and variable.
        layers: The channel's values by alias of a composition and parameter.
    """

    channel: str
    diagnostics: list[Diagnostic] = field(default_factory=list)
    file: str = ""
    source_variables: dict[tuple[str, str], tuple[str, Any]] = field(default_factory=dict)
    layers: dict[tuple[str, str], tuple[Layer, ...]] = field(default_factory=dict)


def apply(channel: Channel, document: Document, pipeline: Path, workspace: Path, environment: str | None = None) -> Overlay:
    """Apply the channel to the document. Raises nothing: E107, E110, E111, W103 and W104 are in the result."""
    overlay = Overlay(channel.name, file=channel.document.file)
    value = document.value
    if not isinstance(value, dict):
        return overlay
    overlay.diagnostics += _target(channel, value, pipeline, workspace)
    if channel.content.holds(environment):
        _Variables(channel, document, overlay, environment).apply()
        if channel.content.config.holds(environment):
            overlay.diagnostics += _parameters(channel, value, pipeline.parent, overlay)
    return overlay


def _nodes(value: Mapping[str, Any]) -> list[dict[str, Any]]:
    nodes = value.get("nodes")
    return [node for node in nodes if isinstance(node, dict)] if isinstance(nodes, list) else []


def _target(channel: Channel, value: Mapping[str, Any], pipeline: Path, workspace: Path) -> Iterator[Diagnostic]:
    """W104: the target is neither this pipeline nor a composition that it uses."""
    target = channel.content.channel.target
    folder = Path(channel.document.file).parent
    named = {(base / target).resolve() for base in (folder, folder.parent, workspace)}
    used = {(pipeline.parent / str(node.get("use"))).resolve() for node in _nodes(value) if node.get("use")}
    if not named & (used if channel.for_composition else {pipeline.resolve()}):
        message = f"channel '{channel.name}' is for {target}, not for {pipeline}"
        yield channel.document.warning(("channel", "target"), "W104", message)


class _Variables:
    """Overrides and additions of variables."""

    def __init__(self, channel: Channel, document: Document, overlay: Overlay, environment: str | None) -> None:
        self._file = channel.document
        self._entries = channel.content.vars
        self._document = document
        self._overlay = overlay
        self._environment = environment
        self._registry = declared(document)

    def apply(self) -> None:
        """Apply all four registries."""
        for scope in ("static", "pipeline", "record"):
            for name, entry in getattr(self._entries, scope).items():
                self._one(scope, name, entry, ("vars", scope, name), self._registry.set_default)
        value: Any = self._document.value
        sources = [str(node.get("name")) for node in _nodes(value) if node.get("type") == "source"]
        for source, entries in self._entries.source.items():
            if source not in sources:
                message = f"the pipeline has no source '{source}'"
                self._error("E111", message, ("vars", "source", source), did_you_mean(source, sources), key=True)
                continue
            for name, entry in entries.items():
                self._one("source", name, entry, ("vars", "source", source, name), self._setter(source))

    def _setter(self, source: str) -> Callable[[str, str, str, Any], None]:
        def set_for_source(scope: str, name: str, type_: str, default: Any) -> None:
            self._registry.add(scope, name, type_)
            self._overlay.source_variables[source, name] = (type_, default)

        return set_for_source

    def _one(self, scope: str, name: str, entry: VariableEntry, path: Path_, change: Callable[[str, str, str, Any], None]) -> None:
        if not entry.holds(self._environment):
            return
        type_ = _type_name(entry.type)
        older = self._registry.find(scope, name)
        if name in RESERVED[scope]:
            self._error("E110", f"'${scope}.{name}' is a system field; a channel cannot replace it", path, "choose another name", key=True)
        elif type_ not in _KINDS and decimal_type(type_) is None:
            self._error("E107", f"variable '{name}': unknown type '{entry.type}'", (*path, "type"), f"known types: {', '.join(_KINDS)}, decimal(10,2)")
        elif older is not None and _type_name(older.type) not in (type_, "any"):
            self._mismatch(name, older, entry, path)
        elif not _fits(entry.default, type_):
            self._error("E107", f"the default of '{name}' is not of type {type_}", (*path, "default"), "")
        else:
            change(scope, name, entry.type, entry.default)

    def _mismatch(self, name: str, older: Declared, entry: VariableEntry, path: Path_) -> None:
        message = f"variable '{name}' is declared {older.type}, overridden as {entry.type}"
        label = Label.at(self._document.span(older.path), f"declared {older.type}")
        self._error("E107", message, (*path, "type"), f"give it the type {older.type}", labels=(label,))

    def _error(self, code: str, message: str, path: Path_, help_line: str, *, key: bool = False, labels: tuple[Label, ...] = ()) -> None:
        place = self._file.key_span(path) if key else self._file.span(path)
        self._overlay.diagnostics.append(Diagnostic.at(place, code, message, help=help_line, labels=labels, lines=self._file.source))


def _type_name(name: str) -> str:
    """The plain name of a type: without nullable, `datetime` as `date_time`, precision and scale of a decimal without blanks."""
    inner = base_type(name)
    try:
        return type_name(parse_type(inner)) if parse_decimal(inner) is None else "".join(inner.split())
    except ValueError:
        return inner


def _fits(default: Any, type_: str) -> bool:
    """Whether a default has the type. Null always does."""
    if default is None:
        return True
    digits = decimal_type(type_)
    if digits is not None:
        return not isinstance(default, bool) and value_of(default, digits) is not None
    if not isinstance(default, _KINDS[type_]) or (isinstance(default, bool) and type_ != "bool"):
        return False
    return type_ not in ("date", "date_time") or _is_date(str(default), dt.date if type_ == "date" else dt.datetime)


def _is_date(text: str, kind: type[dt.date]) -> bool:
    try:
        kind.fromisoformat(text)
    except ValueError:
        return False
    return True


def _parameters(channel: Channel, value: Mapping[str, Any], folder: Path, overlay: Overlay) -> Iterator[Diagnostic]:
    """Record the values that `config` gives to parameters. Reports W103."""
    calls = {str(node.get("alias") or node.get("name")): node for node in _nodes(value) if node.get("type") == "composition"}
    known = {f"{alias}.{name}" for alias, node in calls.items() for name in parameter_names(folder / str(node.get("use")))}
    knobs = channel.content.config
    for layer, entries in (("default", knobs.default), ("fixed", knobs.fixed)):
        for key, given in entries.items():
            path = ("config", layer, key)
            if key in known:
                alias, _, name = key.partition(".")
                place = Label.at(channel.document.span(path), "")
                overlay.layers[alias, name] = (*overlay.layers.get((alias, name), ()), Layer(f"channel {layer}", given, place))
            else:
                message = f"'{key}' is no parameter of a composition in this pipeline"
                yield channel.document.warning(path, "W103", message, key=True, help=did_you_mean(key, known))


def parameter_names(path: Path) -> tuple[str, ...]:
    """Return the parameters that a composition file declares, in either form; none where it cannot be read."""
    content = read_yaml(path).value
    headers = [content.get(key) for key in ("composition", "_compose")] if isinstance(content, dict) else []
    blocks = [header.get(key) for header in headers if isinstance(header, dict) for key in ("params", "config_schema")]
    return tuple(dict.fromkeys(name for block in blocks for name in _named(block)))


def _named(block: Any) -> Iterator[str]:
    """The names in a list of declarations, or in a map."""
    if isinstance(block, dict):
        yield from block
    elif isinstance(block, list):
        yield from (str(entry["name"]) for entry in block if isinstance(entry, dict) and "name" in entry)
