"""A call of a composition: ports, parameters and variables, checked against its file's signature."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from pydantic import ValidationError

from cxl.types.types import FLOAT, INT, Kind, Type, unify
from errata.core.diagnostics import Diagnostic, Label
from errata.project.compositions.parameters import Layer, Parameter, strongest
from errata.project.compositions.signature import CompositionCall, FieldType, ParameterDeclaration, Signature, declared_type
from errata.project.expectations import read_expectations
from errata.project.findings import NodeReporter
from errata.project.nodes import RawNode, good_name
from errata.project.validation import model_problems
from errata.project.variables import precision_of, read_value
from operators.core.row_type import RowType
from operators.core.settings import InputRef, Variable
from operators.expect.config import Placed

Variables = Mapping[tuple[str, str], Variable]


@dataclass(frozen=True, slots=True)
class Body:
    """Variables that the programs of a body may read: the parameters as `$vars`, and variables of the parent by scope and name."""

    prefix: str
    parameters: Mapping[str, Parameter]
    scoped: Mapping[tuple[str, str], Type]


@dataclass(frozen=True, slots=True)
class Contract:
    """Fields that the rows of `ref` must have.

    Args:
        index: The input of the node that it applies to.
        port: The port of the composition.
        label: The place in the composition that requires them.
    """

    call: str
    ref: InputRef
    fields: Sequence[FieldType]
    what: str
    code: str
    reporter: NodeReporter
    place: tuple[str | int, ...]
    label: Label
    index: int = 0
    port: str = ""

    def problems(self, row: RowType) -> Iterator[Diagnostic]:
        """Yield one diagnostic for each field that is missing or has another type."""
        for one in self.fields:
            there = row.data.get(one.name)
            if there is None:
                wrong = f"{self.what} '{one.name}'; {'there is' if row.data else 'there are'} {', '.join(row.data) or 'no fields'}"
            elif unify(there.base, declared_type(one.type).base) is None:
                wrong = f"{self.what} '{one.name}' as {one.type}; it is {there.base}"
            else:
                continue
            document, path = self.reporter.document, (*self.reporter.path, *self.place)
            place = document.span(path)
            message = f"composition '{self.call}' {wrong}"
            yield Diagnostic.at(place, self.code, message, node=self.reporter.name, labels=(self.label,), lines=document.source)


@dataclass(frozen=True, slots=True)
class Call:
    """A composition node that matches its file.

    Args:
        prefix: The name before its nodes.
        ports: For each input port a reference in the file with the call.
        consumers: For each consumer the output port that it reads.
        input: Its `input`, which no port beside `inputs` may be bound to.
    """

    name: str
    prefix: str
    alias: str | None
    signed: Signature
    body: Body
    ports: Mapping[str, InputRef]
    consumers: Mapping[str, str]
    reporter: NodeReporter
    input: str | None = None
    expect: tuple[Placed, ...] = ()

    @property
    def outputs(self) -> Mapping[str, str]:
        """Output port to a node of the body."""
        return self.signed.outputs

    def port_of(self, consumer: str) -> str | None:
        """Return the port that the call's `outputs` names for a consumer."""
        return next((port for port, node in self.consumers.items() if node == consumer), None)

    def place_of(self, port: str) -> tuple[str | int, ...]:
        """Return where the call binds a port."""
        return ("inputs", port) if self.reporter.document.has((*self.reporter.path, "inputs", port)) else ("input",)

    def contract(self, port: str) -> Contract:
        """Return what an input port requires."""
        declared = self.signed.inputs[port]
        document = self.signed.document
        label = Label.at(document.span(self.signed.input_path(port)), "asked for here")
        return Contract(self.prefix, self.ports[port], declared.schema_, "requires field", "E112", self.reporter, self.place_of(port), label, port=port)

    def promise(self, ref: InputRef) -> Contract:
        """Return what the composition declares to produce."""
        label = Label.at(self.signed.document.span((self.signed.header, "produces")), "promised here")
        return Contract(self.prefix, ref, self.signed.produces, "does not produce field", "E113", self.reporter, ("use",), label)


Layers = Mapping[tuple[str, str], tuple[Layer, ...]]
"""A channel's values for parameters, by alias of the composition and parameter."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a call is.

    Args:
        variables: The pipeline's variables.
        parent: The body with the call, None in the pipeline itself.
        prefix: The name before that body's nodes.
    """

    variables: Variables
    parent: Body | None
    prefix: str
    layers: Layers


