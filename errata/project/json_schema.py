"""The JSON Schema (draft-07) of pipeline files, made from the configuration models of the node types."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

from errata.project.model import PipelineFile
from operators.core import registry

DIALECT = "http://json-schema.org/draft-07/schema#"

_WIRING: Mapping[str, tuple[Mapping[str, Any], tuple[str, ...]]] = {
    "none": ({}, ()),
    "input": ({"input": {"type": "string"}}, ("input",)),
    "inputs": ({"inputs": {"type": "array", "items": {"type": "string"}, "minItems": 1}}, ("inputs",)),
    "map": ({"input": {"type": "object", "additionalProperties": {"type": "string"}, "minProperties": 2}}, ("input",)),
    "any": (
        {
            "input": {"type": "string"},
            "inputs": {"type": "object", "additionalProperties": {"type": "string"}},
            "outputs": {"type": "object", "additionalProperties": {"type": "string"}},
            "use": {"type": "string"},
            "alias": {"type": "string"},
            "resources": {"type": "object"},
        },
        ("use",),
    ),
}


class _Draft7(GenerateJsonSchema):
    """Puts definitions under `definitions`, as draft-07 does."""

    schema_dialect = DIALECT

    def generate(self, schema: Any, mode: Any = "validation") -> JsonSchemaValue:
        """Generate as pydantic does."""
        result: JsonSchemaValue = _renamed(super().generate(schema, mode))
        return result


def _renamed(value: Any) -> Any:
    if isinstance(value, dict):
        return {("definitions" if key == "$defs" else key): _renamed(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_renamed(inner) for inner in value]
    return value.replace("#/$defs/", "#/definitions/") if isinstance(value, str) else value


def pipeline_schema() -> dict[str, Any]:
    """Return the schema of a pipeline file: the top level, and a branch for each node type."""
    definitions: dict[str, Any] = {}
    top = _model(PipelineFile, definitions)
    branches = [_node(kind, registry.find(kind), definitions) for kind in registry.names()]
    top["properties"]["nodes"] = {"type": "array", "items": {"oneOf": branches}}
    top["required"] = sorted({*top.get("required", ()), "pipeline", "nodes"})
    return {
        "$schema": DIALECT,
        "title": "Errata pipeline",
        **{key: value for key, value in top.items() if key != "title"},
        "definitions": definitions,
    }


def _node(kind: str, entry: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    """The schema of one node type: wiring and configuration."""
    wiring, needed = _WIRING[entry.wiring]
    config = {"type": "object"} if entry.config is BaseModel else _model(entry.config, definitions)
    properties = {
        "type": {"const": kind},
        "name": {"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_-]{0,127}$"},
        "description": {"type": "string"},
        "_notes": {},
        **wiring,
        "config": config,
    }
    required = ["type", "name", *needed, *(() if entry.config_optional else ("config",))]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _model(model: type[BaseModel], definitions: dict[str, Any]) -> dict[str, Any]:
    """The schema of a model. Its definitions go to the shared ones."""
    schema = model.model_json_schema(by_alias=True, schema_generator=_Draft7)
    definitions.update(schema.pop("definitions", {}))
    schema.pop("$schema", None)
    return schema
