"""From a command's words to a loaded project."""

from typing import Any, cast

from errata.cli.application import Loader, Pipeline
from errata.cli.console import Console
from errata.cli.parameters import PROJECT_WORDS, pairs
from errata.core.failures import Usage


def project_of(console: Console, words: dict[str, Any], *, commits: bool = False) -> Pipeline:
    """The project that a command's words name; they are taken out of `words`. Its warnings are told.

    `commits`: the command may commit an epoch, so a failure tells which one stands. Raises PipelineErrors.
    """
    from errata.api.pipeline import load

    chosen = {name: words.pop(name) for name in PROJECT_WORDS}
    chosen["variables"] = pairs(chosen["variables"], "variable")
    project = cast("Loader", load)(chosen.pop("pipeline"), **chosen)
    console.diagnostics(project.diagnostics)
    if commits:
        _state_can_be_read()
        console.standing = project.head_epoch
    return project


def reading_of(console: Console, words: dict[str, Any]) -> Any:
    """What a command that only looks reads: the project, or what its state tells where the pipeline file cannot be planned just now.

    Raises PipelineErrors where there is no state either.
    """
    from errata.api import pipeline as application
    from errata.core.diagnostics import PipelineErrors

    _state_can_be_read()
    kept = dict(words)
    try:
        return project_of(console, words)
    except PipelineErrors as errors:
        for name in PROJECT_WORDS:
            words.pop(name, None)
        stored = application.stored(kept["pipeline"], kept["state"])
        if stored is None:
            raise
        console.note(f"The pipeline file has {len(errors.diagnostics)} problems; this is what its last committed run left.", level="warn")
        return stored


def _state_can_be_read() -> None:
    """Raise EngineUnavailable where this process may not have what that takes, before any library is loaded for it."""
    from storage.engines.process_limits import enough_for_tables

    enough_for_tables()


def known_node(project: Pipeline, name: str) -> str:
    """The name, if the pipeline has such a node; of a composition or its port, that of the node behind. Raises Usage with the nearest name."""
    from errata.core.diagnostics import did_you_mean

    name = name if name in project.node_names else project.composition_outputs.get(name, name)
    if name not in project.node_names:
        hint = did_you_mean(name, project.node_names) or f"its nodes: {', '.join(project.node_names)}"
        raise Usage(f"the pipeline has no node '{name}'", help=hint)
    return name
