"""From a loaded pipeline file to a plan: nodes read one by one, wired, ordered and bound; every independent problem at once."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from errata.core.diagnostics import Diagnostic, did_you_mean, raise_errors
from errata.plan.correlation import splitting, takers
from errata.plan.expectations import with_expectations
from errata.plan.plan import Node, Plan
from errata.plan.variable_scopes import Scoping, entry_names, joins_inputs
from errata.project.compositions.expand import EnclosingPipeline, Expansion, expand
from errata.project.correction_files import read_corrections
from errata.project.findings import Findings, NodeReporter
from errata.project.model import PipelineFile, check_paths, receiver_fault
from errata.project.texts import SAVED, Texts
from errata.project.validation import model_problems
from errata.project.variables import declared_variables
from errata.yaml import Document
from operators.core import registry
from operators.core.binding import Binding, ConfigPath
from operators.core.row_type import STATUS, UNKNOWN, RowType
from operators.core.run_values import dotted, qualifying, together
from operators.core.settings import InputRef, NodeSpec, PipelineSettings
from operators.output.operator import Output
from operators.source.node import SourceNode
from operators.transform.row_logic import RowLogic
from storage.files.path_tokens import PathTemplate, TokenError, TokenValues
from storage.sql.names import TableName

if TYPE_CHECKING:
    from errata.project.compositions.call import Contract, Layers

OF_VARIABLES = ("E174", "E200")
"""Codes about undeclared variables."""


@dataclass(frozen=True, slots=True)
class Draft:
    """The known parts of a pipeline, whatever is wrong with it.

    Attributes:
        specs: The nodes that could be read, in topological order.
        nodes: The bound nodes.
        guesses: The likely rows of the nodes that could not be bound.
    """

    model: PipelineFile
    settings: PipelineSettings
    expansion: Expansion
    specs: Mapping[str, NodeSpec]
    nodes: dict[str, Node]
    guesses: Mapping[str, RowType]


def make_draft(
    document: Document, settings: PipelineSettings, variables: Mapping[str, Any], findings: Findings, *,
    environment: Mapping[str, str] | None = None, layers: Layers | None = None, texts: Texts = SAVED,
) -> Draft | None:  # fmt: skip
    """The nodes of a document as far as they can be bound, None where it is no pipeline. What is wrong goes to the findings."""
    model = read_model(document, findings)
    if model is None:
        return None
    settings = replace(
        settings,
        variables=declared_variables(document, variables, findings),
        date_formats=tuple(model.pipeline.date_formats),
        fail_fast=model.error_handling.strategy == "fail_fast",
    )
    check_paths(document, model, settings, findings)
    expansion = expand(document, EnclosingPipeline(findings, settings.variables, environment, layers or {}, texts))
    ordered = _ordered(with_expectations(_unique(expansion.specs, findings), expansion), expansion, findings)
    settings = replace(settings, corrections=read_corrections(ordered, settings, findings))
    bound = bind_all(ordered, settings, findings, expansion)
    check_whole(bound.nodes, findings)
    check_dlq(document, model, bound.nodes, findings)
    check_notifications(document, model, bound.nodes, findings)
    return Draft(model, settings, expansion, {spec.name: spec for spec in ordered}, bound.nodes, bound.guesses)


def body_draft(document: Document, settings: PipelineSettings, ports: Mapping[str, RowType], findings: Findings, texts: Texts = SAVED) -> Draft:
    """The nodes of a composition that no pipeline uses, as far as they can be bound. What is wrong goes to the findings.

    Args:
        ports: The rows of its input ports.
    """
    expansion = expand(document, EnclosingPipeline(findings, settings.variables, texts=texts), ports)
    ordered = _ordered(_unique(expansion.specs, findings), expansion, findings)
    bound = bind_all(ordered, settings, findings, expansion, ports)
    model = PipelineFile.model_validate({"pipeline": {"name": "composition"}, "nodes": []})
    return Draft(model, settings, expansion, {spec.name: spec for spec in ordered}, bound.nodes, bound.guesses)


def finished(draft: Draft, document: Document, findings: Findings) -> Plan:
    """The plan of a draft. Raises PipelineErrors with everything that is wrong."""
    raise_errors(reported(document, findings))
    model, nodes, expansion = draft.model, draft.nodes, draft.expansion
    parameters = {name: call.body.parameters for name, call in expansion.calls.items()}
    hidden = with_hidden_columns(nodes, record_scope=model.error_handling.retraction_scope == "record")
    plan = Plan(model, draft.settings, hidden, parameters, expansion.outputs)
    check_source_names(plan, findings)
    raise_errors(findings.diagnostics)
    return plan


def reported(document: Document, findings: Findings) -> list[Diagnostic]:
    """The findings, without the consequences of variable declarations that cannot be read."""
    return findings.diagnostics if _declares(document.value) else [one for one in findings.diagnostics if one.code not in OF_VARIABLES]


def _declares(value: Any) -> bool:
    """Whether the declared variables of a file are known."""
    return isinstance(value.get("pipeline"), dict) and isinstance(value["pipeline"].get("vars", {}), dict)


def read_model(document: Document, findings: Findings) -> PipelineFile | None:
    """The top level of the file, what is wrong in it reported and left out; None when it cannot be read at all."""
    if not isinstance(document.value, dict):
        if not findings.failed:  # else it could not be read
            findings.diagnostics.append(document.error((), "YAML-010", "a pipeline file is a map with 'pipeline' and 'nodes'"))
        return None
    try:
        model = PipelineFile.model_validate(document.value)
    except ValidationError as error:
        findings.diagnostics.extend(model_problems(error, document, (), PipelineFile))
        model = PipelineFile.model_validate(_without(document.value, error))
    if document.value.get("nodes") == []:
        findings.diagnostics.append(document.error(("nodes",), "CFG-004", "'nodes' must be a list of at least 1 entry, not an empty list"))
    return model


def _without(value: Mapping[str, Any], error: ValidationError) -> Mapping[str, Any]:
    """The top level of a file without the members that are wrong; with what it cannot do without."""
    rest = dict(value)
    for one in error.errors():
        section, *inner = one["loc"]
        if inner and isinstance(rest.get(str(section)), dict):
            rest[str(section)] = {name: held for name, held in rest[str(section)].items() if name != inner[0]}
        else:
            rest.pop(str(section), None)
    return {"nodes": [], **rest, "pipeline": {"name": "unnamed", **rest.get("pipeline", {})}}


def _unique(specs: list[NodeSpec], findings: Findings) -> list[NodeSpec]:
    """The specs without those whose name another has already."""
    seen: dict[str, NodeSpec] = {}
    for spec in specs:
        reporter = findings.node(spec.document, spec.path, spec.name)
        if spec.name in seen:
            reporter.report("E001", f"two nodes are named '{spec.name}'", ("name",), help="give one of them another name, and change the nodes that read it")
        else:
            seen[spec.name] = spec
    return list(seen.values())


def _ordered(specs: list[NodeSpec], expansion: Expansion, findings: Findings) -> list[NodeSpec]:
    """Topological order, ties by declaration. Unknown inputs and cycles are reported; the nodes of a cycle are left out."""
    by_name = {spec.name: spec for spec in specs}
    above = {spec.name: _known_inputs(spec, by_name, expansion.declared, findings) for spec in specs}
    done = _in_order(above)
    ring = _report_cycles({name: above[name] for name in above if name not in done}, by_name, expansion.bodies, findings)
    return [by_name[name] for name in _in_order({name: [one for one in above[name] if one not in ring] for name in above if name not in ring})]


def _in_order(above: Mapping[str, Collection[str]]) -> list[str]:
    """Names in topological order, ties as they come; cycles and what depends on them are left out."""
    done: dict[str, None] = {}
    rest = list(above)
    while (ready := next((name for name in rest if all(one in done for one in above[name])), None)) is not None:
        done[ready] = None
        rest.remove(ready)
    return list(done)


def _cycles(above: Mapping[str, Collection[str]]) -> Iterator[list[str]]:
    """Cycles, from upstream to downstream: enough that each name in a cycle is in one of them."""
    reported: set[str] = set()
    for start in above:
        cycle = [] if start in reported else _back_to(start, above)
        reported |= set(cycle)
        if cycle:
            yield cycle[::-1]


def _back_to(start: str, above: Mapping[str, Collection[str]]) -> list[str]:
    """The shortest cycle through a name, without its end; empty where there is none."""
    came: dict[str, str] = {}
    turn = [start]
    while turn and start not in came:
        found = [(one, name) for name in turn for one in above.get(name, ()) if one not in came]
        turn = [one for one, _ in found]
        came |= dict(reversed(found))
    trail = [came[start]] if start in came else []
    while trail and trail[-1] != start:
        trail.append(came[trail[-1]])
    return trail[::-1]


def _way_round(cycle: Sequence[str]) -> str:
    return " -> ".join([*cycle, cycle[0]])


def _known_inputs(spec: NodeSpec, by_name: Mapping[str, NodeSpec], declared: set[str], findings: Findings) -> list[str]:
    """The nodes that a node reads. Inputs that it cannot read are reported."""
    reporter = findings.node(spec.document, spec.path, spec.name)
    known: list[str] = []
    for index, ref in enumerate(spec.inputs):
        place = _place(spec, index)
        if ref.node == spec.name:
            reporter.report("E002", f"node '{spec.name}' reads itself: a cycle", place, help="name the node that its rows come from")
        elif ref.node not in by_name:
            if ref.node not in declared:
                reporter.report("E004", f"there is no node '{ref.node}'", place, help=reporter.similar(ref.node, sorted(declared)))
        elif by_name[ref.node].kind == "output":
            reporter.report("E005", f"'{ref.node}' is an output; nothing can read from it", place, help=f"read what the output reads: {', '.join(one.node for one in by_name[ref.node].inputs)}")
        else:
            known.append(ref.node)
    return known


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


def _report_cycles(above: Mapping[str, Collection[str]], by_name: Mapping[str, NodeSpec], bodies: Collection[str], findings: Findings) -> set[str]:
    """One diagnostic for each cycle among the nodes that could not be ordered; gives the nodes of all. `bodies`: names of nodes of compositions."""
    found: set[str] = set()
    for cycle in _cycles(above):
        found.update(cycle)
        first = by_name[next((name for name in reversed(cycle) if name not in bodies), cycle[-1])]
        findings.node(first.document, first.path, first.name).report("E003", f"the nodes form a cycle: {_way_round(cycle)}", ("name",), help="take one of these inputs out: rows flow from sources to outputs only")
    return found


@dataclass(slots=True)
class Bound:
    """Bound nodes. `unsure`: nodes with problems and everything downstream of them; `guesses`: likely rows of nodes that could not be bound."""

    nodes: dict[str, Node] = field(default_factory=dict)
    unsure: set[str] = field(default_factory=set)
    guesses: dict[str, RowType] = field(default_factory=dict)

    @property
    def sure(self) -> dict[str, Node]:
        """The nodes without those."""
        return {name: node for name, node in self.nodes.items() if name not in self.unsure}

    def rows(self, ref: InputRef, reporter: NodeReporter, place: ConfigPath) -> RowType:
        """The rows of a port, as far as they are known; reports a port that is not there."""
        row = _port(self.nodes, ref, reporter, place)
        if row is None:
            return self.guesses.get(ref.node, UNKNOWN)
        return row.loosened() if ref.node in self.unsure else row

    def note(self, spec: NodeSpec, rows: Sequence[RowType], node: Node | None) -> None:
        """Keep a node, or what its rows are likely to be where it could not be bound."""
        if node is None:
            found = registry.find(spec.kind)
            self.guesses[spec.name] = UNKNOWN if found is None else found.provisional_rows(spec, rows)
        else:
            self.nodes[spec.name] = node
        if spec.partial or any(row.guessed for row in rows):
            self.unsure.add(spec.name)


def bind_all(specs: list[NodeSpec], settings: PipelineSettings, findings: Findings, expansion: Expansion, given: Mapping[str, RowType] | None = None) -> Bound:
    """Bind nodes in order, nodes of the init phase first.

    A node downstream of a problem is bound to the likely rows, so only its own problems are reported.

    Args:
        given: Rows of inputs that are no nodes.
    """
    bound = Bound(guesses=dict(given or {}))
    sources: dict[str, tuple[str, ...]] = {}
    scoping = Scoping(specs, settings, expansion.bodies)
    scoping.check_init(findings)
    for spec in scoping.init_first():
        reporter = findings.node(spec.document, spec.path, spec.name)
        rows = [bound.rows(ref, *_written(spec, index, expansion, reporter)) for index, ref in enumerate(spec.inputs)]
        if not _fulfilled(spec, rows, expansion, findings):
            rows = [row.opened() for row in rows]
        above = tuple(dict.fromkeys(name for ref in spec.inputs for name in sources.get(ref.node, ())))
        sources[spec.name] = (spec.name,) if spec.kind == "source" else above
        bound.note(spec, rows, _bound(spec, rows, _knowing(bound.sure, Binding((), settings, reporter, above, variables=scoping.of(spec))), scoping))
    _keep_promises(expansion, bound.sure, findings)
    _tell_shadowed(expansion, bound.nodes)
    bound.nodes = _fed_first(bound, findings)
    return bound


def _fed_first(bound: Bound, findings: Findings) -> dict[str, Node]:
    """Order nodes so that each of the init phase comes after the ones whose variables it reads. Nodes that wait for each other are reported, if they are sure."""
    nodes, sure = bound.nodes, bound.sure
    above = {name: [one for one in (*(ref for ref, _ in node.inputs), *node.feeds.values()) if one in sure] for name, node in sure.items()}
    done = _in_order(above)
    for cycle in _cycles({name: above[name] for name in sure if name not in done}):
        spec = nodes[cycle[0]].spec
        message = f"nodes wait for each other's variables: {_way_round(cycle)}"
        findings.node(spec.document, spec.path, spec.name).report("E003", message, ("name",), help="what a node of the init phase reads must not hang on what it writes")
    return {name: nodes[name] for name in (*done, *(one for one in nodes if one not in done))}


def _knowing(nodes: Mapping[str, Node], binding: Binding) -> Binding:
    """A binding that knows the watermarks and the documents of its sources."""
    sources = {name: nodes[name].operator for name in binding.sources if name in nodes}
    watermarks = {name: nodes[name].spec.config.watermark for name in sources}
    headers = {name: tag for one in sources.values() for name, tag in getattr(one, "headers", {}).items()}
    return replace(binding, watermarks=watermarks, documents=together(getattr(one, "documents", {}) for one in sources.values()), headers=headers)


def _keep_promises(expansion: Expansion, nodes: Mapping[str, Node], findings: Findings) -> None:
    """Report the fields that compositions say that they produce and do not."""
    for promise in expansion.promises:
        if promise.ref.node in nodes:
            findings.diagnostics.extend(promise.problems(nodes[promise.ref.node].operator.port(promise.ref.port)))


def _passing(expansion: Expansion, nodes: Mapping[str, Node]) -> dict[str, dict[str, Contract]]:
    """By composition the columns that flow through it, since its port does not name them, each with the port's contract."""
    found: dict[str, dict[str, Contract]] = {}
    for name, contracts in expansion.contracts.items():
        for contract in contracts if name in nodes else ():
            columns = set(nodes[name].operator.inputs[contract.index].data) - {one.name for one in contract.fields}
            found.setdefault(contract.call, {}).update(dict.fromkeys(columns if contract.fields else (), contract))
    return found


