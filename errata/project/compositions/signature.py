"""Composition files. Both forms of header become one signature."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError

from cxl.types.types import STRING, Type, parse_type
from errata.project.findings import Findings
from errata.project.validation import model_problems
from errata.yaml import Document
from operators.core.config import Strict
from operators.expect.config import Expectation

HEADERS = ("composition", "_compose")
PLAIN_PORT = "input"
"""The only input port of the `composition:` form."""


def declared_type(text: str) -> Type:
    """Return the type of a port's field or of a parameter. A path is a text. Raises ValueError for an unknown type."""
    return STRING if text == "path" else parse_type(text)


def _type_name(text: str) -> str:
    declared_type(text)
    return text


TypeName = Annotated[str, AfterValidator(_type_name)]


class FieldType(Strict):
    """A field that a port requires or produces."""

    name: str = Field(description="The name of the field.", examples=["amount"])
    type: TypeName = Field(default="any", description="The CXL type of the field.", examples=["float"])
    description: str | None = Field(default=None, description="Text for people; it has no effect.", examples=["The price without tax."])


def _fields(value: Any) -> Any:
    """Accept `{schema: {id: int}}` as well as `{schema: [{name: id, type: int}]}`."""
    return [{"name": name, "type": type_} for name, type_ in value.items()] if isinstance(value, dict) else value


class Port(Strict):
    """An input port of the `_compose:` form."""

    schema_: Annotated[list[FieldType], BeforeValidator(_fields)] = Field(
        default_factory=list, alias="schema", description="The fields that the input must have, as a list or as names with types; other columns flow through (E112).", examples=[[{"name": "amount", "type": "float"}]]
    )
    description: str | None = Field(default=None, description="Text for people; it has no effect.", examples=["The orders of a day."])
    required: bool = Field(default=True, description="Whether a call has to connect the port (E104).")


class OutputPort(Strict):
    """An output port: a node of the body, or `node.port`."""

    ref: str = Field(description="The node of the body, or node.port, whose rows leave here (E102).", examples=["with_tax"])
    description: str | None = Field(default=None, description="Text for people; it has no effect.", examples=["The orders with their tax."])


def _output(value: Any) -> Any:
    return {"ref": value} if isinstance(value, str) else value


class ParameterDeclaration(Strict):
    """A parameter: its type, whether it is required, and its allowed values."""

    name: str = Field(default="", description="The name of the parameter; the body reads it as $vars.NAME. In config_schema the key is the name.", examples=["rate"])
    type: TypeName = Field(default="any", description="The CXL type of the value, or path (E105).", examples=["float"])
    required: bool | None = Field(default=None, description="Whether a call has to give a value; by default it has to where there is no default (E104).")
    default: Any = Field(default=None, description="The value of calls that give none.", examples=[0.19])
    enum: list[Any] | None = Field(default=None, description="The values that are allowed (E105).", examples=[[0.07, 0.19]])
    range: list[float | None] | None = Field(default=None, min_length=2, max_length=2, description="The least and the greatest value; null is no bound (E105).", examples=[[0, 1]])
    description: str | None = Field(default=None, description="Text for people; it has no effect.", examples=["The rate of the tax."])


def _named_once(params: list[ParameterDeclaration]) -> list[ParameterDeclaration]:
    twice = next((one.name for at, one in enumerate(params) if one.name in {other.name for other in params[:at]}), None)
    if twice is not None:
        raise ValueError(f"parameter '{twice}' is declared twice")
    return params


class ScopedVariable(Strict):
    """A variable of the parent that the body reads or writes."""

    type: TypeName = Field(description="The type that the parent declares the variable with (E174).", examples=["int"])


class ScopedVariables(Strict):
    """Variables of the parent that the body may use."""

    pipeline: dict[str, ScopedVariable] = Field(default_factory=dict, description="Variables of the parent that the body reads as $pipeline.NAME.", examples=[{"limit": {"type": "int"}}])
    source: dict[str, ScopedVariable] = Field(default_factory=dict, description="Variables of the parent that the body reads as $source.NAME.", examples=[{"seen": {"type": "int"}}])
    record: dict[str, ScopedVariable] = Field(default_factory=dict, description="Variables of the parent that the body reads as $record.NAME.", examples=[{"label": {"type": "string"}}])


