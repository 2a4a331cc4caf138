"""A pipeline file with what is around it: workspace, channel, rules, state. From here it is planned."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

from cxl.types.types import parse_type
from errata.core.diagnostics import raise_errors
from errata.core.env_references import note_secret, process_environment
from errata.plan.own_files import ProtectedFiles, check_targets
from errata.plan.pipeline import LoadedPipeline
from errata.plan.planner import Draft, finished, make_draft
from errata.plan.reached_tables import check_tables, reach_tables
from errata.plan.source_inputs import fetched_below
from errata.project.channels.files import find_channel, load_channel
from errata.project.channels.overlay import Overlay, apply
from errata.project.findings import Findings
from errata.project.texts import SAVED, Texts
from errata.project.variables import precision_of, read_value
from errata.project.workspace import Workspace, find_workspace
from errata.yaml import Document
from operators.core.settings import GivenRows, PipelineSettings
from storage.state.location import State, state_of


@dataclass(frozen=True, slots=True)
class Choices:
    """The choices with which a pipeline is opened.

    Args:
        variables: Values of declared variables, by name.
        base_dir: Where relative paths of the pipeline start.
        environment: The active environment.
        texts: How the project's own files are read.
        given: Rows that a program hands to sources, by source.
    """

    channel: str | Path | None = None
    variables: Mapping[str, Any] | None = None
    base_dir: str | Path | None = None
    environment: str | None = None
    rules_path: str | Path | None = None
    allow_absolute_paths: bool = False
    state: str | None = None
    texts: Texts = SAVED
    given: Mapping[str, GivenRows] = field(default_factory=dict)


@dataclass(frozen=True)
class OpenedPipeline:
    """A pipeline file that was read, and what its nodes are bound with. What is wrong is in `findings`."""

    file: Path
    document: Document
    workspace: Workspace
    settings: PipelineSettings
    state: State
    findings: Findings
    choices: Choices
    overlay: Overlay | None = None

    def draft(self) -> Draft | None:
        """Return the nodes as far as they can be bound; None where the file is no pipeline."""
        layers = self.overlay.layers if self.overlay else {}
        environment = process_environment(self.choices.environment)
        return make_draft(
            self.document, self.settings, dict(self.choices.variables or {}), self.findings, environment=environment, layers=layers, texts=self.choices.texts
        )

    def loaded(self, draft: Draft | None) -> LoadedPipeline:
        """Return the planned pipeline of a draft. Raises PipelineErrors with every independent problem."""
        if draft is None:
            raise_errors(self.findings.diagnostics)
            raise AssertionError("a file that is no pipeline has a diagnostic")
        plan = finished(draft, self.document, self.findings)
        plan = replace(plan, workspace=self.workspace, files=(self.file, *([Path(self.overlay.file)] if self.overlay else [])))
        reach_tables(plan, self.state)
        self.findings.diagnostics.extend(check_tables(plan, self.state))
        self.findings.diagnostics.extend(check_targets(ProtectedFiles(plan, self.state, inputs=False), self.document))
        raise_errors(self.findings.diagnostics)
        return LoadedPipeline(plan, self.state, tuple(self.findings.diagnostics), self.document)


def open_pipeline(file: Path, choices: Choices, findings: Findings | None = None) -> OpenedPipeline:
    """Read a pipeline file and what is around it. Raises PipelineErrors: the workspace's or the channel's file cannot be used.

    Args:
        findings: Where diagnostics go.
    """
    variables_of_process = process_environment(choices.environment)
    document = choices.texts.yaml(file, variables_of_process)
    findings = Findings() if findings is None else findings
    findings.diagnostics.extend(document.diagnostics)
    workspace = find_workspace(file)
    findings.diagnostics.extend(workspace.warnings)
    overlay = None if choices.channel is None else _channel_overlay(choices, document, file, workspace.folder)
    findings.diagnostics.extend(overlay.diagnostics if overlay else ())
    folder = Path(choices.base_dir).resolve() if choices.base_dir else file.resolve().parent
    rules = _rules_folder(choices.rules_path, document.value, (folder, file.resolve().parent, workspace.folder))
    name = pipeline_name(document.value)
    place = state_place(name, workspace, choices.state)
    settings = PipelineSettings(
        name, folder, fetched=fetched_below(place), connections=workspace.connections(variables_of_process), stores=workspace.stores(variables_of_process), allow_absolute_paths=choices.allow_absolute_paths,
        channel=overlay.channel if overlay else None, modules=choices.texts.modules(rules),
        source_defaults=_source_defaults(overlay, choices.variables or {}) if overlay else {}, given=choices.given,
    )  # fmt: skip
    databases, stores = settings.connections.values(), settings.stores.connections
    for secret in chain(*(one.secrets() for one in databases), *(one.secrets() for one in stores)):
        note_secret(secret)
    return OpenedPipeline(file, document, workspace, settings, place, findings, choices, overlay)


def state_place(name: str, workspace: Workspace, given: str | None) -> State:
    """Return where the state of a pipeline is: what was given goes before the environment, that before the workspace's file."""
    stores = workspace.stores(process_environment(None))
    return state_of(name, workspace.folder, named=given or os.environ.get("ERRATA_STATE") or None, configured=workspace.settings.state.path, stores=stores)


def pipeline_name(value: Any) -> str:
    """Return the name in the text of a pipeline; empty where there is none."""
    block = value.get("pipeline") if isinstance(value, dict) else None
    return str(block.get("name", "")) if isinstance(block, dict) else ""


def _rules_folder(given: str | Path | None, value: Any, folders: Sequence[Path]) -> Path:
    """`--rules-path`, else `pipeline.rules_path` below the first folder, else the first folder's `rules/` that exists."""
    if given is not None:
        return Path(given)
    block = value.get("pipeline") if isinstance(value, dict) else None
    configured = block.get("rules_path") if isinstance(block, dict) else None
    if isinstance(configured, str):
        return folders[0] / configured
    return next((place for folder in folders if (place := folder / "rules").is_dir()), folders[0] / "rules")


def _channel_overlay(choices: Choices, document: Document, file: Path, workspace: Path) -> Overlay:
    """A channel laid over the pipeline's document."""
    variables = process_environment(choices.environment)
    named = choices.channel or ""
    found = Path(named) if choices.texts.text(named) is not None else find_channel(named, file, workspace, env=variables)
    return apply(load_channel(found, env=variables, texts=choices.texts), document, file, workspace, choices.environment)


def _source_defaults(overlay: Overlay, given: Mapping[str, Any]) -> dict[tuple[str, str], Any]:
    """The defaults of `$source` variables that a channel gives to single sources, as values; it has checked them. The command line goes before it."""
    channels = {key: one for key, one in overlay.source_variables.items() if f"source.{key[1]}" not in given}
    return {key: read_value(default, parse_type(type_).base, precision_of(type_)) for key, (type_, default) in channels.items()}
