"""The files of one output: the data in one file or one for each source file, the sidecar, and the changes of the epoch."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import chain
from typing import TYPE_CHECKING, Any, cast

from changelog.lazy_imports import F, pa, pc
from errata.core.failures import StorageFailed
from errata.outputs.changes_file import OdfEvents, odf_events
from errata.outputs.context import OutputContext, RunIdentity
from errata.outputs.database_targets import DatabaseTargets
from errata.outputs.delta_table import write_table
from errata.outputs.sql_table import write_database
from errata.outputs.staged_files import Written
from errata.outputs.targets import CHANGES, FINISHED, Targets
from errata.outputs.writer import Exporter, left_out, output_columns
from errata.plan.plan import Node
from errata.rendering.rows import json_text
from errata.state.committed_node import CommittedNode, in_order
from errata.state.ordered_rows import ORIGIN, OutputRows, output_rows
from errata.state.run_state import RunState
from errata.state.source_files import arriving, files_before, origins, undeclared
from errata.state.stream_forms import Stream, flat, formed
from operators.core.value_text import shown
from operators.output.config import ChangelogFile
from operators.output.operator import Output
from operators.source.file_changes import FileRecord
from storage.files.stores import store_of
from storage.formats import OptionError
from storage.state.entry import Entry
from storage.stores.places import Place
from storage.uris import below

if TYPE_CHECKING:
    from pyspark.sql import DataFrame



def write_output(
    context: OutputContext, run: RunState, node: Node, targets: Targets, present: Mapping[str, Sequence[FileRecord]], *, tables: DatabaseTargets
) -> list[dict[str, Any]]:
    """Stage all files, or the table, of an output; what the ledger keeps of them. Raises StorageFailed.

    `present`: the files of sources. `tables`: the tables of databases.
    """
    folder, output = context.plan.settings.folder, cast("Output", node.operator)
    if output.in_database:
        extra = undeclared(context.plan, node, present)
        changes = _changes(context, run, node, targets, extra)
        return [*write_database(context, run, node, tables.tables[node.name], extra), *(one.json(folder) for one in changes)]
    if not output.versioned:
        made = _write_files(context, run, node, targets, present)
        targets.note_gone(node, context.prior, [one.target for one in made], context.staged)
        return [one.json(folder) for one in made]

    extra = undeclared(context.plan, node, present)
    changes = _changes(context, run, node, targets, extra)
    return [*write_table(context, run, node, targets, extra), *(one.json(folder) for one in changes)]


def unchanged_files(context: OutputContext, run: RunState, node: Node) -> list[dict[str, Any]]:
    """The ledger's entries of an output's files that do not change; a sidecar is staged anew where its number of rejects changed."""
    head = cast("Entry", context.head)
    files: list[dict[str, Any]] = head.nodes[node.name]["files"]
    if not cast("Output", node.operator).config.write_meta or head.counters.get("rejected", 0) == run.total_rejected():
        return files
    return [_counted_again(context, run, one) if FINISHED in one else one for one in files]


def _counted_again(context: OutputContext, run: RunState, sidecar: Mapping[str, Any]) -> dict[str, Any]:
    folder = context.plan.settings.folder
    path = context.plan.settings.places / sidecar["path"]
    document = json.loads(bytes(store_of(path).content(path))) | {"dlq_count": run.total_rejected()}
    return {**sidecar, **context.staged.stage(path, _as_json(document)).json(folder)}


@dataclass(frozen=True, slots=True)
class _Piece:
    """The rows of a file of the data (which a split may cut), its path, how many rows there are."""

    target: Place
    rows: OutputRows
    count: int


def _write_files(context: OutputContext, run: RunState, node: Node, targets: Targets, present: Mapping[str, Sequence[FileRecord]]) -> list[Written]:
    """The files of an output: its data, a sidecar for each file of it (of what a split cut, for all parts), the changes of the epoch."""
    extra, config = undeclared(context.plan, node, present), cast("Output", node.operator).config
    written = _data_files(context, run, node, targets, present)
    made = [one for _, parts in written for one in parts]
    if config.write_meta:
        gone_with_it = targets.part_of(node) if targets.by_source_file(node) else {}
        sidecars = _Sidecars.of(context, run, node)
        wholes = [piece.target if config.split else parts[0].target for piece, parts in written]
        targets.refuse_written(node, list(map(_sidecar_of, wholes)), context.prior, context.history, force=context.force)
        found = [sidecars.write(whole, piece.count, parts) for whole, (piece, parts) in zip(wholes, written, strict=True)]
        made += [replace(one, members={**one.members, **gone_with_it}) for one in found]
    return [*made, *_changes(context, run, node, targets, extra)]


def _data_files(context: OutputContext, run: RunState, node: Node, targets: Targets, present: Mapping[str, Sequence[FileRecord]]) -> list[tuple[_Piece, list[Written]]]:
    """The pieces of the data and their files. With one file a source file, also source files without rows have a piece."""
    output = cast("Output", node.operator)
    by_file, split, extra = targets.by_source_file(node), output.config.split is not None, undeclared(context.plan, node, present)
    rows = output_rows(run, node, output, marked=by_file, epochs=context.epochs() if output.config.with_provenance else None)
    count = run.live_rows.get(node.name, 0) - run.rejected_live(node.name)
    pieces = list(_by_target(run, node, targets, rows, origins(context.plan, node, present))) if by_file else [_Piece(targets.path(node), rows, count)]
    if by_file:
        targets.refuse_written(node, [piece.target for piece in pieces], context.prior, context.history, force=context.force)
    for text in left_out(output, arriving(context.plan, node, present)):
        context.warn(f"output '{node.name}': {text}")
    names = targets.names(node, context.prior, context.history, [piece.target for piece in pieces])
    exporter = Exporter(context.staged, run.engine, context.warn, names)
    made = [(piece, list(exporter.write(node, piece.rows, piece.target, extra))) for piece in pieces]
    if split:
        targets.refuse_written(node, [one.target for _, parts in made for one in parts], context.prior, context.history, force=context.force)
    return [(piece, [replace(one, members=targets.part_of(node)) for one in parts]) for piece, parts in made]


def _by_target(run: RunState, node: Node, targets: Targets, rows: OutputRows, paths: Collection[str]) -> Iterator[_Piece]:
    """The rows of each source file with the path that they are written to; where `{source_file}` names it, files with one stem share theirs."""
    if rows.table is not None:
        counts, none = rows.table.group_by(ORIGIN).aggregate([([], "count_all")]), rows.table.slice(0, 0)
    else:
        frame = cast("DataFrame", rows.frame)
        counts, none = run.engine.to_arrow(frame.groupBy(ORIGIN).agg(F.count(F.lit(1)).alias("count_all"))), run.engine.to_arrow(frame, 0)
    found = dict(zip(*(counts.column(name).to_pylist() for name in (ORIGIN, "count_all")), strict=True))
    by_path: dict[Place, list[str]] = {}
    for origin in sorted({*found, *paths}):
        by_path.setdefault(targets.path_for(node, origin), []).append(origin)
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

    context: OutputContext
    started: datetime
    before: Mapping[str, str]
    common: Mapping[str, Any]
    counted: Mapping[str, Any]

    @classmethod
    def of(cls, context: OutputContext, run: RunState, node: Node) -> _Sidecars:
        """The members that all sidecars of an output have."""
        plan, writer = context.plan, context.writer
        files = writer.nodes[node.name]["files"] if isinstance(writer, Entry) else ()
        before = {one["path"]: one[FINISHED] for one in files if FINISHED in one}
        common = {
            "pipeline_path": node.spec.document.file, "pipeline_name": plan.settings.name, "pipeline_hash": (text := plan.hash()), "pipeline_hash_short": text[:8],
            "channel": plan.settings.channel, "errata_version": _version(), "run_started_at": _moment(writer.started),
            "execution_id": writer.execution_id, "batch_id": writer.batch_id, "epoch": writer.epoch, "output_name": node.name,
        }  # fmt: skip
        return cls(context, writer.started, before, common, {"dlq_count": run.total_rejected()})

    def write(self, target: Place, count: int, made: Sequence[Written]) -> Written:
        """The sidecar of the files that make up `target`."""
        path = _sidecar_of(target)
        moment = self.before.get(below(str(path), self.context.plan.settings.folder)) or datetime.now(UTC).isoformat(timespec="milliseconds")
        finished = datetime.fromisoformat(moment)
        ended = {"run_finished_at": _moment(finished), "elapsed_total_ms": round((finished - self.started).total_seconds() * 1000)}
        members = {**self.common, **ended, "resolved_path": str(target), "record_count": count, "bytes_written": sum(one.size for one in made), **self.counted}
        staged = self.context.staged.stage(path, _as_json(json.loads(json_text({name: value for name, value in members.items() if value is not None}))))
        return replace(staged, members={FINISHED: moment})


def _sidecar_of(target: Place) -> Place:
    return target.with_name(f"{target.name}.meta.json")


def _as_json(document: Mapping[str, Any]) -> Iterator[bytes]:
    return iter([json.dumps(document, indent=2, ensure_ascii=False).encode(), b"\n"])


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("errata")
    except PackageNotFoundError:
        return "unknown"


def _moment(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


# -- the changes of an epoch


def _changes(context: OutputContext, run: RunState, node: Node, targets: Targets, extra: Sequence[tuple[str, str]]) -> list[Written]:
    """The file of the changes that the epoch brings to the output, if one is wanted; none where there are none.

    `extra`: names and types of the undeclared fields that it writes; the changes also have earlier ones. Where the data is written again without a new epoch, so are the changes of the last one.
    """
    output = cast("Output", node.operator)
    if (wanted := output.config.changelog) is None:
        return []
    writer = context.writer
    target = targets.rendered(node, wanted.path, writer.epoch)
    targets.refuse_written(node, [target], context.prior, context.history, force=context.force)
    parts = _changed(context, run, node, wanted, list(dict.fromkeys([*_taken_back(context, node, writer), *extra])))
    if parts is None:
        return []
    staged = context.staged.stage(targets.names(node, context.prior, context.history, [target])(target), parts, wanted=target)
    return [replace(staged, members={CHANGES: wanted.path})]


def changes_again(context: OutputContext, run: RunState, node: Node, targets: Targets, extra: Sequence[tuple[str, str]]) -> list[Written]:
    """Stage the file of the changes of an earlier epoch, which the context restores, out of what the changelog has of it now; none where it has none."""
    return _changes(context, run, node, targets, extra)


def _taken_back(context: OutputContext, node: Node, writer: RunIdentity | Entry) -> list[tuple[str, str]]:
    """Names and types of the undeclared fields that the output had before a run's epoch: rows that the run retracts may hold them."""
    before = next((one for one in context.history() if one.epoch == writer.epoch - 1), None) if isinstance(writer, Entry) else context.head
    return [] if before is None else undeclared(context.plan, node, files_before(before))