class ComposeHeader(Strict):
    """The `_compose:` block."""

    name: str = Field(description="The name of the composition, for people.", examples=["tax"])
    description: str | None = Field(default=None, description="Text for people; it has no effect.", examples=["Adds the tax to orders."])
    version: str | int | float | None = Field(default=None, description="Text or a number for people; it has no effect.", examples=["1.2"])
    inputs: dict[str, Port] = Field(min_length=1, description="The input ports by name; nodes of the body read a port as if it were a node.", examples=[{"orders": {"schema": [{"name": "amount", "type": "float"}]}}])
    outputs: dict[str, Annotated[OutputPort, BeforeValidator(_output)]] = Field(
        min_length=1, description="The output ports by name: a node of the body, or node.port. The first one is what the bare name of the call reads (E102).", examples=[{"taxed": "with_tax"}]
    )
    config_schema: dict[str, ParameterDeclaration] = Field(default_factory=dict, description="The parameters by name.", examples=[{"rate": {"type": "float", "default": 0.19}}])
    resources_schema: dict[str, Any] = Field(default_factory=dict, description="Accepted; it has no effect.", examples=[{"rates": {"type": "file"}}])
    scoped_vars: ScopedVariables = Field(default=ScopedVariables(), description="Variables of the parent that the body may use (E173).", examples=[{"record": {"label": {"type": "string"}}}])


class CompositionHeader(Strict):
    """The `composition:` block."""

    name: str = Field(description="The name of the composition, for people.", examples=["tax"])
    description: str | None = Field(default=None, description="Text for people; it has no effect.", examples=["Adds the tax to orders."])
    version: str | int | float | None = Field(default=None, description="Text or a number for people; it has no effect.", examples=["1.2"])
    requires: list[FieldType] = Field(default_factory=list, description="The fields that the input must have; other columns flow through (E112).", examples=[[{"name": "amount", "type": "float"}]])
    produces: list[FieldType] = Field(default_factory=list, description="The fields that the last node of the body must give (E113).", examples=[[{"name": "tax", "type": "float"}]])
    params: Annotated[list[ParameterDeclaration], AfterValidator(_named_once)] = Field(default_factory=list, description="The parameters.", examples=[[{"name": "rate", "type": "float", "default": 0.19}]])
    scoped_vars: ScopedVariables = Field(default=ScopedVariables(), description="Variables of the parent that the body may use (E173).", examples=[{"record": {"label": {"type": "string"}}}])


class ComposeFile(Strict):
    """A file in the `_compose:` form; its nodes are read one by one."""

    compose: ComposeHeader = Field(alias="_compose", description="The header with named input and output ports.", examples=[{"name": "tax", "inputs": {"orders": {"schema": []}}, "outputs": {"taxed": "with_tax"}}])
    nodes: list[Any] = Field(min_length=1, description="The nodes of the body, as in a pipeline file; they see no node of the parent (E108).", examples=[[{"type": "merge", "name": "all", "inputs": ["a", "b"]}]])


class CompositionFile(Strict):
    """A file in the `composition:` form."""

    composition: CompositionHeader = Field(description="The header with one input port, input, and one output, the last node.", examples=[{"name": "tax"}])
    nodes: list[Any] = Field(min_length=1, description="The nodes of the body, as in a pipeline file; they see no node of the parent (E108).", examples=[[{"type": "merge", "name": "all", "inputs": ["a", "b"]}]])


