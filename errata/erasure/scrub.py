"""The effect of an erasure on the tables of a state: which op rows leave, which cells of past rows are emptied; then it is done, file by file.

Live rows are never touched: the epoch of the erasure has derived them without the records. Past rows of other records stay, without erased values in them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from secrets import token_hex
from typing import Final, cast

from changelog.columns import EPOCH
from changelog.lazy_imports import pa, pc, pl
from changelog.ops import Op
from errata.erasure.own_words import narrowed
from errata.erasure.quoting_corrections import ErasedNames, QuotingCorrections, corrected_nodes
from errata.erasure.remembered_events import FIELDS, RememberedEvents, Sorted, are_events, without_values
from errata.erasure.selection import IDENTITY, ErasedKeys, cut, gathered, live_of, op_rows, plain_nodes
from errata.erasure.spelling import spelled
from errata.erasure.values import ERASED, SYSTEM, Values, as_frame
from errata.plan.correlation import TRIGGERS
from errata.plan.plan import Node, Plan
from errata.state.triage_events import TRIAGE
from operators.corrections.operator import Corrections
from operators.output.booked import BookedOutput
from operators.output.history import HistoryOutput
from operators.source.events.known_records import TIMES, WHOSE
from operators.source.node import SourceNode
from storage.delta.changelog_table import ChangelogTable
from storage.delta.scrubbing import Change

_NOTES: Final = ("_error", "_cause")
"""Columns of op rows that quote values."""
_FILE: Final = "_file"
"""The column with the name of the input file of a row, also of a live one: a file with an erased value in its name is not there any more."""


@dataclass(slots=True)
class TableScrub:
    """The rows and cells that leave one table.

    Attributes:
        gone: Op rows that leave.
        left: Op rows that get another operation, as their other half leaves.
        keys: Keys whose op rows all leave.
        tainted: Keys of rows that the erasure changed.
        live: Live rows of the keys whose cells are looked at.
        dropped: How many op rows leave.
        emptied: How many op rows lose cells.
        epochs: The epochs of these op rows.
    """

    gone: pl.DataFrame
    left: pl.DataFrame
    keys: set[bytes] = field(default_factory=set)
    tainted: set[bytes] = field(default_factory=set)
    live: pl.DataFrame | None = None
    dropped: int = 0
    emptied: int = 0
    epochs: set[int] = field(default_factory=set)


@dataclass(slots=True)
class Scrub:
    """The scrubbing of all tables of a state.

    Attributes:
        plan: The pipeline.
        epoch: The epoch of the erasure, whose rows are in the tables.
        keys: The erased keys of each node.
        values: The values of the erased records that nobody else has, once `look` ran.
    """

    plan: Plan
    epoch: int
    keys: Mapping[str, ErasedKeys]
    table: Callable[[str], ChangelogTable]
    paths: Collection[str]
    older: pl.DataFrame = field(default_factory=lambda: gathered(()))
    """Op rows of erased records that only older versions of tables have."""
    values: Values = field(default_factory=Values)
    decisions: Collection[str] = ()
    """The decisions about dead letters that hold for an entry. The others about records of erased sources leave."""
    tables: dict[str, TableScrub] = field(default_factory=dict)
    _remembered: dict[str, RememberedEvents] = field(default_factory=dict)
    _digests: dict[str, set[str]] = field(default_factory=dict)
    """By source that asks a database the digests of erased records."""
    _dry: bool = False
    _salt: str = field(default_factory=lambda: token_hex(16))

    def look(self) -> None:
        """Find what has to leave. Nothing is changed."""
        plain = plain_nodes(self.plan)
        self.values.add_rows(self.older)
        for path, node in self._changelogs():
            found = cut(self.table(path), self.keys[node.name])
            self.tables[path] = TableScrub(found.rows.select(*IDENTITY), found.left)
            self.values.add_rows(found.rows)
            if node.is_source and cast("SourceNode", node.operator).has_memory:
                self._remembered[node.name] = RememberedEvents.of(cast("SourceNode", node.operator), self.keys[node.name], found.rows, self.epoch)
            if getattr(node.operator, "remembers", False):
                self._forget_versions(path, node)
        self._lost_texts(plain)
        self._share(plain)
        narrowed(self.values)
        for path, node in self._changelogs():
            if node.name not in plain:
                self._look_behind(path, node)
        for path, node in self._changelogs():
            if node.name not in plain:
                self._settle(path, node)

    def _changelogs(self) -> Iterator[tuple[str, Node]]:
        """The changelog tables of the plan that exist, in its order."""
        return ((path, node) for node in self.plan if (path := f"changelog/{node.name}") in self.paths and self.table(path).exists())

    def _forget_versions(self, path: str, node: Node) -> None:
        """A history loses the rows of erased records, also live ones: nothing upstream takes them back.

        Its keys tell the record that a row came from, as far as they hold the key of the input's row. For all others the written values have to be an erased
        record's, and no other record's.
        """
        above = node.inputs[0][0]
        source, operator, erased = f"changelog/{above}", node.operator, self.keys[above]
        if source not in self.paths or not erased or not isinstance(operator, HistoryOutput | BookedOutput):
            return
        images = cut(self.table(source), erased).rows
        others = gathered(rows.join(images, IDENTITY, "anti") for rows in op_rows(self.table(source)))
        shown = {name: origin for name, origin, _ in operator.taken}
        for rows in op_rows(self.table(path)):
            names = [name for name, origin in shown.items() if name in rows.columns and origin in images.columns and not rows.schema[name].is_nested()]
            came = _came_from(operator, rows)
            key = erased.matched(came)
            certain = key.is_not_null() & ~key.is_in(pl.Series([*erased.spans], dtype=pl.Binary).implode()).fill_null(value=False)
            hers, alien = (_alike(rows, part, shown, names) for part in (images, others))
            unknown = key.is_null() & ~came.is_in(others["_key"].implode()).fill_null(value=False)
            found = rows.filter(certain | (key.is_not_null() & hers) | (unknown & hers & ~alien))
            self.tables[path].gone = gathered([self.tables[path].gone, found.select(*IDENTITY)])
            self.values.add_rows(found.select(names))

    def _lost_texts(self, plain: Collection[str]) -> None:
        """Texts that a row behind totals or joins lost by the erasure are the erased records' too."""
        for path, node in self._changelogs():
            if node.name in plain:
                continue
            rows = gathered(part.filter(pl.col(EPOCH) == self.epoch) for part in op_rows(self.table(path)))
            old, new = rows.filter(pl.col("_op") == int(Op.CORRECT_FROM)), rows.filter(pl.col("_op") == int(Op.CORRECT_TO))
            gone = rows.filter(pl.col("_op") == int(Op.RETRACT))
            self.tables[path].tainted = {*map(bytes, rows["_key"])}
            self.tables[path].keys = {*map(bytes, gone["_key"])}
            for name, kind in rows.schema.items():
                if kind == pl.String and name not in SYSTEM:
                    pair = old.select("_key", name).join(new.select("_key", pl.col(name).alias("__new")), "_key")
                    lost = pair.filter(pl.col(name).ne_missing(pl.col("__new")))[name]
                    for text in pl.concat([lost, gone[name]]).drop_nulls().unique():
                        self.values.add(name, text)

    def _share(self, plain: Collection[str]) -> None:
        """Values that other records have too say nothing of the erased ones."""
        for path, node in self._changelogs():
            if node.name in plain:
                for rows in op_rows(self.table(path)):
                    kept = rows.join(self.tables[path].gone, IDENTITY, "anti")
                    self.values.without(self.values.found_in(kept))
        for name, memory in self._remembered.items():
            if memory.source.config.asks:
                self._digests[name] = {*memory.rejects["_file"]}
            if f"state/{name}" in self.paths and self.table(f"state/{name}").exists():
                for rows in op_rows(self.table(f"state/{name}")):
                    self._share_memory(rows, memory)

    def _share_memory(self, rows: pl.DataFrame, memory: RememberedEvents) -> None:
        """Keep the remembered values of a source's other records, and their keys and versions as bytes."""
        which = memory.sorted(rows)
        if memory.source.name in self._digests and "__does" in rows.columns:
            self._digests[memory.source.name] |= {*rows.filter(which.leave | which.lent)["_file"]}
        self.values.without(self.values.found_in(rows.filter(which.others), skip=FIELDS))
        for name in ("_key", "__of", "__ref", "__version"):
            if name in rows.columns:
                kept = rows.filter(which.others if name == "__ref" else which.others | which.lent)
                self.values.without(self.values.found_in_keys(kept[name]))

    def _look_behind(self, path: str, node: Node) -> None:
        """Rows that hold a value, of a node whose rows are made of several records."""
        found = self.tables[path]
        keys = pl.concat([self._candidates(rows, found)["_key"] for rows in op_rows(self.table(path))] or [pl.Series("_key", [], pl.Binary)]).unique()
        rows = gathered(part.filter(pl.col("_key").is_in(keys.implode())) for part in op_rows(self.table(path)))
        rows = rows.join(found.gone, IDENTITY, "anti")
        found.live = live_of(rows)
        found.keys -= {*map(bytes, found.live["_key"])}
        standing = rows.join(found.live, IDENTITY, "semi")
        self.values.without(self.values.found_in(standing))

    def _candidates(self, rows: pl.DataFrame, found: TableScrub) -> pl.DataFrame:
        touched = pl.Series([*found.tainted, *found.keys], dtype=pl.Binary).implode()
        holds = rows["_key"].is_in(touched) | self.values.holding(rows["_key"], whole=False)
        for column in rows:
            if column.name not in SYSTEM or column.name in _NOTES:
                holds = holds | self.values.holding(column, whole=True)
        return rows.filter(holds)

    def _settle(self, path: str, node: Node) -> None:
        """Keys that name an erased record leave with all their rows."""
        found, groups = self.tables[path], {*getattr(node.spec.config, "group_by", ())}
        for rows in op_rows(self.table(path)):
            named = self.values.holding(rows["_key"], whole=False)
            for name in groups & {*rows.columns}:
                named = named | self.values.holding(rows[name], whole=True)
            found.keys |= {*map(bytes, rows.filter(named)["_key"].unique())}
        if found.live is not None:
            found.keys -= {*map(bytes, found.live["_key"])}

    # -- doing it

    def file_name(self, name: str) -> str:
        """The name of an input file; of one with an erased value another one, which no other file has."""
        if not self.values.holding(pl.Series("path", [name]), whole=False)[0]:
            return name
        return f"{ERASED}/{sha256((self._salt + name).encode()).hexdigest()[:16]}"

    def quoting(self) -> Iterator[str]:
        """The places of corrections as code that name or quote an erased record."""
        for node, key, corrections in corrected_nodes(self.plan):
            yield from QuotingCorrections(node, key, corrections, self._names.of(node, key), self.values).places()

    @property
    def _names(self) -> ErasedNames:
        return ErasedNames(self.plan, self.keys, self.table, self.paths, self.older)

    def scrub(self, *, dry: bool = False) -> dict[str, TableScrub]:
        """Let the rows and values leave all tables, in new versions of them. A dry one only counts them."""
        self._dry = dry
        for path, _ in self._changelogs():
            self._rewrite(path, self._changelog_change(path))
        for path in sorted(self.paths):
            if path.startswith("state/") and self.table(path).exists():
                self._scrub_state(path)
        if TRIGGERS in self.paths and self.table(TRIGGERS).exists():
            live = live_of(gathered(op_rows(self.table(TRIGGERS))))
            self._keep(TRIGGERS, lambda rows: rows.join(live, IDENTITY, "semi"))
        if TRIAGE in self.paths and self.table(TRIAGE).exists():
            self._keep(TRIAGE, self._decided)
        return self.tables

    def _rewrite(self, path: str, change: Change) -> None:
        if not self._dry:
            self.table(path).rewrite(change)
            return
        for rows in self.table(path).stored_rows():
            change(rows)

    def _changelog_change(self, path: str) -> Change:
        found = self.tables[path]
        keys = pl.Series([*found.keys], dtype=pl.Binary).implode()
        tainted = pl.Series([*found.tainted], dtype=pl.Binary).implode()

        def change(stored: pa.Table) -> pa.Table:
            rows = as_frame(stored)
            marks = rows.select(*IDENTITY).with_row_index("__at")
            gone = marks.join(found.gone, IDENTITY, "semi")["__at"]
            leaves = pl.repeat(False, rows.height, eager=True).scatter(gone, True) | rows["_key"].is_in(keys)
            live = marks.join(found.live, IDENTITY, "semi")["__at"] if found.live is not None else gone.clear()
            dead = ~leaves & ~pl.repeat(False, rows.height, eager=True).scatter(live, True)
            if found.live is None:
                leaves = leaves | self._named_by_file(rows)
            changed, emptied = self._emptied(stored, rows, dead, rows["_key"].is_in(tainted), behind=found.live is not None)
            changed = _with_ops(changed, marks, found.left)
            found.dropped += int(leaves.sum())
            found.emptied += int(emptied.sum())
            found.epochs |= {*rows.filter(leaves | emptied)[EPOCH]}
            return changed.filter((~leaves).rechunk().to_arrow()) if leaves.any() else changed

        return change

    def _named_by_file(self, rows: pl.DataFrame) -> pl.Series:
        """Which rows are rejects of a file with a value in its name, which is in their keys too."""
        if not {"_error", _FILE} <= {*rows.columns}:
            return pl.repeat(False, rows.height, eager=True)
        return rows["_error"].is_not_null() & self.values.holding(rows[_FILE], whole=False)

    def _emptied(self, stored: pa.Table, rows: pl.DataFrame, dead: pl.Series, tainted: pl.Series, *, behind: bool) -> tuple[pa.Table, pl.Series]:
        """Rows without erased values in their cells, and which rows had any."""
        touched = pl.repeat(False, rows.height, eager=True)
        numbers = list(self.values.numbers())
        for column in rows:
            if column.name in (*_NOTES, _FILE):
                named = column.name == _FILE
                holds = self.values.holding(column, whole=False) & (dead | named)
                if holds.any():
                    other = self.file_name if named else self.values.blanked_error if column.name == "_error" else self.values.blanked
                    texts = pl.Series([other(text) if hit and text is not None else text for text, hit in zip(column, holds, strict=True)], dtype=pl.String)
                    holds = holds & texts.ne_missing(column)
                    stored = _with_column(stored, column.name, texts.to_arrow().cast(stored.schema.field(column.name).type))
            elif behind and column.name not in SYSTEM:
                holds = self.values.holding(column, whole=True) & dead
                if numbers and column.dtype.is_numeric():
                    holds = holds | (spelled(column).is_in(numbers).fill_null(value=False) & dead & tainted)
                if holds.any():
                    stored = _with_nulls(stored, column.name, holds)
            else:
                continue
            touched = touched | holds
        return stored, touched

    def _scrub_state(self, path: str) -> None:
        """Of a node's own state only the newest stays, and nothing of erased keys; of a source nothing that the next run makes again."""
        name = path.removeprefix("state/")
        node, erased = self.plan[name], self.keys[name]
        if node.is_source:
            if cast("SourceNode", node.operator).has_memory:
                self._rewrite(path, self._memory_change(path, node))
            else:
                self._keep(path, lambda rows: rows.clear() if erased else rows)
            return
        lookups = pl.Series([*self._names.lookups(node)], dtype=pl.Binary).implode() if isinstance(node.operator, Corrections) else None
        newest = gathered(rows.select("_key", EPOCH) for rows in op_rows(self.table(path))).group_by("_key").agg(pl.col(EPOCH).max())
        gone = pl.Series([*self.tables[f"changelog/{name}"].keys] if f"changelog/{name}" in self.tables else [], dtype=pl.Binary).implode()

        def kept(rows: pl.DataFrame) -> pl.DataFrame:
            named = rows["_key"].is_in(gone) | self.values.holding(rows["_key"], whole=False)
            if lookups is not None:
                named = named | rows["lookup"].is_in(lookups).fill_null(value=False)
            return _with_state(rows.filter(~named).join(newest, ["_key", EPOCH], "semi"))

        self._keep(path, kept)

    def _decided(self, rows: pl.DataFrame) -> pl.DataFrame:
        """The decisions that quote no erased value, and may not be about an erased record."""
        sources = [name for name, keys in self.keys.items() if keys and self.plan[name].is_source]
        leaves = rows["source"].is_in(sources) & ~rows["name"].is_in([*self.decisions])
        for column in (column for column in rows if column.dtype == pl.String):
            leaves = leaves | self.values.holding(column, whole=False)
        return rows.filter(~leaves.fill_null(value=False))

    def _memory_change(self, path: str, node: Node) -> Change:
        """Of a source's memory the events of erased records leave. Others stay: messages of theirs lose the erased values, and what the erased records did to others has no values."""
        found, erased = self.tables.setdefault(path, TableScrub(gathered(()), gathered(()))), self.keys[node.name]
        memory, digests = self._remembered.get(node.name), pl.Series([*self._digests.get(node.name, ())], dtype=pl.String).implode()

        def change(stored: pa.Table) -> pa.Table:
            rows = as_frame(stored)
            no = pl.repeat(False, rows.height, eager=True)
            which = memory.sorted(rows) if memory is not None else Sorted(no, no, no, are_events(rows))
            leaves = which.leave | (~are_events(rows) & self._tells(rows, erased, digests)) | (which.others & self._named_by_file(rows))
            blanked, quoted = self._blanked_events(without_values(rows, which), which, asks=node.name in self._digests)
            touched = (which.lent | which.widowed | quoted) & ~leaves
            if not leaves.any() and not touched.any():
                return stored
            found.dropped += int(leaves.sum())
            found.emptied += int(touched.sum())
            for name in rows.columns if touched.any() else ():
                if not blanked[name].equals(rows[name], null_equal=True):
                    stored = _with_column(stored, name, blanked[name].rechunk().to_arrow().cast(stored.schema.field(name).type))
            return stored.filter((~leaves).rechunk().to_arrow())

        return change

    def _tells(self, rows: pl.DataFrame, erased: ErasedKeys, digests: pl.Series) -> pl.Series:
        """Which rows of a source's memory, that are no events, say something of erased records."""
        holds = pl.repeat(False, rows.height, eager=True)
        for name in ("_key", "__of", WHOSE) if erased else ():
            if name in rows.columns:
                holds = holds | erased.matched(rows[name]).is_not_null()
        if TIMES in rows.columns:
            holds = holds | (rows[TIMES].is_not_null() & rows[_FILE].is_in(digests).fill_null(value=False))
        for column in rows:
            if column.name != EPOCH:
                holds = holds | self.values.holding(column, whole=False)
        return holds

    def _blanked_events(self, rows: pl.DataFrame, which: Sorted, *, asks: bool) -> tuple[pl.DataFrame, pl.Series]:
        """Remembered events whose messages and file names have no erased value, and which ones had any. `asks`: their files are digests of records."""
        touched = pl.repeat(False, rows.height, eager=True)
        for name in (one for one in ("_error", "__shown", "__anchor", _FILE) if one in rows.columns):
            digest = name == _FILE and asks
            holds = which.lent if digest else self.values.holding(rows[name], whole=False) & which.others
            if not holds.any():
                continue
            other = self._other_digest if digest else self.file_name if name in (_FILE, "__anchor") else self.values.blanked
            names = {text: other(text) for text in rows.filter(holds)[name].unique()}
            if name == _FILE and "__of" in rows.columns:  # an event that is kept by itself has the name of its file in its key
                keys = [key.replace(file.encode(), names[file].encode(), 1) if hit else key for key, file, hit in zip(rows["_key"], rows[name], holds, strict=True)]
                rows = rows.with_columns(pl.Series("_key", keys, dtype=pl.Binary))
            rows = rows.with_columns(pl.when(holds).then(pl.col(name).replace(names)).otherwise(name).alias(name))
            touched = touched | holds
        return rows, touched

    def _other_digest(self, digest: str) -> str:
        """Another digest in the place of an erased record's, which no values have."""
        return sha256((self._salt + digest).encode()).hexdigest()

    def _keep(self, path: str, choose: Callable[[pl.DataFrame], pl.DataFrame]) -> None:
        """Let rows leave a table that is no changelog."""
        found = self.tables.setdefault(path, TableScrub(gathered(()), gathered(())))

        def change(stored: pa.Table) -> pa.Table:
            rows = as_frame(stored).with_row_index("__at")
            kept = choose(rows)
            if kept.height == rows.height:
                return stored
            found.dropped += rows.height - kept.height
            return stored.take(kept["__at"].sort().cast(pl.Int64).rechunk().to_arrow())

        self._rewrite(path, change)


