"""`--dry-run -n N`: the first records of each source through the whole pipeline, printed, nothing kept (user guide, "Record preview")."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from errata.core.events import RunResult
from errata.core.options import RunOptions
from errata.plan.plan import Plan

if TYPE_CHECKING:
    from errata.api.pipeline import Pipeline

HEADING = "# {name}\n"


def preview(project: Pipeline, options: RunOptions) -> RunResult:
    """Run the first `options.preview` records of each source in a state of its own; every output in its own form.

    The text goes to `options.preview_output`, or into the result for standard output. Raises Failure.
    """
    from errata.api.pipeline import Pipeline as Loaded
    from errata.execution.engine import with_workspace
    from errata.execution.epoch import run_once

    with tempfile.TemporaryDirectory(prefix="errata-preview-") as folder:
        plan = limited(project.plan, options.preview or 1, Path(folder))
        state = project.ephemeral().state
        try:
            result = run_once(Loaded(plan, state, ()), replace(options, dry_run=False, force=True, engine=with_workspace(options.engine, project.plan)))
        finally:
            state.forget()
        text = "".join(_texts(plan, result))
    if options.preview_output is None:
        return replace(result, preview=text, committed=False)
    from errata.core.files import replace_file

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
        files = sorted(path.parent.glob(f"{path.stem}*")) if not path.exists() else [path]
        if len(result.outputs) > 1:
            yield HEADING.format(name=name)
        yield from (one.read_text(encoding="utf-8") for one in files)
