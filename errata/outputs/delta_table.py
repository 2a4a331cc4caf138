"""Outputs that are Delta tables: they receive what changed.

A table is written after the commit of the epoch, so it is never ahead of the ledger. Its last commit names the epoch and the run that it holds.
The op rows since then bring it to the new epoch. Where that epoch is unknown, or another program wrote to the table, it is written anew.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import cached_property, partial
from hashlib import blake2b
from typing import Any, cast

from changelog.arrow_algebra import weights
from changelog.columns import EPOCH, ERROR
from changelog.lazy_imports import pa, pc, pl
from changelog.ops import Op
from errata.core.failures import StorageFailed
from errata.outputs.changes_file import odf_events
from errata.outputs.context import OutputContext
from errata.outputs.staged_files import StagedTable
from errata.outputs.targets import Targets
from errata.outputs.writer import output_columns, table_type
from errata.plan.plan import Node
from errata.state.ordered_rows import BATCH_ROWS, output_rows
from errata.state.run_state import RunState
from errata.state.source_files import files_before, undeclared
from operators.output.operator import Output, write_plan
from storage import formats
from storage.delta.multisets import net
from storage.delta.published_table import PublishedTable
from storage.delta.scan import Within
from storage.errors import StorageError
from storage.values.text import plain_decimals

MOST_BYTES = 512 << 20
"""The most op rows that are merged, by their size in memory. With more, the table is written anew, which takes longer: its rows are sorted."""


@dataclass(frozen=True, slots=True)
class Mark:
    """The content of a table after a commit: the rows of an output at an epoch; `shape` is a hash of its columns."""

    pipeline: str
    output: str
    epoch: int
    execution_id: str
    shape: str

    @property
    def text(self) -> str:
        """As the commit carries it."""
        return json.dumps({"errata": asdict(self)}, sort_keys=True)

    @classmethod
    def of(cls, text: str | None) -> Mark | None:
        """The mark that a commit carries; None where it carries none of ours."""
        try:
            return cls(**json.loads(text or "{}")["errata"])
        except (ValueError, KeyError, TypeError):
            return None


def write_table(context: OutputContext, run: RunState, node: Node, targets: Targets, extra: Sequence[tuple[str, str]]) -> list[dict[str, Any]]:
    """Prepare an output's table; what the ledger keeps of it. `extra`: names and types of the undeclared fields of the sources' files. Raises StorageFailed."""
    writing = Writing(context, run, node, targets, extra)
    try:
        table = PublishedTable(writing.place)
        since = writing.since(table)
        if writing.output.config.if_exists == "error" and not context.force and table.exists and not writing.made(table):
            raise StorageFailed(f"output '{node.name}': {writing.place} exists and was not written by this pipeline", help="--force or if_exists: overwrite replaces it")
        context.staged.tables.append(StagedTable(writing.steps(table, since)))
    except StorageError as error:
        raise StorageFailed(f"output '{node.name}': {error}") from error
    return [{**targets.ledger_entry(node), "mark": writing.mark.text}]


@dataclass(frozen=True)
class Writing:
    """One output's table in one run."""

    context: OutputContext
    run: RunState
    node: Node
    targets: Targets
    now: Sequence[tuple[str, str]]
    """Names and types of the undeclared fields of the sources' files, in order."""

    @cached_property
    def place(self) -> str:
        """Where the table is."""
        return self.targets.place(self.node)

    @property
    def output(self) -> Output:
        """The operator."""
        return cast("Output", self.node.operator)

    @cached_property
    def options(self) -> Any:
        """The format's options."""
        config = self.output.config
        return formats.writer(config.type, config.options, write_plan(self.output, ())).options

    @property
    def written(self) -> tuple[int, str, datetime]:
        """The epoch that the table shall hold, the run that made it, and when."""
        writer = self.context.writer
        return writer.epoch, writer.execution_id, writer.started

    @cached_property
    def mark(self) -> Mark:
        """The members of the table's commit."""
        epoch, execution, _ = self.written
        return self._mark(epoch, execution)

    def _mark(self, epoch: int, execution: str) -> Mark:
        return Mark(self.context.plan.settings.name, self.node.name, epoch, execution, self._shape_hash())

    def _shape_hash(self) -> str:
        later = output_columns(self.output, self.fields)[1].shown if self.options.mode == "changelog" else ()  # they are added to what was published
        shape = [self.options.mode, self.options.form, [[column.name, str(column.type)] for column in self.schema if column.name not in later]]
        return blake2b(json.dumps(shape).encode(), digest_size=8).hexdigest()

    @cached_property
    def fields(self) -> Sequence[tuple[str, str]]:
        """The undeclared fields of the table: from the sources' present files, and for a table of op rows also from earlier epochs."""
        entries = [] if self.context.head is None or self.options.mode != "changelog" else self.context.history()
        before = (pair for entry in entries for pair in undeclared(self.context.plan, self.node, files_before(entry)))
        return list(dict.fromkeys([*before, *self.now]))

    @cached_property
    def schema(self) -> pa.Schema:
        """The table's columns, as the output declares them."""
        return pa.schema([(name, table_type(self.output, name, type_)) for name, type_ in output_columns(self.output, self.fields)[0]])

    @cached_property
    def _dynamic(self) -> frozenset[str]:
        """The columns of JSON text."""
        return frozenset(name for name, type_ in output_columns(self.output, self.fields)[0] if type_.is_dynamic)

    @property
    def known(self) -> bool:
        """Whether this pipeline wrote to the place before, by this output or by one that had another name."""
        head = self.context.prior
        files = [] if head is None else [entry for node in head.nodes.values() for entry in node.get("files", ())]
        return any("mark" in entry and entry["path"] in (self.place, self.targets.ledger_path(self.node)) for entry in files)

    @cached_property
    def _made_by(self) -> Mapping[int, str]:
        """The run that made each epoch."""
        return {entry.epoch: entry.execution_id for entry in self.context.history() if not entry.maintains}

    def _is_ours(self, mark: Mark) -> bool:
        return mark.pipeline == self.mark.pipeline and self._made_by.get(mark.epoch) == mark.execution_id

    def made(self, table: PublishedTable) -> bool:
        """Whether this pipeline made the table: it wrote to the place last time, or the table carries the mark of one of its runs."""
        if self.known:
            return True
        mark = Mark.of(table.mark())
        return mark is not None and self._is_ours(mark)

    def since(self, table: PublishedTable) -> int | None:
        """The epoch from which on the table lacks rows; None where it has to be written anew."""
        head = self.context.head
        if head is None or not table.exists:
            return None
        mark = Mark.of(table.mark())
        if mark is None or (mark.pipeline, mark.output) != (self.mark.pipeline, self.node.name):
            if self.known and (mark is None or mark.pipeline != self.mark.pipeline):
                self.context.warn(f"output '{self.node.name}': somebody else changed {self.place}; it is written anew")
            return None
        ours = self._is_ours(mark) and mark.shape == self.mark.shape
        return mark.epoch if ours and self.context.followed_from <= mark.epoch <= self.mark.epoch else None

    def steps(self, table: PublishedTable, since: int | None) -> list[Callable[[], None]]:
        """The writes that bring the table to its epoch."""
        if self.options.mode == "changelog":
            return list(self._logged(table, since))
        changed = None if since is None else self._changed(since)
        if changed is None:
            return [partial(table.replace, self._live(), self.schema, self.mark.text)]
        return [partial(self._merge, table, *changed)]

    def _merge(self, table: PublishedTable, gone: pa.Table, copies: pl.Series, came: pa.Table) -> None:
        if not table.merge(gone, copies, came, self.mark.text):
            self.context.warn(f"output '{self.node.name}': {self.place} has not the rows that it was given; it is written anew")
            table.replace(self._live(), self.schema, self.mark.text)

    # -- live rows

    def _live(self) -> Iterator[pa.RecordBatch]:
        """The live rows, in order, in the table's columns."""
        shape = output_columns(self.output, self.fields)[1]
        rows = output_rows(self.run, self.node, self.output)
        return (self._typed(batch) for batch in rows.batches(self.run.engine, shape, len(shape.names)))

    def _typed(self, batch: pa.RecordBatch) -> pa.RecordBatch:

        columns = (plain_decimals(values) if one.name in self._dynamic else values for values, one in zip(batch.columns, self.schema, strict=True))
        return pa.RecordBatch.from_arrays([_one_nan(values.cast(one.type)) for values, one in zip(columns, self.schema, strict=True)], schema=self.schema)

    def _changed(self, since: int) -> tuple[pa.Table, pl.Series, pa.Table] | None:
        """Rows to be taken away, how often each, and rows to be added; None where they are too many."""
        shape = output_columns(self.output, self.fields)[1]
        table = self.run.tables.changelog(self.node).within(MOST_BYTES, ["_op", ERROR, *self._read], Within(EPOCH, since + 1, self.mark.epoch))
        if table is None:
            return None
        table = table.filter(pc.is_null(table.column(ERROR))) if ERROR in table.column_names else table
        shaped = pa.Table.from_batches([self._typed(shape(batch)) for batch in table.to_batches(BATCH_ROWS)], self.schema)
        signs, ops = pl.Series(weights(table)), pl.Series(table.column("_op"))
        if since + 1 == self.mark.epoch and not ((ops == int(Op.APPEND)).any() and (ops == int(Op.RETRACT)).any()):  # nothing moved to another key: hardly a row goes and comes
            gone, copies = net(shaped.filter((signs < 0).to_arrow()), -signs.filter(signs < 0))
            return gone, copies, shaped.filter((signs > 0).to_arrow())
        images, counts = net(shaped, signs)
        came = pl.Series(range(len(counts))).repeat_by(counts.clip(0)).explode().drop_nulls()
        return images.filter((counts < 0).to_arrow()), -counts.filter(counts < 0), images.take(came.to_arrow())

    @property
    def _read(self) -> list[str]:
        """The columns of the output's changelog that its rows are made from."""
        return [*(name for name in ("_widened",) if name in self.output.output.hidden), *self.output.projection.data]

    # -- the op rows

    def _logged(self, table: PublishedTable, since: int | None) -> Iterator[Callable[[], None]]:
        """The op rows of each epoch that the table lacks, each as a commit; the first one replaces where it is written anew."""
        first, stored = since is None, self.run.tables.changelog(self.node)
        for epoch, execution, moment in self._epochs(since or 0):
            if not first and epoch != self.mark.epoch and not any(stored.statistics.counts(epoch).values()):
                continue
            events = odf_events(self.run, self.node, self.options.form or "two", (epoch, moment), self.fields)
            mark = self._mark(epoch, execution).text
            yield partial(table.replace if first else table.append, events.batches, events.schema, mark)
            first = False

    def _epochs(self, since: int) -> Iterator[tuple[int, str, datetime]]:
        """The epochs behind one, with the runs that made them and when."""
        entries = [] if self.context.head is None else self.context.history()
        known = {entry.epoch: (entry.epoch, entry.execution_id, entry.started) for entry in entries if not entry.maintains}
        known[self.mark.epoch] = self.written
        return (known[epoch] for epoch in sorted(known) if epoch > since)


def _one_nan(values: pa.Array) -> pa.Array:
    """The values, of floats every NaN by the same bits: a table finds others not equal."""
    return pc.if_else(pc.is_nan(values), float("nan"), values) if pa.types.is_floating(values.type) else values
