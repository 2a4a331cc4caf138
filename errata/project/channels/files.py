"""Channel files: found by `--channel`, and read."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from errata.core.diagnostics import Diagnostic, PipelineErrors, raise_errors
from errata.project.texts import SAVED, Texts
from errata.project.validation import model_problems
from errata.yaml import Document, read_yaml

SUFFIX = ".channel.yaml"
COMPOSITION = ".comp.yaml"


class _Strict(BaseModel):
    model_config = ConfigDict(defer_build=True, extra="forbid", frozen=True, populate_by_name=True)


class _Conditional(_Strict):
    """A part that applies in the environments (`--env`) that `when` names; in all where it names none."""

    when: str | list[str] | None = Field(default=None, description="The environments (--env), one or a list, in which this part applies; by default in all.", examples=[["staging", "production"]])

    def holds(self, environment: str | None) -> bool:
        """Whether it applies in the active environment."""
        names = [self.when] if isinstance(self.when, str) else self.when
        return names is None or environment in names


class VariableEntry(_Conditional):
    """One override or addition of a variable."""

    type: str = Field(description="The type of the variable; an existing one keeps its type (E107).", examples=["int"])
    default: Any = Field(default=None, description="The value of the variable.", examples=[100])


class Identity(_Strict):
    """The `channel:` block."""

    name: str = Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$", description="The name of the channel: {channel} in output paths, and a word for --channel.")
    target: str = Field(description="The path of the pipeline or composition that the channel is for (W104).")
    description: str | None = Field(default=None, description="Text for people; it has no effect.", examples=["The shop in Rome"])


class Knobs(_Conditional):
    """The `config:` block: parameters of compositions by `alias.param`."""

    default: dict[str, Any] = Field(default_factory=dict, description="Values of parameters by alias.parameter that a call's config goes before (W103).", examples=[{"vat.rate": 0.19}])
    fixed: dict[str, Any] = Field(default_factory=dict, description="Values of parameters by alias.parameter that go before a call's config (W103).", examples=[{"vat.rate": 0.07}])


class Variables(_Strict):
    """The `vars:` block: the four registries."""

    static: dict[str, VariableEntry] = Field(default_factory=dict, description="Constants by name, read as $vars.NAME.", examples=[{"rate": {"type": "float", "default": 0.07}}])
    pipeline: dict[str, VariableEntry] = Field(default_factory=dict, description="Variables by name, read as $pipeline.NAME.", examples=[{"limit": {"type": "int", "default": 100}}])
    source: dict[str, dict[str, VariableEntry]] = Field(default_factory=dict, description="Variables by source and name, read as $source.NAME (E111).", examples=[{"orders": {"seen": {"type": "int", "default": 0}}}])
    record: dict[str, VariableEntry] = Field(default_factory=dict, description="Variables by name, read as $record.NAME.", examples=[{"label": {"type": "string", "default": "new"}}])


class ChannelFile(_Conditional):
    """A channel file. Where it does not apply, only its name counts."""

    channel: Identity = Field(description="The name of the channel, and what it is for.")
    config: Knobs = Field(default=Knobs(), description="Values of parameters of compositions.", examples=[{"fixed": {"vat.rate": 0.07}}])
    vars: Variables = Field(default=Variables(), description="Variables that get another value, or are added (E109, E110).", examples=[{"static": {"rate": {"type": "float", "default": 0.07}}}])
    resources: Any = Field(default=None, description="Accepted; it has no effect.", examples=[{"team": "sales"}])
    notes: Any = Field(default=None, alias="_notes", description="Any value, for people and tools; it has no effect.", examples=[{"owner": "sales"}])


@dataclass(frozen=True, slots=True)
class Channel:
    """A channel file, and its document for the places of diagnostics."""

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


def find_channel(given: str | Path, pipeline: Path, workspace: Path, *, env: Mapping[str, str] | None = None) -> Path:
    """Return the file that `--channel` names.

    It is a path, from the working directory or the pipeline's folder; or the name, or `channel.name`, of a file in a `channels`
    folder of the workspace or beside the pipeline. Raises PipelineErrors.
    """
    folders = [workspace / "channels", pipeline.parent / "channels"]
    places = [Path(given), pipeline.parent / given, *(folder / f"{given}{SUFFIX}" for folder in folders)]
    found = next((place for place in places if place.is_file()), None)
    return found or _called(os.fspath(given), {path.resolve(): path for folder in reversed(folders) for path in sorted(folder.glob(f"*{SUFFIX}"))}, env)


def _called(name: str, files: Mapping[Path, Path], env: Mapping[str, str] | None) -> Path:
    """The channel file with this `channel.name`. Raises PipelineErrors."""
    found = [path for path in files.values() if _name_in(path, env) == name]
    if len(found) == 1:
        return found[0]
    if found:
        message = f"several channel files are called '{name}': {', '.join(map(str, sorted(found)))}"
        raise PipelineErrors([Diagnostic("FILE-001", message, file=name, help="give the path of the one that is meant")])
    known = sorted({path.name.removesuffix(SUFFIX) for path in files.values()})
    help_line = f"channels here: {', '.join(known)}" if known else ""
    raise PipelineErrors([Diagnostic("FILE-001", f"there is no channel file {name}", file=name, help=help_line)])


def _name_in(path: Path, env: Mapping[str, str] | None) -> object:
    """The `channel.name` of a file, None where it has none."""
    content: Any = read_yaml(path, env=env).value
    identity = content.get("channel") if isinstance(content, dict) else None
    return identity.get("name") if isinstance(identity, dict) else None


def load_channel(path: Path, *, env: Mapping[str, str] | None = None, texts: Texts = SAVED) -> Channel:
    """Read a channel file. Raises PipelineErrors: no YAML, unknown keys, E109."""
    document = texts.yaml(path, env)
    raise_errors(document.diagnostics)
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
