"""Which variables each node sees, which it may not read, and where the values come from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from errata.core.diagnostics import Label
from errata.project.findings import Findings
from errata.project.variables import RESERVED
from operators.core import registry
from operators.core.run_values import InvalidRead, NodeVariables, riding
from operators.core.settings import NodeSpec, PipelineSettings

if TYPE_CHECKING:
    from cxl.types.types import Type
    from errata.project.compositions.call import Body
    from operators.core.row_type import RowType
    from operators.state.config import StateConfig

SCOPES = ("pipeline", "source", "record")
Key = tuple[str, str]


class AnyEntry(dict[str, "Mapping[str, Type]"]):
    """The source variables by the name of an input where not all inputs are known: any name but a member of `$source` may be one."""

    def __init__(self, known: Mapping[str, Mapping[str, Type]], types: Mapping[str, Type]) -> None:
        super().__init__(known)
        self.types = types

    def __contains__(self, name: object) -> bool:
        return name not in RESERVED["source"]

    def __missing__(self, name: str) -> Mapping[str, Type]:
        return self.types


class Scoping:
    """The variables of a plan's nodes, from their specs in topological order. Of nodes below one that has no spec (`partial`) it is not said what they may not read.

    `bodies`: the composition that a node belongs to.
    """

    def __init__(self, specs: Sequence[NodeSpec], settings: PipelineSettings, bodies: Mapping[str, Body]) -> None:
        self.settings = settings
        self.bodies = bodies
        self.specs = {spec.name: spec for spec in specs}
        self.above: dict[str, frozenset[str]] = {}
        self.partial: set[str] = set()
        for spec in specs:
            if any(ref.node not in self.above or ref.node in self.partial for ref in spec.inputs):
                self.partial.add(spec.name)
            direct = [ref.node for ref in spec.inputs if ref.node in self.above]
            self.above[spec.name] = frozenset(direct).union(*(self.above[name] for name in direct))

    @cached_property
    def writers(self) -> Mapping[Key, Sequence[NodeSpec]]:
        """The state nodes that write a variable, by scope and name."""
        found: dict[Key, list[NodeSpec]] = {}
        for spec in self.specs.values():
            if spec.kind == "state":
                config: StateConfig = spec.config
                for name in config.variables:
                    found.setdefault((config.scope, name), []).append(spec)
        return found

    @cached_property
    def init(self) -> frozenset[str]:
        """The nodes of the init phase: its state nodes, what is above them, and the expectations of these state nodes."""
        ends = [name for name, spec in self.specs.items() if is_init(spec)]
        expected = [name for name, spec in self.specs.items() if spec.kind == "expect" and self.above[name].intersection(ends)]
        return frozenset([*ends, *expected]).union(*(self.above[name] for name in ends))

    def init_first(self) -> list[NodeSpec]:
        """The specs in an order in which the init phase comes before everything else."""
        return sorted(self.specs.values(), key=lambda spec: spec.name not in self.init)

    # -- what a node sees

    def of(self, spec: NodeSpec) -> NodeVariables:
        """The variables of a node."""
        visible = self._visible(spec)
        types: dict[str, dict[str, Type]] = {scope: {} for scope in ("vars", *SCOPES)}
        for (scope, name), type_ in visible.items():
            types[scope][name] = type_
        unexposed = frozenset(f"{scope}.{name}" for scope, name in self.settings.variables if scope != "vars" and (scope, name) not in visible)
        entries = self._entries(spec)
        qualified: Mapping[str, Mapping[str, Type]] = {}
        if types["source"]:
            qualified = AnyEntry(dict.fromkeys(entries, types["source"]), types["source"]) if spec.name in self.partial else dict.fromkeys(entries, types["source"])
        return NodeVariables(types, qualified, unexposed, dict(self._misreads(spec, visible)), dict(self._constants(spec, visible)))

    def _visible(self, spec: NodeSpec) -> Mapping[Key, Type]:
        body = self.bodies.get(spec.name)
        if body is None:
            return {key: one.type for key, one in self.settings.variables.items()}
        parameters = {("vars", name): one.type for name, one in body.parameters.items()}
        return {**parameters, **body.scoped}

    def _entries(self, spec: NodeSpec, *, own: bool = False) -> Mapping[str, str]:
        """The inputs of the merges and combines above a node (`own`: and its own): the name under which each is entered, and the node that it reads."""
        above = {*self.above[spec.name], *([spec.name] if own else [])}
        joins = [one for name, one in self.specs.items() if name in above and joins_inputs(one)]
        return {name: ref.node for one in joins for name, ref in zip(entry_names(one), one.inputs, strict=True)}

    def _constants(self, spec: NodeSpec, visible: Mapping[Key, Type]) -> Iterator[tuple[str, Any]]:
        """Values as they are where nothing was written."""
        body = self.bodies.get(spec.name)
        for scope, name in visible:
            if scope == "vars" and body is not None:
                yield f"vars.{name}", body.parameters[name].value
            else:
                yield f"{scope}.{name}", self._default(spec.name, scope, name)
        for entry, node in self._entries(spec, own=True).items():
            for scope, name in visible:
                if scope == "source":
                    yield f"source.{entry}.{name}", self._default(node, scope, name)

    def _default(self, node: str, scope: str, name: str) -> Any:
        """The declared default; of a source variable that of the only source above a node, where a channel gives one."""
        variable = self.settings.variables[scope, name]
        if scope != "source":
            return variable.default
        sources = [one for one in {node, *self.above.get(node, ())} if one in self.specs and self.specs[one].kind == "source"]
        return self.settings.source_defaults.get((sources[0], name), variable.default) if len(sources) == 1 else variable.default

    # -- what it may not read

    def _misreads(self, spec: NodeSpec, visible: Mapping[Key, Type]) -> Iterator[tuple[str, InvalidRead]]:
        for scope, name in visible if spec.name not in self.partial else ():
            wrong = self._ambiguous(spec, scope, name) or self._unwritten(spec, scope, name)
            if wrong is not None:
                yield f"{scope}.{name}", wrong

    def _ambiguous(self, spec: NodeSpec, scope: str, name: str) -> InvalidRead | None:
        """E172: a bare source variable where the records of several sources meet."""
        joins = [one for one in sorted({spec.name, *self.above[spec.name]}) if joins_inputs(self.specs[one])]
        if scope != "source" or not joins:
            return None
        entries = [f"$source.{entry}.{name}" for entry in self._entries(spec)]
        help_text = f"write {' or '.join(entries)}" if entries else f"read it behind '{spec.name}', by the name of an input"
        message = f"'$source.{name}' does not say whose variable it is behind {self.specs[joins[0]].kind} '{joins[0]}'"
        return InvalidRead("E172", message, help_text)

    def _unwritten(self, spec: NodeSpec, scope: str, name: str) -> InvalidRead | None:
        """E171 and E175: a variable that only the run writes, read where its writer is not above or in the init phase."""
        writers = self.writers.get((scope, name), ())
        if not writers or any(is_init(one) for one in writers) or any(one.name == spec.name or one.name in self.above[spec.name] for one in writers):
            return None
        writer = writers[0]
        labels = (Label.at(writer.document.key_span((*writer.path, "name")), "written here"),) if writer.document is not None else ()
        if spec.name in self.init:
            message = f"'${scope}.{name}' is written by '{writer.name}' while records flow; '{spec.name}' runs in the init phase"
            return InvalidRead("E175", message, f"phase: init in '{writer.name}', or read it in the run", labels)
        message = f"'${scope}.{name}' is written by '{writer.name}', which is not upstream of '{spec.name}'"
        return InvalidRead("E171", message, f"put '{spec.name}' behind '{writer.name}', or compute the variable with phase: init", labels)

    def check_init(self, findings: Findings) -> None:
        """E164: what is behind an init state node must belong to the init phase."""
        for name, spec in self.specs.items():
            behind = [one for other, one in self.specs.items() if is_init(spec) and name in self.above[other] and other not in self.init]
            if behind:
                reporter = findings.node(spec.document, spec.path, name)
                message = f"init node '{name}' feeds '{behind[0].name}', which runs with the records"
                reporter.report("E164", message, ("name",), help="an init node ends its branch; give the run a branch of its own")

    # -- values from elsewhere

    def feeds(self, spec: NodeSpec, reads: frozenset[str], inputs: Sequence[RowType]) -> dict[str, str]:
        """Pipeline variables that a node takes from a state node that is finished before it: dotted name to that node.

        From one above it where the variable does not ride along (behind an aggregate: the last value), else from the init phase.
        """
        along = set() if spec.kind == "aggregate" else {name for row in inputs for name in riding(row)}
        found: dict[str, str] = {}
        for dotted, writers in self._read_writers(reads):
            ended = [] if dotted in along else [one.name for one in writers if one.name in self.above[spec.name]]
            early = [one.name for one in self._ahead(spec, writers) if is_init(one)]
            if ended or early:
                found[dotted] = (ended or early)[-1]
        return found

    def _ahead(self, spec: NodeSpec, writers: Sequence[NodeSpec]) -> list[NodeSpec]:
        """The writers of a variable that a node of the init phase may wait for: none behind it, and of a variable that it writes itself those written before it."""
        names = [one.name for one in writers]
        others = writers[: names.index(spec.name)] if spec.name in names else writers
        return [one for one in others if spec.name not in self.above[one.name]]

    def _read_writers(self, reads: frozenset[str]) -> Iterator[tuple[str, Sequence[NodeSpec]]]:
        """The pipeline variables among those read that state nodes write, with these nodes."""
        for (scope, name), writers in self.writers.items():
            if scope == "pipeline" and f"pipeline.{name}" in reads:
                yield f"pipeline.{name}", writers


def joins_inputs(spec: NodeSpec) -> bool:
    """Whether rows of several inputs come together at a node."""
    found = registry.find(spec.kind)
    return found is not None and found.joins_inputs


def is_init(spec: NodeSpec) -> bool:
    """Whether a state node runs before the records flow."""
    return spec.kind == "state" and cast("StateConfig", spec.config).phase == "init"


def entry_names(spec: NodeSpec) -> list[str]:
    """The names under which a merge or combine knows its inputs, as they are written."""
    if spec.kind == "combine" or spec.document is None:
        return [ref.qualifier or ref.node for ref in spec.inputs]
    value: Any = spec.document.value
    for step in spec.path:
        value = value[step]
    return [str(name).partition(".")[0] for name in value["inputs"]]
