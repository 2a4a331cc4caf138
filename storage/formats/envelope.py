"""Typed sections of a document's envelope (user guide, "Document Envelope Context")."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from storage.formats.base import InputError, Section
from storage.formats.values import coerce_values, text_of_value


def typed_section(section: Section, values: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The declared fields of a section; absent and empty ones are null. Raises InputError for a value that is not of its type."""
    return {field.name: _typed(section, field.name, field.type, values.get(field.name), name) for field in section.fields}


def _typed(section: Section, field: str, declared: str, value: Any, name: str) -> Any:
    if value is None or value == "":
        return None
    result = coerce_values([value], declared)
    if result.failed is not None:
        shown = text_of_value(value)
        raise InputError(name, f"envelope section '{section.name}', field '{field}': cannot read {shown!r} as {declared}")
    return result.values[0].as_py()
