"""From the words of a command to a loaded pipeline."""

from typing import TYPE_CHECKING, Any

from errata.cli.console import Console, plural
from errata.cli.events import known_pipeline, known_state
from errata.cli.parameters import PIPELINE_WORDS, pairs
from errata.core.diagnostics import PipelineErrors, did_you_mean
from errata.core.failures import Usage
from storage.engines.machine import require_for_tables

if TYPE_CHECKING:  # the command line starts without what loads a pipeline
    from errata.api.pipeline import Pipeline
    from errata.inspect.snapshot import Snapshot


def load_pipeline(console: Console, words: dict[str, Any], *, commits: bool = False) -> "Pipeline":
    """Load the pipeline that a command's words name, and print its warnings.

    Args:
        words: The command's words. The pipeline's are removed.
        commits: Whether the command may commit an epoch. A failure then reports the last committed one.

    Raises:
        PipelineErrors: The pipeline has errors.
    """
    from errata.api.pipeline import load, stored

    chosen = {name: words.pop(name) for name in PIPELINE_WORDS}
    chosen["variables"] = pairs(chosen["variables"], "variable")
    file = chosen.pop("pipeline")
    try:
        pipeline = load(file, **chosen)
    except PipelineErrors:
        if console.events is not None:
            known_state(console.events, stored(file, chosen["state"]))
        raise
    console.diagnostics(pipeline.diagnostics)
    if console.events is not None:
        known_pipeline(console.events, pipeline)
        console.events.problems(pipeline.diagnostics)
    if commits:
        require_for_tables()
        console.head_epoch = pipeline.head_epoch
    return pipeline


def load_for_reading(console: Console, words: dict[str, Any]) -> "Pipeline | Snapshot":
    """Load the pipeline for a command that only reads its state; the last committed snapshot where the file has errors.

    Raises:
        PipelineErrors: The pipeline has errors, and no run of it was committed.
    """
    from errata.api.pipeline import stored

    require_for_tables()
    given = dict(words)
    try:
        return load_pipeline(console, words)
    except PipelineErrors as errors:
        for name in PIPELINE_WORDS:
            words.pop(name, None)
        snapshot = stored(given["pipeline"], given["state"])
        if snapshot is None:
            raise
        console.note(f"The pipeline file has {plural(len(errors.diagnostics), 'problem')}; this is what its last committed run left.", level="warn")
        return snapshot


def known_node(pipeline: "Pipeline | Snapshot", name: str) -> str:
    """Return the node of a name, of a composition, or of a composition's port. Raises Usage with the nearest name."""
    name = name if name in pipeline.node_names else pipeline.composition_outputs.get(name, name)
    if name not in pipeline.node_names:
        hint = did_you_mean(name, pipeline.node_names) or f"its nodes: {', '.join(pipeline.node_names)}"
        raise Usage(f"the pipeline has no node '{name}'", help=hint)
    return name