def read_call(raw: RawNode, signed: Signature, reporter: NodeReporter, place: Place) -> Call | None:
    """Return the call of a composition, None where it has problems. The problems are reported."""
    try:
        written = CompositionCall.model_validate(raw.value)
    except ValidationError as error:
        reporter.findings.diagnostics.extend(model_problems(error, raw.document, raw.path, CompositionCall, node=raw.name))
        return None
    before = len(reporter.findings.diagnostics)
    reading = _Reading(written, signed, reporter)
    ports = reading.ports()
    alias = written.alias or written.name
    given = {parameter: layers for (name, parameter), layers in place.layers.items() if name == alias}
    parameters = dict(reading.parameters(given))
    scoped = dict(_opted_in(signed, reporter, place.variables, place.parent))
    reading.check_consumers()
    if not good_name(written.name, reporter) or len(reporter.findings.diagnostics) > before:
        return None
    prefix = place.prefix + alias
    expect = read_expectations(raw.value.get("expect"), reporter, tuple(signed.outputs))
    return Call(written.name, prefix, written.alias, signed, Body(prefix, parameters, scoped), ports, written.outputs, reporter, written.input, expect)


@dataclass(frozen=True, slots=True)
class _Reading:
    """A composition node as written, and the signature of its file."""

    written: CompositionCall
    signed: Signature
    reporter: NodeReporter

    def ports(self) -> dict[str, InputRef]:
        """Return the reference of each input port. Unknown and unbound ports are reported."""
        written, known = self.written, list(self.signed.inputs)
        misspelt = [port for port in written.inputs if port not in known]
        for port in misspelt:
            self._no_such("input port", port, ("inputs", port), known)
        bound = dict(written.inputs)
        if written.input is not None and len(known) == 1:
            bound.setdefault(known[0], written.input)
        for port, declared in self.signed.inputs.items():
            if port not in bound and declared.required and not misspelt:
                message = f"input port '{port}' of composition '{written.name}' is not bound"
                self.reporter.report("E104", message, (), help=f"inputs: {{{port}: <node>}}")
        return {port: InputRef.parse(text) for port, text in bound.items() if port in known}

    def check_consumers(self) -> None:
        """Report output ports that do not exist."""
        known = list(self.signed.outputs)
        for port in self.written.outputs:
            if port not in known:
                self._no_such("output port", port, ("outputs", port), known)

    def _no_such(self, what: str, name: str, place: tuple[str, ...], known: Sequence[str]) -> None:
        help_text = self.reporter.similar(name, known) or (f"its {what}s: {', '.join(known)}" if known else f"it has no {what}s")
        self.reporter.report("E103", f"composition '{self.written.name}' has no {what} '{name}'", place, help=help_text, on_key=True)

    def parameters(self, given: Mapping[str, tuple[Layer, ...]]) -> Iterator[tuple[str, Parameter]]:
        """Return the parameters with their values. Unknown, missing and wrong ones are reported."""
        known = list(self.signed.parameters)
        for name in self.written.config or {}:
            if name not in known:
                self._no_such("parameter", name, ("config", name), known)
        for name, declared in self.signed.parameters.items():
            parameter = self._parameter(name, declared, [*self._own_layers(name, declared), *given.get(name, ())])
            if parameter is not None:
                yield name, parameter

    def _own_layers(self, name: str, declared: ParameterDeclaration) -> Iterator[Layer]:
        if "default" in declared.model_fields_set:
            place = self.signed.document.span((*self.signed.parameter_path(name), "default"))
            yield Layer("composition default", declared.default, Label.at(place, ""))
        path = (*self.reporter.path, "config", name)
        if name in (self.written.config or {}):
            yield Layer("call", (self.written.config or {})[name], Label.at(self.reporter.document.span(path), ""))

    def _parameter(self, name: str, declared: ParameterDeclaration, layers: Sequence[Layer]) -> Parameter | None:
        """A parameter; None where it has no value, or a wrong one."""
        holds = strongest(layers)
        if holds is None and declared.required is not False:
            self._without_value(name)
            return None
        type_ = declared_type(declared.type)
        absent = holds is None or (holds.value is None and not _has_value(declared, type_))
        fitting = [self._fits(name, layer, type_, declared) for layer in layers if layer.value is not None or (layer is holds and not absent)]
        if not all(fitting):  # every layer is checked, also one that a stronger layer replaces
            return None
        if holds is None or absent:
            return Parameter(name, type_.or_null, None, layers)
        return Parameter(name, _given(type_, holds.value), _fitting(holds.value, type_, declared), layers)

    def _without_value(self, name: str) -> None:
        place = ("config",) if self.written.config else ()
        help_text = f"config: {{{name}: ...}}, or a default in {self.signed.document.file}"
        self.reporter.report("E104", f"{self._called(name)} has no value", place, help=help_text)

    def _called(self, name: str) -> str:
        return f"parameter '{name}' of composition '{self.written.name}'"

    def _fits(self, name: str, layer: Layer, type_: Type, declared: ParameterDeclaration) -> bool:
        """Whether the parameter allows a value. Reports E105 where not."""
        try:
            _fitting(layer.value, type_, declared)
        except ValueError as error:
            declared_at = Label.at(self.signed.document.span(self.signed.parameter_path(name)), "declared here")
            lines = next((one.source for one in (self.reporter.document, self.signed.document) if one.file == layer.place.file), None)
            shown = json.dumps(layer.value) if layer.value is None or isinstance(layer.value, bool) else repr(layer.value)
            message = f"{self._called(name)} must be {error}, not {shown}"
            found = Diagnostic.at(layer.place, "E105", message, node=self.reporter.name, labels=(declared_at,), lines=lines)
            self.reporter.findings.diagnostics.append(found)
            return False
        return True


