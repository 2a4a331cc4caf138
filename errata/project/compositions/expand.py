"""Compositions expanded: the nodes of each body become nodes `<node>/<body node>` of the plan.

A file is a level. Its nodes know each other and the input ports by their own names, and nothing of the levels around them.
References are resolved level by level, so the plan holds no composition itself.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os.path import normpath
from pathlib import Path
from typing import TYPE_CHECKING

from errata.core.diagnostics import PipelineErrors
from errata.project.findings import Findings
from errata.project.nodes import RawNode, named_nodes, raw_nodes, read_node
from errata.project.texts import SAVED, Texts
from errata.yaml import Document
from operators.core.settings import InputRef, NodeSpec, Variable
from operators.expect.config import Placed

if TYPE_CHECKING:
    from errata.project.compositions.call import Body, Call, Contract, Layers

DEEPEST = 50
"""How deep compositions may nest."""
Variables = Mapping[tuple[str, str], Variable]


@dataclass(frozen=True, slots=True)
class ExpectedRows:
    """A node, or a composition, whose rows are to meet expectations.

    Attributes:
        name: Its name in the plan.
        rows: The rows.
        placed: The expectations.
        path: Their list in the document.
        prefix: What the names of nodes inside a composition begin with, which go on reading the rows as they are; empty for a node.
        body: The composition around it.
    """

    name: str
    rows: InputRef
    placed: Sequence[Placed]
    path: tuple[str | int, ...]
    document: Document
    prefix: str = ""
    body: Body | None = None


@dataclass(slots=True)
class Expansion:
    """The nodes of a pipeline with the nodes of its compositions.

    Args:
        declared: All names, also of nodes that could not be read.
        bodies: The composition of each node inside one.
        contracts: What ports require from the inputs of a node.
        promises: What compositions declare their last nodes to produce.
        calls: The compositions by name.
        outputs: The node behind each output port, by `name.port`; the first port's also by name alone.
        expected: The expectations of compositions.
        documents: The files of the compositions, in the order in which they are read.
    """

    specs: list[NodeSpec] = field(default_factory=list)
    declared: set[str] = field(default_factory=set)
    bodies: dict[str, Body] = field(default_factory=dict)
    contracts: dict[str, list[Contract]] = field(default_factory=dict)
    promises: list[Contract] = field(default_factory=list)
    calls: dict[str, Call] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)
    expected: list[ExpectedRows] = field(default_factory=list)
    documents: list[Document] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class EnclosingPipeline:
    """The context that all levels share. `layers`: a channel's values for parameters; `texts`: how files are read."""

    findings: Findings
    variables: Variables
    environment: Mapping[str, str] | None = None
    layers: Layers = field(default_factory=dict)
    texts: Texts = SAVED


def expand(document: Document, pipeline: EnclosingPipeline, ports: Collection[str] = ()) -> Expansion:
    """Return the nodes of a pipeline with its compositions expanded. Problems go to the findings, and nodes that depend on them are left out.

    Args:
        ports: Names that nodes may read although no node has them: the input ports of a composition that is looked at by itself.
    """
    result = Expansion(declared=set(ports))
    top = _Level(document, pipeline, result)
    top.names.update(ports)
    top.read()
    top.place()
    return result


