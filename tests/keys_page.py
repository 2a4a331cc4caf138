"""The page of all keys, made from the configuration models: `docs/reference/keys.md`.

`python -m tests.documents --write` writes it. The types, defaults and descriptions are the ones of the JSON Schema.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from errata.project.channels.files import ChannelFile
from errata.project.compositions.signature import ComposeFile, CompositionFile
from errata.project.json_schema import pipeline_schema
from errata.project.workspace import Settings
from operators.core import registry
from storage import formats
from storage.formats.envelope import Envelope
from storage.formats.fixed_width.layout import Layout
from tests.site import codes_pages
from tests.site.key_examples import examples, flow

if TYPE_CHECKING:
    from pydantic import BaseModel

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "keys.md"
CODES = re.compile(r" \(((?:[EW][0-9][0-9A-Z]{2}|CFG-\d+)(?:, (?:[EW][0-9][0-9A-Z]{2}|CFG-\d+))*)\)\.$")
INTRODUCTION = """\
# Keys

Every key of pipeline files and of the files beside them, by place. This page is made from the models that read the files: `make docs` writes it.

* `[]` in a place is an entry of a list, `*` any name of a map. A key without a default is *required*, or has no value where the column is empty.
* Codes are the [diagnostics](diagnostics/README.md) that name the key. An unknown key is CFG-001, a missing one CFG-002, a value of a wrong type
  CFG-003, a value that is not allowed CFG-004.
