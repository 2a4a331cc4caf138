"""Channel files: finding the one that `--channel` names, and reading it (user guide, "Channel manifest")."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from errata.diagnostics import Diagnostic, PipelineErrors
from errata.models import model_problems
from errata.yaml import Document, load_yaml

SUFFIX = ".channel.yaml"
COMPOSITION = ".comp.yaml"


class _Strict(BaseModel):
    model_config = ConfigDict(defer_build=True, extra="forbid", frozen=True, populate_by_name=True)


class _Conditional(_Strict):
    """What holds in some environments (`--env`) only, those that `when` names; none: in all."""

    when: str | list[str] | None = None

    def holds(self, environment: str | None) -> bool:
        """Whether it counts in the active environment."""
        names = [self.when] if isinstance(self.when, str) else self.when
        return names is None or environment in names


class VariableEntry(_Conditional):
    """One override or addition."""

    type: str
    default: Any = None


class Identity(_Strict):
    """The `channel:` block."""

    name: str = Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$")
    target: str
    description: str | None = None


class Knobs(_Conditional):
    """The `config:` block: parameters of compositions by `alias.param`."""

    default: dict[str, Any] = Field(default_factory=dict)
    fixed: dict[str, Any] = Field(default_factory=dict)


class Variables(_Strict):
    """The `vars:` block: the four registries."""

    static: dict[str, VariableEntry] = Field(default_factory=dict)
    pipeline: dict[str, VariableEntry] = Field(default_factory=dict)
    source: dict[str, dict[str, VariableEntry]] = Field(default_factory=dict)
    record: dict[str, VariableEntry] = Field(default_factory=dict)


class ChannelFile(_Conditional):
    """A channel file. Where it does not hold it changes nothing, and its name alone counts."""

    channel: Identity
    config: Knobs = Knobs()
    vars: Variables = Variables()
    resources: Any = None
    notes: Any = Field(None, alias="_notes")


@dataclass(frozen=True, slots=True)
class Channel:
    """A channel file that was read, with its document for the places of diagnostics."""

    content: ChannelFile
    document: Document

    @property
    def name(self) -> str:
        """The channel's name, `{channel}` in output paths."""
        return self.content.channel.name

    @property
    def for_composition(self) -> bool:
        """Whether the target is a composition."""
        return self.content.channel.target.endswith(COMPOSITION)


def find_channel(given: str | Path, pipeline: Path, workspace: Path) -> Path:
    """The file that `--channel` names: a path, or the name of a file in the workspace's `channels` folder.

    A path is looked for from the working directory, then from the pipeline's folder. Raises PipelineErrors.
    """
    name = f"{given}{SUFFIX}"
    places = [Path(given), pipeline.parent / given, workspace / "channels" / name, pipeline.parent / "channels" / name]
    found = next((place for place in places if place.is_file()), None)
    if found is None:
        known = sorted({path.name.removesuffix(SUFFIX) for path in (workspace / "channels").glob(f"*{SUFFIX}")})
        help_line = f"channels here: {', '.join(known)}" if known else ""
        raise PipelineErrors([Diagnostic("FILE-001", f"there is no channel file {given}", file=os.fspath(given), help=help_line)])
    return found


def load_channel(path: Path, *, env: Mapping[str, str] | None = None) -> Channel:
    """Read a channel file. Raises PipelineErrors: no YAML, unknown keys, E109."""
    document = load_yaml(path, env=env)
    try:
        content = ChannelFile.model_validate(document.value)
    except ValidationError as error:
        raise PipelineErrors(model_problems(error, document, (), ChannelFile)) from None
    channel = Channel(content, document)
    if channel.for_composition and content.vars != Variables():
        message = "a channel of a composition cannot carry variables"
        help_line = "move the variables to a channel whose target is a pipeline"
        raise PipelineErrors([document.error(("vars",), "E109", message, key=True, help=help_line)])
    return channel
