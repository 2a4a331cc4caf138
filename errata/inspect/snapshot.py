"""One committed epoch, read only: `status`, `log`, `show` and `diff`.

Data is read by the in-process engine, so that no command that only looks starts a JVM.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from changelog.columns import EPOCH, KEY, OP, column
from changelog.forms.frames import Origin, originating
from changelog.keys.positions import row_label
from changelog.lazy_imports import pa
from changelog.spark_algebra import diff
from cxl import CxlErrors, CxlFailure, Program, compile_program
from cxl.runtime.context import Context
from cxl.runtime.interpret import Runner
from cxl.types.types import Kind, Schema, parse_type
from errata.core.diagnostics import PipelineErrors, did_you_mean, from_cxl
from errata.core.failures import Usage
from errata.core.options import LogFilter
from errata.plan.plan import Node, Plan
from errata.state.committed_node import CommittedNode, in_order, paired
from errata.state.node_tables import Tables, accepted, folded, stored_rows
from errata.state.ordered_rows import FILE_ORDER
from errata.state.source_files import files_before, undeclared
from errata.state.stream_forms import TIMED, Stream, columns, formed
from errata.state.tally import Tally
from errata.state.undeclared_columns import Shape, agreed, expanded
from operators.core.provenance import FileLabels
from operators.core.run_values import RunValues
from operators.source.cursors import greatest
from storage.delta.changelog_table import ChangelogTable
from storage.state.entry import Entry
from storage.state.ledger import Ledger
from storage.state.location import State
from storage.values.python_rows import dictionaries

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from storage.engines.base import Engine

Row = Mapping[str, Any]
OP_SYMBOLS = ("+A", "-R", "-C", "+C")


class Snapshot:
    """Answers about one pipeline's committed state. `plan` is None where the pipeline file cannot be planned just now."""

    def __init__(self, name: str, state: State, plan: Plan | None) -> None:
        self.name = name
        self.state = state
        self.plan = plan

    @cached_property
    def engine(self) -> Engine:
        """The in-process engine."""
        from storage.engines.choice import EngineChoice
        from storage.engines.registry import engine

        workspace = self.plan.workspace if self.plan else None
        found = engine(EngineChoice("sail", shared_host=workspace is not None and workspace.settings.engine.shared_host))
        _ = found.session
        return found

    @cached_property
    def head(self) -> Entry | None:
        """The last committed run."""
        return Ledger(self.state.ledger).head()

    @cached_property
    def nodes(self) -> Mapping[str, CommittedNode]:
        """The nodes of the last committed run."""
        return {name: CommittedNode.of(name, entry) for name, entry in self.head.plan.items()} if self.head else {}

    @property
    def node_names(self) -> tuple[str, ...]:
        """All nodes that can be asked for."""
        return tuple(dict.fromkeys([*(self.plan.nodes if self.plan else ()), *self.nodes]))

    @property
    def composition_outputs(self) -> Mapping[str, str]:
        """The nodes behind the ports of compositions, none where there is no plan."""
        return self.plan.outputs if self.plan else {}

    def head_epoch(self) -> int | None:
        """The last committed epoch, None before the first."""
        return self.head.epoch if self.head else None

    # -- frames

    def _node(self, name: str) -> CommittedNode | None:
        """A committed node; None for one of the pipeline that no run has committed yet."""
        if name in self.nodes:
            return self.nodes[name]
        if self.plan is not None and name in self.plan.nodes:
            return None
        raise Usage(f"the pipeline has no node '{name}'", help=did_you_mean(name, list(self.nodes)) or f"its nodes: {', '.join(self.nodes)}")

    @property
    def last(self) -> int:
        """The last committed epoch, 0 before the first."""
        return self.head.epoch if self.head else 0

    def table(self, node: CommittedNode) -> ChangelogTable:
        """The table as the last run left it: what another run is about to do to it does not show."""
        path = f"changelog/{node.name}"
        return ChangelogTable(f"{self.state.root}/{path}", node.columns(), pinned=self.head.tables.get(path) if self.head else None)

    def _derived(self, node: CommittedNode, since: int) -> tuple[Tables, Node, RunValues]:
        """The plan that derives the rows of a node without a table. Raises Usage where its logic changed after epoch `since`."""
        if self.plan is None or node.name not in self.plan.nodes:
            raise Usage(f"node '{node.name}' keeps no changelog of its own, and the pipeline file cannot be planned to derive it")
        if since <= (edited := self._edited(self.plan[node.name])):
            raise Usage(
                f"node '{node.name}' keeps no changelog of its own (persist: boundaries), and its logic changed in epoch {edited}: what it gave before is not known",
                help=f"its rows can be read from epoch {edited} on, its changes from epoch {edited + 1} on; persist: all keeps the rows of every node",
            )
        return Tables(self.state.root, self.plan), self.plan[node.name], self.values(self.entries)

    @cached_property
    def entries(self) -> Sequence[Entry]:
        """Every committed run, oldest first."""
        return Ledger(self.state.ledger).entries()

    def _edited(self, node: Node) -> int:
        """The last epoch that changed the logic of a node without a table, or of such a node above it; 0 where it has always been what it is."""
        plan = cast("Plan", self.plan)
        logic = {one.name: one.fingerprint() for one in _without_tables(plan, node)}
        newest = 0
        for entry in reversed(self.entries):
            if any(entry.plan.get(name, {}).get("fingerprint") != fingerprint for name, fingerprint in logic.items()):
                if not newest:
                    raise Usage(f"node '{node.name}' keeps no changelog of its own, and the pipeline is not the one of epoch {entry.epoch}", help="run it first")
                return newest
            newest = entry.epoch
        return 0

    def values(self, runs: Sequence[Entry] = ()) -> RunValues:
        """The values of system variables that are the same in every run, and the files of keys as some runs left them (none: the last one)."""
        own = {node.name: node.constants for node in self.plan} if self.plan else {}
        return RunValues({"pipeline.name": self.name}, _labels(runs or ([self.head] if self.head else [])), own)

    def _rows(self, node: CommittedNode, epochs: tuple[int, int]) -> DataFrame:
        if node.persisted:
            return accepted(stored_rows(self.engine, self.table(node), epochs)).as_frame()
        tables, planned, values = self._derived(node, epochs[0])
        return accepted(tables.rows(self.engine, planned, values, epochs=epochs)).as_frame()

    def _live(self, node: CommittedNode, at: int) -> DataFrame:
        if node.persisted:
            return accepted(folded(self.engine, self.table(node), at)).as_frame()
        tables, planned, values = self._derived(node, at + 1 if at else self.last + 1)  # nothing stands at epoch 0, whatever the logic
        return accepted(tables.live(self.engine, planned, values, at=at)).as_frame()

    def live_rows(self, node: CommittedNode, *, rejects: bool = False) -> DataFrame:
        """The live rows of a node as they are kept, rejects among them or not."""
        if rejects and node.persisted:
            return folded(self.engine, self.table(node), self.last).as_frame()
        return self._live(node, self.last)

    def op_rows(self, node: CommittedNode) -> DataFrame:
        """All committed op rows of a node as they are kept, no rejects."""
        return self._rows(node, (1, self.last))

    def reasons(self) -> dict[int, str]:
        """The reasons of manual corrections, by epoch."""
        return {entry.epoch: entry.counters["reason"] for entry in self.entries if "reason" in entry.counters}

    def live(self, name: str, at: int | None) -> DataFrame:
        """Live data columns of a node. Raises Usage before its first run."""
        node = self.committed(name)
        epoch = self.known_epoch(at)
        return self.with_undeclared(node, self._live(node, epoch), (epoch, epoch), [])

    def keyed(self, name: str, at: int) -> DataFrame:
        """The live rows of a node at an epoch: `_key` and its data columns. Raises Usage before its first run."""
        node = self.committed(name)
        return self.with_undeclared(node, self._live(node, at), (1, self.last), ["_key"])

    def changelog(self, name: str, epochs: tuple[int, int] | None) -> DataFrame:
        """Op rows of a node with `_epoch`, `_op`, `_key`, `_cause` and data columns. Raises Usage before its first run."""
        node = self.committed(name)
        first, last = epochs or (1, self.last)
        rows = self._rows(node, (first, min(last, self.last)))
        complete = self.with_undeclared(node, rows, (first, last), ["_epoch", "_op", "_key", "_cause"])
        return originating(complete, Origin(self.name, name, lambda: self._rows_before(node, first), self._committed))

    def shown_op_rows(self, node: CommittedNode) -> DataFrame:
        """All op rows of a node: `_epoch`, `_op`, `_key` and the data columns of all epochs."""
        return self.with_undeclared(node, self.op_rows(node), (1, self.last), [EPOCH, OP, KEY])

    def _committed(self) -> DataFrame:
        """When each epoch was committed: `_epoch`, `ts_ms`."""
        moments = self._moments("debezium")
        stamps = [int(moment.timestamp() * 1000) for moment in moments.values()]
        return self.engine.from_arrow(pa.table({"_epoch": pa.array(moments, pa.int64()), "ts_ms": pa.array(stamps, pa.int64())}))

    def with_undeclared(self, node: CommittedNode, rows: DataFrame, epochs: tuple[int, int], names: Sequence[str]) -> DataFrame:
        """Columns `names` of rows and their data, an output's with the undeclared columns that it has written in some epochs."""
        fields = self.undeclared(node, epochs)
        if not fields:
            return rows.select(*map(column, (*names, *node.data)))

        return expanded(rows.select(*map(column, (*names, "_widened", *node.data))), Shape((*node.data, *fields), tuple(fields.items())))

    def undeclared(self, node: CommittedNode, epochs: tuple[int, int]) -> dict[str, str]:
        """The undeclared fields of an output in some epochs, by name with their types, out of the sources' files."""
        if "_widened" not in node.shown or self.plan is None or node.name not in self.plan.nodes:
            return {}

        runs = [entry for entry in self.entries if epochs[0] <= entry.epoch <= epochs[1]]
        found = (pair for entry in runs for pair in undeclared(self.plan, self.plan[node.name], files_before(entry)))
        return {name: type_ for name, type_ in agreed(list(found)) if name not in node.data}

    def committed(self, name: str) -> CommittedNode:
        """A node as the last run left it. Raises Usage before its first run."""
        node = self._node(name)
        if self.head is None:
            raise Usage.no_run()
        if node is None:
            raise Usage(f"node '{name}' has not run yet", help="`errata run` runs it")
        return node

    def known_epoch(self, at: int | None) -> int:
        """An epoch whose rows can be read, the last one for None. Raises Usage for another one."""
        if at is not None and at > self.last:
            raise Usage(f"there is no epoch {at}; the last one is {self.last}")
        self._unfolded(at)
        return self.last if at is None else at

    def _unfolded(self, at: int | None) -> None:
        base = int(self.head.counters.get("base", 0)) if self.head else 0
        if at and at < base:
            raise Usage(f"the history before epoch {base} was folded into a base", help=f"epochs from {base} on can be read")

    # -- answers

    def status(self) -> Mapping[str, Any]:
        """The object of `errata status`. A node's `last_epoch` is its last one with op rows; `rows_live` is null where it has no table."""
        head = self.head
        nodes = head.nodes if head else {}
        sources = head.sources if head else {}
        changed = {name: run["epoch"] for run in self.runs() for name in run["counts"]}
        return {
            "pipeline": self.name,
            "epoch": head.epoch if head else None,
            "per_source_rollback_cursors": {name: one["cursor"] for name, one in sources.items() if one["cursor"]},
            "sources": [self._source_status(name, one, nodes.get(name, {})) for name, one in sources.items()],
            "nodes": [_node_status(node, nodes.get(node.name, {}), changed.get(node.name)) for node in self.nodes.values()],
            **_dead_letters(head),
        }

    def _source_status(self, name: str, source: Mapping[str, Any], counts: Mapping[str, Any]) -> Row:
        files = [{"path": one["path"], "rows": one["rows"]} for one in source.get("files", ())]
        read_to = [greatest(one["cursor"]) for one in source.get("files", ()) if one.get("cursor")]
        return {
            "name": name, "cursor": source.get("cursor", 0), "rows_live": counts.get("live", 0),
            "rows_suppressed": source.get("suppressed", 0), "files": files, **({"read_to": str(read_to[0])} if read_to else {}),
        }  # fmt: skip

    def runs(self) -> Iterator[Row]:
        """One row a committed run."""
        for entry in (one for one in self.entries if not one.maintains):
            counts = {name: {op: one[op] for op in OP_SYMBOLS if one.get(op)} for name, one in entry.nodes.items() if name in entry.plan}
            yield {
                "epoch": entry.epoch, "started": entry.started, "finished": entry.finished, "execution_id": entry.execution_id,
                "counts": {name: ops for name, ops in counts.items() if ops}, "exit_code": entry.exit_code,
                **{name: entry.counters[name] for name in ("kind", "reason", "author") if name in entry.counters},
            }  # fmt: skip

    def log(self, name: str, filters: LogFilter) -> Iterator[Row]:
        """Changelog rows in changelog order, with a limit the newest of them; offsets are dense over all epochs, whatever is left out. Raises Usage for an epoch that is not there."""
        node = self.committed(name)
        self.known_epoch(filters.epoch)
        first = filters.epoch or filters.since or 1
        rows = in_order(self.engine, self._rows(node, (first, filters.epoch or self.last)), node, self._rows_before(node, first))
        moments = self._moments(filters.form) if filters.form in TIMED else {}
        events = formed(rows, filters.form, Stream(self.name, name, moments, self._keeps(node, filters)))
        yield from events if filters.limit is None else deque(events, maxlen=filters.limit)

    def _keeps(self, node: CommittedNode, filters: LogFilter) -> Callable[[Row, Sequence[Any]], bool]:
        """Which events filters ask for: of one that changes a row either image may meet `where`."""
        if filters.where is None:
            return lambda row, images: _wanted(row, filters)

        beside = ((name, parse_type(type_)) for name, type_ in self.undeclared(node, (1, self.last)).items())
        meets = data_condition(filters.where, Schema([*node.data.items(), *beside]))
        return lambda row, images: _wanted(row, filters) and any(meets({"data": image}) for image in images if image is not None)

    def _rows_before(self, node: CommittedNode, epoch: int) -> int:
        """How many op rows a node had of earlier epochs, folded ones too; of one without a table those since its logic changed."""
        folded = self.head.folded.get(node.name, 0) if self.head else 0
        first = 1 if node.persisted or self.plan is None else self._edited(self.plan[node.name]) + 1
        return folded + (int(self._rows(node, (first, epoch - 1)).count()) if epoch > first else 0)

    def _moments(self, form: str) -> dict[int, datetime]:
        """When each epoch was made: for Debezium its commit, for ODF's columns the begin of its run, as in the files that the run wrote."""
        entries = [entry for entry in self.entries if not entry.maintains]
        return {entry.epoch: entry.finished if form == "debezium" else entry.started for entry in entries}

    def show(self, name: str, at: int | None) -> Iterator[Row]:
        """Live rows in key order, data columns only."""
        node = self.committed(name)
        for row in dictionaries(self.engine.to_arrow(self._in_order(node, at).select(*map(column, node.shown)))):
            yield node.values(row)

    def ordered(self, name: str, at: int | None) -> DataFrame:
        """Live rows in key order, data columns only, in the engine. Raises Usage before the first run of a node."""
        node = self.committed(name)
        epoch = self.known_epoch(at)
        return self.with_undeclared(node, self._in_order(node, epoch), (epoch, epoch), [])

    def _in_order(self, node: CommittedNode, at: int | None) -> DataFrame:
        order = [one for one in FILE_ORDER if one == "_key" or (node.kind == "output" and one in node.hidden)]
        return self._live(node, self.known_epoch(at)).orderBy(*order)

    def columns(self, name: str, form: str | None = None) -> Sequence[str]:
        """The columns of `show` or, in csv, of `log` in a form, where there may be no row that has them."""
        node = self.committed(name)
        data = [*node.data, *self.undeclared(node, (1, self.last))]
        return data if form is None else columns(form, data)

    def diff(self, name: str, start: int, end: int) -> Iterator[Row]:
        """Net difference between two epochs by key."""
        node = self.committed(name)
        epochs = (self.known_epoch(start), self.known_epoch(end))
        frames = [self._live(node, epoch).select("_key", *map(column, node.shown)) for epoch in epochs]
        for old, new in paired(dictionaries(self.engine.to_arrow(diff(frames[0], frames[1], ""))), node):
            yield {"op": "+A" if old is None else "-R" if new is None else "+C", "before": old, "after": new}