def _tell_shadowed(expansion: Expansion, nodes: Mapping[str, Node]) -> None:
    """Warn of columns that flow through a composition, since its port does not name them, and that its body emits all the same."""
    passing = _passing(expansion, nodes)
    for name, body in expansion.bodies.items():
        logic = getattr(nodes[name].operator, "logic", None) if name in nodes else None
        for column in logic.program.output if isinstance(logic, RowLogic) else ():
            found = passing.get(body.prefix, {}).pop(column, None)
            if found is not None:
                found.reporter.warn("W101", f"composition '{found.call}' emits '{column}', which its input has too: the emitted one stands", ("use",))


def _bound(spec: NodeSpec, rows: list[RowType], binding: Binding, scoping: Scoping) -> Node | None:
    """A node with its operator; None when problems were reported."""
    entries = tuple(entry_names(spec)) if joins_inputs(spec) else ()
    given = _entered(rows, entries)
    binding = replace(binding, inputs=given)
    found = registry.find(spec.kind)
    operator = found.bind(spec, binding) if found else None
    if operator is None:
        return None
    operator = operator.with_hidden(given, frozenset())
    reads = frozenset(binding.reads)
    if len(given) > 1:  # what rides in from one input only starts anew in the rows of the others
        reads |= {name for row in given for rider in row.riders if (name := dotted(rider)) is not None}
    feeds = scoping.feeds(spec, reads, given)
    constants = binding.variables.constants
    inputs = tuple((ref.node, ref.port) for ref in spec.inputs)
    return Node(spec, operator, inputs, spec.name in scoping.init, entries, constants, feeds, {name: constants[name] for name in sorted(reads) if name in constants}, binding.modules)


