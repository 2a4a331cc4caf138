"""What a node is bound with: the row types of its inputs, the pipeline's settings, the reporter, and the CXL compiler."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cxl import CxlErrors, Program, SystemTypes, compile_program
from cxl.resolve import Mode
from cxl.types import Schema, Type
from operators.problems import ConfigPath, Problems
from operators.rows import META, RowType
from operators.settings import NodeSpec, PipelineSettings


@dataclass(frozen=True, slots=True)
class Binding:
    """Everything a node's `bind` reads. `inputs` are in the order of the spec's inputs; `sources` are those upstream by name."""

    inputs: Sequence[RowType]
    settings: PipelineSettings
    problems: Problems
    sources: Sequence[str] = ()

    @property
    def input(self) -> RowType:
        """The row type of the only input."""
        return self.inputs[0]

    def compile(self, spec: NodeSpec, path: ConfigPath, text: str, mode: Mode, *, schema: Schema | None = None, generated: bool = False, **target: Any) -> Program | None:
        """Compile the CXL that stands at `path` of the node; None when its diagnostics were reported.

        `generated`: the text was made from what stands there, so its offsets mean nothing. `target`: further fields of `cxl.Target`.
        """
        origin = None if generated or spec.document is None else spec.document.origin((*spec.path, *path))
        given = self.input.data if schema is None else schema
        try:
            return compile_program(text, given, mode=mode, origin=origin, system=self.system(), modules=self.settings.modules, **target)
        except CxlErrors as errors:
            if generated:
                self.problems.report(errors.diagnostics[0].code, errors.diagnostics[0].message, path)
            else:
                self.problems.cxl(errors, path)
            return None

    def system(self) -> SystemTypes:
        """System variables that programs of this node may read besides the built-in ones."""
        scopes: dict[str, dict[str, Type]] = {"vars": {}, "pipeline": {}, "source": {}, "record": {}}
        for (scope, name), variable in self.settings.variables.items():
            scopes[scope][name] = variable.type
        meta = {name: type_ for row in self.inputs for name, type_ in row.riding(META).items()}
        return SystemTypes(**scopes, meta=meta)