def _dead_letters(head: Entry | None) -> Row:
    """Entries that are not waived and, where there are some, waived ones; the epoch since which the oldest of the others stands."""
    tally = Tally.noted(head.counters if head else {})
    some = {"waived": tally.waived, "oldest_rejected_epoch": tally.oldest}
    return {"rejected": tally.open, **{name: value for name, value in some.items() if value}}


def _node_status(node: CommittedNode, counts: Mapping[str, Any], last: int | None) -> Row:
    return {"name": node.name, "type": node.kind, "rows_live": counts.get("live", 0) if node.persisted else None, "last_epoch": last}


def _labels(runs: Iterable[Entry]) -> FileLabels:
    """The files that keys name, of several runs the newest's."""
    sources = (one for run in runs for one in run.sources.values())
    return FileLabels({bytes([one["number"]]) + row_label(tuple(file["label"])): file["path"] for one in sources for file in one["files"]})


def _without_tables(plan: Plan, node: Node) -> Iterator[Node]:
    """A node without a table and those above it that lead to it without one."""
    if not plan.persisted(node):
        yield node
        for name, _ in node.inputs:
            yield from _without_tables(plan, plan[name])


def _wanted(row: Mapping[str, Any], filters: LogFilter) -> bool:
    checks = (
        filters.epoch is None or row["epoch"] == filters.epoch,
        filters.since is None or row["epoch"] >= filters.since,
        filters.op is None or row["op"] == filters.op,
        filters.cause is None or str(row["cause"]).startswith(filters.cause),
    )
    return all(checks)


def predicate(text: str, schema: Schema) -> Program:
    """A compiled CXL predicate over the columns of a node. Raises PipelineErrors for a text that does not compile."""
    try:
        return compile_program(text, schema, mode="predicate")
    except CxlErrors as errors:
        raise PipelineErrors(from_cxl(one) for one in errors.diagnostics) from errors


def data_condition(text: str, schema: Schema) -> Callable[[Mapping[str, Any]], bool]:
    """Whether a row's `data` meets a CXL predicate; a row that fails does not. Raises PipelineErrors for a text that does not compile."""
    program = predicate(text, schema)
    readers: dict[Kind, Callable[[str], Any]] = {Kind.DATE_TIME: datetime.fromisoformat, Kind.DATE: date.fromisoformat}

    runner = Runner(program)

    def typed(row: Mapping[str, Any]) -> dict[str, Any]:
        return {name: readers[type_.kind](value) if type_.kind in readers and isinstance(value := row.get(name), str) else row.get(name) for name, type_ in schema.items()}

    def condition(row: Mapping[str, Any]) -> bool:
        try:
            return runner.evaluate(typed(row["data"]), Context()) is True
        except CxlFailure:
            return False

    return condition
