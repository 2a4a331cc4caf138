"""From a loaded pipeline file to a plan: nodes read one by one, wired, ordered and bound; every independent problem at once."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pydantic import BaseModel, ValidationError

from errata.diagnostics import raise_errors
from errata.models import model_problems
from errata.pipeline_model import NodeHeader, Pipeline
from errata.plan import Node, Plan
from errata.reporter import Findings
from errata.variables import declared_variables
from errata.yaml import Document
from operators import registry
from operators.binding import Binding
from operators.rows import RowType
from operators.settings import InputRef, NodeSpec, PipelineSettings

_WIRING_KEYS = ("input", "inputs")


@dataclass(frozen=True, slots=True)
class RawNode:
    """A node of a document before its configuration is read: where it stands and what was written."""

    document: Document
    path: tuple[str | int, ...]
    value: Mapping[str, Any]
    name: str


def make_plan(document: Document, settings: PipelineSettings, variables: Mapping[str, str], findings: Findings) -> Plan:
    """The plan of a document. `variables` are overrides from the command line. Raises PipelineErrors with everything that is wrong."""
    model = read_model(document, findings)
    if model is None:
        _read_nodes(document, findings)
        raise_errors(findings.diagnostics)
        raise AssertionError("a pipeline that is no model has a diagnostic")
    settings = replace(
        settings,
        variables=declared_variables(document, variables, findings),
        date_formats=tuple(model.pipeline.date_formats),
        fail_fast=model.error_handling.strategy == "fail_fast",
    )
    specs = _read_nodes(document, findings)
    ordered = _ordered(_unique(specs, findings), findings)
    nodes = bind_all(ordered, settings, findings)
    check_whole(nodes, findings)
    raise_errors(findings.diagnostics)
    return Plan(model, settings, carry_hidden(nodes))


def read_model(document: Document, findings: Findings) -> Pipeline | None:
    """The top level of the file; None when it cannot be read at all."""
    if not isinstance(document.value, dict):
        findings.diagnostics.append(document.error((), "YAML-010", "a pipeline file is a map with 'pipeline' and 'nodes'"))
        return None
    try:
        return Pipeline.model_validate(document.value)
    except ValidationError as error:
        findings.diagnostics.extend(model_problems(error, document, (), Pipeline))
        return None


def _read_nodes(document: Document, findings: Findings) -> list[NodeSpec]:
    return [spec for raw in _raw_nodes(document, findings) if (spec := read_node(raw, findings)) is not None]


def _raw_nodes(document: Document, findings: Findings) -> Iterable[RawNode]:
    value: Any = document.value
    nodes = value.get("nodes") if isinstance(value, dict) else None
    if not isinstance(nodes, list):
        return
    for index, value in enumerate(nodes):
        path: tuple[str | int, ...] = ("nodes", index)
        if isinstance(value, dict):
            yield RawNode(document, path, value, str(value.get("name", "")))
        else:
            findings.diagnostics.append(document.error(path, "YAML-010", "a node is a map with 'type', 'name' and 'config'"))


def read_node(raw: RawNode, findings: Findings) -> NodeSpec | None:
    """One node with its configuration; None when problems were reported."""
    reporter = findings.node(raw.document, raw.path, raw.name)
    kind = raw.value.get("type")
    found = registry.find(kind) if isinstance(kind, str) else None
    if kind is not None and found is None:
        known = registry.names()
        reporter.report("E012", f"unknown node type '{kind}'", ("type",), help=reporter.similar(str(kind), known) or f"known: {', '.join(known)}")
        return None
    header = {key: value for key, value in raw.value.items() if found is None or key not in _allowed_wiring(found.wiring)}
    problems = _validate(NodeHeader, header, raw, ())
    inputs: tuple[InputRef, ...] | None = ()
    config: BaseModel | None = None
    if found is not None:
        inputs = _read_inputs(found.wiring, raw, findings)
        written = raw.value.get("config")
        if written is None and not found.config_optional:
            reporter.report("E013", f"node '{raw.name}' has no config", (), help="every node but a merge needs a 'config:' block")
            problems.append(None)
        else:
            config_problems = _validate(found.config, {} if written is None else written, raw, ("config",))
            problems.extend(config_problems)
            config = None if config_problems else found.config.model_validate({} if written is None else written)
    findings.diagnostics.extend(problem for problem in problems if problem is not None)
    if problems or inputs is None or config is None or not _good_name(raw.name, reporter):
        return None
    return NodeSpec(raw.name, str(kind), config, (*inputs, *_side_inputs(config, inputs)), raw.path, raw.document)


def _side_inputs(config: BaseModel, inputs: tuple[InputRef, ...]) -> Iterator[InputRef]:
    """Nodes that the configuration names as further inputs."""
    for name in getattr(config, "side_inputs", {}).values():
        ref = InputRef.parse(name)
        if ref not in inputs:
            yield ref


def _validate(model: type[BaseModel], value: Any, raw: RawNode, path: tuple[str | int, ...]) -> list[Any]:
    try:
        model.model_validate(value)
    except ValidationError as error:
        return list(model_problems(error, raw.document, (*raw.path, *path), model, node=raw.name))
    return []


def _good_name(name: str, reporter: Any) -> bool:
    if "." in name:
        reporter.report("E010", f"the name '{name}' has a dot; dots are for ports", ("name",))
        return False
    if not name or not (name[0].isalpha() or name[0] == "_") or not all(c.isascii() and (c.isalnum() or c in "_-") for c in name) or len(name) > 128:
        reporter.report("E010", f"'{name}' is no node name", ("name",), help="letters, digits, _ and -, not beginning with a digit, 128 at most")
        return False
    return True


def _allowed_wiring(wiring: str) -> tuple[str, ...]:
    return {"none": (), "inputs": ("inputs",), "input": ("input",), "map": ("input",), "any": ("input", "inputs", "outputs", "use", "alias")}[wiring]


def _read_inputs(wiring: str, raw: RawNode, findings: Findings) -> tuple[InputRef, ...] | None:
    """References to upstream ports in order; None when the wiring is wrong. Keys that do not belong are the header's problem."""
    reporter = findings.node(raw.document, raw.path, raw.name)
    if wiring in ("none", "any"):
        return ()
    key = "inputs" if wiring == "inputs" else "input"
    value = raw.value.get(key)
    if value is None:
        reporter.report("E014", f"node '{raw.name}' has no '{key}'", (), help=f"name the node that it reads: '{key}: ...'")
        return None
    if wiring == "map":
        return _map_inputs(value, reporter)
    if wiring == "inputs":
        if not isinstance(value, list) or not value or not all(isinstance(item, str) for item in value):
            reporter.report("E015", "'inputs' is a list of node names", ("inputs",))
            return None
        return tuple(InputRef.parse(item) for item in value)
    if not isinstance(value, str):
        reporter.report("E015", "'input' is the name of one node, or 'node.port'", ("input",))
        return None
    return (InputRef.parse(value),)


