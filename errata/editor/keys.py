"""The keys that a file may have at a place, what each does, and the words that a value may be: from the JSON Schema."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from errata.editor.files import FileKind
from errata.project.channels.files import ChannelFile
from errata.project.compositions.signature import ComposeFile, CompositionFile
from errata.project.json_schema import pipeline_schema
from operators.core import registry
from operators.source.config import DATASET
from storage import formats
from storage.formats.envelope import Envelope
from storage.formats.fixed_width.layout import Layout

if TYPE_CHECKING:
    from pydantic import BaseModel

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Shape:
    """The shape of a value: a JSON Schema, and the one around it, to which references lead."""

    schema: Mapping[str, Any]
    root: Mapping[str, Any]

    def plain(self) -> Iterator[Shape]:
        """Yield the schemas that a value may fit, without references and alternatives."""
        reference = self.schema.get("$ref")
        if isinstance(reference, str):
            found: Any = self.root
            for step in reference.removeprefix("#/").split("/"):
                found = found[step]
            yield from Shape(found, self.root).plain()
            return
        parts = [one for key in ("anyOf", "oneOf", "allOf") for one in self.schema.get(key, ())]
        yield from (inner for one in parts for inner in Shape(one, self.root).plain())
        if not parts or "properties" in self.schema:
            yield self

    def member(self, step: str | int) -> Iterator[Shape]:
        """Yield what a member of the value may be."""
        for one in self.plain():
            inner = one.schema.get("items") if isinstance(step, int) else one.schema.get("properties", {}).get(step, one.schema.get("additionalProperties"))
            if isinstance(inner, dict):
                yield Shape(inner, one.root)


@dataclass(frozen=True, slots=True)
class Key:
    """A key that a map may have."""

    name: str
    description: str
    required: bool
    holds: str
    """`map`, `list` or `value`."""


def shapes_at(kind: FileKind, value: object, path: Path) -> list[Shape]:
    """Return what the value at a path may be.

    Args:
        kind: What the file is.
        value: The plain value of the file, which says of what type its nodes are.
    """
    found = list(_roots(kind, value))
    place: object = value
    for index, step in enumerate(path):
        place = _inner(place, step)
        if index == 1 and path[0] == "nodes":
            found = list(_nodes(place))
        else:
            special = _special(value, path[: index + 1])
            found = [special] if special is not None else [inner for one in found for inner in one.member(step)]
    return found


def described(kind: FileKind, value: object, path: Path) -> str:
    """Return what the key at a path does; empty where that is not known."""
    texts = [str(one.schema["description"]) for parent in shapes_at(kind, value, path[:-1]) for one in parent.member(path[-1]) if "description" in one.schema]
    if not texts and len(path) >= 1:
        texts = [str(one.schema["description"]) for one in shapes_at(kind, value, path) if "description" in one.schema]
    return texts[0] if texts else ""


def details(kind: FileKind, value: object, path: Path) -> str:
    """Return the words that a value may be, its default and an example, as Markdown; empty where there is none."""
    shapes = shapes_at(kind, value, path)
    words = allowed(shapes)
    defaults = [one.schema["default"] for one in shapes if one.schema.get("default") not in (None, {}, [])]
    lines = [f"One of {', '.join(f'`{word}`' for word in words)}."] if words else []
    examples = [example for one in shapes for example in one.schema.get("examples", ())]
    lines += [f"Default: `{json.dumps(one, ensure_ascii=False)}`." for one in defaults[:1]]
    return "\n\n".join([*lines, *(f"Example: `{path[-1]}: {json.dumps(one, ensure_ascii=False)}`." for one in examples[:1])])


def keys_at(kind: FileKind, value: object, path: Path) -> list[Key]:
    """Return the keys that the map at a path may have."""
    found: dict[str, Key] = {}
    for shape in shapes_at(kind, value, path):
        for one in shape.plain():
            for name, schema in one.schema.get("properties", {}).items():
                inner = Shape(schema, one.root)
                text = str(schema.get("description", ""))
                found.setdefault(name, Key(name, text, name in one.schema.get("required", ()), _holds(inner)))
    return list(found.values())


def allowed(shapes: list[Shape]) -> list[str]:
    """Return the words that a value may be, where it may only be some."""
    found: dict[str, None] = {}
    for one in (plain for shape in shapes for plain in shape.plain()):
        for word in one.schema.get("enum", [one.schema["const"]] if "const" in one.schema else []):
            found |= {_word(word): None} if word is not None else {}
        if one.schema.get("type") == "boolean":
            found |= {"true": None, "false": None}
    return list(found)


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _holds(shape: Shape) -> str:
    types = (one.schema.get("type") for one in shape.plain())
    kinds = {kind for one in types for kind in (one if isinstance(one, list) else [one])} - {"null"}
    simple = kinds & {"string", "integer", "number", "boolean", None}
    return "value" if simple else "map" if "object" in kinds else "list" if "array" in kinds else "value"


def _inner(value: object, step: str | int) -> object:
    if isinstance(value, dict):
        return value.get(step)
    return value[step] if isinstance(value, list) and isinstance(step, int) and 0 <= step < len(value) else None


# Schemas ----------------------------------------------------------------------------------------------------------------


@cache
def _pipeline() -> Mapping[str, Any]:
    return pipeline_schema()


@cache
def _of_model(model: type[BaseModel]) -> Shape:
    schema = model.model_json_schema(by_alias=True)
    return Shape(schema, schema)


def _roots(kind: FileKind, value: object) -> Iterator[Shape]:
    if kind == "pipeline":
        yield Shape(_pipeline(), _pipeline())
    elif kind == "channel":
        yield _of_model(ChannelFile)
    elif kind == "composition":
        headed = isinstance(value, dict)
        yield from (_of_model(one) for key, one in (("_compose", ComposeFile), ("composition", CompositionFile)) if not headed or not value or key in _keys(value))
        if headed and not {"_compose", "composition"} & _keys(value):
            yield from (_of_model(one) for one in (ComposeFile, CompositionFile))


def _keys(value: object) -> set[object]:
    return set(value) if isinstance(value, dict) else set()


def _nodes(node: object) -> Iterator[Shape]:
    """The schemas of a node: the one of its type, or all."""
    kind = node.get("type") if isinstance(node, dict) else None
    branches = _pipeline()["properties"]["nodes"]["items"]["oneOf"]
    of_type = [one for one in branches if one["properties"]["type"]["const"] == kind]
    if of_type:
        yield from (Shape({**one, "properties": {**one["properties"], "type": _type_key(one)}}, _pipeline()) for one in of_type)
        return
    common = {key: branches[0]["properties"][key] for key in ("name", "description", "_notes")}
    wiring = {key: one["properties"][key] for one in branches for key in ("input", "inputs") if key in one["properties"]}
    yield Shape({"type": "object", "properties": {"type": _type_key(branches[0]), **common, **wiring, "config": {"type": "object"}}, "required": ["type", "name"]}, _pipeline())


def _type_key(branch: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"enum": list(registry.names()), "description": branch["properties"]["type"]["description"]}


def _special(value: object, path: Path) -> Shape | None:
    """The schema of a key whose value has a model of its own: options of a format, layouts, sections of documents."""
    if len(path) < 4 or path[0] != "nodes" or path[2] != "config":
        return None
    node = _inner(_inner(value, "nodes"), path[1])
    kind, config = _inner(node, "type"), _inner(node, "config")
    if path[3:] == ("type",) and kind in ("source", "output"):
        return Shape({"enum": [*formats.names(), *([DATASET] if kind == "source" else [])], "description": "The format, such as csv, json or parquet; delta is a Delta table, sql a database (E217)."}, {})
    if path[3:] == ("options",) and kind in ("source", "output"):
        return _options(str(kind), str(_inner(config, "type")))
    if path[3:] == ("format_schema",) or (path[3:] == ("schema",) and kind == "output" and isinstance(_inner(config, "schema"), dict)):
        return _of_model(Layout)
    return _of_model(Envelope) if path[3:] == ("envelope",) and kind == "source" else None


def _options(kind: str, format: str) -> Shape | None:
    if format not in formats.names():
        return None
    found = _of_model(formats.reader_type(format).Options if kind == "source" else formats.writer_type(format).Options)
    return Shape({"description": "The options of the format (E218).", **found.schema}, found.root)