def _entered(rows: list[RowType], entries: tuple[str, ...]) -> list[RowType]:
    """The rows as a merge or combine sees them: their source variables carry the names of the inputs."""
    found: list[RowType] = []
    for index, row in enumerate(rows):
        names = qualifying(row.riders, entries[index]) if index < len(entries) else {}
        found.append(replace(row, riders={names.get(name, name): type_ for name, type_ in row.riders.items()}))
    return found


def _fulfilled(spec: NodeSpec, rows: list[RowType], expansion: Expansion, findings: Findings) -> bool:
    """Whether the inputs of a node have what the ports of its composition demand; reports what is missing, once a port."""
    found = [one for contract in expansion.contracts.get(spec.name, ()) for one in contract.problems(rows[contract.index])]
    findings.diagnostics.extend(one for one in found if one not in findings.diagnostics)
    return not found


def _written(spec: NodeSpec, index: int, expansion: Expansion, reporter: NodeReporter) -> tuple[NodeReporter, ConfigPath]:
    """Where an input of a node is written: for one that reads a port of its composition, at the node that uses the composition."""
    port = spec.inputs[index].port
    for contract in expansion.contracts.get(spec.name, ()):
        if contract.index == index and contract.ref.port == port:
            return contract.reporter, contract.place
    return reporter, _place(spec, index)