def _came_from(operator: HistoryOutput | BookedOutput, rows: pl.DataFrame) -> pl.Series:
    """By row of an output that remembers the key of the input's row that it came from; null where its own key does not hold it."""
    good = pl.col("_error").is_null() if "_error" in rows.columns else pl.lit(value=True)
    if isinstance(operator, BookedOutput):
        return rows.select(pl.when(good).then("_lookup").alias("_key"))["_key"]
    length, mark = operator.bytes_before_input, operator.times.mark
    if length is None:
        return pl.repeat(None, rows.height, dtype=pl.Binary, eager=True)
    same = good & pl.col("_lookup").bin.starts_with(mark)
    return rows.select(pl.when(same).then(pl.col("_key").bin.slice(pl.col("_lookup").bin.size() + length)).alias("_key"))["_key"]


def _alike(rows: pl.DataFrame, images: pl.DataFrame, shown: Mapping[str, str], names: Sequence[str]) -> pl.Series:
    """Which rows of an output say what one of these rows of its input says. `shown`: by written column the input's; `names`: the written ones that are compared."""
    if not names or not images.height:
        return pl.repeat(False, rows.height, eager=True)
    written = images.select(pl.col(shown[name]).cast(rows.schema[name], strict=False).alias(name) for name in names).unique()
    marked = rows.select(names).join(written.with_columns(__met=True), names, "left", nulls_equal=True, maintain_order="left")
    return marked["__met"].fill_null(value=False)


