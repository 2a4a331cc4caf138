"""`errata export odf`: the changelog of a node as a dataset of Open Data Fabric, an epoch one block of data.

What is written depends on the state alone: two exports of one state give the same bytes. So an export that was killed is completed by the next one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from itertools import accumulate, groupby, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from changelog.columns import EPOCH, KEY, OP, column
from changelog.lazy_imports import F, pa, pc
from changelog.ops import is_negative, is_positive
from cxl.types.types import Kind
from errata.core.failures import LibraryMissing, StorageFailed, Usage
from errata.inspect.snapshot import Snapshot
from errata.state.ordered_rows import OutputRows
from operators.source.node import SourceNode
from storage.errors import StorageError
from storage.files.errors import FormatError
from storage.folder_lock import alone
from storage.odf.chain import Chain
from storage.odf.columns import Vocabulary, data_schema, field_types
from storage.odf.dataset import DatasetFolder
from storage.odf.live_rows import LiveRows, difference, live_rows
from storage.odf.multiformats import dataset_id
from storage.odf.slices import slice_schema
from storage.state.dataset_identity import identity_of, keep_chain, kept_chain
from storage.values.text import plain_decimals

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from storage.state.entry import Entry

Row = Mapping[str, Any]
SOURCE_STATE: Final = ("errata", "errata/epoch")
"""The source of the data and the kind of its state, in blocks."""
_ALIAS: Final = re.compile(r"([A-Za-z0-9]+(-[A-Za-z0-9]+)*/)?[A-Za-z0-9]+([-.][A-Za-z0-9]+)*")
_OF_ONE: Final = {"were": "was", "have": "has", "are": "is"}
_BORN: Final = "__born"
"""The epoch that brought a row's image in."""


@dataclass(frozen=True, slots=True)
class Exported:
    """The result of an export. `added`: a row a block of data: epoch, rows, first_offset, last_offset, block, and what it is (`epoch` or `difference`)."""

    dataset: str
    head: str
    added: Sequence[Row]
    note: str | None = None


def export_dataset(reading: Snapshot, node: str, folder: Path, *, alias: str | None = None, event_time: str | None = None) -> Exported:
    """Write the epochs of a node that a dataset lacks.

    Args:
        reading: The committed state.
        node: The node.
        folder: The dataset's folder, which may be absent.
        alias: The name under which it is known.
        event_time: The column with the event time; None for the column that the sources say, or the time of the epoch.

    Raises:
        Usage: The node has not run, or has no such column, or the name is none.
        StorageFailed: The folder has another dataset, or the dataset is damaged. Nothing was changed.
        LibraryMissing: The extra `odf` is not installed.
    """
    if alias is not None and not _ALIAS.fullmatch(alias):
        raise Usage(f"'{alias}' is no name of a dataset", help="letters and digits, with - and . between them; ahead of it may stand an account and a slash")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with alone(folder.parent):
            return _Export(reading, node, DatasetFolder(folder), event_time).run(alias)
    except (FormatError, StorageError) as error:
        raise StorageFailed(str(error)) from error
    except ModuleNotFoundError as missing:
        raise LibraryMissing.of_extra("`errata export odf`", str(missing.name).partition(".")[0], "odf") from missing
    except OSError as error:
        raise StorageFailed(f"{error.filename}: {error.strerror}") from error


@dataclass(frozen=True, slots=True)
class _Progress:
    """The state that a dataset was exported from, as its blocks record it."""

    epoch: int
    run: str
    event_time: str | None

    @classmethod
    def of(cls, chain: Chain | None) -> _Progress | None:
        """Read the last block with data; None where there is none yet, or it is not from an export."""
        state = chain.source_state if chain else None
        if state is None or state.get("kind") != SOURCE_STATE[1]:
            return None
        try:
            found = json.loads(state["value"])
            return cls(int(found["epoch"]), str(found["run"]), found["event_time"])
        except (ValueError, KeyError, TypeError):
            return None

    def state(self) -> dict[str, str]:
        """The source state that a block records."""
        value = {"epoch": self.epoch, "run": self.run, "event_time": self.event_time}
        return {"source_name": SOURCE_STATE[0], "kind": SOURCE_STATE[1], "value": json.dumps(value, sort_keys=True)}


