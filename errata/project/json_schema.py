"""The JSON Schema (draft-07) of pipeline files, made from the configuration models of the node types."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

from errata.project.compositions.signature import CompositionCall
from errata.project.model import NodeHeader, PipelineFile
from operators.core import registry
from operators.core.registry import NodeType
from operators.expect.config import Expectation

DIALECT = "http://json-schema.org/draft-07/schema#"

_WIRING: Mapping[str, tuple[Mapping[str, Any], tuple[str, ...]]] = {
    "none": ({}, ()),
    "input": ({"input": {"type": "string", "description": "The node whose rows are read; node.port for a branch of a route or a port of a composition (E004, E006, E014).", "examples": ["orders"]}}, ("input",)),
    "inputs": (
        {"inputs": {"type": "array", "items": {"type": "string"}, "minItems": 1, "description": "The nodes whose rows are read, in their order (E004, E006, E014).", "examples": [["monday", "tuesday"]]}},
        ("inputs",),
    ),
    "map": (
        {
            "input": {
                "type": "object",
                "additionalProperties": {"type": "string"},
                "minProperties": 2,
                "description": "The nodes that are joined, each under the name by which programs read it; the first one drives (E004, E014, E300, E301).",
                "examples": [{"orders": "orders", "items": "stock"}],
            }
        },
        ("input",),
    ),
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
    top["properties"]["nodes"] = {"type": "array", "items": {"oneOf": branches}, **_texts(PipelineFile)["nodes"]}
    top["required"] = sorted({*top.get("required", ()), "pipeline", "nodes"})
    return {
        "$schema": DIALECT,
        "title": "Errata pipeline",
        **{key: value for key, value in top.items() if key != "title"},
        "definitions": definitions,
    }


def wiring_of(entry: NodeType) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    """Return the schemas of the keys by which a node type names its inputs, and the keys that a node must have."""
    keys, needed = _WIRING[entry.wiring]
    if entry.wiring != "any":
        return keys, needed
    described = _texts(CompositionCall)
    return {name: {**schema, **described[name]} for name, schema in keys.items()}, needed


def _texts(model: type[BaseModel]) -> dict[str, dict[str, Any]]:
    """Return the description of each key of a model, and its examples where it has some."""
    return {
        field.alias or name: {"description": field.description or "", **({"examples": field.examples} if field.examples else {})}
        for name, field in model.model_fields.items()
    }


_HEADER = _texts(NodeHeader)


def _node(kind: str, entry: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    """The schema of one node type: wiring and configuration."""
    wiring, needed = wiring_of(entry)
    config = {"type": "object"} if entry.config is BaseModel else _model(entry.config, definitions)
    properties = {
        "type": {"const": kind, **_HEADER["type"]},
        "name": {"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_-]{0,127}$", **_HEADER["name"]},
        "description": {"type": "string", **_HEADER["description"]},
        "_notes": _HEADER["_notes"],
        "expect": {"type": "array", "items": _model(Expectation, definitions), **_HEADER["expect"]},
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