def _port(nodes: Mapping[str, Node], ref: InputRef, reporter: NodeReporter, place: ConfigPath) -> RowType | None:
    """The rows of a port; None where they are not known, which was reported."""
    node = nodes.get(ref.node)
    if node is None or node.is_output:
        return None
    ports = node.operator.ports()
    if (ref.port is None and not ports) or ref.port in ports:
        return node.operator.port(ref.port)
    if ref.port is None:
        reporter.report("E006", f"'{ref.node}' has several ports, and the reference names none", place, help=f"name one of {', '.join(f'{ref.node}.{port}' for port in ports)}")
    else:
        known = f"its ports: {', '.join(ports)}" if ports else f"'{ref.node}' has no ports"
        reporter.report("E006", f"'{ref.node}' has no port '{ref.port}'", place, help=reporter.similar(ref.port, ports) or known)
    return None


def check_whole(nodes: Mapping[str, Node], findings: Findings) -> None:
    """Checks that see the whole pipeline: two outputs with one path or table, sources that move their windows."""
    _warn_of_delays(nodes, findings)
    _refuse_shared_tables(nodes, findings)
    paths: dict[str, str] = {}
    for node in nodes.values():
        for path in getattr(node.operator, "target_keys", ()):
            if path in paths:
                reporter = findings.node(node.spec.document, node.spec.path, node.name)
                both = f"outputs '{paths[path]}' and '{node.name}' both write" if paths[path] != node.name else f"output '{node.name}' writes twice to"
                reporter.report("E322", f"{both} '{path}'", ("config", "path"), help="give each its own path: the last to write would win")
            paths.setdefault(path, node.name)


