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

    name: str
    type: TypeName = "any"
    description: str | None = None


def _fields(value: Any) -> Any:
    """Accept `{schema: {id: int}}` as well as `{schema: [{name: id, type: int}]}`."""
    return [{"name": name, "type": type_} for name, type_ in value.items()] if isinstance(value, dict) else value


class Port(Strict):
    """An input port of the `_compose:` form."""

    schema_: Annotated[list[FieldType], BeforeValidator(_fields)] = Field(default_factory=list, alias="schema")
    description: str | None = None
    required: bool = True


class OutputPort(Strict):
    """An output port: a node of the body, or `node.port`."""

    ref: str
    description: str | None = None


def _output(value: Any) -> Any:
    return {"ref": value} if isinstance(value, str) else value


class ParameterDeclaration(Strict):
    """A parameter: its type, whether it is required, and its allowed values."""

    name: str = ""
    type: TypeName = "any"
    required: bool | None = None
    default: Any = None
    enum: list[Any] | None = None
    range: list[float | None] | None = Field(None, min_length=2, max_length=2)
    description: str | None = None


def _named_once(params: list[ParameterDeclaration]) -> list[ParameterDeclaration]:
    twice = next((one.name for at, one in enumerate(params) if one.name in {other.name for other in params[:at]}), None)
    if twice is not None:
        raise ValueError(f"parameter '{twice}' is declared twice")
    return params


class ScopedVariable(Strict):
    """A variable of the parent that the body reads or writes."""

    type: TypeName


class ScopedVariables(Strict):
    """Variables of the parent that the body may use."""

    pipeline: dict[str, ScopedVariable] = Field(default_factory=dict)
    source: dict[str, ScopedVariable] = Field(default_factory=dict)
    record: dict[str, ScopedVariable] = Field(default_factory=dict)


class ComposeHeader(Strict):
    """The `_compose:` block."""

    name: str
    description: str | None = None
    version: str | int | float | None = None
    inputs: dict[str, Port] = Field(min_length=1)
    outputs: dict[str, Annotated[OutputPort, BeforeValidator(_output)]] = Field(min_length=1)
    config_schema: dict[str, ParameterDeclaration] = Field(default_factory=dict)
    resources_schema: dict[str, Any] = Field(default_factory=dict)
    scoped_vars: ScopedVariables = ScopedVariables()


class CompositionHeader(Strict):
    """The `composition:` block."""

    name: str
    description: str | None = None
    version: str | int | float | None = None
    requires: list[FieldType] = Field(default_factory=list)
    produces: list[FieldType] = Field(default_factory=list)
    params: Annotated[list[ParameterDeclaration], AfterValidator(_named_once)] = Field(default_factory=list)
    scoped_vars: ScopedVariables = ScopedVariables()


class ComposeFile(Strict):
    """A file in the `_compose:` form; its nodes are read one by one."""

    compose: ComposeHeader = Field(alias="_compose")
    nodes: list[Any] = Field(min_length=1)


class CompositionFile(Strict):
    """A file in the `composition:` form."""

    composition: CompositionHeader
    nodes: list[Any] = Field(min_length=1)


class CompositionCall(Strict):
    """A composition node in a pipeline file."""

    type: Literal["composition"]
    name: str
    use: str
    description: str | None = None
    notes: Any = Field(None, alias="_notes")
    input: str | None = None
    inputs: dict[str, str] = Field(default_factory=dict)
    outputs: dict[str, str] = Field(default_factory=dict)
    config: dict[str, Any] | None = None
    resources: dict[str, Any] | None = None
    alias: str | None = Field(None, pattern=r"^[A-Za-z_][A-Za-z0-9_-]{0,127}$")


@dataclass(frozen=True, slots=True)
class Signature:
    """What a composition reads and produces, in either form.

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
