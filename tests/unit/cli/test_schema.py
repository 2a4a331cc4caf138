"""The JSON Schema of pipeline files: draft-07, closed, a branch for each node type."""

import json
from typing import Any

from operators.core import registry


def _schema(call) -> dict[str, Any]:
    code, output, _ = call("schema")
    assert code == 0
    return json.loads(output)  # type: ignore[no-any-return]


def test_it_is_draft_7_and_has_a_branch_for_each_node_type(call) -> None:
    schema = _schema(call)
    assert schema["$schema"] == "http://json-schema.org/draft-07/schema#"
    branches = schema["properties"]["nodes"]["items"]["oneOf"]
    assert [branch["properties"]["type"]["const"] for branch in branches] == list(registry.names())
    assert schema["required"] == ["nodes", "pipeline"]


def test_every_reference_is_defined(call) -> None:
    schema = _schema(call)
    named = {one.removeprefix("#/definitions/") for one in _references(schema)}
    assert named <= set(schema["definitions"])
    assert "$defs" not in json.dumps(schema)


def test_unknown_keys_are_closed_out_of_nodes(call) -> None:
    schema = _schema(call)
    for branch in schema["properties"]["nodes"]["items"]["oneOf"]:
        assert branch["additionalProperties"] is False
        assert {"type", "name"} <= set(branch["required"])


def test_a_bare_word_stands_where_the_loader_takes_one(call) -> None:
    schema = _schema(call)
    source = next(branch for branch in schema["properties"]["nodes"]["items"]["oneOf"] if branch["properties"]["type"]["const"] == "source")
    config = source["properties"]["config"]["properties"]
    for key in ("merge", "on_unmapped", "correlation_key", "exclude"):
        assert {"type": "string"} in config[key]["anyOf"], key


def _references(value: Any) -> list[str]:
    if isinstance(value, dict):
        own = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
        return own + [found for inner in value.values() for found in _references(inner)]
    return [found for inner in value for found in _references(inner)] if isinstance(value, list) else []
