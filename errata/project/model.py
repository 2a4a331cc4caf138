"""Models of the top level of a pipeline file."""

import sys
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, field_validator

from errata.core.files import binary_size
from errata.project.findings import Findings
from errata.yaml import Document
from operators.core.config import Strict
from operators.core.settings import PipelineSettings, check_path

LEAST = 1 << 30
"""The fewest bytes an engine gets. With less, neither a JVM nor a query works."""


class Memory(Strict):
    """The `memory:` block: limits for the engine."""

    limit: str | int | None = None
    backpressure: Literal["pause", "spill", "both"] = "pause"

    @field_validator("limit")
    @classmethod
    def _is_size(cls, value: str | int | None) -> str | int | None:
        if value is not None and binary_size(value) is None:
            raise ValueError(f"'{value}' is not a size such as 512M or 2G")
        return value

    def for_engine(self, given: int | None) -> int | None:
        """Return the bytes that an engine starts with; None for no limit. `given` is the command line's limit."""
        limit = given or (binary_size(self.limit) if self.limit is not None else None)
        return None if limit is None else max(limit, LEAST)


class Concurrency(Strict):
    """The `concurrency:` block. `threads` limits the engine's cores; `chunk_size` does not change results."""

    threads: Annotated[int | None, Field(ge=1)] = None
    chunk_size: Annotated[int | None, Field(ge=1)] = None
    worker_threads: Annotated[int | None, Field(ge=1)] = None


class OpenLineage(Strict):
    """The file for OpenLineage events, and the namespace of the pipeline's job."""

    path: str
    namespace: str = "errata"


class Metrics(Strict):
    """The `metrics:` block: a metrics file for each run in a folder, the last run as Prometheus text, OpenLineage events."""

    spool_dir: str | None = None
    prometheus: str | None = None
    openlineage: OpenLineage | None = None


class PipelineBlock(Strict):
    """The `pipeline:` block."""

    name: str = Field(pattern=r"^[A-Za-z_][A-Za-z0-9_.-]{0,127}$")
    description: str | None = None
    notes: Any = Field(None, alias="_notes")
    version: str | int | float | None = None
    memory: Memory = Memory()
    vars: dict[str, Any] = Field(default_factory=dict)
    date_formats: list[str] = Field(default_factory=list)
    date_locale: str | None = None
    rules_path: str | None = None
    concurrency: Concurrency = Concurrency()
    batch_size: Annotated[int | None, Field(ge=1)] = None
    metrics: Metrics = Metrics()
    include_provenance: bool | None = None

    @field_validator("memory", mode="before")
    @classmethod
    def _limit_alone(cls, value: Any) -> Any:
        return {"limit": value} if isinstance(value, (str, int)) else value


class Dlq(Strict):
    """The file of rejected records."""

    path: str | None = None
    include_reason: bool = True
    include_source_row: bool = True


class ErrorHandling(Strict):
    """The `error_handling:` block: what happens to records that fail."""

    strategy: Literal["fail_fast", "continue", "best_effort"] = "fail_fast"
    dlq: Dlq = Dlq()
    type_error_threshold: Annotated[float | None, Field(ge=0, le=1)] = None
    max_group_buffer: Annotated[int, Field(ge=0)] = 100_000
    correlation_fanout_policy: Literal["any", "all", "primary"] = "any"
    retraction_scope: Literal["group", "record"] = "group"

    @property
    def group_cap(self) -> int:
        """How many records a correlation group may have. `max_group_buffer: 0` is no limit."""
        return self.max_group_buffer or sys.maxsize


class Changelog(Strict):
    """The `changelog:` block: which nodes store their changelogs."""

    persist: Literal["all", "boundaries"] = "all"


class PipelineFile(Strict):
    """A pipeline file. Its nodes are read one by one, so that each reports its own problems."""

    pipeline: PipelineBlock
    nodes: list[Any]
    error_handling: ErrorHandling = ErrorHandling()
    changelog: Changelog = Changelog()
    notes: Any = Field(None, alias="_notes")


def _text(value: Any) -> Any:
    return str(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else value


class NodeHeader(Strict):
    """The keys of a node other than its wiring."""

    type: str
    name: Annotated[str, BeforeValidator(_text)]
    description: str | None = None
    notes: Any = Field(None, alias="_notes")
    config: Any = None


Place = tuple[str | int, ...]


def check_paths(document: Document, model: PipelineFile, settings: PipelineSettings, findings: Findings) -> None:
    """Report the paths of the pipeline block and the dead letter queue that are not allowed."""

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
