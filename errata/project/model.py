"""Models of the top level of a pipeline file."""

import sys
from collections.abc import Iterator
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field, SecretStr, field_validator

from errata.core.files import binary_size
from errata.project.findings import Findings
from errata.yaml import Document
from operators.core.config import Strict, microseconds
from operators.core.settings import PipelineSettings, check_path
from operators.expect.config import Expectation

LEAST = 1 << 30
"""The fewest bytes an engine gets. With less, neither a JVM nor a query works."""


class Memory(Strict):
    """The `memory:` block: limits for the engine."""

    limit: str | int | None = Field(
        default=None, description="What the engine starts with: bytes, or a size such as 512M or 2G; at least 1 GiB. Without it the machine's memory is the limit (E310).", examples=["4G"]
    )
    backpressure: Literal["pause", "spill", "both"] = Field(default="pause", description="Accepted; it has no effect on results.")

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

    threads: Annotated[int | None, Field(ge=1)] = Field(default=None, description="Cores that the engine uses; by default all. The number changes no byte of the results.", examples=[4])
    chunk_size: Annotated[int | None, Field(ge=1)] = Field(default=None, description="Accepted; it has no effect.", examples=[1000])
    worker_threads: Annotated[int | None, Field(ge=1)] = Field(default=None, description="Accepted; it has no effect.", examples=[4])


class OpenLineage(Strict):
    """The file for OpenLineage events, and the namespace of the pipeline's job."""

    path: str = Field(description="The file to which each run appends its OpenLineage events, one JSON object a line.", examples=["out/lineage.jsonl"])
    namespace: str = Field(default="errata", description="The namespace of the pipeline's job in these events.", examples=["shop"])


class Metrics(Strict):
    """The `metrics:` block: a metrics file for each run in a folder, the last run as Prometheus text, OpenLineage events."""

    spool_dir: str | None = Field(default=None, description="The folder in which each run writes one metrics file.", examples=["metrics"])
    prometheus: str | None = Field(default=None, description="The file that holds the metrics of the last run as Prometheus text.", examples=["metrics/errata.prom"])
    openlineage: OpenLineage | None = Field(default=None, description="Where OpenLineage events are written, and under which namespace.", examples=[{"path": "out/lineage.jsonl"}])


class PipelineBlock(Strict):
    """The `pipeline:` block."""

    name: str = Field(
        pattern=r"^[A-Za-z_][A-Za-z0-9_.-]{0,127}$", description="The name of the pipeline. It names the state folder too, so another name begins with an empty state."
    )
    description: str | None = Field(default=None, description="Text for people; it has no effect.", examples=["Revenue by region"])
    notes: Any = Field(default=None, alias="_notes", description="Any value, for people and tools; it has no effect and is no part of a fingerprint.", examples=[{"owner": "sales"}])
    version: str | int | float | None = Field(default=None, description="Text or a number for people; it has no effect.", examples=["1.2"])
    memory: Memory = Field(default=Memory(), description="Limits for the engine's memory; a size alone is the limit.", examples=[{"limit": "4G"}])
    vars: dict[str, Any] = Field(
        default_factory=dict, description="Declared variables: constants by name, and variables in the groups pipeline, source and record (E201, E202, E203, E204)."
    )
    date_formats: list[str] = Field(default_factory=list, description="Formats of dates and times, such as %d.%m.%Y, that are tried before the built-in ones.", examples=[["%d.%m.%Y"]])
    date_locale: str | None = Field(default=None, description="Accepted; it has no effect.", examples=["en_GB"])
    rules_path: str | None = Field(default=None, description="The folder of CXL modules that programs read by use; by default rules.", examples=["shared/rules"])
    concurrency: Concurrency = Field(default=Concurrency(), description="How many cores the engine uses.", examples=[{"threads": 4}])
    batch_size: Annotated[int | None, Field(ge=1)] = Field(default=None, description="Accepted; it has no effect.", examples=[1000])
    metrics: Metrics = Field(default=Metrics(), description="Files with figures of the runs, for monitoring.", examples=[{"prometheus": "metrics/errata.prom"}])
    include_provenance: bool | None = Field(default=None, description="Accepted; it has no effect. The state has the provenance of every row, and errata why shows it.")

    @field_validator("memory", mode="before")
    @classmethod
    def _limit_alone(cls, value: Any) -> Any:
        return {"limit": value} if isinstance(value, (str, int)) else value


