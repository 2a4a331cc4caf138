"""`errata erase`: records leave sources, everything that was derived from them, and the history, for good.

The records are retracted in an epoch of their own, so all live rows and totals follow. Before its commit the op rows of the records leave the tables,
and past rows of others lose the erased values. One commit makes both visible, with the ledger written anew. Then older versions are removed
(`errata.erasure.removal`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, cast

import orjson

from changelog.columns import column
from changelog.frames import united
from changelog.lazy_imports import pa, pl
from changelog.ops import Op
from changelog.rows import Rows, is_null
from changelog.spark_algebra import diff
from errata.amend.amendment import AmendedInputs, Change, unedited
from errata.amend.erased_sources import erased_sources
from errata.amend.erasure_refusals import refuse_corrections, refuse_held, refuse_memories, refuse_names, refuse_words
from errata.amend.matched_records import Matched, Meant, ways_of_naming
from errata.core.events import RunResult
from errata.core.failures import Usage
from errata.core.options import Erasure, RunOptions
from errata.erasure.blanked_ledger import blanked_history
from errata.erasure.kept_out import hash_of, secret_of, with_hashes
from errata.erasure.named_values import NamedValues
from errata.erasure.nameless import nameless
from errata.erasure.other_files import clear
from errata.erasure.own_words import own_words
from errata.erasure.record import EARLIER, ERASED, KEPT_OUT, PROOF, RECORD, keyed_hash, known_key, made_key, records_of
from errata.erasure.remains import CONTINUES, SELECTION, Fingerprints, Unfinished, selection_of
from errata.erasure.removal import Removal
from errata.erasure.scrub import Scrub, TableScrub
from errata.erasure.search import Search
from errata.erasure.selection import IDENTITY, gathered, keys_of_nodes, op_rows
from errata.erasure.values import Values
from errata.execution.epoch import Epoch
from errata.execution.planned_run import PlannedRun
from errata.execution.step_executor import StepExecutor
from errata.plan.own_files import ProtectedFiles
from errata.plan.pipeline import LoadedPipeline
from errata.plan.plan import Node
from errata.state.run_state import RunState
from errata.state.suppressed_rows import truth
from operators.source.file_changes import FileRecord
from storage.state.dataset_identity import exported_nodes
from storage.state.entry import NAMELESS, Entry
from storage.state.location import State
from storage.stores.folders import folder_at

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


Row = Mapping[str, Any]
CAUSE: Final = "erase"
OLDER: Final = "older versions"
"""The name in reports of rows that the present version of a table does not have."""


@dataclass(slots=True)
class Erase(Change):
    """Take the records out of their sources. `matched` is known once the epoch looked for them."""

    wanted: Erasure
    names: Sequence[str]
    state: State
    matched: dict[str, Matched] = field(default_factory=dict)
    record: dict[str, Any] = field(default_factory=dict)
    nameless: dict[str, list[str]] = field(default_factory=dict)
    """By source the keys of the rows that stay of its records."""

    def sources(self, names: Sequence[str]) -> Mapping[str, str]:
        """The sources that have the columns."""
        return {name: "records are erased" for name in names if name in self.names}

    def rows(self, run: RunState, node: Node) -> DataFrame:
        """The retraction of the live records, of suppressed and rejected ones too."""
        found = self.matched[node.name] = Meant(self.state, run, node, self.wanted).matched()
        live = run.tables.live(run.engine, node, run.values, at=run.epoch - 1).without("_epoch")
        old = _as_if_admitted(live, found.live)
        gone = diff(old.as_frame(), old.as_frame().limit(0), CAUSE)
        kept = [name for name in self.wanted.keep_totals if name in node.operator.output.data]
        if not kept:
            return gone
        admitted = run.engine.to_arrow(_chosen(live, found.live).where(is_null("_error")).as_frame())
        stays = nameless(admitted, node, kept, CAUSE)
        self.nameless[node.name] = [bytes(key).hex() for key in stays.column("_key").to_pylist()]
        return united(gone, run.engine.from_arrow(stays).select(*map(column, gone.columns))) if stays.num_rows else gone

    def counters(self) -> dict[str, Any]:
        """The record of the erasure."""
        return {"kind": CAUSE, "reason": self.wanted.reason, **self.record}


def _as_if_admitted(live: Rows, keys: frozenset[bytes]) -> Rows:
    """Live rows of these keys, suppressed ones as if they took part."""
    return truth(_chosen(live, keys))


def _chosen(live: Rows, keys: frozenset[bytes]) -> Rows:
    return live.semi_join(Rows(live.engine, pa.table({"_key": pa.array(sorted(keys), pa.binary())})), "_key")


@dataclass(frozen=True, slots=True)
class Erased:
    """The result of an erasure.

    Attributes:
        rows: What left, one row a table: table, records (of sources), rows, cells.
        proof: What the search behind it found; None for a dry one.
        result: The result of the run.
        published: The nodes that were exported as datasets, each with its identity. Their directories and copies still hold what was erased.
        common: Texts of the records that the state has by itself, as the name of a node: they are looked for as whole cells of their columns alone.
    """

    rows: Sequence[Row]
    proof: Mapping[str, Any] | None
    result: RunResult
    published: Mapping[str, str]
    common: Sequence[str]


def erase(pipeline: LoadedPipeline, wanted: Erasure, options: RunOptions, protected: ProtectedFiles) -> Erased:
    """Erase records. Of a dry one everything is undone.

    Raises:
        Failure: Nothing was committed, or the erasure is not complete: the next run ends it.
    """
    names, published = erased_sources(pipeline.plan, wanted), exported_nodes(pipeline.state)
    with Epoch.begin(pipeline, replace(options, dry_run=False), protected) as epoch:
        work = _Erasing(epoch, Erase(wanted, names, pipeline.state))
        rows = work.run(dry=options.dry_run)
    proof = epoch.committed.counters.get(PROOF) if epoch.committed is not None else None
    return Erased(rows, proof, work.result, published, work.common)


@dataclass(slots=True)
class _Erasing:
    """One erasure under way."""

    epoch: Epoch
    change: Erase
    scrub: Scrub | None = None
    continued: Unfinished | None = None
    result: RunResult = field(default_factory=lambda: RunResult(exit_code=0))
    files: list[str] = field(default_factory=list)

    def run(self, *, dry: bool) -> list[Row]:
        """Do it; what left, by table."""
        epoch = self.epoch
        head, epoch.erases = unedited(epoch), True
        if self.change.wanted.keep_out:
            refuse_memories(epoch.plan, self.change.names)
        planned = PlannedRun.of(epoch, AmendedInputs(epoch.plan, head, self.change))
        planned.announce()
        executor = StepExecutor(planned)
        executor.watch = lambda run: self._look(run, dry=dry)
        executor.leaving = lambda node: self._leaving(executor.run, node)
        executor.before_commit = self._leave
        self.result = executor.execute(dry=dry)
        return self._lines()

    def _look(self, run: RunState, *, dry: bool) -> None:
        """Find out what leaves. Raises Usage where there is nothing, and Stopped where input files would bring it back."""
        matched = self.change.matched
        self.continued = None if any(matched.values()) else self._unfinished()
        keys = keys_of_nodes(self.epoch.plan, {name: one.keys for name, one in matched.items()})
        paths = set(run.tables.versions())
        older = gathered(one.older for one in matched.values())
        self.scrub = Scrub(self.epoch.plan, run.epoch, keys, run.tables.by_path, paths, older, Values(own=own_words(self.epoch.plan)))
        if self.continued is not None:
            self.scrub.values.update(self._remains(self.continued))
        self.scrub.look()
        refuse_words(self.scrub.values, (self.change.wanted.reason, self.change.wanted.by, self.epoch.batch_id))
        refuse_names(self.epoch.plan, self.scrub.values)
        refuse_corrections(self.scrub)
        if not self.change.wanted.keep_out:
            refuse_held(self.epoch, run, self.change.wanted, matched, self.scrub.values)
        if dry:
            self.scrub.scrub(dry=True)
            self._clear(dry=True)

    def _unfinished(self) -> Unfinished:
        """The erasure of the same records that found values left, which this one goes on with. Raises Usage where there is none."""
        records = records_of(self.epoch.history()).get(EARLIER, ())
        known = known_key(self.epoch.state)
        found = None if known is None else Unfinished.of(records, selection_of(self.change.wanted, known))
        if found is None:
            raise Usage("no record, in no epoch, is meant: nothing is erased")
        return found

    def _remains(self, unfinished: Unfinished) -> Values:
        """The values left of the records: the given --key, and all that the hashes of the last search find."""
        values = NamedValues.of(self.epoch.plan, self.change.wanted.key, own_words(self.epoch.plan)).values
        removal = Removal(self.epoch.plan, self.epoch.state, cast("Entry", self.epoch.head))
        values.update(removal.recovered(Fingerprints.of(made_key(self.epoch.state), unfinished.left)))
        return values

    def _clear(self, *, dry: bool = False) -> None:
        """Clear the files below the state that are no tables."""
        self.files = clear(folder_at(self.epoch.state.root, self.epoch.state.connection), Search(self._scrub.values), dry=dry)

    @property
    def common(self) -> list[str]:
        """Texts of the records that the state has by itself."""
        return sorted(self._scrub.values.common)

    @property
    def _scrub(self) -> Scrub:
        assert self.scrub is not None  # `_look` made it
        return self.scrub

    def _leaving(self, run: RunState, node: Node) -> DataFrame | None:
        """The live rows of an output that leave although its input takes none back."""
        found = self._scrub.tables.get(f"changelog/{node.name}")
        gone = None if found is None else found.gone.filter(pl.col("_op").is_in([int(Op.APPEND), int(Op.CORRECT_TO)])).select("_epoch", "_key").unique()
        if gone is None or not gone.height:
            return None
        keys = gone.to_arrow().cast(pa.schema({"_epoch": pa.int64(), "_key": pa.binary()}))
        live = run.tables.live(run.engine, node, run.values, at=run.epoch - 1).where(is_null("_error")).as_frame()
        return live.join(run.engine.from_arrow(keys), ["_epoch", "_key"], "left_semi")

    def _leave(self, executor: StepExecutor) -> None:
        """Let everything leave the tables, and make the record."""
        run, head = executor.run, cast("Entry", self.epoch.head)
        key = made_key(self.epoch.state)
        was = keyed_hash(key, self._images(run))
        before_now = head.counters.get(NAMELESS, {})
        rows_kept = {name: [*before_now.get(name, ()), *self.change.nameless.get(name, ())] for name in {**before_now, **self.change.nameless}}
        kept_out = {KEPT_OUT: with_hashes(head.counters.get(KEPT_OUT, {}), self._hashes(run, key))} if self.change.wanted.keep_out else {}
        before = {name: self._live(run, name) for name in self._remembering()}
        self._scrub.decisions = executor.decisions_in_force()
        tables = self._scrub.scrub()
        executor.files = {name: tuple(map(self._renamed, files)) for name, files in executor.files.items()}
        self._clear()
        for name, count in before.items():
            run.live_rows[name] = run.live_rows.get(name, 0) - (count - self._live(run, name))
        self.epoch.erased = self._scrub.values
        self.epoch.scrubbed = {path.removeprefix("changelog/"): one.epochs for path, one in tables.items() if path.startswith("changelog/")}
        record = {
            "epoch": self.epoch.number, "at": datetime.now(UTC).isoformat(timespec="seconds"), "by": self.change.wanted.by, "reason": self.change.wanted.reason,
            "records": {name: len(one.keys.keys) for name, one in self.change.matched.items() if one.keys},
            "older": {name: one.superseded for name, one in self.change.matched.items() if one.superseded},
            "rows": {path: one.dropped for path, one in tables.items() if one.dropped}, "cells": {path: one.emptied for path, one in tables.items() if one.emptied},
            "values": len(self._scrub.values), "was": was, SELECTION: selection_of(self.change.wanted, key), **({CONTINUES: self.continued.root} if self.continued else {}), "totals": "kept" if self.change.nameless else "corrected", "ledger": head.hash,
        }  # fmt: skip
        self.change.record = {RECORD: record, ERASED: self.epoch.number, "replaces": head.hash, "folded": self._folded(head, tables), **kept_out, **({NAMELESS: rows_kept} if rows_kept else {})}
        self.epoch.rewritten = blanked_history(self.epoch.history(), self._scrub)

    def _renamed(self, file: FileRecord) -> FileRecord:
        """An input file as the ledger records it; one that is gone and had a value in its name gets another name."""
        return replace(file, path=self._scrub.file_name(file.path), stored_as=file.stored_as and self._scrub.file_name(file.stored_as))

    def _hashes(self, run: RunState, key: bytes) -> Iterator[tuple[str, Sequence[str], list[str]]]:
        """Of each source the columns that name the erased records, and the hashes of their values. The primary key names the records that had other values in the columns of the erasure too."""
        secret = secret_of(key)
        for name in (name for name, one in self.change.matched.items() if one.keys):
            node, wanted = self.epoch.plan[name], self.change.wanted
            rows = self.change.matched[name].op_rows(run, node)
            columns, *others = ways_of_naming(node, wanted)
            named = Meant(self.epoch.state, run, node, wanted).named_by(columns, rows).select(hash_of(node, columns, secret).alias("hash")).distinct()
            yield name, columns, run.engine.to_arrow(named).column("hash").to_pylist()
            for keys in others:
                beside = rows.select(hash_of(node, columns, secret).alias("hash"), hash_of(node, keys, secret).alias("key")).join(named, "hash", "left_anti")
                if hashes := run.engine.to_arrow(beside.select("key").distinct()).column("key").to_pylist():
                    yield name, keys, hashes

    def _images(self, run: RunState) -> Iterator[bytes]:
        """The op rows of the erased records, as bytes in their order."""
        for name in sorted(self.change.matched):
            for rows in op_rows(run.tables.changelog(self.epoch.plan[name])):
                found = rows.join(self.change.matched[name].rows, IDENTITY, "semi").sort(*IDENTITY)
                yield from (orjson.dumps([name, *map(str, row)]) for row in found.iter_rows())

    def _remembering(self) -> list[str]:
        """The nodes whose live rows leave without a retraction from upstream."""
        return [node.name for node in self.epoch.plan if node.operator.remembers]

    def _live(self, run: RunState, name: str) -> int:
        node = self.epoch.plan[name]
        return int(run.tables.live(run.engine, node, run.values).count())

    def _folded(self, head: Entry, tables: Mapping[str, TableScrub]) -> dict[str, int]:
        """Op rows of each node that are gone: the numbers of later ones follow them."""
        gone = {path.removeprefix("changelog/"): one.dropped for path, one in tables.items() if path.startswith("changelog/")}
        return {name: head.folded.get(name, 0) + gone.get(name, 0) for name in {**head.folded, **gone}}

    def _lines(self) -> list[Row]:
        tables = self._scrub.tables
        records = {f"changelog/{name}": len(one.keys.keys) for name, one in self.change.matched.items()}
        left = [
            {"table": path, "records": records.get(path), "rows": one.dropped, "cells": one.emptied}
            for path, one in sorted(tables.items()) if one.dropped or one.emptied
        ]  # fmt: skip
        older = [
            {"table": f"{OLDER} of changelog/{name}", "records": len(one.older["_key"].unique()), "rows": rows, "cells": 0}
            for name, one in self.change.matched.items() if (rows := one.superseded)
        ]  # fmt: skip
        return [*left, *older, *({"table": name, "records": None, "rows": None, "cells": None} for name in self.files)]