class _Level:
    """The nodes of one file in the plan: `prefix` before their names."""

    def __init__(self, document: Document, pipeline: EnclosingPipeline, result: Expansion, call: Call | None = None, trail: tuple[Path, ...] = ()) -> None:
        self.document = document
        self.pipeline = pipeline
        self.result = result
        self.call = call
        self.trail = (*trail, Path(document.file).resolve())
        self.outer: _Level | None = None
        self.prefix = f"{call.prefix}/" if call else ""
        self.names: set[str] = set()
        self.parts: list[NodeSpec | _Level] = []
        self.inner: dict[str, _Level] = {}
        self.unread: list[RawNode] = []
        self.broken: set[str] = set()
        self.busy: set[str] = set()

    # -- reading

    def read(self) -> None:
        """Read the nodes of the file and of its compositions."""
        for raw in raw_nodes(self.document, self.pipeline.findings):
            self.names.add(raw.name)
            self.result.declared.add(self.prefix + raw.name)
            part = self._use(raw) if raw.value.get("type") == "composition" else read_node(raw, self.pipeline.findings)
            if part is None:
                self.unread.append(raw)
            else:
                self.parts.append(part)

    def _use(self, raw: RawNode) -> _Level | None:
        """Read a composition node and its file; None where it cannot be used. The problem is reported."""
        from errata.project.compositions.call import Place, read_call
        from errata.project.compositions.signature import signature

        body = self.call.body if self.call else None
        reporter = self.pipeline.findings.node(raw.document, raw.path, raw.name)
        document = self._file(raw)
        signed = signature(document, self.pipeline.findings) if document is not None else None
        if document is None or signed is None:
            return None
        place = Place(self.pipeline.variables, body, self.prefix, {} if self.call else self.pipeline.layers)
        call = read_call(raw, signed, reporter, place)
        if call is None:
            return None
        if self._is_taken(call.prefix, raw.name):
            key = ("alias",) if call.alias else ("name",)
            reporter.report("E106", f"the nodes of composition '{raw.name}' would stand under '{call.prefix}', a name that is taken", key, help="give it another alias")
            return None
        self.result.calls[call.prefix] = call
        level = _Level(document, self.pipeline, self.result, call, self.trail)
        level.outer = self
        level.read()
        self.inner[raw.name] = level
        return level

    def _is_taken(self, prefix: str, node: str) -> bool:
        return prefix in self.result.calls or prefix in {self.prefix + name for name in self.names - {node}}

    def _file(self, raw: RawNode) -> Document | None:
        """The composition's document; None where it cannot be used."""
        reporter = self.pipeline.findings.node(raw.document, raw.path, raw.name)
        use = raw.value.get("use")
        if not isinstance(use, str):
            reporter.report("E101", f"composition '{raw.name}' names no file", (), help="use: ./compositions/name.comp.yaml")
            return None
        path = Path(normpath(Path(self.document.file).parent / use))
        if not self.pipeline.texts.exists(path):
            reporter.report("E101", f"there is no composition file {path}", ("use",), help="'use' is relative to the file that holds it")
            return None
        if path.resolve() in self.trail or len(self.trail) > DEEPEST:
            names = " -> ".join(one.name for one in (*self.trail, path))
            reporter.report("E107", f"composition '{raw.name}' reaches itself: {names}", ("use",))
            return None
        try:
            document = self.pipeline.texts.yaml(path, self.pipeline.environment)
        except PipelineErrors as errors:
            self.pipeline.findings.diagnostics.extend(errors.diagnostics)
            return None
        self.pipeline.findings.diagnostics.extend(document.diagnostics)
        self.result.documents.append(document)
        return document

    # -- placing

    def place(self) -> None:
        """Add the nodes to the plan in their order, with references resolved."""
        for level in self.inner.values():
            self._check_bindings(level)
        for raw in self.unread:
            self._check_wiring(raw)
        for part in self.parts:
            if isinstance(part, _Level):
                part.place()
                part.check_outputs()
                part.note_expectations()
            else:
                self._place(part)

    def _place(self, spec: NodeSpec) -> None:
        found = [self.resolve(ref, spec.name, self._key_of(ref, index, spec), spec) for index, ref in enumerate(spec.inputs)]
        if any(ref is None for ref in found):
            return
        name = self.prefix + spec.name
        self._bind_to_ports(name, spec)
        if self.call:
            self.result.bodies[name] = self.call.body
        self.result.specs.append(replace(spec, name=name, inputs=tuple(ref for ref in found if ref is not None)))

    def _check_bindings(self, level: _Level) -> None:
        """Report references of a composition node to nodes that do not exist, or to itself."""
        assert level.call is not None  # only levels of compositions are inner ones
        call = level.call
        for port, consumer in call.consumers.items():
            if consumer not in self.names:
                call.reporter.report("E004", f"there is no node '{consumer}'", ("outputs", port), help=call.reporter.similar(consumer, sorted(self.names)))
        known = [*self.names, *(self.call.ports if self.call else ())]
        if call.input is not None and InputRef.parse(call.input).node not in known:
            call.reporter.report("E004", f"there is no node '{call.input}'", ("input",), help=call.reporter.similar(call.input, known))
        for port, ref in call.ports.items():
            if ref.node not in known:
                call.reporter.report("E004", f"there is no node '{ref.node}'", call.place_of(port), help=call.reporter.similar(ref.node, known))
                level.broken.add(port)
            elif ref.node == call.name:
                call.reporter.report("E002", f"composition '{call.name}' reads itself: a cycle", call.place_of(port), help="name the node that its rows come from")
                level.broken.add(port)

    def _check_wiring(self, raw: RawNode) -> None:
        """Report references of an unreadable node to nodes that do not exist."""
        reporter = self.pipeline.findings.node(raw.document, raw.path, self.prefix + raw.name)
        known = [*self.names, *(self.call.ports if self.call else ())]
        for place, ref in named_nodes(raw):
            if ref.node not in known:
                reporter.report("E004", f"there is no node '{ref.node}'", place, help=reporter.similar(ref.node, known))

    def _key_of(self, ref: InputRef, index: int, spec: NodeSpec) -> tuple[str | int, ...]:
        if ref.qualifier is not None:
            return ("input", ref.qualifier)
        return ("inputs", index) if spec.kind == "merge" else ("input",)

    def _bind_to_ports(self, name: str, spec: NodeSpec) -> None:
        """Record what the ports of a node require from its inputs."""
        for index, ref in enumerate(spec.inputs):
            if self.call and ref.node in self.call.ports and ref.node not in self.names:
                self.result.contracts.setdefault(name, []).append(replace(self.call.contract(ref.node), index=index))

    def resolve(self, ref: InputRef, consumer: str, place: tuple[str | int, ...] = (), spec: NodeSpec | None = None) -> InputRef | None:
        """Return the plan's reference for a reference of this level; None where there is none. The problem is reported."""
        if ref.node in self.inner:
            return self._through(self.inner[ref.node], ref, consumer, place, spec)
        if ref.node in self.names or self.call is None:
            return InputRef(self.prefix + ref.node, ref.port, ref.qualifier)
        if ref.node in self.call.ports and self.outer is not None:
            return self._outside(ref, self.call, self.outer)
        self._unknown(ref, place, spec)
        return None

    def _outside(self, ref: InputRef, call: Call, outer: _Level) -> InputRef | None:
        """A reference to an input port: the reference that the call binds to it. Calls that only pass each other's ports on lead nowhere."""
        if ref.node in self.busy and ref.node not in self.broken:
            call.reporter.report("E003", f"composition '{call.name}' reads what it gives: a cycle", call.place_of(ref.node), help="name a node that does not read the composition")
            self.broken.add(ref.node)
        if ref.node in self.broken:
            return None
        self.busy.add(ref.node)
        found = outer.resolve(call.ports[ref.node], call.name, call.place_of(ref.node))
        self.busy.discard(ref.node)
        return found and replace(found, port=found.port or ref.port, qualifier=ref.qualifier)

    def _unknown(self, ref: InputRef, place: tuple[str | int, ...], spec: NodeSpec | None) -> None:
        if spec is None or self.call is None:
            return
        reporter = self.pipeline.findings.node(spec.document, spec.path, self.prefix + spec.name)
        outside = any(ref.node in level.names for level in self.outer_levels())
        known = [*self.names, *self.call.ports]
        if outside:
            message = f"'{ref.node}' is a node of the pipeline around composition '{self.call.prefix}'; a body reads its ports"
            reporter.report("E108", message, place, help=f"its ports: {', '.join(self.call.ports)}")
        else:
            reporter.report("E004", f"there is no node '{ref.node}' in composition '{self.call.prefix}'", place, help=reporter.similar(ref.node, known))

    def outer_levels(self) -> list[_Level]:
        """Return the levels around this one, from the inside out."""
        return [] if self.outer is None else [self.outer, *self.outer.outer_levels()]

    def _through(self, level: _Level, ref: InputRef, consumer: str, place: tuple[str | int, ...], spec: NodeSpec | None) -> InputRef | None:
        """A reference to a composition: to the port that it names, that the call's `outputs` names, or to the first."""
        assert level.call is not None  # only levels of compositions are inner ones
        ports = level.call.outputs
        if ref.port in {placed.name for placed in level.call.expect}:
            return InputRef(level.call.prefix, ref.port, ref.qualifier)
        port = ref.port or level.call.port_of(consumer) or next(iter(ports))
        if port not in ports:
            if spec is not None:
                reporter = self.pipeline.findings.node(spec.document, spec.path, self.prefix + spec.name)
                known = f"its ports: {', '.join(ports)}"
                reporter.report("E006", f"composition '{ref.node}' has no port '{port}'", place, help=reporter.similar(port, list(ports)) or known)
            return None
        target = InputRef.parse(ports[port])
        if target.node not in level.names and target.node not in level.call.ports:
            return None  # check_outputs reports it
        found = level.resolve(target, "")
        return found and replace(found, qualifier=ref.qualifier)

    def _note_output(self, call: Call, port: str, found: InputRef | None) -> None:
        if found is None or self.outer is None or self.outer.call is not None:
            return
        for name in dict.fromkeys((call.prefix, call.name)):
            self.result.outputs.setdefault(name, found.node)
            self.result.outputs[f"{name}.{port}"] = found.node

    def note_expectations(self) -> None:
        """Record what the rows of the first output port are expected to be."""
        assert self.call is not None  # only levels of compositions are inner ones
        assert self.outer is not None  # these have one around them
        call = self.call
        found = self.resolve(InputRef.parse(next(iter(call.signed.outputs.values()))), "") if call.expect else None
        if found is not None:
            place, body = (*call.reporter.path, "expect"), self.outer.call.body if self.outer.call else None
            self.result.expected.append(ExpectedRows(call.prefix, found, call.expect, place, call.reporter.document, f"{call.prefix}/", body))

    def check_outputs(self) -> None:
        """Report output ports that name no node of the body, and record what the composition promises."""
        assert self.call is not None  # only levels of compositions are checked
        signed = self.call.signed
        for port, text in signed.outputs.items():
            target = InputRef.parse(text)
            if target.node not in self.names and target.node not in self.call.ports:
                message = f"output port '{port}' names '{target.node}', which is no node of the body"
                self.pipeline.findings.diagnostics.append(signed.document.error(signed.output_path(port), "E102", message, node=self.call.prefix))
            else:
                self._note_output(self.call, port, self.resolve(target, ""))
        if signed.produces:
            found = self.resolve(InputRef.parse(next(iter(signed.outputs.values()))), "")
            if found is not None:
                self.result.promises.append(self.call.promise(found))
