"""The plan of a pipeline: its nodes bound to each other in an order in which they can run."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from cxl.types.types import type_name
from errata.plan.datasets import Dataset
from errata.plan.edits import beside, written
from errata.project.compositions.parameters import Parameter
from errata.project.model import PipelineFile
from errata.project.workspace import Workspace
from operators.core.node import BoundNode
from operators.core.operator import Operator
from operators.core.row_type import stored_types
from operators.core.run_values import riding
from operators.core.settings import NodeSpec, PipelineSettings

if TYPE_CHECKING:
    from operators.source.node import SourceNode

FINGERPRINT_VERSION = 1
"""Part of every fingerprint: what Errata itself changes in an operator's meaning counts as a change of logic."""


@dataclass(frozen=True, slots=True)
class Node:
    """One node of the plan with its operator.

    Attributes:
        inputs: Pairs of node name and port.
        init: Whether it runs before the records flow.
        entries: The names of a merge's or combine's inputs.
        constants: Declared variables by dotted name, with their values where nothing sets them.
        used: The constants that the node's programs read.
        feeds: Variables that a state node sets before this node runs: dotted name to that node.
        modules: The modules that its programs use, with their text.
    """

    spec: NodeSpec
    operator: BoundNode
    inputs: tuple[tuple[str, str | None], ...]
    init: bool = False
    entries: tuple[str, ...] = ()
    constants: Mapping[str, Any] = field(default_factory=dict)
    feeds: Mapping[str, str] = field(default_factory=dict)
    used: Mapping[str, Any] = field(default_factory=dict)
    modules: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The node's name, unique in the plan."""
        return self.spec.name

    @property
    def kind(self) -> str:
        """The node's type."""
        return self.spec.kind

    def fingerprint(self) -> str:
        """32 hex digits that change exactly when the node's logic or its input columns change."""
        operator = self.operator
        inputs = [[{name: str(type_) for name, type_ in row.data.items()}, row.widened] for row in operator.inputs]
        content: list[Any] = [FINGERPRINT_VERSION, self.kind, operator.fingerprint, [list(pair) for pair in self.inputs], inputs]
        content += [{name: repr(value) for name, value in self.used.items()}] if self.used else []
        content += [dict(self.feeds)] if self.feeds else []
        text = json.dumps([*content, *self._provenance()], sort_keys=True, ensure_ascii=False, default=str)
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    @property
    def is_source(self) -> bool:
        """Whether the node reads files or a table."""
        return self.operator.is_source

    @property
    def is_output(self) -> bool:
        """Whether the node writes files or a table."""
        return self.operator.is_output

    @property
    def as_operator(self) -> Operator:
        """The operator of a node that is not a source."""
        assert isinstance(self.operator, Operator)
        return self.operator

    def beside(self) -> dict[str, str]:
        """Digests of variables, modules and whatever else its logic depends on, by the name that users know."""
        variables = {f"${name}": value for name, value in self.used.items()}
        return beside(variables | {f"module {name}": text for name, text in self.modules.items()} | dict(self.operator.beside()))

    def _provenance(self) -> Iterator[str]:
        """The decisions of upstream nodes about the rows and variables that the node sees."""
        inputs = self.operator.inputs
        if self.operator.takes_counted is not None:
            yield f"records that only count: {self.operator.takes_counted}"
        carried = {name for row in inputs for name in riding(row)} | {"source.event_time" for row in inputs if "_event_time" in row.hidden}
        declared = {*self.used, "source.event_time"}
        yield from (f"without {name}" for name in sorted((self.operator.reads_source() & declared) - carried - self.feeds.keys()))  # it may have ridden along
        if self.operator.reads_source() & {"source.file", "source.path", "source.row"} and any(row.key.has_values for row in inputs):
            yield "files beside the keys"  # not in them: where that changes, the prior rows were read in another way


def columns_of(node: Node) -> list[list[str]]:
    """A node's own columns as the ledger keeps them: names and types."""
    return [[name, type_name(type_)] for name, type_ in node.operator.output.data.items()]


