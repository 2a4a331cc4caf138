"""The report of each run: a metrics file in the spool folder, Prometheus text, OpenLineage events.

Counts of records are live records after the run, so they do not depend on how the input was cut into runs. A run that a threshold ended
reports the records that it had read and computed.
"""

from __future__ import annotations

import os
import re
import resource
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from time import monotonic
from typing import Any

from errata.core.env_references import redacted
from errata.core.events import Event, RunResult
from errata.core.failures import Failure, RecordCounts
from errata.core.files import replace_file
from errata.core.options import RunOptions
from errata.core.uuid7 import uuid7
from errata.execution.engine import choose_engine
from errata.execution.expectations import counts
from errata.plan.correlation import TRIGGERS
from errata.plan.pipeline import LoadedPipeline
from errata.rollback.cost import COUNTERS
from errata.state.tally import Tally
from errata.telemetry.run_end import INTERRUPTED, Ended
from storage.errors import StorageError
from storage.state.entry import Entry

SCHEMA_VERSION = 1
DEFECT = 70


def spool_folder(pipeline: LoadedPipeline, options: RunOptions) -> Path | None:
    """Where the run's metrics go: the option (or its environment variable), else the pipeline's own setting; None where nobody asks."""
    if options.metrics_spool_dir is not None:
        return options.metrics_spool_dir
    configured = pipeline.plan.model.pipeline.metrics.spool_dir
    return pipeline.plan.settings.folder / configured if configured else None


@dataclass(frozen=True, slots=True)
class Places:
    """Where a run is reported: the spool folder, the Prometheus file, the file of OpenLineage events and their job's namespace."""

    spool: Path | None
    prometheus: Path | None
    lineage: Path | None
    namespace: str

    @classmethod
    def of(cls, pipeline: LoadedPipeline, options: RunOptions) -> Places:
        """The places that options and pipeline name."""
        metrics, folder = pipeline.plan.model.pipeline.metrics, pipeline.plan.settings.folder
        lineage = metrics.openlineage
        return cls(
            spool_folder(pipeline, options), folder / metrics.prometheus if metrics.prometheus else None, folder / lineage.path if lineage else None,
            lineage.namespace if lineage else "",
        )  # fmt: skip

    @property
    def any(self) -> bool:
        """Whether anybody asks."""
        return bool(self.spool or self.prometheus or self.lineage)


@dataclass(slots=True)
class Measured:
    """A run under way: when it began and what it warned of."""

    started: datetime
    began: float
    warnings: int = 0
    engine: str = ""
    result: RunResult | None = None
    delivered: dict[str, int] = field(default_factory=dict)

    def hear(self, event: Event) -> None:
        """Count what the run tells, and keep its engine."""
        self.warnings += event.kind == "warning"
        if event.kind == "engine":
            self.engine = event.node
        if event.kind == "source_read":
            self.delivered[event.node] = int(event.facts["rows"])




def measured(pipeline: LoadedPipeline, options: RunOptions, run: Callable[[RunOptions], RunResult]) -> RunResult:
    """Run, and report the run whatever its end, where somebody asks for that. A file that cannot be written is a warning.

    Args:
        pipeline: The pipeline.
        options: The options of the run.
        run: Makes the run with options whose listener also counts events.
    """
    places = Places.of(pipeline, options)
    if not places.any and not _notifies(pipeline, options):
        return run(options)
    state = Measured(datetime.now(UTC), monotonic())
    with _reported(places, pipeline, options, state) as heard:
        state.result = run(heard)
    return state.result