def _map_inputs(value: Any, reporter: Any) -> tuple[InputRef, ...] | None:
    if not isinstance(value, dict) or len(value) < 2 or not all(isinstance(item, str) for item in value.values()):
        reporter.report("E015", "'input' of a combine maps two or more qualifiers to node names", ("input",))
        return None
    return tuple(InputRef.parse(item, qualifier) for qualifier, item in value.items())


def _unique(specs: list[NodeSpec], findings: Findings) -> list[NodeSpec]:
    """The specs without those whose name another has already."""
    seen: dict[str, NodeSpec] = {}
    for spec in specs:
        reporter = findings.node(spec.document, spec.path, spec.name)
        if spec.name in seen:
            reporter.report("E001", f"two nodes are named '{spec.name}'", ("name",))
        else:
            seen[spec.name] = spec
    return list(seen.values())


def _ordered(specs: list[NodeSpec], findings: Findings) -> list[NodeSpec]:
    """Topological order, ties by declaration. Unknown inputs and cycles are reported; what hangs on them is left out."""
    by_name = {spec.name: spec for spec in specs}
    broken = {spec.name for spec in specs if not _inputs_exist(spec, by_name, findings)}
    done: dict[str, NodeSpec] = {}
    rest = [spec for spec in specs if spec.name not in broken]
    while rest:
        ready = next((spec for spec in rest if all(ref.node in done for ref in spec.inputs)), None)
        if ready is None:
            break
        done[ready.name] = ready
        rest.remove(ready)
    _report_cycle(rest, findings)
    return list(done.values())


def _inputs_exist(spec: NodeSpec, by_name: Mapping[str, NodeSpec], findings: Findings) -> bool:
    reporter = findings.node(spec.document, spec.path, spec.name)
    good = True
    for index, ref in enumerate(spec.inputs):
        place = _place(spec, index)
        if ref.node == spec.name:
            reporter.report("E002", f"node '{spec.name}' reads itself: a cycle", place)
        elif ref.node not in by_name:
            declared = {str(node.get("name")) for node in spec.document.value["nodes"] if isinstance(node, dict)}
            if ref.node not in declared:
                reporter.report("E004", f"there is no node '{ref.node}'", place, help=reporter.similar(ref.node, list(by_name)))
        elif by_name[ref.node].kind == "output":
            reporter.report("E005", f"'{ref.node}' is an output; nothing can read from it", place)
        else:
            continue
        good = False
    return good


