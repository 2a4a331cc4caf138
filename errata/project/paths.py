"""Paths that the pipeline itself names, not a node of it: where modules of CXL lie, where rejects and what is told of runs are written."""

from collections.abc import Iterator

from errata.project.findings import Findings
from errata.project.model import PipelineFile
from errata.yaml.document import Document
from operators.core.settings import PipelineSettings, check_path

Place = tuple[str | int, ...]


def check_paths(document: Document, model: PipelineFile, settings: PipelineSettings, findings: Findings) -> None:
    """Report the paths that may not stand in a pipeline file."""

    def report(code: str, message: str, place: Place, help_text: str | None = None) -> None:
        findings.diagnostics.append(document.error(place, code, message, help=help_text or ""))

    for place, path in _named(model):
        if path is not None:
            check_path(path, place, report, settings)


def _named(model: PipelineFile) -> Iterator[tuple[Place, str | None]]:
    metrics = model.pipeline.metrics
    yield ("pipeline", "rules_path"), model.pipeline.rules_path
    yield ("error_handling", "dlq", "path"), model.error_handling.dlq.path
    yield ("pipeline", "metrics", "spool_dir"), metrics.spool_dir
    yield ("pipeline", "metrics", "prometheus"), metrics.prometheus
    yield ("pipeline", "metrics", "openlineage", "path"), metrics.openlineage.path if metrics.openlineage else None