@contextmanager
def _reported(places: Places, pipeline: LoadedPipeline, options: RunOptions, state: Measured) -> Iterator[RunOptions]:
    from errata.telemetry.openlineage import Lineage  # only runs that somebody watches need it

    def listener(event: Event) -> None:
        state.hear(event)
        options.listener(event)

    lineage = Lineage(pipeline, places.namespace, uuid7(state.started))
    _append(places.lineage, lambda: lineage.start(state.started), options)
    ended = Ended(DEFECT, "the run ended by a defect")
    try:
        yield replace(options, listener=listener)
        assert state.result is not None  # the run gave one
        ended = Ended(state.result.exit_code, state.result.message or None, result=state.result)
    except Failure as failure:
        ended = Ended(failure.exit_code, failure.message, failure.counts)
        raise
    except KeyboardInterrupt:
        ended = Ended(INTERRUPTED, "interrupted")
        raise
    finally:
        _append(places.lineage, lambda: lineage.end(datetime.now(UTC), ended), options)
        if ended.exit_code != DEFECT and places.any:
            _write(places, _content(pipeline, options, state, ended), options)
        if ended.exit_code not in (DEFECT, INTERRUPTED) and _notifies(pipeline, options):
            _notify(pipeline, options, state, ended)


def _notifies(pipeline: LoadedPipeline, options: RunOptions) -> bool:
    """Whether somebody hears about the run."""
    return bool(pipeline.plan.model.notify) and options.notify and not options.ephemeral


def _notify(pipeline: LoadedPipeline, options: RunOptions, state: Measured, ended: Ended) -> None:
    from errata.telemetry.notifications import Run, send_all  # only runs with receivers need it

    name = ended.result.execution_id or options.execution_id or uuid7(state.started)
    run = Run(pipeline, state.started, datetime.now(UTC), name, ended, state.delivered)
    try:
        send_all(run, lambda text: options.listener(Event("warning", action=text)))
    except StorageError as error:
        options.listener(Event("warning", action=f"W490: nobody was notified: {error}"))


def _write(places: Places, content: Mapping[str, Any], options: RunOptions) -> None:
    import json

    from errata.telemetry.prometheus import prometheus_text  # only runs that somebody watches need it

    if places.spool is not None:
        _replace(_unused(places.spool, _file_name(str(content["execution_id"]))), json.dumps(content, indent=2, ensure_ascii=False) + "\n", options)
    if places.prometheus is not None:
        _replace(places.prometheus, prometheus_text(content), options)


def _file_name(text: str) -> str:
    """A batch id as the name of a file: what would be a path, or hidden, becomes `_`."""
    return re.sub(r"^\.|[/\\\x00-\x1f]", "_", text)


def _unused(folder: Path, name: str) -> Path:
    """The file of a run; one of a batch that is tried again does not replace the file of the run before."""
    numbered = (folder / f"{name}{'' if number == 1 else f'-{number}'}.json" for number in count(1))
    return next(path for path in numbered if not path.exists())


def _replace(path: Path, text: str, options: RunOptions) -> None:
    try:
        replace_file(path, redacted(text))
    except OSError as error:
        options.listener(Event("warning", action=f"no metrics were written to {path.parent}: {error.strerror}"))


def _append(path: Path | None, event: Callable[[], Mapping[str, Any]], options: RunOptions) -> None:
    """Add an event to a file as a line, in one write, so that runs that share the file do not mix."""
    import json

    if path is None:
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8", buffering=1) as file:
            file.write(redacted(json.dumps(event(), ensure_ascii=False)) + "\n")
    except OSError as error:
        options.listener(Event("warning", action=f"no lineage was written to {path}: {error.strerror}"))


def _content(pipeline: LoadedPipeline, options: RunOptions, state: Measured, ended: Ended) -> dict[str, Any]:
    result, finished, head = ended.result, datetime.now(UTC), _head(pipeline)
    name = options.batch_id or result.execution_id or uuid7(state.started)
    return {
        "execution_id": name, "schema_version": SCHEMA_VERSION, "pipeline_name": pipeline.plan.settings.name, "config_path": _pipeline_file(pipeline),
        "hostname": socket.gethostname(), "started_at": _rfc3339(state.started), "finished_at": _rfc3339(finished),
        "duration_ms": round((monotonic() - state.began) * 1000), "exit_code": ended.exit_code, **_live_counts(pipeline, head), **(counted(ended.counts) if ended.counts else {}),
        "execution_mode": _mode(pipeline), "peak_rss_bytes": _peak_bytes(), "thread_count": _threads(pipeline, options),
        "error": ended.error, "batch_id": options.batch_id or name, "engine": state.engine or _engine(pipeline, options), "epoch": head.epoch if head else None,
        "correlation": {"retract": _retracted(pipeline, result)}, "committed": result.committed, "warnings": state.warnings, "changes": {node: dict(ops) for node, ops in result.counts.items()},
        "expectations": {name: failing for name, failing in counts(pipeline.plan, head).items() if failing is not None},
    }  # fmt: skip