def _place(spec: NodeSpec, index: int) -> tuple[str | int, ...]:
    """Where an input of a node is named."""
    ref = spec.inputs[index]
    if "inputs" in _written_keys(spec):
        return "inputs", index
    if ref.qualifier is not None:
        return "input", ref.qualifier
    return ("input",) if index == 0 else next(iter(spec.config.side_inputs))


def _written_keys(spec: NodeSpec) -> Mapping[str, Any]:
    value: Any = spec.document.value
    for step in spec.path:
        value = value[step]
    return value  # type: ignore[no-any-return]  # a node is a map


def _report_cycle(rest: list[NodeSpec], findings: Findings) -> None:
    """One diagnostic for each cycle among the nodes that could not be ordered; what merely hangs on one is passed over."""
    by_name = {spec.name: spec for spec in rest}
    reported: set[str] = set()
    for spec in rest:
        trail: list[str] = []
        name = spec.name
        while name in by_name and name not in trail:
            trail.append(name)
            name = next((ref.node for ref in by_name[name].inputs if ref.node in by_name), "")
        cycle = trail[trail.index(name) :] if name in trail else []
        if cycle and not reported & set(cycle):
            reported |= set(cycle)
            first = by_name[cycle[0]]
            path = " -> ".join([*reversed(cycle), cycle[-1]])
            findings.node(first.document, first.path, first.name).report("E003", f"the nodes form a cycle: {path}", ("name",))


def bind_all(specs: list[NodeSpec], settings: PipelineSettings, findings: Findings) -> dict[str, Node]:
    """Bind nodes in order; a node whose inputs could not be bound is left out, its consequence not reported."""
    nodes: dict[str, Node] = {}
    sources: dict[str, tuple[str, ...]] = {}
    for spec in specs:
        reporter = findings.node(spec.document, spec.path, spec.name)
        rows = [row for ref in spec.inputs if (row := _port(nodes, ref, reporter)) is not None]
        if len(rows) < len(spec.inputs):
            continue
        above = tuple(dict.fromkeys(name for ref in spec.inputs for name in sources[ref.node]))
        found = registry.find(spec.kind)
        undated = tuple(name for name in above if name in nodes and "_event_time" not in nodes[name].operator.output.hidden)
        operator = found.bind(spec, Binding(rows, settings, reporter, above, undated=undated)) if found else None
        if operator is not None:
            operator.carry(rows, frozenset())
            sources[spec.name] = (spec.name,) if spec.kind == "source" else above
            nodes[spec.name] = Node(spec, operator, tuple((ref.node, ref.port) for ref in spec.inputs))
    return nodes


def _port(nodes: Mapping[str, Node], ref: InputRef, reporter: Any) -> RowType | None:
    node = nodes.get(ref.node)
    if node is None:
        return None
    ports = node.operator.ports()
    if ref.port is None and not ports or ref.port in ports:
        return node.operator.port(ref.port)
    if ref.port is None:
        reporter.report("E006", f"'{ref.node}' has ports; name one of {', '.join(f'{ref.node}.{port}' for port in ports)}", ("input",))
    else:
        known = f"its ports: {', '.join(ports)}" if ports else f"'{ref.node}' has no ports"
        reporter.report("E006", f"'{ref.node}' has no port '{ref.port}'", ("input",), help=reporter.similar(ref.port, ports) or known)
    return None


def check_whole(nodes: Mapping[str, Node], findings: Findings) -> None:
    """Checks that see the whole pipeline: two outputs with one path."""
    paths: dict[str, str] = {}
    for node in nodes.values():
        path = getattr(node.operator, "target_key", None)
        if path is None:
            continue
        if path in paths:
            reporter = findings.node(node.spec.document, node.spec.path, node.name)
            reporter.report("E321", f"outputs '{paths[path]}' and '{node.name}' both write '{path}'", ("config", "path"))
        paths.setdefault(path, node.name)


def carry_hidden(nodes: dict[str, Node]) -> dict[str, Node]:
    """Let the hidden columns that somebody downstream reads ride along: `$source.*` only where it is asked for."""
    wanted: dict[str, frozenset[str]] = {}
    for node in reversed(nodes.values()):
        wanted[node.name] = wanted.get(node.name, frozenset()) | node.operator.reads_source()
        for name, _ in node.inputs:
            wanted[name] = wanted.get(name, frozenset()) | wanted[node.name]
    for node in nodes.values():
        node.operator.carry([nodes[name].operator.port(port) for name, port in node.inputs], wanted[node.name])
    return nodes
