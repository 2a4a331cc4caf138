"""The files of one output: the data, in one file or one for each source file, the sidecar, and the changes of the epoch.

(User guide, "Output Nodes"; reference 27.4 for the sidecar; CONTRACT.md, "An output may add `changelog:`".)
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from changelog.columns import column
from changelog.lazy_imports import F, pa, pc, pl
from errata.execution.ingest import arriving, files_before, origins, undeclared
from errata.outputs.targets import CHANGES, FINISHED
from errata.outputs.writer import Exporter, OutputRows, Written, left_out, output_columns
from errata.state.node_tables import DRIVER_ROWS, SMALL_ROWS
from operators.core.provenance import file_of
from storage.state.entry import Entry

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from errata.execution.node_runner import NodeRunner
    from errata.execution.run import Run
    from errata.outputs.targets import Targets
    from errata.plan.plan import Node
    from operators.output.config import ChangelogFile
    from operators.output.operator import Output
    from operators.source.file_changes import FileRecord

ORIGIN = "__origin"
"""The path of the source file that a row came from, where an output is written by source file."""


def write_output(run: Run, flow: NodeRunner, node: Node, targets: Targets, present: Mapping[str, Sequence[FileRecord]]) -> list[dict[str, Any]]:
    """Stage all files, or the table, of an output; what the ledger keeps of them. `present`: the files of sources. Raises StorageFailed."""
    folder, output = run.plan.settings.folder, cast("Output", node.operator)
    if not output.versioned:
        made = _write_files(run, flow, node, targets, present)
        targets.note_gone(node, run.standing, [one.target for one in made], run.exports)
        return [one.json(folder) for one in made]
    from errata.outputs.delta_table import write_table

    extra = undeclared(run.plan, node, present)
    changes = _changes(run, flow, node, targets, extra)
    return [*write_table(run, flow, node, targets, extra), *(one.json(folder) for one in changes)]


def kept_files(run: Run, flow: NodeRunner, node: Node, targets: Targets) -> list[dict[str, Any]]:
    """What the ledger keeps of an output's files that stay as they are; a sidecar is staged anew where other records stand rejected than it counts."""
    head = cast("Entry", run.head)
    files: list[dict[str, Any]] = head.nodes[node.name]["files"]
    if not cast("Output", node.operator).config.write_meta or head.counters.get("rejected", 0) == flow.total_rejected():
        return files
    return [_counted_again(run, flow, one) if FINISHED in one else one for one in files]


def _counted_again(run: Run, flow: NodeRunner, sidecar: Mapping[str, Any]) -> dict[str, Any]:
    folder = run.plan.settings.folder
    path = folder / sidecar["path"]
    told = json.loads(path.read_text(encoding="utf-8")) | {"dlq_count": flow.total_rejected()}
    return {**sidecar, **run.exports.stage(path, _as_json(told)).json(folder)}


@dataclass(frozen=True, slots=True)
class _Piece:
    """The rows of a file of the data (which a split may cut), its path, how many rows there are."""

    target: Path
    rows: OutputRows
    count: int


def _write_files(run: Run, flow: NodeRunner, node: Node, targets: Targets, present: Mapping[str, Sequence[FileRecord]]) -> list[Written]:
    """The files of an output: its data, a sidecar for each file of it (of what a split cut, for all parts), the changes of the epoch."""
    extra, config = undeclared(run.plan, node, present), cast("Output", node.operator).config
    written = _data_files(run, flow, node, targets, present)
    made = [one for _, parts in written for one in parts]
    if config.write_meta:
        gone_with_it = targets.part_of(node) if targets.by_source_file(node) else {}
        sidecars = _Sidecars.of(run, flow, node)
        wholes = [piece.target if config.split else parts[0].target for piece, parts in written]
        targets.refuse_written(node, list(map(_sidecar_of, wholes)), run.standing, run.history, force=run.options.force)
        found = [sidecars.write(whole, piece.count, parts) for whole, (piece, parts) in zip(wholes, written, strict=True)]
        made += [replace(one, told={**one.told, **gone_with_it}) for one in found]
    return [*made, *_changes(run, flow, node, targets, extra)]


def _data_files(run: Run, flow: NodeRunner, node: Node, targets: Targets, present: Mapping[str, Sequence[FileRecord]]) -> list[tuple[_Piece, list[Written]]]:
    """The pieces of the data and their files; where there is one for each source file, also for those that no row came from."""
    output = cast("Output", node.operator)
    by_file, split, extra = targets.by_source_file(node), output.config.split is not None, undeclared(run.plan, node, present)
    rows = output_rows(flow, node, output, marked=by_file)
    count = flow.live_rows.get(node.name, 0) - flow.rejected_live(node.name)
    pieces = list(_by_target(flow, node, targets, rows, origins(run.plan, node, present))) if by_file else [_Piece(targets.path(node), rows, count)]
    if by_file:
        targets.refuse_written(node, [piece.target for piece in pieces], run.standing, run.history, force=run.options.force)
    for text in left_out(output, arriving(run.plan, node, present)):
        run.warn(f"output '{node.name}': {text}")
    names = targets.names(node, run.standing, run.history, [piece.target for piece in pieces])
    exporter = Exporter(run.exports, flow.engine, run.warn, names)
    made = [(piece, list(exporter.write(node, piece.rows, piece.target, extra))) for piece in pieces]
    if split:
        targets.refuse_written(node, [one.target for _, parts in made for one in parts], run.standing, run.history, force=run.options.force)
    return [(piece, [replace(one, told=targets.part_of(node)) for one in parts]) for piece, parts in made]