def _head(pipeline: LoadedPipeline) -> Entry | None:
    """The ledger's head; None also where a state that made the run fail cannot be read."""
    try:
        return pipeline.head()
    except StorageError:
        return None


def _live_counts(pipeline: LoadedPipeline, head: Entry | None) -> dict[str, Any]:
    """Live records and present files after the run."""
    nodes: Mapping[str, Any] = head.nodes if head else {}
    present = present_files(head) if head else []
    outputs = [nodes[node.name] for node in pipeline.plan.of_kind("output") if node.name in nodes]
    dlq, tally = _paths(nodes.get("dlq", {})), Tally.noted(head.counters if head else {})
    return {
        **counted(
            RecordCounts(
                [(file["path"], file["rows"]) for file in present],
                sum(one.get("live", 0) for one in outputs),
                tally.open,
                tally.waived,
            )
        ),
        "dlq": {"categories": dict(tally.categories or {}), "oldest_epoch": tally.oldest, "oldest_since": _since(pipeline, tally.oldest)},
        "output_files": [path for one in outputs for path in _paths(one)],
        "dlq_path": dlq[0] if dlq else None,
    }


def _since(pipeline: LoadedPipeline, epoch: int | None) -> str | None:
    """When the run of an epoch began; None where nobody knows."""
    moment = None if epoch is None else pipeline.open_ledger().started([epoch]).get(epoch)
    return None if moment is None else _rfc3339(moment)


def counted(counts: RecordCounts) -> dict[str, Any]:
    """The members of the metrics file that count records."""
    return {
        "records_total": sum(rows for _, rows in counts.files), "records_ok": counts.written, "records_dlq": counts.rejected, "records_waived": counts.waived,
        "input_files": [path for path, _ in counts.files],
    }  # fmt: skip


def _paths(kept: Mapping[str, Any]) -> list[str]:
    """The files that the ledger has of a node, as the pipeline names them."""
    return [str(entry["path"]) for entry in kept.get("files", [])]


def _threads(pipeline: LoadedPipeline, options: RunOptions) -> int:
    return options.engine.threads or pipeline.plan.model.pipeline.concurrency.threads or os.cpu_count() or 1


def _engine(pipeline: LoadedPipeline, options: RunOptions) -> str:
    """The engine of a run that started none: what it would have had for no work."""
    return choose_engine(options.engine, pipeline.plan, 0).choice.kind


def present_files(head: Entry) -> list[Mapping[str, Any]]:
    """The ledger's records of the present files of the sources."""
    return [file for one in head.sources.values() for file in one["files"] if file.get("present", True)]


def _retracted(pipeline: LoadedPipeline, result: RunResult) -> dict[str, int]:
    """Counters of the rows that the run took back behind relaxed aggregates (retraction-cost.txt, "metrics counters"); zeros where there are none or nothing was committed."""
    head = _head(pipeline) if result.committed else None
    return dict.fromkeys(COUNTERS, 0) | (head.nodes.get(TRIGGERS, {}).get("retract", {}) if head else {})


def _pipeline_file(pipeline: LoadedPipeline) -> str:
    """The pipeline's file, which the nodes that are not of a composition stand in."""
    documents = (node.spec.document for node in pipeline.plan)
    own = next((one for one in documents if one is not None and isinstance(one.value, dict) and "pipeline" in one.value), None)
    return str(Path(own.file).resolve()) if own is not None and own.file else str(pipeline.plan.settings.folder)


def _mode(pipeline: LoadedPipeline) -> str:
    """`streaming` where every record goes its way alone, else `batch`."""
    return "streaming" if all(node.operator.explain_class in ("source", "linear") for node in pipeline.plan) else "batch"


def _peak_bytes() -> int:
    """The most memory that this process had resident."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _rfc3339(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
