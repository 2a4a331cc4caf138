"""The context of binding a node: the row types of its inputs, the pipeline's settings, the reporter, and the CXL compiler."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from cxl import CxlErrors, Program, SystemTypes, Target, compile_for
from cxl.diagnostics.diagnostics import Diagnostic
from cxl.diagnostics.source import Origin
from cxl.syntax import ast
from cxl.typed.target import Mode
from cxl.typed.tree import System
from cxl.types.types import Schema
from operators.core.config import Watermark
from operators.core.provisional import walked
from operators.core.row_type import META, RowType, is_reserved
from operators.core.run_values import Documents, NodeVariables
from operators.core.settings import NodeSpec, PipelineSettings

ConfigPath = tuple[str | int, ...]
"""A place in the node's YAML: keys and list positions from the node down."""


class Problems(Protocol):
    """Collects diagnostics of one node; all independent ones are reported at once."""

    def report(self, code: str, message: str, path: ConfigPath = (), *, help: str | None = None, on_key: bool = False) -> None:
        """An error at a place of this node's YAML (`on_key`: at the key, not its value)."""

    def report_help(self, code: str, message: str, path: ConfigPath, help_text: str | None = None) -> None:
        """`report` for checkers that hand the help on."""

    def warn(self, code: str, message: str, path: ConfigPath = (), *, help: str | None = None) -> None:
        """A warning at a place of this node's YAML; it does not stop the pipeline."""

    def cxl(self, errors: CxlErrors, path: ConfigPath, labels: Sequence[Any] = ()) -> None:
        """Report the diagnostics of a CXL text at `path`. `labels`: further places to point at."""

    def program(self, path: ConfigPath, text: str, target: Target) -> None:
        """Take note of the CXL text at `path`, and of what it is compiled against."""

    def similar(self, name: str, known: Sequence[str]) -> str | None:
        """A did-you-mean line for a name, or None."""


@dataclass(frozen=True, slots=True)
class Binding:
    """Everything that a node's `bind` reads.

    Attributes:
        inputs: Row types in the order of the spec's inputs.
        sources: Names of the sources upstream.
        watermarks: The watermark of each source.
        reads: Collects the system variables that compiled programs read.
        modules: Collects the modules that they use, with their text.
        documents: Sections of the sources' documents with the types of their fields.
        headers: Sections that are whole segments, with their tags.
    """

    inputs: Sequence[RowType]
    settings: PipelineSettings
    problems: Problems
    sources: Sequence[str] = ()
    watermarks: Mapping[str, Watermark | Literal["none"] | None] = field(default_factory=dict)
    variables: NodeVariables = field(default_factory=NodeVariables)
    reads: set[str] = field(default_factory=set)
    modules: dict[str, str] = field(default_factory=dict)
    documents: Documents = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def input(self) -> RowType:
        """The row type of the only input."""
        return self.inputs[0]

    def compile(self, spec: NodeSpec, path: ConfigPath, text: str, mode: Mode, *, schema: Schema | None = None, generated: bool = False, **target: Any) -> Program | None:
        """Compile the CXL at `path` of the node. Return None after diagnostics were reported.

        `generated`: the text was generated, so its offsets mean nothing. `target`: further fields of `cxl.Target`.
        """
        origin = None if generated or spec.document is None else spec.document.origin((*spec.path, *path))
        given = self.input.data if schema is None else schema
        aim = Target(schema=given, mode=mode, system=self.system(), modules=self.settings.modules, **target)
        if origin is not None:
            self.problems.program(path, text, aim)
        try:
            program = compile_for(text, aim, origin)
            self.reads.update(program.reads_system)
            self.modules.update({module.name: module.normal_text() for module in program.modules})
            if program.warnings and not generated:
                self.problems.cxl(CxlErrors(program.warnings), path)
            named = generated or self._may_emit(program, path, origin)
            return program if self._may_read(program, path, origin) and named else None
        except CxlErrors as errors:
            if generated:
                self.problems.report(errors.diagnostics[0].code, errors.diagnostics[0].message, path)
            else:
                self.problems.cxl(errors, path)
            return None

    def _may_emit(self, program: Program, path: ConfigPath, origin: Origin | None) -> bool:
        """Whether a program emits no reserved names; reports each reserved name."""
        wrong = [one for one in walked(program.syntax.statements) if isinstance(one, ast.Emit) and is_reserved(one.name)]
        for one in {one.name: one for one in reversed(wrong)}.values():
            self.problems.cxl(CxlErrors([Diagnostic("E214", f"'{one.name}' is a name that changelogs use themselves", one.name_span, help="emit it by another name", origin=origin)]), path)
        return not wrong

    def _may_read(self, program: Program, path: ConfigPath, origin: Origin | None) -> bool:
        """Return whether a program reads only variables that are readable here; report the others."""
        found = [(node, self.variables.misreads[node.name]) for node in program.nodes() if isinstance(node, System) and node.name in self.variables.misreads]
        for node, wrong in {node.name: (node, wrong) for node, wrong in reversed(found)}.values():
            if origin is None:
                self.problems.report(wrong.code, wrong.message, path, help=wrong.help)
            else:
                diagnostic = Diagnostic(wrong.code, wrong.message, node.span, help=wrong.help, origin=origin)
                self.problems.cxl(CxlErrors([diagnostic]), path, labels=wrong.labels)
        return not found

    def system(self) -> SystemTypes:
        """Return the system variables that programs of this node may read in addition to the built-in ones."""
        seen = self.variables
        guessed = any(row.guessed for row in self.inputs)
        meta = {name: type_ for row in self.inputs for name, type_ in row.riding(META).items()}
        return SystemTypes(
            vars=seen.of("vars"), pipeline=seen.of("pipeline"), source=seen.of("source"), record=seen.of("record"),
            qualified=seen.qualified, meta=None if guessed else meta, unexposed=seen.unexposed, doc=None if guessed else self.documents or None,
        )  # fmt: skip