def _refuse_shared_tables(nodes: Mapping[str, Node], findings: Findings) -> None:
    """Report two outputs with one table, and an output to a table that a source reads (E612)."""
    taken: dict[tuple[str, str], str] = {}
    for node in nodes.values():
        operator = node.operator
        if isinstance(operator, SourceNode) and operator.config.asks and operator.config.table is not None:
            taken.setdefault(_table_key(operator.config.connection, operator.config.table), f"source '{node.name}' reads")
    for node in nodes.values():
        operator = node.operator
        if isinstance(operator, Output) and operator.in_database:
            key = _table_key(operator.config.connection, str(operator.config.table))
            if key in taken:
                message = f"output '{node.name}' writes '{operator.table}', which {taken[key]}"
                findings.node(node.spec.document, node.spec.path, node.name).report("E612", message, ("config", "table"), help="give each its own table")
            taken.setdefault(key, f"output '{node.name}' writes")


def _table_key(connection: str | None, table: str) -> tuple[str, str]:
    """The common form of all names of one table. Names that differ only by case have the same one: they are no good names either."""
    return str(connection), TableName.parse(table).shown.casefold()


def _warn_of_delays(nodes: Mapping[str, Node], findings: Findings) -> None:
    """Warn of sources whose `delay` moves the windows of a node (W105)."""
    windows = {source: node.name for node in nodes.values() for source in getattr(node.operator, "timed_by", ())}
    for source, window in windows.items():
        mark = nodes[source].spec.config.event_time if source in nodes else None
        if mark is not None and mark.delay is not None:
            message = f"'delay' moves each record of '{source}' to the window of a time {mark.delay} earlier, in '{window}'"
            help_text = f"out_of_order: {mark.delay} holds windows open as long and leaves records where they are"
            spec = nodes[source].spec
            findings.node(spec.document, spec.path, source).warn("W105", message, ("config", "watermark", "delay"), help=help_text)


