"""OpenLineage events of a run: START, then COMPLETE, FAIL or ABORT, appended to a file as JSON lines (openlineage.io, spec 2-0-2).

A source is an input dataset, named by the path or pattern that it reads; an output is one named by its path. Outputs carry their schema, their column
lineage and their size; the run carries what it changed as the facet `errata_corrections`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from importlib.metadata import version
from typing import Any, cast
from urllib.parse import urlsplit

from errata.plan.column_lineage import Columns, column_lineage
from errata.plan.pipeline import LoadedPipeline
from errata.plan.plan import Node
from errata.telemetry.run_end import INTERRUPTED, Ended
from operators.core.row_type import RowType
from operators.output.operator import Output
from operators.source.node import SourceNode

PRODUCER = f"urn:errata:{version('errata')}"
_SPEC = "https://openlineage.io/spec"
_EVENT = f"{_SPEC}/2-0-2/OpenLineage.json#/$defs/RunEvent"
_FACETS = {
    "schema": "1-2-0/SchemaDatasetFacet", "columnLineage": "1-2-0/ColumnLineageDatasetFacet", "outputStatistics": "1-0-2/OutputStatisticsOutputDatasetFacet",
    "errorMessage": "1-0-1/ErrorMessageRunFacet", "jobType": "2-0-4/JobTypeJobFacet",
}  # fmt: skip
Event = Mapping[str, Any]


def facet(name: str, **members: Any) -> dict[str, Any]:
    """One of the standard's facets, under its name."""
    path = _FACETS[name]
    return {name: {"_producer": PRODUCER, "_schemaURL": f"{_SPEC}/facets/{path}.json#/$defs/{path.partition('/')[2]}", **members}}


def _schema(rows: RowType) -> dict[str, Any]:
    """The columns of a dataset, in their order."""
    fields = [{"name": name, "type": str(type_), "ordinal_position": place} for place, (name, type_) in enumerate(rows.data.items(), 1)]
    return facet("schema", fields=fields)


@dataclass(frozen=True)
class Lineage:
    """The events of one run of a pipeline."""

    pipeline: LoadedPipeline
    namespace: str
    run_id: str

    @cached_property
    def _columns(self) -> Mapping[str, Mapping[str, Columns]]:
        """The source columns behind each node's columns."""
        return column_lineage(self.pipeline.plan)

    def start(self, moment: datetime) -> Event:
        """The run begins."""
        return self._event("START", moment, {}, [self._output(node, None) for node in self.pipeline.plan.of_kind("output")])

    def end(self, moment: datetime, ended: Ended) -> Event:
        """The run has ended; outputs have their live rows and present files."""
        kind = "COMPLETE" if ended.exit_code in (0, 2) else "ABORT" if ended.exit_code == INTERRUPTED else "FAIL"
        facets = self._corrections(ended)
        if kind != "COMPLETE":
            facets |= facet("errorMessage", message=ended.error or f"exit code {ended.exit_code}", programmingLanguage="Python")
        head = self.pipeline.head() if kind == "COMPLETE" else None
        nodes = head.nodes if head else {}
        outputs = [self._output(node, nodes.get(node.name)) for node in self.pipeline.plan.of_kind("output")]
        return self._event(kind, moment, facets, outputs)

    def _event(self, kind: str, moment: datetime, facets: Mapping[str, Any], outputs: list[dict[str, Any]]) -> Event:
        job_facets = facet("jobType", processingType="BATCH", integration="ERRATA", jobType="PIPELINE")
        return {
            "eventType": kind, "eventTime": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"), "producer": PRODUCER, "schemaURL": _EVENT,
            "run": {"runId": self.run_id, "facets": dict(facets)},
            "job": {"namespace": self.namespace, "name": self.pipeline.plan.settings.name, "facets": job_facets},
            "inputs": [self._input(node) for node in self.pipeline.plan.of_kind("source")], "outputs": outputs,
        }  # fmt: skip

    def _corrections(self, ended: Ended) -> dict[str, Any]:
        words = {"+A": "appended", "-R": "retracted", "+C": "corrected"}
        nodes = {name: {word: ops.get(op, 0) for op, word in words.items()} for name, ops in ended.result.counts.items()}
        run = {"executionId": ended.result.execution_id, "epoch": ended.result.epoch, "committed": ended.result.committed}
        about = {"_producer": PRODUCER, "_schemaURL": f"{_SPEC}/2-0-2/OpenLineage.json#/$defs/RunFacet"}
        return {"errata_corrections": {**about, **run, "rejected": ended.result.rejected, "nodes": nodes}}

    def _input(self, node: Node) -> dict[str, Any]:
        return {**self._source_name(node.name), "facets": _schema(node.operator.output)}

    def _source_name(self, source: str) -> dict[str, str]:
        config = cast("SourceNode", self.pipeline.plan[source].operator).config
        if not isinstance(config.transport, str):
            address = urlsplit(config.transport.url)
            return {"namespace": f"{address.scheme}://{address.netloc.rpartition('@')[2]}", "name": address.path.lstrip("/") or "/"}
        if config.asks:
            return {"namespace": "errata", "name": config.answer_name}
        given = config.path or config.glob or config.regex or ",".join(config.paths or ())
        return self._named(given)

    def _named(self, given: str) -> dict[str, str]:
        """The name of a file, or of an object by its bucket and key."""
        if "://" in given and not given.startswith("file:"):
            scheme, _, rest = given.partition("://")
            bucket, _, key = rest.partition("/")
            return {"namespace": f"{scheme}://{bucket}", "name": key or "/"}
        return {"namespace": "file", "name": str(self.pipeline.plan.settings.folder / given)}

    def _output(self, node: Node, stands: Mapping[str, Any] | None) -> dict[str, Any]:
        output = cast("Output", node.operator)
        lineage = {name: {"inputFields": self._fields(columns)} for name, columns in self._columns[node.name].items() if columns}
        facets = _schema(output.output) | facet("columnLineage", fields=lineage)
        named = {"namespace": "errata", "name": output.table} if output.in_database else self._named(output.config.path)
        made: dict[str, Any] = named | {"facets": facets}
        if stands is None:
            return made
        return made | {"outputFacets": facet("outputStatistics", rowCount=stands.get("live", 0), fileCount=len(stands.get("files", ())))}

    def _fields(self, columns: frozenset[tuple[str, str]]) -> list[dict[str, str]]:
        return [{**self._source_name(source), "field": name} for source, name in sorted(columns)]