Category = Literal[
    "type_coercion_failure", "malformed_record", "validation_failure", "expectation_failed", "expansion_limit_exceeded", "nan_in_output_field", "aggregate_type_error",
    "aggregate_finalize", "combine_output_row", "combine_missing_match", "late_record", "retraction_of_unknown_key", "unknown_operation", "correction_of_unknown_key",
    "null_primary_key", "null_event_time", "null_version", "unavailable_value", "null_scope", "out_of_scope", "correlated", "group_size_exceeded",
]  # fmt: skip
"""The categories of rejected records."""


class Dlq(Strict):
    """The file of rejected records."""

    path: str | None = Field(default=None, description="A CSV file that holds all live rejects; without it they are in the state only (errata dlq).")
    include_reason: bool = Field(default=True, description="Whether the file has the columns for category and message of each reject.")
    include_source_row: bool = Field(default=True, description="Whether the file has the columns of the rejected source record.")


class CategoryThreshold(Strict):
    """How many records may stand rejected in one category."""

    records: Annotated[int | None, Field(ge=0)] = Field(default=None, description="The most rejected records of the category; more ends the run with exit code 3.")
    share: Annotated[float | None, Field(ge=0, le=1)] = Field(
        default=None, description="The share of them in all records read, from 0 to 1, beyond which the run ends with exit code 3.", examples=[0.01]
    )


class ErrorHandling(Strict):
    """The `error_handling:` block: what happens to records that fail."""

    strategy: Literal["fail_fast", "continue", "best_effort"] = Field(
        default="fail_fast", description="fail_fast ends the run with exit code 3 at the first failing record; continue and best_effort reject the record and go on."
    )
    dlq: Dlq = Field(default=Dlq(), description="A file for rejected records, and what is in it.")
    type_error_threshold: Annotated[float | None, Field(ge=0, le=1)] = Field(
        default=None, description="The share of failing records in all records read, from 0 to 1, beyond which the run ends with exit code 3; by default no limit.", examples=[0.05]
    )
    thresholds: dict[Category, CategoryThreshold] = Field(
        default_factory=dict, description="Thresholds by category of rejection. Waived records count for none."
    )
    max_group_buffer: Annotated[int, Field(ge=0)] = Field(
        default=100_000, description="The most records that a correlation group may have, over all sources; a larger one is rejected whole. 0 is no limit."
    )
    correlation_fanout_policy: Literal["any", "all", "primary"] = Field(
        default="any", description="Which fields of a correlation key make the group: any and all take all of them, primary takes the first one."
    )
    retraction_scope: Literal["group", "record"] = Field(
        default="group", description="What goes when a row behind a relaxed aggregate fails: the whole group, or the failing record alone."
    )

    @property
    def group_cap(self) -> int:
        """How many records a correlation group may have. `max_group_buffer: 0` is no limit."""
        return self.max_group_buffer or sys.maxsize


class Changelog(Strict):
    """The `changelog:` block: which nodes store their changelogs."""

    persist: Literal["all", "boundaries"] = Field(
        default="all", description="all keeps a table for every node; boundaries keeps tables of sources, stateful nodes and outputs, and derives the others on demand."
    )


def _seconds(value: Any) -> Any:
    return microseconds(value) / 1_000_000 if isinstance(value, str) else value


class Notify(Strict):
    """One entry of `notify:`: a receiver, and the runs that it hears about."""

    url: str | None = Field(default=None, description="Where a JSON message is posted, https:// or http://; secrets by ${secret:NAME} (E490).", examples=["https://hooks.example/errata"])
    command: list[str] | None = Field(default=None, min_length=1, description="A program and its arguments, which gets the message on its standard input; no shell is between (E490).")
    secret: SecretStr | None = Field(default=None, description="The key of the signature (HMAC-SHA256) in the header Errata-Signature; write ${secret:NAME}.", examples=["${secret:HOOK}"])
    on: list[Literal["changed", "unchanged", "failed"]] = Field(
        default=["changed"], min_length=1, description="The runs to report: changed, unchanged (a run that ended well without a change of the nodes), failed.", examples=[["changed", "failed"]]
    )
    nodes: list[str] = Field(default_factory=list, description="The nodes whose changes count; by default all outputs (E490).")
    causes: list[str] = Field(default_factory=list, description="Causes of changes in sources, or what they begin with; by default all.")
    min_share: float = Field(default=0, ge=0, le=1, description="The least share of changed rows, from 0 to 1, in one of the nodes.", examples=[0.01])
    timeout: Annotated[float, BeforeValidator(_seconds, json_schema_input_type=str | float), Field(gt=0, le=300)] = Field(
        default=10, description="How long a message takes at most, with all tries: seconds, or a duration such as 10s.", examples=["30s"]
    )
    tries: int = Field(default=3, ge=1, le=10, description="How often a message is posted that nobody took.", examples=[5])