class _Export:
    def __init__(self, reading: Snapshot, node: str, folder: DatasetFolder, event_time: str | None) -> None:
        self.reading = reading
        self.node = reading.committed(node)
        self.folder = folder
        self.kept = kept_chain(reading.state, node)
        self.before = folder.chain(self.kept)
        self.progress = _Progress.of(self.before)
        self.column = self._event_column(event_time)
        self.added: list[Row] = []
        self.originals: LiveRows | None = None

    # -- what there is

    @cached_property
    def entries(self) -> Sequence[Entry]:
        """The committed runs, without maintenance, oldest first."""
        return [entry for entry in self.reading.entries if not entry.maintains]

    @cached_property
    def reshaped(self) -> int:
        """The last epoch in which the node lost a column, or one got another type: rows of earlier ones are no longer what they were. 0 for none."""
        columns = [(entry.epoch, dict(map(tuple, entry.plan[self.node.name]["columns"]))) for entry in self.entries if self.node.name in entry.plan]
        return max((epoch for (_, before), (epoch, now) in pairwise(columns) if before.items() - now.items()), default=0)

    @cached_property
    def lost(self) -> Mapping[int, str]:
        """The epochs before whose end op rows are not what they were, each with the reason. Its own live rows are known."""
        counters = self.reading.head.counters if self.reading.head else {}
        reasons = {
            int(counters.get("base", 0)): "were folded", int(counters.get("erased", 0)): "have lost erased records",
            self.reshaped: f"are not known, since columns changed in epoch {self.reshaped}",
        }  # fmt: skip
        return {epoch: reason for epoch, reason in reasons.items() if epoch}

    @property
    def first(self) -> int:
        """The first epoch whose live rows are known, and the op rows of all later ones."""
        return max(self.lost, default=0)

    @cached_property
    def moments(self) -> Mapping[int, datetime]:
        """The begin of each epoch's run in milliseconds; not before that of an earlier epoch, whatever the clocks said."""
        begun = [entry.started.astimezone(UTC) for entry in self.entries]
        rounded = (one.replace(microsecond=one.microsecond // 1000 * 1000) for one in begun)
        return dict(zip((entry.epoch for entry in self.entries), accumulate(rounded, max), strict=True))

    @cached_property
    def frame(self) -> DataFrame:
        """All op rows: epoch, op, key and data."""
        return self.reading.shown_op_rows(self.node)

    @cached_property
    def data(self) -> list[pa.Field]:
        """The columns of the data."""
        schema = self.reading.engine.to_arrow(self.frame, 0).schema
        return [pa.field(one.name, _small(one.type)) for one in schema if one.name not in (EPOCH, OP, KEY)]

    @cached_property
    def documents(self) -> frozenset[str]:
        """The columns whose values are JSON."""
        return frozenset(name for name, type_ in self.node.data.items() if type_.is_dynamic)

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The names of the dataset's own columns."""
        return self.before.vocabulary if self.before else Vocabulary.beside(one.name for one in self.data)

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of files."""
        return slice_schema(self.vocabulary, self.data)

    def _event_column(self, wanted: str | None) -> str | None:
        timed = [name for name, type_ in self.node.data.items() if type_.kind in (Kind.DATE, Kind.DATE_TIME)]
        if wanted is None and self.progress is not None:
            return self.progress.event_time if self.progress.event_time in timed else None
        if wanted is None:
            used = {name for name in _event_columns(self.reading, self.node.name) if name in timed}
            return used.pop() if len(used) == 1 else None
        if wanted not in timed:
            raise Usage(f"node '{self.node.name}' has no column '{wanted}' of type date or date_time", help=f"its columns of these types: {', '.join(timed) or 'none'}")
        if self.progress is not None and self.progress.event_time != wanted:
            origin = f"column '{self.progress.event_time}'" if self.progress.event_time else "the begin of the runs"
            raise Usage(f"the dataset in {self.folder.root} has its event times from {origin}", help="export to a new directory")
        return wanted

    # -- the export

    def run(self, alias: str | None) -> Exported:
        """Write what is missing, the head last."""
        identity = identity_of(self.reading.state, self.node.name)
        self._refuse_strange(identity)
        self.folder.prepare()
        writer = _Writer(self, self._begun(identity))
        notes = [self._bridge(writer), self._erased_since()]
        start = writer.epoch + 1
        for epoch, pieces in self._epochs(start):
            writer.add(epoch, pieces, "epoch")
        self._keep(writer.chain.head)
        if alias is not None:
            self.folder.call(alias)
        return Exported(dataset_id(identity), writer.chain.head, self.added, "; ".join(filter(None, notes)) or None)

    def _keep(self, head: str) -> None:
        """Keep the present chain, so that the next export reads newer blocks only."""
        if self.kept is None or self.kept.head != head:
            chain = self.folder.chain(self.before)
            assert chain is not None  # it has a head by now
            keep_chain(self.reading.state, self.node.name, chain)

    def _refuse_strange(self, identity: bytes) -> None:
        if self.before is None:
            return
        if self.before.identity != identity:
            raise StorageFailed(
                f"E662: {self.folder.root} has another dataset, {self.before.did}; node '{self.node.name}' is {dataset_id(identity)}",
                help="export to a new directory",
            )
        if self.before.slices and self.progress is None:
            raise StorageFailed(f"E662: the dataset in {self.folder.root} was extended by another program", help="export to a new directory")
        self._refuse_reshaped(field_types(self.before.schema or {}))

    def _refuse_reshaped(self, before: Mapping[str, Any]) -> None:
        now = field_types(data_schema(self.schema))
        lost = [name for name in before if name not in now]
        other = [name for name in before if name in now and now[name] != before[name]]
        taken = [one.name for one in self.data if one.name in self.vocabulary.names]
        if wrong := lost or other or taken:
            what = "lacks" if lost else "has with another type" if other else "calls as the dataset calls its own"
            raise StorageFailed(
                f"E663: the dataset in {self.folder.root} has columns that node '{self.node.name}' now {what}: {', '.join(wrong)}", help="export to a new directory"
            )

    def _begun(self, identity: bytes) -> Chain:
        """The chain that is extended, with its seed, its names and the present schema."""
        chain, schema = self.before, data_schema(self.schema)
        if chain is None:
            first = min((epoch for epoch in self.moments if epoch >= self.first), default=self.reading.last)
            moment = self.moments[first]
            seed = self.folder.add_block(0, None, moment, ("Seed", {"dataset_id": identity, "dataset_kind": 0}))
            names = self.folder.add_block(1, seed, moment, ("SetVocab", self.vocabulary.event()))
            chain = Chain(names, 1, identity, moment, self.vocabulary)
        if set(field_types(chain.schema or {})) != set(field_types(schema)):
            chain = replace(chain, number=chain.number + 1, schema=schema, head=self.folder.add_block(chain.number + 1, chain.head, chain.system_time, ("SetDataSchema", {"schema": schema})))
            self.folder.point_to(chain.head)
        return chain

    def _bridge(self, writer: _Writer) -> str | None:
        """Where the epochs that follow the dataset are not there any more: one block with the difference to the first that is. Returns what was done."""
        progress, first = self.progress, self.first
        why = self.lost.get(first)
        if progress is None:
            if first <= 1:
                return None
            self._add_difference(writer, first)
            return f"the epochs before {first} {why}: the dataset begins with the rows of epoch {first}"
        run = next((entry.execution_id for entry in self.entries if entry.epoch == progress.epoch), None)
        if run == progress.run and progress.epoch >= first:
            return None
        to = first if run == progress.run else self.reading.last
        self._add_difference(writer, to)
        if run == progress.run:
            return f"{_epochs(progress.epoch + 1, to, why or '')} changes are one block, each as -R and +A"
        return f"the state has another history than the dataset, whose epoch {progress.epoch} it does not know: the difference to epoch {to} is one block, as -R and +A"

    def _erased_since(self) -> str | None:
        """Says that the dataset was begun before records were erased: its files do not change."""
        erased = self.moments.get(int(self.reading.head.counters.get("erased", 0))) if self.reading.head else None
        if self.before is None or self.before.begun is None or erased is None or self.before.begun >= erased:
            return None
        return f"{self.folder.root} still holds what was erased since it was begun: remove it and its copies, and export to a new directory"

    def _add_difference(self, writer: _Writer, epoch: int) -> None:
        there = self.live
        now = self.reading.engine.to_arrow(self.reading.keyed(self.node.name, epoch).orderBy(KEY)).drop_columns([KEY])
        wanted = pa.Table.from_batches([self._as_data(batch) for batch in now.to_batches()], pa.schema(self.data))
        gone, come = difference(there, wanted)
        pieces = [self._rows(gone.data, 1, gone.event_times, epoch), self._rows(come, 0, self._event_times(come, pa.repeat(epoch, come.num_rows)), epoch)]
        writer.add(epoch, pieces, "difference")

    @cached_property
    def live(self) -> LiveRows:
        """The live rows of the dataset as it was."""
        return live_rows(self.folder.root, self.before, pa.schema(self.data))

    # -- rows

    def _epochs(self, start: int) -> Iterator[tuple[int, Iterator[pa.RecordBatch]]]:
        """The op rows of each epoch from `start` on, in changelog order."""
        rows = self.frame.where(F.col(EPOCH) >= start)
        if self._needs_births(rows):
            rows = self._with_births(rows)
            self.originals = self._originals(rows)
        found = OutputRows(None, rows.orderBy(EPOCH, KEY, OP)).batches(self.reading.engine, lambda batch: batch)
        for epoch, group in groupby(_by_epoch(found), key=lambda piece: piece[0]):
            yield epoch, (self._as_rows(piece, epoch) for _, piece in group)

    def _needs_births(self, rows: DataFrame) -> bool:
        """Whether some event times are the begins of the epochs that brought the rows in."""
        return self.column is None or not rows.where(column(self.column).isNull()).isEmpty()

    def _with_births(self, rows: DataFrame) -> DataFrame:
        """Op rows with the epoch that brought their image in: of one that takes a row back, the last one before."""
        taken = rows.where(is_negative(F.col(OP))).select(F.col(KEY).alias("__taken"), F.col(EPOCH).alias("__when"))
        brought = self.frame.where(is_positive(F.col(OP))).select(F.col(KEY).alias("__brought"), F.col(EPOCH).alias("__since"))
        pairs = taken.join(brought, (F.col("__taken") == F.col("__brought")) & (F.col("__since") < F.col("__when")))
        last = pairs.groupBy("__taken", "__when").agg(F.max("__since").alias("__since"))
        matches = (F.col(KEY) == F.col("__taken")) & (F.col(EPOCH) == F.col("__when")) & is_negative(F.col(OP))
        return rows.join(last, matches, "left").withColumn(_BORN, F.coalesce("__since", EPOCH)).drop("__taken", "__when", "__since")

    def _originals(self, rows: DataFrame) -> LiveRows | None:
        """The dataset's live rows that are taken back, and whose epochs the state does not know any more; None where there are none, and then no data is read."""
        if not self.first or self.before is None:
            return None
        old = rows.where(is_negative(F.col(OP)) & (F.col(_BORN) <= self.first))
        taken = self.reading.engine.to_arrow(old.select(*(column(one.name) for one in self.data)))
        if not taken.num_rows:
            return None
        wanted = pa.Table.from_batches([self._as_data(batch) for batch in taken.to_batches()], pa.schema(self.data))
        return live_rows(self.folder.root, self.before, pa.schema(self.data), wanted)

    def _as_rows(self, batch: pa.RecordBatch, epoch: int) -> pa.RecordBatch:
        data = self._as_data(batch)
        born = batch.column(_BORN) if _BORN in batch.schema.names else pa.repeat(pa.scalar(epoch, pa.int64()), batch.num_rows)
        times = self._event_times(data, born)
        if self.originals is not None and _BORN in batch.schema.names:
            taken_back = pc.is_in(batch.column(OP), pa.array([1, 2], batch.column(OP).type))
            times = self.originals.original_times(data, pc.and_(taken_back, pc.less_equal(born, self.first)), times)
        return self._rows(data, batch.column(OP), times, epoch)

    def _as_data(self, batch: pa.RecordBatch | pa.Table) -> pa.RecordBatch:
        """The data columns in the types of files; the digits of decimals in JSON text are plain."""
        made = [plain_decimals(batch.column(one.name)) if one.name in self.documents else batch.column(one.name) for one in self.data]
        return pa.RecordBatch.from_arrays([values.cast(one.type) for values, one in zip(made, self.data, strict=True)], schema=pa.schema(self.data))

    def _event_times(self, data: pa.RecordBatch | pa.Table, born: pa.Array) -> pa.Array:
        """The event time of each row: that of its column, else when its image came in."""
        epochs = pa.array(self.moments, pa.int64())
        begun = pa.array(self.moments.values(), pa.timestamp("ms", "UTC"))
        recorded = begun.take(pc.index_in(born.cast(pa.int64()), epochs))
        if self.column is None:
            return recorded
        values = data.column(self.column)
        times = values.cast(pa.timestamp("ms"), safe=False).cast(pa.timestamp("ms", "UTC")) if pa.types.is_date(values.type) else values.cast(pa.timestamp("ms", "UTC"), safe=False)
        times = times.combine_chunks() if isinstance(times, pa.ChunkedArray) else times
        return pc.coalesce(times, recorded)

    def _rows(self, data: pa.RecordBatch | pa.Table, op: pa.Array | int, times: pa.Array, epoch: int) -> pa.RecordBatch:
        """Rows in the columns of files, but for offsets, which the writer gives."""
        count = data.num_rows
        ops = pa.repeat(op, count) if isinstance(op, int) else op
        moment = pa.repeat(pa.scalar(self.moments[epoch], pa.timestamp("ms", "UTC")), count)
        columns = [one.combine_chunks() if isinstance(one, pa.ChunkedArray) else one for one in data.columns]
        return pa.RecordBatch.from_arrays([pa.nulls(count, pa.uint64()), ops.cast(pa.uint8()), moment, times, *columns], names=self.schema.names)


class _Writer:
    """Adds blocks of data to a chain."""

    def __init__(self, export: _Export, chain: Chain) -> None:
        self.export = export
        self.chain = chain
        self.offset = -1 if chain.last_offset is None else chain.last_offset
        self.epoch = export.progress.epoch if export.progress else 0

    def add(self, epoch: int, pieces: Iterable[pa.RecordBatch], kind: str) -> None:
        """Write the rows of an epoch and the block that names them, and make it the head."""
        export, chain = self.export, self.chain
        written = export.folder.add_slice(self._numbered(pieces), export.schema, export.vocabulary.event_time, export.documents)
        moment = max(chain.system_time, export.moments[epoch])
        run = next(entry.execution_id for entry in export.entries if entry.epoch == epoch)
        marks = [one for one in (chain.watermark, written.latest) if one is not None]
        event: dict[str, Any] = {"new_source_state": _Progress(epoch, run, export.column).state()}
        event |= {} if self.offset < 0 else {"prev_offset": self.offset}
        event |= {"new_watermark": max(marks)} if marks else {}
        start, end = self.offset + 1, self.offset + written.rows
        if written.rows:
            interval = {"start": start, "end": end}
            event["new_data"] = {"logical_hash": written.logical.content, "physical_hash": written.physical.content, "offset_interval": interval, "size": written.size}
        block = export.folder.add_block(chain.number + 1, chain.head, moment, ("AddData", event))
        export.folder.point_to(block)
        self.chain = replace(chain, head=block, number=chain.number + 1, system_time=moment, watermark=event.get("new_watermark"))
        self.offset, self.epoch = end, epoch
        export.added.append({"epoch": epoch, "rows": written.rows, "first_offset": start if written.rows else None, "last_offset": end if written.rows else None, "block": block, "kind": kind})

    def _numbered(self, pieces: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        following = self.offset + 1
        for piece in pieces:
            offsets = pa.arange(following, following + piece.num_rows).cast(pa.uint64())
            following += piece.num_rows
            yield pa.RecordBatch.from_arrays([offsets, *piece.columns[1:]], schema=self.export.schema)


def _epochs(first: int, last: int, why: str) -> str:
    """Some epochs, or one, and what happened to them."""
    if first < last:
        return f"epochs {first} to {last} {why}: their"
    verb, _, rest = why.partition(" ")
    return f"epoch {last} {_OF_ONE[verb]} {rest}: its"


def _small(type_: pa.DataType) -> pa.DataType:
    """Texts with offsets of 32 bits, as most readers have them."""
    return pa.string() if pa.types.is_large_string(type_) or pa.types.is_string_view(type_) else type_


def _by_epoch(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Batches in order, cut where the epoch changes."""
    for batch in batches:
        ends = pc.run_end_encode(batch.column(EPOCH), pa.int64())
        start = 0
        for epoch, end in zip(ends.values.to_pylist(), ends.run_ends.to_pylist(), strict=True):
            yield epoch, batch.slice(start, end - start)
            start = end


def _event_columns(reading: Snapshot, node: str) -> Iterator[str]:
    """The columns of event times of the sources above a node."""
    plan = reading.plan
    if plan is None or node not in plan.nodes:
        return
    operator = plan[node].operator
    if isinstance(operator, SourceNode):
        mark = operator.config.event_time
        yield from [] if mark is None else [mark.column]
    for name, _ in plan[node].inputs:
        yield from _event_columns(reading, name)

