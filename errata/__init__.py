"""Errata: a changelog engine for data that gets corrected.

    project = errata.load("pipeline.yaml")      # raises errata.PipelineErrors
    result = project.run()                       # exit_code, epoch, counts, rejected, outputs, seconds
    project.live("enriched")                     # DataFrame of live state; at=EPOCH
    project.changelog("enriched")                # DataFrame of op rows; epochs=(a, b)

Everything heavy is imported when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from changelog.forms import changelog_stream
    from errata.diagnostics import Diagnostic, PipelineErrors
    from errata.failures import Busy, Failure, Stopped, StorageFailed
    from errata.options import EngineOptions, LogFilter, RunOptions, RunResult
    from errata.project import Project, load

_PLACES = {
    "load": "errata.project", "Project": "errata.project", "PipelineErrors": "errata.diagnostics", "Diagnostic": "errata.diagnostics",
    "RunOptions": "errata.options", "RunResult": "errata.options", "EngineOptions": "errata.options", "LogFilter": "errata.options",
    "Failure": "errata.failures", "Stopped": "errata.failures", "StorageFailed": "errata.failures", "Busy": "errata.failures",
    "changelog_stream": "changelog.forms",
}  # fmt: skip

__all__ = [
    "Busy",
    "Diagnostic",
    "EngineOptions",
    "Failure",
    "LogFilter",
    "PipelineErrors",
    "Project",
    "RunOptions",
    "RunResult",
    "Stopped",
    "StorageFailed",
    "changelog_stream",
    "load",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'errata' has no attribute {name!r}")
    return getattr(import_module(_PLACES[name]), name)
