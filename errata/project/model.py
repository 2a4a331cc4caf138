"""The top level of a pipeline file as models (user guide, "Pipeline YAML Structure", "Error Handling & DLQ"; CONTRACT)."""

import sys
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, field_validator

from errata.core.files import binary_size
from operators.core.config import Strict

LEAST = 1 << 30
"""Bytes that an engine is given at least: neither a JVM nor a query of any size gets on with less."""


class Memory(Strict):
    """Memory hints; they go to the engine (SPEC-DECISIONS, The engine 11)."""

    limit: str | int | None = None
    backpressure: Literal["pause", "spill", "both"] = "pause"

    @field_validator("limit")
    @classmethod
    def _is_size(cls, value: str | int | None) -> str | int | None:
        if value is not None and binary_size(value) is None:
            raise ValueError(f"'{value}' is not a size such as 512M or 2G")
        return value

    def for_engine(self, given: int | None) -> int | None:
        """The bytes that an engine starts with; None: as many as it wants. `given` is what the command line says."""
        limit = given or (binary_size(self.limit) if self.limit is not None else None)
        return None if limit is None else max(limit, LEAST)


class Concurrency(Strict):
    """Thread hints; `threads` bounds the engine's cores, `chunk_size` has no effect on results."""

    threads: Annotated[int | None, Field(ge=1)] = None
    chunk_size: Annotated[int | None, Field(ge=1)] = None
    worker_threads: Annotated[int | None, Field(ge=1)] = None


class OpenLineage(Strict):
    """The file that OpenLineage events are appended to, and the namespace of the pipeline's job."""

    path: str
    namespace: str = "errata"


class Metrics(Strict):
    """What is told of each run: a metrics file in a folder, the last run as Prometheus text, OpenLineage events."""

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
    """What happens to records that fail. `retraction_scope` is Errata's own (SPEC-DECISIONS, The engine 16)."""

    strategy: Literal["fail_fast", "continue", "best_effort"] = "fail_fast"
    dlq: Dlq = Dlq()
    type_error_threshold: Annotated[float | None, Field(ge=0, le=1)] = None
    max_group_buffer: Annotated[int, Field(ge=0)] = 100_000
    correlation_fanout_policy: Literal["any", "all", "primary"] = "any"
    retraction_scope: Literal["group", "record"] = "group"

    @property
    def group_cap(self) -> int:
        """How many records a correlation group may have; `max_group_buffer: 0` sets no bound."""
        return self.max_group_buffer or sys.maxsize


class Changelog(Strict):
    """How much of the changelogs is kept (DESIGN section 8)."""

    persist: Literal["all", "boundaries"] = "all"


class PipelineFile(Strict):
    """A pipeline file without its nodes, which are read one by one so that each reports its own problems."""

    pipeline: PipelineBlock
    nodes: list[Any]
    error_handling: ErrorHandling = ErrorHandling()
    changelog: Changelog = Changelog()
    notes: Any = Field(None, alias="_notes")


def _text(value: Any) -> Any:
    return str(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else value


class NodeHeader(Strict):
    """What every node may have besides its `config` (user guide, "Optional fields on all nodes")."""

    type: str
    name: Annotated[str, BeforeValidator(_text)]
    description: str | None = None
    notes: Any = Field(None, alias="_notes")
    config: Any = None