def output_rows(flow: NodeRunner, node: Node, output: Output, *, marked: bool = False) -> OutputRows:
    """The live rows of an output in the order of its file: on the driver where they are few. `marked`: with the source file of each."""
    order = [name for name in ("_lookup", "_key") if name == "_key" or name in output.output.hidden]
    names = [*order, *(name for name in ("_widened", "_doc", "_split") if name in output.output.hidden), *output.projection.data]
    frame = flow.tables.live(flow.engine, node, flow.values)
    if marked:
        frame, path = file_of(frame, output.output, flow.values.labels)
        frame = frame.withColumn(ORIGIN, path)
        names.append(ORIGIN)
    frame = frame.select(*map(column, names))
    if flow.live_rows.get(node.name, SMALL_ROWS + 1) > SMALL_ROWS:
        return OutputRows(None, frame.orderBy(*(F.col(name) for name in order)))
    table = flow.engine.to_arrow(frame)
    position = pl.DataFrame({name: table.column(name) for name in order}).with_row_index("at").sort(order)["at"]
    return OutputRows(table.take(position.to_arrow()), None)


def _by_target(flow: NodeRunner, node: Node, targets: Targets, rows: OutputRows, paths: Collection[str]) -> Iterator[_Piece]:
    """The rows of each source file with the path that they are written to; files with one stem share theirs."""
    if rows.table is not None:
        counts, none = rows.table.group_by(ORIGIN).aggregate([([], "count_all")]), rows.table.slice(0, 0)
    else:
        frame = cast("DataFrame", rows.frame)
        counts, none = flow.engine.to_arrow(frame.groupBy(ORIGIN).agg(F.count(F.lit(1)).alias("count_all"))), flow.engine.to_arrow(frame, 0)
    found = dict(zip(*(counts.column(name).to_pylist() for name in (ORIGIN, "count_all")), strict=True))
    by_path: dict[Path, list[str]] = {}
    for origin in sorted({*found, *paths}):
        by_path.setdefault(targets.path_for(node, Path(origin).stem), []).append(origin)
    for path, names in by_path.items():
        count = sum(found.get(name, 0) for name in names)
        yield _Piece(path, _of_origins(rows, names) if count else OutputRows(none, None), count)


def _of_origins(rows: OutputRows, origins: Sequence[str]) -> OutputRows:

    if rows.table is not None:
        return OutputRows(rows.table.filter(pc.is_in(rows.table.column(ORIGIN), pa.array(origins, pa.string()))), None)
    return OutputRows(None, cast("DataFrame", rows.frame).where(F.col(ORIGIN).isin(*origins)))


# -- the sidecar


@dataclass(frozen=True, slots=True)
class _Sidecars:
    """`<output>.meta.json`: which run wrote an output, and how much. `before`: when the sidecars of before tell that their run ended, by path."""

    run: Run
    started: datetime
    before: Mapping[str, str]
    told: Mapping[str, Any]
    counted: Mapping[str, Any]

    @classmethod
    def of(cls, run: Run, flow: NodeRunner, node: Node) -> _Sidecars:
        """What the sidecars of an output have in common."""
        plan, writer = run.plan, run.writer(flow)
        files = writer.nodes[node.name]["files"] if isinstance(writer, Entry) else ()
        before = {one["path"]: one[FINISHED] for one in files if FINISHED in one}
        told = {
            "pipeline_path": node.spec.document.file, "pipeline_name": plan.settings.name, "pipeline_hash": (text := plan.hash()), "pipeline_hash_short": text[:8],
            "channel": plan.settings.channel, "errata_version": _version(), "run_started_at": _moment(writer.started),
            "execution_id": writer.execution_id, "batch_id": writer.batch_id, "epoch": writer.epoch, "output_name": node.name,
        }  # fmt: skip
        return cls(run, writer.started, before, told, {"dlq_count": flow.total_rejected()})

    def write(self, target: Path, count: int, made: Sequence[Written]) -> Written:
        """The sidecar of some files, of which the whole stands at `target`."""
        from errata.rendering.rows import json_text

        path = _sidecar_of(target)
        moment = self.before.get(os.path.relpath(path, self.run.plan.settings.folder)) or datetime.now(UTC).isoformat(timespec="milliseconds")
        finished = datetime.fromisoformat(moment)
        ended = {"run_finished_at": _moment(finished), "elapsed_total_ms": round((finished - self.started).total_seconds() * 1000)}
        told = {**self.told, **ended, "resolved_path": str(target), "record_count": count, "bytes_written": sum(one.size for one in made), **self.counted}
        staged = self.run.exports.stage(path, _as_json(json.loads(json_text({name: value for name, value in told.items() if value is not None}))))
        return replace(staged, told={FINISHED: moment})