def _with_state(rows: pl.DataFrame) -> pl.DataFrame:
    """The states of keys that have one: a removed state has nothing but its key."""
    others = [pl.col(name).is_not_null() for name in rows.columns if name not in ("_key", EPOCH, "__at")]
    return rows.filter(pl.any_horizontal(others)) if others else rows


def _with_ops(stored: pa.Table, marks: pl.DataFrame, left: pl.DataFrame) -> pa.Table:
    """Rows whose other half leaves, with their new operation."""
    new = marks.join(left, IDENTITY, "left", maintain_order="left")["__new"] if left.height else None
    if new is None or not new.is_not_null().any():
        return stored
    ops = pl.select(pl.coalesce(new, marks["_op"])).to_series()
    return _with_column(stored, "_op", ops.to_arrow().cast(stored.schema.field("_op").type))


def _with_nulls(stored: pa.Table, name: str, holds: pl.Series) -> pa.Table:
    field = stored.schema.field(name)
    values = stored.column(name).to_pylist() if pa.types.is_nested(field.type) else None
    if values is not None:
        return _with_column(stored, name, pa.array([None if hit else value for value, hit in zip(values, holds, strict=True)], field.type))
    return _with_column(stored, name, pc.if_else(holds.rechunk().to_arrow(), pa.scalar(None, field.type), stored.column(name)))


def _with_column(stored: pa.Table, name: str, values: pa.Array | pa.ChunkedArray) -> pa.Table:
    return stored.set_column(stored.schema.get_field_index(name), stored.schema.field(name), values)
