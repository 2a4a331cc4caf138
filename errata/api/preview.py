"""`--dry-run`: nothing is read, or with `-n N` the first records of each source through the whole pipeline, printed; nothing is stored."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from errata.core.events import RunResult
from errata.core.failures import StorageFailed
from errata.core.files import replace_file
from errata.core.options import RunOptions
from errata.execution.engine import with_workspace
from errata.execution.run import run
from errata.inspect.next_run import would_stop
from errata.plan.pipeline import LoadedPipeline
from errata.plan.plan import Plan
from errata.state.source_files import look_at_sources
from errata.telemetry.metrics import measured

HEADING = "# {name}\n"


def dry_run(pipeline: LoadedPipeline, options: RunOptions) -> RunResult:
    """Look at the sources' files only, or preview their first records. Raises Failure.

    Returns:
        The result. Without a preview its message says why the run would stop although no row changes.
    """
    if options.preview is not None:
        return preview(pipeline, options)
    try:
        look_at_sources(pipeline.plan, {})
        return RunResult(exit_code=0, message=would_stop(pipeline, options))
    except StorageFailed as error:
        return RunResult(exit_code=1, message=error.message)


def preview(pipeline: LoadedPipeline, options: RunOptions) -> RunResult:
    """Run the first `options.preview` records of each source in a state of its own; every output in its own format.

    Returns:
        The result, with the text in `preview` unless `options.preview_output` names a file for it.

    Raises:
        Failure: The run failed.
    """
    with tempfile.TemporaryDirectory(prefix="errata-preview-") as folder:
        plan = limited(pipeline.plan, options.preview or 1, Path(folder))
        loaded = LoadedPipeline(plan, pipeline.with_temporary_state().state)
        known = replace(options, dry_run=False, force=True, engine=with_workspace(options.engine, pipeline.plan))
        try:
            result = measured(loaded, known, lambda heard: run(loaded, heard))
        finally:
            loaded.state.forget()
        text = "".join(_texts(plan, result))
    if options.preview_output is None:
        return replace(result, preview=text, committed=False)
    replace_file(options.preview_output, text)
    return replace(result, committed=False)


def limited(plan: Plan, records: int, folder: Path) -> Plan:
    """The plan with sources cut to their first records and everything that is written going to a folder."""
    nodes = {node.name: replace(node, operator=node.operator.previewed(records, folder)) for node in plan}
    dlq = plan.model.error_handling.dlq.model_copy(update={"path": None})
    handling = plan.model.error_handling.model_copy(update={"dlq": dlq})
    return Plan(plan.model.model_copy(update={"error_handling": handling}), plan.settings, nodes)


def _texts(plan: Plan, result: RunResult) -> Iterator[str]:
    """The preview of each output, under its name where there are several."""
    for name, path in result.outputs.items():
        assert isinstance(path, Path)  # `limited` has outputs written to a folder
        [file] = path.parent.iterdir()  # one part where it is split
        if len(result.outputs) > 1:
            yield HEADING.format(name=name)
        yield file.read_text(encoding="utf-8")