def _changed(context: OutputContext, run: RunState, node: Node, wanted: ChangelogFile, extra: Sequence[tuple[str, str]]) -> Iterator[bytes] | None:
    """The changes of the epoch as the bytes of a file; None where there are none."""
    epoch, moment = (writer := context.writer).epoch, writer.started
    if wanted.format in ("parquet", "avro"):
        changed = odf_events(run, node, wanted.form, (epoch, moment), extra)
        if not changed.count:
            return None
        return changed.parquet() if wanted.format == "parquet" else _avro(changed, node.name)

    kept = CommittedNode.of(node.name, context.plan.summary()[node.name])
    rows, few = run.op_rows(node, epoch), run.op_count(node, epoch) <= run.engine.limits.driver_rows
    changes = in_order(run.engine, rows, kept, run.offset(node, epoch), few=few)
    if wanted.format == "csv":
        shape = output_columns(cast("Output", node.operator), extra)[1]
        names = (*kept.data, *shape.shown)
        changes = (row | {"data": {name: row["data"].get(name) for name in names}} for row in changes)
    first = next(events := formed(changes, wanted.form, Stream(context.plan.settings.name, node.name, {epoch: moment})), None)
    return None if first is None else _rendered(first, events, wanted.format)


def _avro(changed: OdfEvents, name: str) -> Iterator[bytes]:
    """The changes as an Avro file. Raises StorageFailed for undeclared columns with names that Avro does not have."""
    try:
        return changed.avro(name)
    except OptionError as error:
        raise StorageFailed(f"output '{name}': {error.code}: {error}", help=error.help_text or "") from error


def _rendered(first: Mapping[str, Any], rest: Iterator[Mapping[str, Any]], format: str) -> Iterator[bytes]:
    """Events as JSON lines, a JSON array or csv."""
    if format == "csv":
        yield from _csv(flat(first), (flat(row) for row in rest))
        return
    opening, between, closing = ("[\n", ",\n", "\n]\n") if format == "json" else ("", "\n", "\n")
    yield f"{opening}{json_text(first)}".encode()
    for row in rest:
        yield f"{between}{json_text(row)}".encode()
    yield closing.encode()


def _csv(first: Mapping[str, Any], rest: Iterator[Mapping[str, Any]]) -> Iterator[bytes]:
    def line(values: Sequence[Any]) -> bytes:
        buffer = io.StringIO()
        csv.writer(buffer, lineterminator="\n").writerow(json_text(value) if isinstance(value, (list, dict)) else shown(value) for value in values)
        return buffer.getvalue().encode()

    names = list(first)
    yield line(names)
    for row in chain((first,), rest):
        yield line([row.get(name) for name in names])
