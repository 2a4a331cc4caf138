"""Every place of every name in the files of a pipeline, from what a check found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from os.path import normpath
from pathlib import Path as FilePath
from typing import Any

from cxl.compiler import module_findings
from cxl.syntax import ast
from cxl.syntax.parse import parse_program
from cxl.typed.modules import NO_MODULES, Module
from cxl.typed.notes import Note
from errata.editor.analysis import Analysis
from errata.editor.column_keys import ColumnKey, column_keys, spread
from errata.editor.names import Name, Names
from errata.editor.positions import Region
from errata.editor.spots import TextPlaces, key_region, scalar_region, text_region, texts_below, value_at
from errata.project.compositions.signature import HEADERS, PLAIN_PORT
from errata.project.findings import CxlText, Findings
from errata.project.nodes import RawNode, named_nodes, raw_nodes
from errata.project.variables import RESERVED, declared
from errata.yaml import Document, SourceText
from errata.yaml.nodes import Mapping as MapNode
from errata.yaml.nodes import Path, Scalar
from errata.yaml.nodes import Sequence as ListNode
from operators.core.provisional import statements
from operators.core.settings import InputRef, NodeSpec

SCOPES = ("vars", "pipeline", "source", "record")


def names_of(analysis: Analysis) -> Names:
    """Return the names of an analysis with all their places."""
    collector = _Collector(analysis)
    for document in analysis.documents.values():
        collector.file(document)
    if analysis.draft is not None:
        for spec in analysis.draft.specs.values():
            collector.node(spec)
        for program in analysis.programs:
            collector.program(program)
        collector.promised()
        collector.link_all()
    for module in analysis.modules:
        collector.module(module)
    collector.names.join_shared()
    return collector.names


def used_file(document: Document, node: Mapping[str, Any]) -> str | None:
    """Return the file of the composition that a node uses."""
    use = node.get("use")
    return normpath(FilePath(document.file).parent / use) if isinstance(use, str) and use else None


@dataclass(frozen=True, slots=True)
class _Text:
    """A CXL text, its node, the owner of its own names, and the places of its characters."""

    program: CxlText
    spec: NodeSpec
    owner: str
    places: TextPlaces


class _Collector:
    """The names found so far."""

    def __init__(self, analysis: Analysis) -> None:
        self.analysis = analysis
        self.names = Names()
        self._linked: set[Name] = set()
        self._raw: dict[str, list[RawNode]] = {}

    # Wiring -----------------------------------------------------------------------------------------------------------------

    def nodes_of(self, document: Document) -> list[RawNode]:
        """The nodes of a file, unreadable ones too."""
        if document.file not in self._raw:
            self._raw[document.file] = list(raw_nodes(document, Findings()))
        return self._raw[document.file]

    def file(self, document: Document) -> None:
        """Collect nodes, ports and variables of a YAML file."""
        value: Any = document.value
        if not isinstance(value, dict):
            return
        nodes = {raw.name: raw for raw in self.nodes_of(document)}
        for raw in self.nodes_of(document):
            self._header(raw, nodes)
        for place in spread(value, ("notify", "*", "nodes")):
            for path, text in texts_below(document, place):
                self._reference(document, path, InputRef.parse(str(text.value)), nodes)
        header = next((key for key in HEADERS if key in value), None)
        if header is not None:
            self._signature(document, header, nodes)
        if "channel" in value and "nodes" not in value:
            self._channel(document, value)
        self._variables(document)

    def _header(self, raw: RawNode, nodes: Mapping[str, RawNode]) -> None:
        """The node's own name, and the nodes and ports that it reads."""
        document, kind = raw.document, raw.value.get("type")
        self.names.add(text_region(document, (*raw.path, "name")), Name("node", document.file, raw.name), defines=True)
        places = list(named_nodes(raw))
        source = value_at(document, (*raw.path, "config", "analytic_window", "source"))
        if isinstance(source, str):
            places.append((("config", "analytic_window", "source"), InputRef.parse(source)))
        for place, ref in places:
            self._reference(document, (*raw.path, *place), ref, nodes)
        for place in spread(raw.value, ("expect", "*", "name")):
            name = value_at(document, (*raw.path, *place))
            self.names.add(text_region(document, (*raw.path, *place)), Name("port", f"{document.file}#{raw.name}", str(name)), defines=True)
        if kind == "route":
            self._branches(raw)
        elif kind == "combine":
            self._qualifiers(raw)
        elif kind == "composition":
            self._call(raw)

    def _reference(self, document: Document, path: Path, ref: InputRef, nodes: Mapping[str, RawNode]) -> None:
        """A node that is read, and its port."""
        name = Name("node", document.file, ref.node) if ref.node in nodes else Name("port", document.file, f"in.{ref.node}")
        self.names.add(text_region(document, path, 0, len(ref.node)), name)
        if ref.port is None or ref.node not in nodes:
            return
        region = text_region(document, path, len(ref.node) + 1)
        used = used_file(document, nodes[ref.node].value) if nodes[ref.node].value.get("type") == "composition" else None
        self.names.add(region, Name("port", used, f"out.{ref.port}") if used else Name("port", f"{document.file}#{ref.node}", ref.port))

    def _branches(self, raw: RawNode) -> None:
        document, owner = raw.document, f"{raw.document.file}#{raw.name}"
        conditions = document.node_at((*raw.path, "config", "conditions"))
        for branch in conditions.entries if isinstance(conditions, MapNode) else ():
            self.names.add(key_region(document, (*raw.path, "config", "conditions", branch)), Name("port", owner, branch), defines=True)
        default = value_at(document, (*raw.path, "config", "default"))
        if isinstance(default, str):
            self.names.add(text_region(document, (*raw.path, "config", "default")), Name("port", owner, default), defines=True)

    def _qualifiers(self, raw: RawNode) -> None:
        document, owner = raw.document, f"{raw.document.file}#{raw.name}"
        inputs = document.node_at((*raw.path, "input"))
        for qualifier in inputs.entries if isinstance(inputs, MapNode) else ():
            self.names.add(key_region(document, (*raw.path, "input", qualifier)), Name("qualifier", owner, qualifier), defines=True)
        drive = value_at(document, (*raw.path, "config", "drive"))
        if isinstance(drive, str):
            self.names.add(text_region(document, (*raw.path, "config", "drive")), Name("qualifier", owner, drive))

    def _call(self, raw: RawNode) -> None:
        document, used = raw.document, used_file(raw.document, raw.value)
        if used is None:
            return
        for key, prefix in (("inputs", "in."), ("outputs", "out.")):
            ports = document.node_at((*raw.path, key))
            for port in ports.entries if isinstance(ports, MapNode) else ():
                self.names.add(key_region(document, (*raw.path, key, port)), Name("port", used, prefix + port))
        given = document.node_at((*raw.path, "config"))
        for parameter in given.entries if isinstance(given, MapNode) else ():
            self.names.add(key_region(document, (*raw.path, "config", parameter)), Name("parameter", used, parameter))

    def _signature(self, document: Document, header: str, nodes: Mapping[str, RawNode]) -> None:
        """The ports and parameters of a composition file."""
        ported = header == "_compose"
        inputs = document.node_at((header, "inputs")) if ported else None
        for port in inputs.entries if isinstance(inputs, MapNode) else ():
            self.names.add(key_region(document, (header, "inputs", port)), Name("port", document.file, f"in.{port}"), defines=True)
        if not ported:
            self.names.add(key_region(document, (header,)), Name("port", document.file, f"in.{PLAIN_PORT}"), defines=True)
        outputs = document.node_at((header, "outputs")) if ported else None
        for port in outputs.entries if isinstance(outputs, MapNode) else ():
            path: Path = (header, "outputs", port)
            self.names.add(key_region(document, path), Name("port", document.file, f"out.{port}"), defines=True)
            path = (*path, "ref") if document.has((*path, "ref")) else path
            target = value_at(document, path)
            if isinstance(target, str):
                self._reference(document, path, InputRef.parse(target), nodes)
        for path, parameter in self._parameters(document, header):
            region = key_region(document, path) if ported else text_region(document, (*path, "name"))
            self.names.add(region, Name("parameter", document.file, parameter), defines=True)
        self._scoped(document, header)

    def _parameters(self, document: Document, header: str) -> Iterator[tuple[Path, str]]:
        block = document.node_at((header, "config_schema"))
        yield from (((header, "config_schema", name), name) for name in (block.entries if isinstance(block, MapNode) else ()))
        value: Any = document.value
        params = value[header].get("params") if isinstance(value[header], dict) else None
        for index, one in enumerate(params if isinstance(params, list) else ()):
            if isinstance(one, dict) and isinstance(one.get("name"), str):
                yield (header, "params", index), one["name"]

    def _scoped(self, document: Document, header: str) -> None:
        for scope in SCOPES[1:]:
            block = document.node_at((header, "scoped_vars", scope))
            for name in block.entries if isinstance(block, MapNode) else ():
                self.names.add(key_region(document, (header, "scoped_vars", scope, name)), Name("variable", scope, name))

    def _channel(self, document: Document, value: Mapping[str, Any]) -> None:
        """The sources, variables and parameters that a channel names."""
        pipeline = next((one for one in self.analysis.documents.values() if one is not document), None)
        block = value.get("vars")
        for scope in ("static", *SCOPES[1:]):
            entries = block.get(scope) if isinstance(block, dict) else None
            for name, inner in entries.items() if isinstance(entries, dict) else ():
                region = key_region(document, ("vars", scope, name))
                if scope != "source":
                    self.names.add(region, Name("variable", "vars" if scope == "static" else scope, name))
                elif pipeline is not None:
                    self.names.add(region, Name("node", pipeline.file, name))
                    for variable in inner if isinstance(inner, dict) else ():
                        self.names.add(key_region(document, ("vars", scope, name, variable)), Name("variable", "source", variable))

    def _variables(self, document: Document) -> None:
        """The declared variables, and the state nodes that write them."""
        for one in declared(document):
            scope = "vars" if one.scope == "static" else one.scope
            region = key_region(document, one.path) if one.path[0] == "pipeline" else text_region(document, (*one.path, "name"))
            self.names.add(region, Name("variable", scope, one.name), defines=True)
        for raw in self.nodes_of(document):
            scope = str(value_at(document, (*raw.path, "config", "scope")))
            for place in spread(raw.value, ("config", "set", "*", "var")) if raw.value.get("type") == "state" else ():
                written = value_at(document, (*raw.path, *place))
                if isinstance(written, str):
                    self.names.add(text_region(document, (*raw.path, *place)), Name("variable", scope, written))

    # Columns ----------------------------------------------------------------------------------------------------------------

    def node(self, spec: NodeSpec) -> None:
        """Collect the columns that the configuration of a node names."""
        value: Any = spec.document.value
        for step in spec.path:
            value = value[step]
        for key in column_keys(spec.kind) if spec.kind != "expect" else ():
            for place in spread(value, key.path):
                self._column_key(spec, key, (*spec.path, *place))
        if spec.kind == "transform" and len(spec.inputs) > 1:
            self._join_partition(spec, value)
        if spec.kind == "merge":
            self._join_inputs(spec)
        for contract in self.analysis.draft.expansion.contracts.get(spec.name, ()) if self.analysis.draft else ():
            self._fields(contract.label.file, f"in.{contract.port}", spec.inputs[contract.index].node)

    def promised(self) -> None:
        """Collect the fields that compositions say that they produce, and the ones that a composition by itself asks for."""
        if self.analysis.draft is not None:
            for promise in self.analysis.draft.expansion.promises:
                self._fields(promise.label.file, "produces", promise.ref.node)
        signed = self.analysis.signature
        for port in signed.inputs if signed is not None else ():
            self._fields(self.analysis.file, f"in.{port}", port)

    def _fields(self, file: str, what: str, owner: str) -> None:
        """The fields that a port of a composition names, or all that it produces, as columns of a node."""
        document = self.analysis.documents.get(file)
        if document is None:
            return
        places: list[Path] = [("_compose", "inputs", what.removeprefix("in."), "schema")] if what != "produces" else []
        places.append(("composition", "produces" if what == "produces" else "requires"))
        defines = self.analysis.signature is not None and file == self.analysis.file
        for path in places:
            block = document.node_at(path)
            for name in block.entries if isinstance(block, MapNode) else ():
                self.names.add(key_region(document, (*path, name)), Name("column", owner, name), defines=defines)
            for index in range(len(block.items) if isinstance(block, ListNode) else 0):
                name_path = (*path, index, "name")
                self.names.add(text_region(document, name_path), Name("column", owner, str(value_at(document, name_path))), defines=defines)

    def _column_key(self, spec: NodeSpec, key: ColumnKey, path: Path) -> None:
        document: Document = spec.document
        if key.names:
            block = document.node_at(path)
            for name in block.entries if isinstance(block, MapNode) else ():
                self.names.add(key_region(document, (*path, name)), self._column(spec, key.side, name), defines=key.defines)
            return
        for _, text in texts_below(document, path):
            self.names.add(scalar_region(document, text), self._column(spec, key.side, str(text.value)), defines=key.defines)

    def _column(self, spec: NodeSpec, side: str, name: str) -> Name:
        """The column that a key of a node names."""
        first, last = (spec.inputs[0].node, spec.inputs[-1].node) if spec.inputs else ("", "")
        if side == "written":
            return Name("column", first if name in self.analysis.columns(first) else spec.name, name)
        return Name("column", {"own": spec.name, "input": first, "last input": last}[side], name)

    def _join_partition(self, spec: NodeSpec, value: Mapping[str, Any]) -> None:
        """A field of a window over another node is one name in both, unless `on` names the node's own."""
        window = value.get("config", {}).get("analytic_window")
        if not isinstance(window, dict) or window.get("on") is not None:
            return
        for name in (name for key in ("group_by", "partition_by") for name in window.get(key) or ()):
            self.names.join(Name("column", spec.inputs[0].node, str(name)), Name("column", spec.inputs[-1].node, str(name)))

    def _join_inputs(self, spec: NodeSpec) -> None:
        for name in dict.fromkeys(name for ref in spec.inputs for name in self.analysis.columns(ref.node)):
            self.link(Name("column", spec.name, name))

    @cached_property
    def _specs(self) -> Mapping[str, NodeSpec]:
        return self.analysis.draft.specs if self.analysis.draft else {}

    def link_all(self) -> None:
        """Follow each column upstream as far as it passes on under its name."""
        for one in list(self.names.found):
            if one.name.kind == "column":
                self.link(one.name)

    def link(self, name: Name) -> None:
        """Follow a column upstream as far as it passes on under its name."""
        turn = [name]
        while turn:
            one = turn.pop()
            if one in self._linked or one.owner not in self._specs:
                continue
            self._linked.add(one)
            for source in self._passing(self._specs[one.owner], one.name):
                above = Name("column", source, one.name)
                if self._may_have(source, one.name):
                    self.names.passed(one, above)
                    turn.append(above)

    def _may_have(self, node: str, name: str) -> bool:
        row = self.analysis.rows(node)
        return row is not None and name in row.data

    def _passing(self, spec: NodeSpec, name: str) -> list[str]:
        """The inputs whose column of a name a node gives under the same name."""
        inputs = [ref.node for ref in spec.inputs]
        if spec.kind == "merge":
            return inputs
        if spec.kind == "combine":
            return self._of_combine(spec)
        if spec.kind == "aggregate":
            return inputs[:1] if name in spec.config.group_by else []
        if spec.kind == "output" and name in spec.config.mapping:
            return []
        return inputs[:1]

    def _of_combine(self, spec: NodeSpec) -> list[str]:
        """The inputs all of whose columns a combine gives."""
        if spec.config.match == "collect":
            return [ref.node for ref in spec.inputs if (ref.qualifier or ref.node) == (spec.config.drive or spec.inputs[0].qualifier)]
        whole = {one.name for one in statements(spec.config.cxl) if isinstance(one, ast.EmitAll)}
        return [ref.node for ref in spec.inputs if (ref.qualifier or ref.node) in whole]

    # CXL --------------------------------------------------------------------------------------------------------------------

    def program(self, program: CxlText) -> None:
        """Collect the names of a CXL text."""
        spec = self._specs.get(program.node)
        if spec is None:
            return
        node = program.document.node_at(program.path)
        if not isinstance(node, Scalar):
            return
        places = TextPlaces(program.document, node)
        owner = f"{program.document.file}#{'.'.join(map(str, program.path))}"
        slots: dict[int, Name] = {}
        notes = self.analysis.notes(program)
        for note in (one for one in notes if one.slot is not None):
            if note.kind == "emit":
                slots[int(note.slot or 0)] = Name("column", spec.name, note.name)
            elif note.kind == "let":
                slots[int(note.slot or 0)] = Name("let", f"{owner}#{note.slot}", note.name)
        for note in notes:
            self._note(_Text(program, spec, owner, places), note, slots)
        for one in parse_program(program.text).statements:
            if isinstance(one, ast.Fn):
                self.names.add(places.region(one.name_span.start, one.name_span.end), Name("function", owner, one.name), defines=True)

    def _note(self, text: _Text, note: Note, slots: Mapping[int, Name]) -> None:
        program, spec = text.program, text.spec
        region = text.places.region(note.span.start, note.span.end)
        if note.kind == "system":
            self._system(text, note)
        elif note.kind in ("let", "emit", "local"):
            name = slots.get(-1 if note.slot is None else note.slot)
            if name is not None:
                self.names.add(region, name, defines=note.kind != "local")
        elif note.kind in ("field", "window field"):
            self.names.add(region, self._field(program, spec, note))
        elif note.kind == "qualifier":
            self.names.add(region, Name("qualifier", f"{program.document.file}#{spec.name.rpartition('/')[2]}", note.name))
        elif note.kind == "function":
            self.names.add(region, Name("function", text.owner, note.name))
        elif note.kind == "module":
            self.names.add(region, Name("module", self._module_file(note.name), note.name))
        elif note.kind == "member":
            self._member(program, note, region)

    def _field(self, program: CxlText, spec: NodeSpec, note: Note) -> Name:
        """The column that a name of a program is."""
        place = program.path[len(spec.path) :]
        if spec.kind == "source" or (spec.kind == "transform" and place[:2] in (("config", "validations"), ("config", "log"))):
            return Name("column", spec.name, note.name)
        if spec.kind == "output":
            return self._column(spec, "written", note.name)
        if note.kind == "window field":
            return Name("column", spec.inputs[-1].node, note.name)
        found = next((ref.node for ref in spec.inputs if note.qualifier is not None and (ref.qualifier or ref.node) == note.qualifier), spec.inputs[0].node)
        return Name("column", found, note.name)

    def _system(self, text: _Text, note: Note) -> None:
        """A variable, or a field of a correlation key."""
        program, spec = text.program, text.spec
        scope, *path = note.name.split(".")
        last = path[-1]
        region = text.places.region(note.span.end - len(last), note.span.end)
        if scope == "ck":
            sources = [one for one in self._specs.values() if one.kind == "source" and last in one.config.correlation_key]
            for one in sources[:1]:
                self.names.add(region, Name("column", one.name, last))
            for one in sources[1:]:
                self.names.join(Name("column", sources[0].name, last), Name("column", one.name, last))
        elif scope in SCOPES and last not in RESERVED.get(scope, ()):
            in_body = scope == "vars" and ("/" in spec.name or self.analysis.signature is not None)
            self.names.add(region, Name("parameter", program.document.file, last) if in_body else Name("variable", scope, last))
            if scope == "source" and len(path) > 1:
                start = note.span.start + program.text[note.span.start : note.span.end].find(path[0], len("$source"))
                middle = text.places.region(start, start + len(path[0]))
                self.names.add(middle, Name("node", program.document.file, path[0]))

    # Modules ----------------------------------------------------------------------------------------------------------------

    def _module_file(self, name: str) -> str:
        return next((one.file for one in self.analysis.modules if one.name == name), "")

    def _member(self, program: CxlText, note: Note, region: Region | None) -> None:
        """A function or constant of a module, by the alias that `use` gives it."""
        for one in parse_program(program.text).statements:
            if isinstance(one, ast.Use) and (one.alias or one.path[-1]) == note.qualifier:
                self.names.add(region, Name("function", self._module_file(".".join(one.path)), note.name))

    def module(self, module: Module) -> None:
        """Collect the functions and constants of a module."""
        source = SourceText(module.text, module.file)
        self.names.add(Region(source, 0, 0), Name("module", module.file, module.name), defines=True)
        for one in module.statements:
            if isinstance(one, ast.Fn | ast.Let):
                region = Region(source, one.name_span.start, one.name_span.end)
                self.names.add(region, Name("function", module.file, one.name), defines=True)
        for place in _inner_uses(module):
            self.names.add(Region(source, place.span.start, place.span.end), Name("function", module.file, place.name))


def _inner_uses(module: Module) -> Iterator[Note]:
    """Where a module uses its own functions and constants."""
    notes: list[Note] = []
    module_findings(module, NO_MODULES, notes)
    yield from (one for one in notes if one.kind in ("function", "constant"))