@dataclass(frozen=True)
class Plan:
    """All nodes in topological order (ties in order of declaration), the settings, and the handling of errors.

    Attributes:
        parameters: The parameters of each composition, by its name and theirs.
        outputs: The nodes behind the ports of compositions (`name.port`), and behind the first port by the name alone.
        workspace: The settings of the workspace's file.
        files: The pipeline's file and its channel's.
    """

    model: PipelineFile
    settings: PipelineSettings
    nodes: Mapping[str, Node]
    parameters: Mapping[str, Mapping[str, Parameter]] = field(default_factory=dict)
    outputs: Mapping[str, str] = field(default_factory=dict)
    workspace: Workspace | None = None
    files: tuple[Path, ...] = ()

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes.values())

    def __getitem__(self, name: str) -> Node:
        return self.nodes[name]

    @cached_property
    def datasets(self) -> Mapping[str, Dataset]:
        """The datasets of Open Data Fabric that sources read, by source."""
        operators = (cast("SourceNode", node.operator) for node in self if node.is_source)
        return {one.name: Dataset(one, self.settings.places) for one in operators if one.config.dataset and not one.has_own_file}

    @cached_property
    def consumers(self) -> Mapping[str, tuple[Node, ...]]:
        """Who reads each node, in order of declaration."""
        return {node.name: tuple(other for other in self if any(name == node.name for name, _ in other.inputs)) for node in self}

    @cached_property
    def feeding(self) -> frozenset[str]:
        """The state nodes whose last values other nodes take."""
        return frozenset(writer for node in self for writer in node.feeds.values())

    def of_kind(self, kind: str) -> tuple[Node, ...]:
        """All nodes of a type."""
        return tuple(node for node in self if node.kind == kind)

    def upstream(self, name: str) -> tuple[Node, ...]:
        """The nodes that a node depends on, itself left out, in topological order."""
        wanted: set[str] = set()
        stack = [name]
        while stack:
            for above, _ in self.nodes[stack.pop()].inputs:
                if above not in wanted:
                    wanted.add(above)
                    stack.append(above)
        return tuple(node for node in self if node.name in wanted)

    def sources_of(self, name: str) -> tuple[str, ...]:
        """Names of the sources that a node depends on."""
        own = (name,) if self.nodes[name].is_source else ()
        return own + tuple(node.name for node in self.upstream(name) if node.is_source)

    def source_stems(self, name: str) -> dict[str, str]:
        """By the name of each source above a node the stem of its path, empty where it has no single one."""
        return {source: Path(str(self.nodes[source].spec.config.path or "")).stem for source in self.sources_of(name)}

    def persisted(self, node: Node) -> bool:
        """Whether the node's changelog is a table; else it is derived from its inputs when it is read."""
        if self.model.changelog.persist == "all" or node.operator.explain_class != "linear" or node.feeds or node.operator.always_stored:
            return True
        return node.kind in ("source", "output") or not node.operator.deterministic

    def fingerprints(self) -> dict[str, str]:
        """Each node's fingerprint, for the ledger."""
        return {node.name: node.fingerprint() for node in self}

    def hash(self) -> str:
        """64 hex digits of all fingerprints."""
        return hashlib.blake2b(json.dumps(self.fingerprints(), sort_keys=True).encode(), digest_size=32).hexdigest()

    def _repr_html_(self) -> str:
        """The nodes for a notebook."""
        lines = ((node.name, node.kind, ", ".join(dict.fromkeys(name for name, _ in node.inputs))) for node in self)
        rows = "\n".join(f"<tr>{''.join(f'<td>{escape(text)}</td>' for text in line)}</tr>" for line in lines)
        return f"<table>\n<tr><th>node</th><th>type</th><th>reads</th></tr>\n{rows}\n</table>"

    def summary(self) -> dict[str, Any]:
        """The plan for the ledger: by node its fingerprint, type, wiring and columns, so that its tables can be read without the file."""
        return {node.name: self._node_summary(node) for node in self}

    def _node_summary(self, node: Node) -> dict[str, Any]:
        output = node.operator.output
        return {
            "type": node.kind, "fingerprint": node.fingerprint(), "inputs": [list(pair) for pair in node.inputs], "persisted": self.persisted(node),
            "written": written(node.spec), "columns": columns_of(node), "hidden": list(map(list, output.hidden_columns().items())),
            **({"beside": others} if (others := node.beside()) else {}), **({"riders": stored_types(output.riders)} if output.riders else {}),
        }  # fmt: skip
