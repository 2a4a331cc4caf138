"""Completion at a place: keys, words, nodes, columns, and continuations of a CXL text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from cxl.typed.target import Target
from cxl.types.types import Schema, Type
from errata.editor.analysis import Analysis
from errata.editor.column_keys import column_key_at
from errata.editor.cxl_completion import cxl_items
from errata.editor.files import FileKind, kind_of
from errata.editor.fragment import Fragment, fragment_at, key_names, node_names
from errata.editor.items import Item
from errata.editor.keys import allowed, keys_at, shapes_at
from errata.editor.programs import mode_at
from errata.project.findings import CxlText
from operators.core.settings import InputRef, NodeSpec

TYPES = ("string", "int", "float", "bool", "date", "date_time", "decimal(10,2)", "numeric", "array", "map", "any")
Place = Literal["input", "columns", "types", "words"]


@dataclass(frozen=True, slots=True)
class Completion:
    """The items that fit at a place, and how many characters before it are replaced."""

    items: tuple[Item, ...]
    typed: int


def complete(analysis: Analysis | None, file: str, text: str, offset: int) -> Completion:
    """Return what may stand at an offset of a YAML file.

    Args:
        analysis: What was last known of the file; the text may have changed since.
    """
    kind = kind_of(file, text)
    found = fragment_at(text, offset)
    if found is None or kind == "other":
        return Completion((), 0)
    asking = _Asking(analysis, file, text, kind, found)
    mode = mode_at(found.node.get("type"), found.path[2:]) if not found.on_key else None
    if mode is not None:
        items, typed = cxl_items(asking.target(), found.before, found.after, mode)
        return Completion(tuple(items), typed)
    return Completion(tuple(asking.items()), len(found.before.rpartition("\n")[2]))


@dataclass(frozen=True, slots=True)
class _Asking:
    """A question for what may stand at a place."""

    analysis: Analysis | None
    file: str
    text: str
    kind: FileKind
    fragment: Fragment

    def items(self) -> Iterator[Item]:
        """The completions at the place."""
        found = self.fragment
        if found.on_key:
            yield from self._keys(found.path[:-1])
            return
        yield from self._values()
        if found.alone:
            yield from self._keys(found.path)

    # Keys -------------------------------------------------------------------------------------------------------------------

    def _keys(self, path: tuple[str | int, ...]) -> Iterator[Item]:
        found = self.fragment
        present = key_names(_value_at(found.value, path))
        for one in keys_at(self.kind, found.value, path):
            if one.name not in present:
                rank = "0" if one.required else "1"
                yield Item(one.name, "key", "required" if one.required else "", one.description, f"{one.name}: " if one.holds == "value" else f"{one.name}:", rank)
        yield from (one for one in self._named_keys(path[2:]) if one.label not in present)

    def _named_keys(self, path: tuple[str | int, ...]) -> Iterator[Item]:
        """Keys that are names: parameters and ports of a composition, columns of a mapping."""
        signed = self._signature() if self.fragment.node.get("type") == "composition" else None
        if signed is not None and path == ("config",):
            for name, one in signed.parameters.items():
                yield Item(name, "parameter", one.type, one.description or "", f"{name}: ")
        elif signed is not None and path in (("inputs",), ("outputs",)):
            for name in signed.inputs if path == ("inputs",) else signed.outputs:
                yield Item(name, "port", "", "", f"{name}: ")

    def _signature(self) -> Any:
        draft = self.analysis.draft if self.analysis else None
        calls = draft.expansion.calls.values() if draft else ()
        return next((call.signed for call in calls if call.name == self.fragment.node.get("name")), None)

    # Values -----------------------------------------------------------------------------------------------------------------

    def _values(self) -> Iterator[Item]:
        found = self.fragment
        if found.path[:1] == ("notify",) and found.path[2:3] == ("nodes",):
            return (Item(name, "node", of) for name, of in node_names(self.text).items())
        named = self._named_values(found.path[2:]) if found.path[:1] == ("nodes",) else None
        return named or (Item(one, "word") for one in allowed(shapes_at(self.kind, found.value, found.path)))

    def _named_values(self, path: tuple[str | int, ...]) -> Iterator[Item] | None:
        """The names that a key of a node may have as its value; None for a key that has words of its own, or none."""
        kind = self.fragment.node.get("type")
        if _names_node(kind, path):
            return self._nodes()
        if column_key_at(kind, path) is not None:
            return self._columns()
        if path[-1:] == ("type",) and path[:2] in (("config", "schema"), ("config", "declares")):
            return (Item(one, "type") for one in TYPES)
        if path == ("config", "drive"):
            return (Item(one, "qualifier") for one in key_names(self.fragment.node.get("input")))
        if kind == "state" and path[-1:] == ("var",):
            return self._variables(str(_value_at(self.fragment.node, ("config", "scope"))))
        if path == ("use",):
            return self._compositions()
        return self._connections() if path == ("config", "connection") else None

    def _compositions(self) -> Iterator[Item]:
        """The composition files in the file's folder and below."""
        folder = Path(self.file).parent
        found = sorted(one.relative_to(folder).as_posix() for pattern in ("*.comp.yaml", "*/*.comp.yaml") for one in folder.glob(pattern))
        return (Item(one, "word") for one in found if folder / one != Path(self.file))

    def _connections(self) -> Iterator[Item]:
        names = self.analysis.draft.settings.connections if self.analysis and self.analysis.draft else ()
        return (Item(one, "word") for one in names)

    def _variables(self, scope: str) -> Iterator[Item]:
        variables = self.analysis.draft.settings.variables if self.analysis and self.analysis.draft else {}
        yield from (Item(name, "variable", str(one.type)) for (of, name), one in variables.items() if of == scope)

    def _nodes(self) -> Iterator[Item]:
        """The nodes of the file, with their ports."""
        own = self.fragment.node.get("name")
        for name, kind in node_names(self.text).items():
            if name == own or kind == "output":
                continue
            ports = self._ports(name)
            yield from (Item(f"{name}.{port}", "port", kind) for port in ports)
            if not ports or kind == "composition":
                yield Item(name, "node", kind)
        signed = self.analysis.signature if self.analysis else None
        yield from (Item(port, "port", "input port") for port in (signed.inputs if signed else ()))

    def _ports(self, name: str) -> tuple[str, ...]:
        draft = self.analysis.draft if self.analysis else None
        spec = self._spec(name)
        if draft is None or spec is None:
            return tuple(next((call.outputs for call in draft.expansion.calls.values() if call.name == name), ())) if draft else ()
        node = draft.nodes.get(spec.name)
        return () if node is None or node.is_output else tuple(node.operator.ports())

    def _spec(self, name: object) -> NodeSpec | None:
        """The node of this file with a name, as it was last read."""
        draft = self.analysis.draft if self.analysis else None
        specs = draft.specs.values() if draft else ()
        return next((one for one in specs if one.document.file == self.file and one.name.rpartition("/")[2] == name), None)

    # Columns ----------------------------------------------------------------------------------------------------------------

    def _columns(self) -> Iterator[Item]:
        found = self.fragment
        kind, path = found.node.get("type"), found.path[2:]
        side = column_key_at(kind, path)
        spec = self._spec(found.node.get("name"))
        if kind == "source":
            yield from (Item(name, "column", type_) for name, type_ in _declared(found.node) if path[:2] != ("config", "schema"))
        elif side is not None:
            inputs = self._inputs()
            rows = inputs[-1:] if side.side == "last input" else inputs
            own = self.analysis.columns(spec.name) if spec is not None and self.analysis and side.side == "own" else {}
            columns = {name: type_ for row in rows for name, type_ in row.items()} | dict(own)
            yield from (Item(name, "column", str(type_)) for name, type_ in columns.items())

    def _inputs(self) -> list[Mapping[str, Type]]:
        """The columns of the inputs that are written, as they were last known."""
        return [self._rows(ref) for ref in written_inputs(self.fragment.node)]

    def _rows(self, ref: InputRef) -> Mapping[str, Type]:
        if self.analysis is None:
            return {}
        spec = self._spec(ref.node)
        outputs = self.analysis.draft.expansion.outputs if self.analysis.draft else {}
        return self.analysis.columns(spec.name if spec is not None else outputs.get(str(ref), outputs.get(ref.node, ref.node)))

    # CXL --------------------------------------------------------------------------------------------------------------------

    def target(self) -> Target:
        """The scope that the CXL at the place is compiled against: the last known one, with the inputs that are written now."""
        found = self.fragment
        spec = self._spec(found.node.get("name"))
        known: list[CxlText] = []
        if spec is not None and self.analysis is not None:
            known = self.analysis.programs_at(self.file, (*spec.path, *found.path[2:]))
        if known and [str(ref) for ref in written_inputs(found.node)] == self._read_inputs(spec):
            return known[0].target
        return self._likely()

    def _read_inputs(self, spec: NodeSpec | None) -> list[str]:
        """The inputs of a node as they were written when it was last read."""
        document = self.analysis.documents.get(self.file) if self.analysis else None
        node = document.value if document is not None and spec is not None else None
        for step in spec.path if spec is not None else ():
            node = _value_at(node, (step,))
        return [str(ref) for ref in written_inputs(node)] if isinstance(node, dict) else []

    def _likely(self) -> Target:
        """The scope that the CXL of a new node would be compiled against."""
        node, inputs = self.fragment.node, self._inputs()
        mode = mode_at(node.get("type"), self.fragment.path[2:]) or "row"
        if node.get("type") == "combine":
            named = {ref.qualifier or ref.node: Schema(rows.items()) for ref, rows in zip(written_inputs(node), inputs, strict=True)}
            return Target(mode=mode, inputs=named)
        schema = Schema(inputs[0].items()) if inputs else Schema()
        this = {"this": schema} if mode == "set" else {}
        return Target(mode=mode, schema=schema, inputs=this, window=True, open=not inputs)


def written_inputs(node: Mapping[str, Any]) -> list[InputRef]:
    """Return the inputs that a node names."""
    given = node.get("inputs") if "inputs" in node else node.get("input")
    if isinstance(given, dict):
        return [InputRef.parse(one, str(name)) for name, one in given.items() if isinstance(one, str)]
    return [InputRef.parse(one) for one in (given if isinstance(given, list) else [given]) if isinstance(one, str)]


def _names_node(kind: object, path: tuple[str | int, ...]) -> bool:
    """Whether a value of a node names another node."""
    if path[:1] in (("input",), ("inputs",)) or path == ("config", "analytic_window", "source"):
        return True
    return kind == "composition" and path[:1] == ("outputs",)


def _declared(node: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The columns that a source declares, with their types as written."""
    schema = _value_at(node, ("config", "schema"))
    for one in schema if isinstance(schema, list) else ():
        if isinstance(one, dict) and isinstance(one.get("name"), str):
            yield one["name"], str(one.get("type", ""))


def _value_at(value: Any, path: tuple[str | int, ...]) -> Any:
    """A member of plain maps and lists; None where there is none."""
    for step in path:
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and 0 <= step < len(value):
            value = value[step]
        else:
            return None
    return value
