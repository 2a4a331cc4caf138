"""Values held to a JSON Schema: the keywords that our own schemas use."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

_TYPES: Mapping[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str), "boolean": lambda value: isinstance(value, bool), "null": lambda value: value is None,
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool), "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "object": lambda value: isinstance(value, dict), "array": lambda value: isinstance(value, list),
}  # fmt: skip
_SAID = ("$schema", "title", "description")


def faults(value: Any, schema: Mapping[str, Any], at: str = "$") -> list[str]:
    """The faults of a value; empty where it fits the schema."""
    unknown = set(schema) - set(_KEYWORDS) - set(_SAID)
    assert not unknown, f"the test knows no {unknown}"
    return [fault for name, check in _KEYWORDS.items() if name in schema for fault in check(value, schema, at)]


def _type(value: Any, schema: Mapping[str, Any], at: str) -> list[str]:
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return [] if any(_TYPES[kind](value) for kind in kinds) else [f"{at}: {value!r} is no {' or '.join(kinds)}"]


def _properties(value: Any, schema: Mapping[str, Any], at: str) -> list[str]:
    known = schema["properties"]
    return [fault for name, one in value.items() if name in known for fault in faults(one, known[name], f"{at}.{name}")] if isinstance(value, dict) else []


def _further(value: Any, schema: Mapping[str, Any], at: str) -> list[str]:
    return [fault for name, one in value.items() for fault in faults(one, schema["additionalProperties"], f"{at}.{name}")] if isinstance(value, dict) else []


def _conditional(value: Any, schema: Mapping[str, Any], at: str) -> list[str]:
    return [] if faults(value, schema["if"], at) else faults(value, schema["then"], at)


_KEYWORDS: Mapping[str, Callable[[Any, Mapping[str, Any], str], list[str]]] = {
    "type": _type, "properties": _properties, "additionalProperties": _further, "if": _conditional, "then": lambda *_: [],
    "required": lambda value, schema, at: [f"{at}: no {name}" for name in schema["required"] if isinstance(value, dict) and name not in value],
    "enum": lambda value, schema, at: [] if value in schema["enum"] else [f"{at}: {value!r} is none of {schema['enum']}"],
    "const": lambda value, schema, at: [] if value == schema["const"] else [f"{at}: {value!r} is not {schema['const']!r}"],
    "minimum": lambda value, schema, at: [f"{at}: {value} is too small"] if isinstance(value, int | float) and value < schema["minimum"] else [],
    "pattern": lambda value, schema, at: [] if not isinstance(value, str) or re.search(schema["pattern"], value) else [f"{at}: {value!r} has another form"],
    "items": lambda value, schema, at: [fault for index, one in enumerate(value) for fault in faults(one, schema["items"], f"{at}[{index}]")] if isinstance(value, list) else [],
    "allOf": lambda value, schema, at: [fault for one in schema["allOf"] for fault in faults(value, one, at)],
}  # fmt: skip