def receiver_fault(notify: Notify) -> str | None:
    """The fault of the receiver of notifications; None where there is none."""
    if (notify.url is None) == (notify.command is None):
        return "a notification has one receiver: 'url' or 'command'"
    if notify.command is not None and notify.secret is not None:
        return "a command gets no signature: leave 'secret' out"
    if notify.url is None:
        return None
    try:
        parts = urlsplit(notify.url)
        _ = parts.port
    except ValueError:
        parts = None
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
        return "the 'url' of a notification is no address of a server"
    return None


class PipelineFile(Strict):
    """A pipeline file. Its nodes are read one by one, so that each reports its own problems."""

    pipeline: PipelineBlock = Field(description="The name and the settings of the pipeline.")
    nodes: list[Any] = Field(description="The nodes. Their order has no effect; their inputs make the graph (E001, E002, E003, E004).", examples=[[{"type": "merge", "name": "all", "inputs": ["a", "b"]}]])
    error_handling: ErrorHandling = Field(default=ErrorHandling(), description="What happens to records that fail.")
    changelog: Changelog = Field(default=Changelog(), description="Which nodes keep their changelogs.", examples=[{"persist": "boundaries"}])
    notify: list[Notify] = Field(default_factory=list, description="Receivers of messages about runs: requests and commands.", examples=[[{"url": "https://hooks.example/errata"}]])
    notes: Any = Field(default=None, alias="_notes", description="Any value, for people and tools; it has no effect and is no part of a fingerprint.", examples=[{"owner": "sales"}])


def _text(value: Any) -> Any:
    return str(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else value


class NodeHeader(Strict):
    """The keys of a node other than its wiring."""

    type: str = Field(description="The node type (E012).")
    name: Annotated[str, BeforeValidator(_text)] = Field(
        description="The name by which other nodes and commands refer to the node: letters, digits, _ and -, at most 128 characters (E001, E010).", examples=["orders"]
    )
    description: str | None = Field(default=None, description="Text for people; it has no effect.", examples=["Orders of the shop"])
    notes: Any = Field(default=None, alias="_notes", description="Any value, for people and tools; it has no effect and is no part of a fingerprint.", examples=[{"owner": "sales"}])
    expect: list[Expectation] = Field(default_factory=list, description="What the node's rows are to be, and what a failing row leads to (E280).", examples=[[{"not_null": "order_id"}]])
    config: Any = Field(default=None, description="The keys of the node type (E013).", examples=[{"mode": "concat"}])


Place = tuple[str | int, ...]


def check_paths(document: Document, model: PipelineFile, settings: PipelineSettings, findings: Findings) -> None:
    """Report the paths of the pipeline block and the dead letter queue that are not allowed."""

    def report(code: str, message: str, place: Place, help_text: str | None = None) -> None:
        findings.diagnostics.append(document.error(place, code, message, help=help_text or ""))

    for place, path in _named(model):
        if path is not None:
            check_path(path, place, report, settings, stored="written" if "dlq" in place else None)


def _named(model: PipelineFile) -> Iterator[tuple[Place, str | None]]:
    metrics = model.pipeline.metrics
    yield ("pipeline", "rules_path"), model.pipeline.rules_path
    yield ("error_handling", "dlq", "path"), model.error_handling.dlq.path
    yield ("pipeline", "metrics", "spool_dir"), metrics.spool_dir
    yield ("pipeline", "metrics", "prometheus"), metrics.prometheus
    yield ("pipeline", "metrics", "openlineage", "path"), metrics.openlineage.path if metrics.openlineage else None