def check_source_names(plan: Plan, findings: Findings) -> None:
    """A `{source_name}` in a path is that of one source."""
    for node in plan.of_kind("output"):
        config, stems = node.spec.config, TokenValues(plan.source_stems(node.name))
        for place, path in (*([("path", config.path)] if config.path else []), *([("changelog", config.changelog.path)] if config.changelog else [])):
            try:
                PathTemplate.parse(path).render(stems)
            except TokenError as error:
                findings.node(node.spec.document, node.spec.path, node.name).report("E324", str(error), ("config", place))


def check_dlq(document: Document, model: PipelineFile, nodes: Mapping[str, Node], findings: Findings) -> None:
    """The file of rejected records is no output's."""
    path = model.error_handling.dlq.path
    found = next((node for node in nodes.values() if path and posixpath.normpath(path) in getattr(node.operator, "target_keys", ())), None)
    if found is not None:
        message = f"output '{found.name}' and the dead letter queue both write '{path}'"
        findings.diagnostics.append(document.error(("error_handling", "dlq", "path"), "E322", message))


def check_notifications(document: Document, model: PipelineFile, nodes: Mapping[str, Node], findings: Findings) -> None:
    """Each entry of `notify` has one receiver, which can be one, and names nodes of the pipeline."""
    for at, one in enumerate(model.notify):
        fault = receiver_fault(one)
        if fault is not None:
            findings.diagnostics.append(document.error(("notify", at), "E490", fault, help="write url: https://..., or command: [program, argument]"))
        for place, name in enumerate(one.nodes):
            if name not in nodes:
                found = document.error(("notify", at, "nodes", place), "E490", f"there is no node '{name}'", help=did_you_mean(name, list(nodes)) or "")
                findings.diagnostics.append(found)


def with_hidden_columns(nodes: dict[str, Node], *, record_scope: bool) -> dict[str, Node]:
    """The nodes, in order, with the hidden columns that a program downstream reads.

    Args:
        record_scope: Whether the pipeline has `retraction_scope: record`, where records may only count.
    """
    wanted: dict[str, frozenset[str]] = {}
    for node in reversed(nodes.values()):
        wanted[node.name] = wanted.get(node.name, frozenset()) | node.operator.reads_source()
        for name, _ in node.inputs:
            wanted[name] = wanted.get(name, frozenset()) | wanted[node.name]
    nodes = _with_hidden({name: _with_status(node) for name, node in nodes.items()}, wanted, frozenset())
    taking = takers(nodes) if record_scope else frozenset()
    sources = splitting(nodes, taking) if record_scope else []
    if not sources:
        return nodes
    for source in sources:
        nodes = {**nodes, source.name: replace(source, operator=source.operator.with_attributes(takes_counted=True))}
    return _with_hidden(nodes, wanted, taking)


def _with_status(node: Node) -> Node:
    """The node; a source stores how its records take part, also where it has no correlation key any more."""
    if not node.is_source:
        return node
    return replace(node, operator=node.operator.with_attributes(output=node.operator.output.carrying([STATUS])))


def _with_hidden(nodes: Mapping[str, Node], wanted: Mapping[str, frozenset[str]], taking: frozenset[str]) -> dict[str, Node]:
    """The nodes with the hidden columns of their inputs. `taking`: the nodes that read records which only count."""
    found: dict[str, Node] = {}
    for node in nodes.values():
        takes = node.name in taking
        rows = [found[name].operator.port(port) for name, port in node.inputs]
        inputs = _entered([row if takes else row.without(STATUS) for row in rows], node.entries)
        operator = node.operator.with_hidden(inputs, wanted[node.name])
        if taking and any(STATUS in row.hidden for row in rows):
            operator = operator.with_attributes(takes_counted=takes)
        found[node.name] = replace(node, operator=operator)
    return found
