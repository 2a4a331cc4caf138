"""What the planner hands to a node: its place in the pipeline, its configuration, the pipeline's settings."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from cxl.check.modules import NO_MODULES, Modules
from cxl.types.types import Type


class Strict(BaseModel):
    """Base of configuration models: unknown keys are refused (user guide, "Strict parsing")."""

    model_config = ConfigDict(defer_build=True, extra="forbid", frozen=True, populate_by_name=True)


NodeName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_-]{0,127}$")]


@dataclass(frozen=True, slots=True)
class InputRef:
    """An upstream port: `node` or `node.port`; `qualifier` is the input's name in a combine or a composition."""

    node: str
    port: str | None = None
    qualifier: str | None = None

    @classmethod
    def parse(cls, text: str, qualifier: str | None = None) -> "InputRef":
        """Read `node` or `node.port`."""
        node, _, port = text.partition(".")
        return cls(node, port or None, qualifier)

    def __str__(self) -> str:
        return f"{self.node}.{self.port}" if self.port else self.node


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """One node as it was written: `path` is where it stands in the YAML, `document` which file that is (compositions have their own).

    `partial`: the keys of its configuration of which something is wrong, which was reported and left out of `config`.
    """

    name: str
    kind: str
    config: Any
    inputs: tuple[InputRef, ...]
    path: tuple[str | int, ...] = ()
    document: Any = field(default=None, compare=False, repr=False)
    partial: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Variable:
    """A declared variable: scope `vars`, `pipeline`, `source` or `record`; its type; default as a Python value (None: null)."""

    scope: str
    name: str
    type: Type
    default: Any = None
    source: str | None = None


@dataclass(frozen=True, slots=True)
class PipelineSettings:
    """Settings of the `pipeline:` block and of the command line that nodes read.

    `folder` holds the pipeline file: relative paths start there. `variables` are keyed by scope and name; `source_defaults`
    are those of `$source` variables that a channel sets for one source, by source and name. `fetched`: where records of services are kept.
    """

    name: str
    folder: Path
    variables: Mapping[tuple[str, str], Variable] = field(default_factory=dict)
    source_defaults: Mapping[tuple[str, str], Any] = field(default_factory=dict)
    date_formats: tuple[str, ...] = ()
    rules_path: Path | None = None
    allow_absolute_paths: bool = False
    channel: str | None = None
    fail_fast: bool = True
    modules: Modules = NO_MODULES
    fetched: Path | None = None