class CompositionCall(Strict):
    """A composition node in a pipeline file."""

    type: Literal["composition"] = Field(description="Says that the node uses a composition.")
    name: str = Field(description="The name by which other nodes refer to the composition's outputs.")
    use: str = Field(description="The path of the composition's file, relative to the file that names it (E101).")
    description: str | None = Field(default=None, description="Text for people; it has no effect.")
    notes: Any = Field(default=None, alias="_notes", description="Any value, for people and tools; it has no effect and is no part of a fingerprint.")
    input: str | None = Field(default=None, description="The node that the only input port reads.")
    inputs: dict[str, str] = Field(default_factory=dict, description="The node that each input port reads, by port (E103, E104).", examples=[{"orders": "valid"}])
    outputs: dict[str, str] = Field(default_factory=dict, description="The consumer, by output port, that reads this port under the bare name of the node.", examples=[{"taxed": "taxed"}])
    config: dict[str, Any] | None = Field(default=None, description="The values of the composition's parameters, by name (E103, E104, E105).")
    resources: dict[str, Any] | None = Field(default=None, description="Accepted; it has no effect.", examples=[{"rates": "rates.csv"}])
    expect: list[Expectation] = Field(default_factory=list, description="What the rows of the first output port are to be, and what a failing row leads to (E280).")
    alias: str | None = Field(default=None, pattern=r"^[A-Za-z_][A-Za-z0-9_-]{0,127}$", description="The name by which channels set its parameters; by default the node's name.", examples=["vat"])


@dataclass(frozen=True, slots=True)
class Signature:
    """The inputs and results of a composition, in either form.

    Args:
        header: The key of the header in the document.
        outputs: Port to a node of the body, or `node.port`.
        scoped: Types of the parent's variables by scope and name.
    """

    document: Document
    header: str
    inputs: Mapping[str, Port]
    outputs: Mapping[str, str]
    produces: tuple[FieldType, ...]
    parameters: Mapping[str, ParameterDeclaration]
    scoped: Mapping[tuple[str, str], str]

    def output_path(self, port: str) -> tuple[str | int, ...]:
        """Return the path of an output port's declaration."""
        return (self.header, "outputs", port) if self.header == "_compose" else (self.header,)

    def input_path(self, port: str) -> tuple[str | int, ...]:
        """Return the path of an input port's declaration."""
        return (self.header, "inputs", port) if self.header == "_compose" else (self.header, "requires")

    def parameter_path(self, name: str) -> tuple[str | int, ...]:
        """Return the path of a parameter's declaration."""
        if self.header == "_compose":
            return (self.header, "config_schema", name)
        return (self.header, "params", list(self.parameters).index(name))


def signature(document: Document, findings: Findings) -> Signature | None:
    """Return the signature of a composition file, None where it has problems. The problems are reported."""
    value = document.value
    written = [key for key in HEADERS if isinstance(value, dict) and key in value]
    if len(written) != 1:
        message = "a composition file has a '_compose:' or a 'composition:' block" + (", not both" if written else "")
        findings.diagnostics.append(document.error((), "E101", message))
        return None
    model = ComposeFile if written[0] == "_compose" else CompositionFile
    try:
        content = model.model_validate(value)
    except ValidationError as error:
        findings.diagnostics.extend(model_problems(error, document, (), model))
        return None
    return _of_compose(document, content) if isinstance(content, ComposeFile) else _of_composition(document, content)


def _of_compose(document: Document, content: ComposeFile) -> Signature:
    header = content.compose
    outputs = {port: one.ref for port, one in header.outputs.items()}
    return Signature(document, "_compose", header.inputs, outputs, (), header.config_schema, _scoped(header.scoped_vars))


def _of_composition(document: Document, content: CompositionFile) -> Signature:
    header = content.composition
    last = content.nodes[-1]
    name = str(last.get("name", "")) if isinstance(last, dict) else ""
    parameters = {one.name: one for one in header.params}
    inputs = {PLAIN_PORT: Port(schema=header.requires)}
    return Signature(document, "composition", inputs, {"output": name}, tuple(header.produces), parameters, _scoped(header.scoped_vars))


def _scoped(block: ScopedVariables) -> dict[tuple[str, str], str]:
    return {(scope, name): one.type for scope in ("pipeline", "source", "record") for name, one in getattr(block, scope).items()}