def _sidecar_of(target: Path) -> Path:
    return target.with_name(f"{target.name}.meta.json")


def _as_json(told: Mapping[str, Any]) -> Iterator[bytes]:
    return iter([json.dumps(told, indent=2, ensure_ascii=False).encode(), b"\n"])


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("errata")
    except PackageNotFoundError:
        return "unknown"


def _moment(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


# -- the changes of an epoch


def _changes(run: Run, flow: NodeRunner, node: Node, targets: Targets, extra: Sequence[tuple[str, str]]) -> list[Written]:
    """The file of the changes that the epoch brings to the output, if one is wanted; none where there are none.

    `extra`: names and types of the undeclared fields that it writes; the changes have those of before too. Where the data is written again without a new epoch, so are the changes of the last one.
    """
    output = cast("Output", node.operator)
    if (wanted := output.config.changelog) is None:
        return []
    writer = run.writer(flow)
    target = targets.rendered(node, wanted.path, writer.epoch)
    targets.refuse_written(node, [target], run.standing, run.history, force=run.options.force)
    parts = _changed(run, flow, node, wanted, list(dict.fromkeys([*_taken_back(run, node, writer), *extra])))
    if parts is None:
        return []
    staged = run.exports.stage(targets.names(node, run.standing, run.history, [target])(target), parts, wanted=target)
    return [replace(staged, told={CHANGES: wanted.path})]


def _taken_back(run: Run, node: Node, writer: Run | Entry) -> list[tuple[str, str]]:
    """Names and types of the undeclared fields that the output had before the epoch that a run made: rows that it takes back may hold them (DESIGN section 3)."""
    before = next((one for one in run.history() if one.epoch == writer.epoch - 1), None) if isinstance(writer, Entry) else run.head
    return [] if before is None else undeclared(run.plan, node, files_before(before))


def _changed(run: Run, flow: NodeRunner, node: Node, wanted: ChangelogFile, extra: Sequence[tuple[str, str]]) -> Iterator[bytes] | None:
    """The changes of the epoch as the bytes of a file; None where there are none."""
    epoch, moment = (writer := run.writer(flow)).epoch, writer.started
    if wanted.format == "parquet":
        from errata.outputs.changes_file import odf_events

        changed = odf_events(flow, node, wanted.form, (epoch, moment), extra)
        return changed.parquet() if changed.count else None
    from errata.state.committed_node import CommittedNode, in_order
    from errata.state.stream_forms import Stream, formed

    kept, stored = CommittedNode.of(node.name, run.plan.summary()[node.name]), flow.tables.changelog(node)
    rows, few = flow.tables.rows(flow.engine, node, flow.values, epochs=(epoch, epoch)), sum(stored.statistics.counts(epoch).values()) <= DRIVER_ROWS
    changes = in_order(flow.engine, rows, kept, flow.offset(node, epoch), few=few)
    if wanted.format == "csv":
        shape = output_columns(cast("Output", node.operator), extra)[1]
        names = (*kept.data, *shape.shown)
        changes = (row | {"data": {name: row["data"].get(name) for name in names}} for row in changes)
    first = next(events := formed(changes, wanted.form, Stream(run.plan.settings.name, node.name, {epoch: moment})), None)
    return None if first is None else _rendered(first, events, wanted.format)


def _rendered(first: Mapping[str, Any], rest: Iterator[Mapping[str, Any]], format: str) -> Iterator[bytes]:
    """Events as JSON lines, a JSON array or csv."""
    from errata.rendering.rows import json_text
    from errata.state.stream_forms import flat

    if format == "csv":
        yield from _csv(flat(first), (flat(row) for row in rest))
        return
    opening, between, closing = ("[\n", ",\n", "\n]\n") if format == "json" else ("", "\n", "\n")
    yield f"{opening}{json_text(first)}".encode()
    for row in rest:
        yield f"{between}{json_text(row)}".encode()
    yield closing.encode()


def _csv(first: Mapping[str, Any], rest: Iterator[Mapping[str, Any]]) -> Iterator[bytes]:
    from errata.rendering.rows import json_text
    from errata.rollback.cell_texts import shown

    def line(values: Sequence[Any]) -> bytes:
        buffer = io.StringIO()
        csv.writer(buffer, lineterminator="\n").writerow(json_text(value) if isinstance(value, (list, dict)) else shown(value) for value in values)
        return buffer.getvalue().encode()

    names = list(first)
    yield line(names)
    for row in chain((first,), rest):
        yield line([row.get(name) for name in names])