_NUMBER = (int, float)
_WRITTEN: Mapping[Kind, type | tuple[type, ...]] = {
    Kind.INT: int, Kind.FLOAT: _NUMBER, Kind.NUMERIC: _NUMBER, Kind.BOOL: bool, Kind.ARRAY: list, Kind.MAP: dict,
}  # fmt: skip
"""The Python type of a value of a kind in YAML, where it is no text."""


def _has_value(declared: ParameterDeclaration, type_: Type) -> bool:
    """Whether a parameter is never null: it is required and its type is not nullable."""
    required = declared.required if declared.required is not None else "default" not in declared.model_fields_set
    return required and not type_.nullable and type_.kind is not Kind.ANY


def _given(type_: Type, value: Any) -> Type:
    """The type of a parameter with a value. A number is an Int or a Float."""
    return (FLOAT if isinstance(value, float) else INT) if type_.kind is Kind.NUMERIC else type_.base


def _fitting(value: Any, type_: Type, declared: ParameterDeclaration) -> Any:
    """The value in the parameter's type. Raises ValueError with what it must be."""
    found = _read(value, type_, declared)
    allowed = [_read(one, type_, declared) for one in declared.enum or ()] if type_.kind is Kind.DECIMAL else declared.enum
    if declared.enum is not None and allowed is not None and found not in allowed:
        raise ValueError(f"one of {', '.join(map(str, declared.enum))}")
    if declared.range is not None and isinstance(found, int | float | Decimal):
        _check_range(found, *declared.range)
    return found


def _read(value: Any, type_: Type, declared: ParameterDeclaration) -> Any:
    """The value in its type. A text is no number, and true is none either."""
    kinds = _WRITTEN.get(type_.kind, object)
    if value is None or not isinstance(value, kinds) or (isinstance(value, bool) and kinds in (int, _NUMBER)):
        raise ValueError(declared.type)
    try:
        return value if type_.is_dynamic else read_value(value, type_.base, precision_of(declared.type))
    except ValueError:
        raise ValueError(declared.type) from None


def _check_range(found: float | Decimal, low: float | None, high: float | None) -> None:
    if (low is not None and found < low) or (high is not None and found > high):
        raise ValueError(f"in the range {low} to {high}")


def _opted_in(signed: Signature, reporter: NodeReporter, variables: Variables, parent: Body | None) -> Iterator[tuple[tuple[str, str], Type]]:
    """The parent's variables that the body may read. E174 where it declares another type."""
    seen = {key: one.type for key, one in variables.items()} if parent is None else dict(parent.scoped)
    for (scope, name), text in signed.scoped.items():
        theirs = seen.get((scope, name))
        path = (signed.header, "scoped_vars", scope, name)
        if theirs is None:
            message = f"composition '{reporter.name}' reads '${scope}.{name}', which the pipeline around it does not declare"
        elif declared_type(text).kind is not theirs.kind:
            message = f"composition '{reporter.name}' declares '${scope}.{name}' as {text}; the pipeline declares it as {theirs.base}"
        else:
            yield (scope, name), theirs
            continue
        label = Label.at(reporter.document.span(reporter.path), "used here")
        document = signed.document
        reporter.findings.diagnostics.append(Diagnostic.at(document.span(path), "E174", message, node=reporter.name, labels=(label,), lines=document.source))