* No version was released yet, so every key is there since 0.1.0.
* Most texts of a pipeline file may hold `${NAME}`, an environment variable: [pipeline files](pipeline-files.md#yaml).
"""
WORDS = {"string": "text", "integer": "integer", "number": "number", "boolean": "true or false", "object": "map", "array": "list", "null": "null"}


@dataclass(frozen=True, slots=True)
class Key:
    """A key at its place: the JSON Schema of its values, and whether it has to be there."""

    place: str
    name: str
    schema: Mapping[str, Any]
    required: bool

    @property
    def description(self) -> str:
        """The effect of the key, with the codes of its diagnostics."""
        return str(self.schema.get("description", ""))

    @property
    def codes(self) -> tuple[str, ...]:
        """The diagnostics that the description names."""
        found = CODES.search(self.description)
        return tuple(found[1].split(", ")) if found else ()


@dataclass(frozen=True, slots=True)
class Section:
    """The keys of one kind of file, of a node type or of the options of a format.

    Args:
        title: the heading of the section
        opening: its first sentence
        schema: the JSON Schema of the map with the keys
        definitions: what `$ref` refers to
    """

    title: str
    opening: str
    schema: Mapping[str, Any]
    definitions: Mapping[str, Any]

    def entries(self) -> Iterator[Key]:
        """All keys; the keys of an inner map come after the ones around it."""
        yield from self._entries(self.schema, "", ())

    def _entries(self, schema: Mapping[str, Any], place: str, above: tuple[str, ...]) -> Iterator[Key]:
        own = schema.get("properties", {}).items()
        yield from (Key(place, name, one, name in schema.get("required", ())) for name, one in own)
        for name, one in own:
            for inner, at, reference in self._maps(one, f"{place}.{name}" if place else name):
                if reference is None or reference not in above:
                    yield from self._entries(inner, at, above if reference is None else (*above, reference))

    def _maps(self, schema: Mapping[str, Any], place: str, reference: str | None = None) -> Iterator[tuple[Mapping[str, Any], str, str | None]]:
        """The maps with keys of their own that the values of a key may be or hold."""
        if "properties" in schema:
            yield schema, place, reference
        for one in self.parts(schema):
            yield from self._maps(one, place, reference)
        if "$ref" in schema:
            yield from self._maps(self.resolved(schema), place, schema["$ref"])
        if isinstance(schema.get("items"), dict):
            yield from self._maps(schema["items"], f"{place}[]")
        if isinstance(schema.get("additionalProperties"), dict):
            yield from self._maps(schema["additionalProperties"], f"{place}.*")

    @staticmethod
    def parts(schema: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
        """The schemas that a value may, or has to, fit."""
        return [*schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("allOf", ())]

    def others(self, schema: Mapping[str, Any]) -> Sequence[Any]:
        """Return the values of a switch or a choice that are not its default."""
        if "$ref" in schema:
            found = self.others(self.resolved(schema))
        elif parts := self.parts(schema):
            found = [value for one in parts for value in self.others(one)]
        else:
            found = schema.get("enum") or ([schema["const"]] if "const" in schema else [True, False] if schema.get("type") == "boolean" else [])
        return [value for value in found if value is not None and value != schema.get("default")]

    def resolved(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        """The schema that a `$ref` refers to."""
        found: Mapping[str, Any] = self.definitions[schema["$ref"].rpartition("/")[2]]
        return found

    def type_of(self, schema: Mapping[str, Any]) -> str:
        """The type of a value in words."""
        if "$ref" in schema:
            return self.type_of(self.resolved(schema))
        if "enum" in schema or "const" in schema:
            return ", ".join("null" if value is None else f"`{value}`" for value in schema.get("enum", [schema.get("const")]))
        if parts := self.parts(schema):
            return " or ".join(dict.fromkeys(self.type_of(one) for one in parts if one.get("type") != "null"))
        kinds = schema.get("type", "any")
        names = [kind for kind in ([kinds] if isinstance(kinds, str) else kinds) if kind != "null"]
        return " or ".join(self._one_type(kind, schema) for kind in names)

    def _one_type(self, kind: str, schema: Mapping[str, Any]) -> str:
        if kind == "array" and isinstance(schema.get("items"), dict):
            return f"list of {self.type_of(schema['items'])}" if schema["items"] else "list"
        if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
            return f"map of {self.type_of(schema['additionalProperties'])}"
        return WORDS.get(kind, kind) + bounds(schema)


def bounds(schema: Mapping[str, Any]) -> str:
    """The range of a number, to stand behind its type."""
    least, most = schema.get("minimum"), schema.get("maximum")
    if least is not None and most is not None:
        return f" from {least} to {most}"
    if least is not None:
        return f" from {least}"
    return f" above {schema['exclusiveMinimum']}" if "exclusiveMinimum" in schema else ""


def sections() -> Iterator[Section]:
    """The sections of the page, in their order."""
    whole = pipeline_schema()
    definitions = whole["definitions"]
    top = {**whole["properties"], "nodes": {**whole["properties"]["nodes"], "items": {"type": "object"}}}
    yield Section("Pipeline file", "The top level of a pipeline file. Nodes have [sections of their own](#every-node).", {**whole, "properties": top}, definitions)
    nodes = {one["properties"]["type"]["const"]: one for one in whole["properties"]["nodes"]["items"]["oneOf"]}
    shared = ("type", "name", "description", "_notes", "expect", "config")
    common = next(iter(nodes.values()))
    header = {**common, "properties": {name: _plain(name, common["properties"][name]) for name in shared}, "required": ["type", "name"]}
    yield Section("Every node", "The keys that nodes of all types have.", header, definitions)
    for kind, node in nodes.items():
        own = {name: one for name, one in node["properties"].items() if name not in shared}
        if has_keys := bool(node["properties"]["config"].get("properties")):
            own["config"] = {**node["properties"]["config"], "description": NODE_CONFIG, "examples": [CONFIGS[kind]] if kind in CONFIGS else []}
        opening = f"A node of type `{kind}`. [What it does](nodes/{kind}.md)." + ("" if has_keys else " Its `config` has the parameters that its file declares.")
        yield Section(f"Node: {kind}", opening, {**node, "properties": own}, definitions)
    yield from _formats()
    yield _of_model("Document sections", "The `envelope` of a source.", Envelope)
    yield _of_model("Layout", "The layout of fixed-width files: `format_schema` of a source, `schema` of an output.", Layout)
    yield _of_model("Composition file with ports", "A composition file that begins with `_compose`.", ComposeFile)
    yield _of_model("Composition file", "A composition file that begins with `composition`.", CompositionFile)
    yield _of_model("Channel file", "A file `NAME.channel.yaml`.", ChannelFile)
    yield _of_model("Workspace file", "The file `errata.toml` at or above a pipeline.", Settings)


NODE_CONFIG = "The keys of the node type (E013)."
CONFIGS: Mapping[str, Mapping[str, Any]] = {
    "combine": {"where": "a.id == b.id", "propagate_ck": "driver"},
    "merge": {"mode": "interleave"},
    "source": {"name": "a", "type": "csv", "path": "a.csv", "schema": [{"name": "id", "type": "int"}]},
    "state": {"scope": "pipeline", "set": [{"var": "total", "cxl": "sum(amount)"}]},
}
"""A short `config` of the types whose examples have long ones."""


def _plain(name: str, schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema of a key that all nodes have, without what one type alone says of it."""
    if name == "type":
        return {"enum": list(registry.names()), "description": schema["description"], "examples": ["transform"]}
    return {"type": "object", "description": NODE_CONFIG, "examples": [CONFIGS["merge"]]} if name == "config" else schema


def _formats() -> Iterator[Section]:
    """The options of formats that have some."""
    for name in formats.names():
        for side, model in (("sources", formats.reader_type(name).Options), ("outputs", formats.writer_type(name).Options)):
            if model.model_fields:
                yield _of_model(f"Options: {name} {side}", f"The `options` of {side} of type `{name}`.", model)


def _of_model(title: str, opening: str, model: type[BaseModel]) -> Section:
    schema = model.model_json_schema(by_alias=True)
    return Section(title, opening, schema, schema.get("$defs", {}))


def markdown() -> str:
    """Return the page."""
    return "\n".join([INTRODUCTION, *(line for section in sections() for line in _lines(section))]).rstrip() + "\n"


def _lines(section: Section) -> Iterator[str]:
    yield from (f"## {section.title}", "", section.opening, "")
    place = None
    for key in section.entries():
        if key.place != place:
            yield from ([""] if place is not None else []) + ([f"`{key.place}`", ""] if key.place else [])
            yield from ("| key | type | default | meaning | codes |", "|---|---|---|---|---|")
            place = key.place
        yield "| " + " | ".join(_cells(section, key)) + " |"
    yield ""


def example_of(section: Section, key: Key) -> str | None:
    """Return the example of a key: of its model, else the shortest one of the pages, else the value that is not the default."""
    given = key.schema.get("examples") or ()
    found = examples().get((section.title, key.place, key.name)) if not given else None
    return found or next((flow({key.name: value}) for value in (*given, *section.others(key.schema))), None)


def _cells(section: Section, key: Key) -> Iterator[str]:
    default = key.schema.get("default")
    shown = "" if default is None or isinstance(default, dict) else f"`{json.dumps(default, ensure_ascii=False) if not isinstance(default, str) or not default.strip() else default}`"
    yield f"`{key.name}`"
    yield section.type_of(key.schema)
    yield "required" if key.required else shown
    example = example_of(section, key)
    yield _escaped(CODES.sub(".", key.description)) + (f" Example: `{example}`".replace("|", "\\|") if example else "")
    yield ", ".join(f"[{code}](diagnostics/{codes_pages.address(code)})" for code in key.codes)


def _escaped(text: str) -> str:
    return re.sub(r"([|*_<>])", r"\\\1", text)
