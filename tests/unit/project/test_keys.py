"""Every key of a pipeline file, and of the files beside it, says what it does; the page of all keys has them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from errata.core.codes import pages
from errata.project.json_schema import pipeline_schema
from operators.core import registry
from tests.keys_page import PAGE, Section, markdown, sections

FOUND = [(section.title, key) for section in sections() for key in section.entries()]
SHORT = 2
"""Words that a description has at least."""
CODE = re.compile(r"\b[EW]\d[0-9A-Z]{2}\b|\bCFG-\d+\b")


def is_sentence(text: str) -> bool:
    return text.endswith(".") and len(text.split()) >= SHORT and text.count(". ") <= 1


def test_every_key_has_a_description():
    assert len(FOUND) > 400
    assert [(title, key.place, key.name) for title, key in FOUND if not is_sentence(key.description)] == [], "add Field(description=…), one plain sentence"


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
