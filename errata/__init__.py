"""Errata: a changelog engine for data that gets corrected.

    pipeline = errata.load("pipeline.yaml")     # raises errata.PipelineErrors
    result = pipeline.run()                      # exit_code, epoch, counts, rejected, outputs, seconds
    pipeline.live("enriched")                    # DataFrame of live rows; at=EPOCH
    pipeline.changelog("enriched")               # DataFrame of op rows; epochs=(a, b)

Heavy libraries are imported on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from changelog.forms.frames import changelog_stream
    from errata.api.pipeline import Pipeline, load, run
    from errata.core.diagnostics import Diagnostic, PipelineErrors
    from errata.core.events import RunResult
    from errata.core.failures import Busy, Failure, Stopped, StorageFailed, Usage
    from errata.core.node_rows import NodeRows
    from errata.core.options import Correction, EngineOptions, LogFilter, RunOptions

_PLACES = {
    "load": "errata.api.pipeline", "run": "errata.api.pipeline", "Pipeline": "errata.api.pipeline", "PipelineErrors": "errata.core.diagnostics", "Diagnostic": "errata.core.diagnostics",
    "RunOptions": "errata.core.options", "RunResult": "errata.core.events", "Correction": "errata.core.options", "EngineOptions": "errata.core.options", "LogFilter": "errata.core.options",
    "Failure": "errata.core.failures", "Stopped": "errata.core.failures", "StorageFailed": "errata.core.failures", "Busy": "errata.core.failures",
    "Usage": "errata.core.failures", "NodeRows": "errata.core.node_rows",
    "changelog_stream": "changelog.forms.frames",
}  # fmt: skip

__all__ = [
    "Busy",
    "Correction",
    "Diagnostic",
    "EngineOptions",
    "Failure",
    "LogFilter",
    "NodeRows",
    "Pipeline",
    "PipelineErrors",
    "RunOptions",
    "RunResult",
    "Stopped",
    "StorageFailed",
    "Usage",
    "changelog_stream",
    "load",
    "run",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'errata' has no attribute {name!r}")
    return getattr(import_module(_PLACES[name]), name)
