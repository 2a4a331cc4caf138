"""Every key of a pipeline file, and of the files beside it, says what it does; the page of all keys has them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any, get_args

import pytest
import yaml
from pydantic import BaseModel, ValidationError

from errata.core.codes import pages
from errata.project.channels.files import ChannelFile
from errata.project.compositions.signature import ComposeFile, CompositionCall, CompositionFile
from errata.project.json_schema import pipeline_schema
from errata.project.model import NodeHeader, PipelineFile
from errata.project.workspace import Settings
from operators.core import registry
from operators.expect.config import Expectation
from storage import formats
from storage.formats.envelope import Envelope
from storage.formats.fixed_width.layout import Layout
from tests.keys_page import PAGE, Key, Section, example_of, markdown, sections

FOUND = [(section.title, key) for section in sections() for key in section.entries()]
SHORT = 2
"""Words that a description has at least."""
CODE = re.compile(r"\b[EW]\d[0-9A-Z]{2}\b|\bCFG-\d+\b")


def is_sentence(text: str) -> bool:
    return text.endswith(".") and len(text.split()) >= SHORT and text.count(". ") <= 1


def test_every_key_has_a_description():
    assert len(FOUND) > 400
    assert [(title, key.place, key.name) for title, key in FOUND if not is_sentence(key.description)] == [], "add Field(description=…), one plain sentence"


ROOTS: dict[str, type[BaseModel]] = {
    "Pipeline file": PipelineFile, "Every node": NodeHeader, "Document sections": Envelope, "Layout": Layout, "Composition file with ports": ComposeFile,
    "Composition file": CompositionFile, "Channel file": ChannelFile, "Workspace file": Settings,
}  # fmt: skip
EXAMPLES = [(section.title, key, example_of(section, key)) for section in sections() for key in section.entries()]


def root_of(title: str, place: str) -> tuple[type[BaseModel], str]:
    """Return the model that a place is in, and the place in it."""
    word, _, name = title.partition(": ")
    if word == "Options":
        kind, side = name.split()
        return (formats.reader_type(kind) if side == "sources" else formats.writer_type(kind)).Options, place
    if word == "Node":
        inner = re.fullmatch(r"config[.]?(.*)", place)
        return (registry.find(name).config, inner[1]) if inner else (CompositionCall if name == "composition" else NodeHeader, place)
    return (Expectation, place.removeprefix("expect[]").lstrip(".")) if place.startswith("expect[]") else (ROOTS[title], place)


def models_in(annotation: Any) -> set[type[BaseModel]]:
    """Return the models that values of a type may be or hold."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return {annotation}
    return {found for one in get_args(annotation) for found in models_in(one)}


@cache
def models_at(root: type[BaseModel], place: str) -> frozenset[type[BaseModel]]:
    """Return the models of the maps at a place."""
    found = {root}
    for step in (one for one in place.replace("[]", "").split(".") if one not in ("", "*")):
        found = {inner for one in found for name, field in one.model_fields.items() if step in (name, field.alias) for inner in models_in(field.annotation)}
    return frozenset(found)


def wrong_in(model: type[BaseModel], value: dict[str, Any]) -> list[Any]:
    """Return what is wrong with the one key of a map, or with the map as a whole; other keys may be missing."""
    try:
        model.model_validate(value)
    except ValidationError as wrong:
        return [one for one in wrong.errors() if not (one["type"] == "missing" and len(one["loc"]) == 1 and one["loc"][0] not in value) and one["loc"] != ()]
    return []


def faults(title: str, key: Key, example: str) -> list[Any]:
    """Return what is wrong with an example: with the models at its place, and within the config of its node type."""
    value = yaml.safe_load(f"{{{example}}}")
    name = title.removeprefix("Node: ")
    if key.place == "" and title.startswith("Node: ") and key.name != "config":
        return [] if isinstance(value[key.name], {"string": str, "array": list, "object": dict}[key.schema["type"]]) else ["another type"]
    if key.place == "" and title.startswith("Node: "):
        return wrong_in(registry.find(name).config, value["config"])
    models = models_at(*root_of(title, key.place))
    assert models, f"no model at {key.place}"
    return [] if any(wrong_in(model, value) == [] for model in models) else [wrong_in(model, value) for model in models]


def test_every_key_has_an_example():
    assert [(title, key.place, key.name) for title, key, example in EXAMPLES if example is None] == [], "add Field(examples=[…])"


def test_every_example_is_a_value_that_its_model_takes():
    wrong = [(title, key.place, key.name, example, found) for title, key, example in EXAMPLES if example is not None and (found := faults(title, key, example))]
    assert wrong == []


def test_a_wrong_example_would_be_found():
    (title, key), *_ = [(title, key) for title, key in FOUND if (title, key.place, key.name) == ("Node: transform", "config.log[]", "every")]
    assert faults(title, key, "every: 0") != []
    assert faults(title, key, "evry: 1") != []


def test_codes_of_descriptions_have_pages_and_are_at_the_end():
    wrong = [(title, key.place, key.name) for title, key in FOUND if set(CODE.findall(key.description)) != set(key.codes) or not set(key.codes) <= set(pages())]
    assert wrong == []


def test_the_page_is_what_the_models_say():
    assert PAGE.read_text(encoding="utf-8") == markdown(), "run: python -m tests.documents --write docs/reference/keys.md"


@pytest.mark.parametrize("kind", registry.names())
def test_every_node_type_has_a_page_with_an_example(kind):
    page = (PAGE.parent / "nodes" / f"{kind}.md").read_text(encoding="utf-8")
    assert f"../keys.md#node-{kind}" in page
    assert "$ errata run " in page.split("## Example")[1]
    assert f"({kind}.md)" in (PAGE.parent / "nodes" / "README.md").read_text(encoding="utf-8")


def properties(schema: Any) -> Iterator[tuple[str, Any]]:
    """All keys that maps of a JSON Schema have."""
    if isinstance(schema, dict):
        found = schema.get("properties")
        yield from found.items() if isinstance(found, dict) and "type" in schema else ()
    for inner in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from properties(inner)


def test_the_schema_for_editors_describes_every_key():
    schema = pipeline_schema()
    definitions = schema["definitions"]

    def described(one: Any) -> bool:
        return "description" in one or ("$ref" in one and "description" in definitions[one["$ref"].rpartition("/")[2]])

    found = list(properties(schema))
    assert len(found) > 200
    assert [name for name, one in found if not described(one)] == []


def test_a_key_without_a_description_would_be_found():
    section = Section("x", "y", {"properties": {"a": {"type": "string"}, "b": {"type": "object", "properties": {"c": {"minimum": 1, "type": "integer"}}}}}, {})
    assert [(key.place, key.name, key.description) for key in section.entries()] == [("", "a", ""), ("", "b", ""), ("b", "c", "")]
