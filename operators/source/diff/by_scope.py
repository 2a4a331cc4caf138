"""Scoped snapshots: a delivery is the whole truth for the scopes that it covers, and for each scope the latest delivery in file order counts.

What is live is the union over the scopes. A record of the same key in the counted deliveries of two scopes is live as the later of them says; what the other
one says is *shadowed*. The source's state keeps the counted delivery of each scope, and the shadowed records with their values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

from changelog.columns import column
from changelog.frames import any_of, chosen, united
from changelog.keys.spark import key_column
from changelog.lazy_imports import F, Window, pa, pl
from changelog.rows import Rows
from changelog.spark_algebra import as_appends, diff
from operators.source.diff.by_key import read
from operators.source.events.order import places
from operators.source.file_changes import FileRecord, Part, whole
from operators.source.node import config_type
from operators.source.request import IngestRequest, IngestResult, Memory
from operators.source.scope_paths import ScopePattern
from operators.source.strategies.keyed_events import rejected, with_earlier_columns
from operators.source.unique_keys import UniqueKeys

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_SCOPE, _RECORD = "s", "r"
"""The subject of a row of the state."""
_KEPT: Final = {"__kind": "string", "__scope": "binary", "__of": "binary", "__delivery": "string", "__turn": "bigint"}
_SCOPES: Final = ("__scope", "__delivery", "__turn")


def ingest(request: IngestRequest) -> IngestResult:
    """Return the delta of deliveries. Raises InputChanged for keys that are null or twice in one delivery, InputError for paths that tell no scope."""
    return ScopedDelivery.read(request).result()


@dataclass(frozen=True)
class ScopedDelivery:
    """The files that a run reads of a source with scopes.

    Attributes:
        request: The request of the source.
        parts: The files that are read.
        records: Their records, with `__scope`; rejects have none.
        files: The entries of the files after the run.
        count: The number of records, where they are on the driver.
    """

    request: IngestRequest
    parts: Sequence[Part]
    records: DataFrame
    files: tuple[FileRecord, ...]
    count: int | None

    @classmethod
    def read(cls, request: IngestRequest) -> ScopedDelivery:
        """Read the files that are new, that changed or grew; all present ones where the source was edited."""
        changes, files = request.changes, request.files
        parts = [replace(part, record=files.undeclared(part.record)) for part in whole(changes, _to_read(request))]
        keyed = read(request, parts)
        counted = keyed.records if keyed.rows.table is not None else [files.counted(part) for part in parts]
        now = {record.label: record for record in (*changes.now, *with_earlier_columns(changes.now, counted))}
        count = None if keyed.rows.table is None else keyed.rows.table.num_rows
        records = with_scopes(request, keyed.frame, parts)
        UniqueKeys(request, None).check_files(records)
        return cls(request, parts, records, tuple(now.values()), count)

    # -- scopes

    @property
    def _memory(self) -> Memory:
        assert self.request.memory is not None  # a source with scopes has one
        return self.request.memory

    @cached_property
    def _where(self) -> dict[str, int]:
        return places(self.request)

    @cached_property
    def _kept(self) -> DataFrame | None:
        """The state of earlier runs; None where there is none."""
        found = None if self.request.prior is None else self._memory.latest()
        return None if found is None else found.where(F.col("__kind").isNotNull())

    @cached_property
    def _turns(self) -> Mapping[str, int]:
        """The epoch in which each file that is read was delivered."""
        return {part.record.stored: part.record.arrived for part in self.parts}

    @cached_property
    def _covered(self) -> pl.DataFrame:
        """The scopes that the files that are read cover, with file and turn."""
        pattern = self.request.source.scope_pattern
        if pattern is None:
            found = self.request.engine.to_arrow(self.records.where(F.col("_error").isNull()).select("__scope", F.col("_file").alias("__delivery")).distinct())
            covered = pl.DataFrame(found)
        else:
            scopes = [(pattern.scope(part.record.path), part.record.stored) for part in self.parts]
            covered = pl.DataFrame(scopes, schema={"__scope": pl.Binary, "__delivery": pl.String}, orient="row")
        return covered.with_columns(__turn=pl.col("__delivery").replace_strict(self._turns, default=0, return_dtype=pl.Int64)).select(_SCOPES)

    @cached_property
    def _known(self) -> pl.DataFrame:
        """The counted delivery of each scope before the run; where all files are read again, only of missing ones."""
        if self._kept is None:
            return pl.DataFrame(_scopes_schema().empty_table())
        found = pl.DataFrame(self.request.engine.to_arrow(self._kept.where(F.col("__kind") == _SCOPE).select(*_SCOPES)))
        if not self.request.rebuilt:
            return found
        again = found["__delivery"].replace_strict(self._turns, default=-1, return_dtype=pl.Int64)
        return found.filter(again != found["__turn"])

    @cached_property
    def _counted(self) -> pl.DataFrame:
        """The counted delivery of each scope after the run, with its rank among the deliveries, and whether it is read now."""
        both = pl.concat([self._known.with_columns(__fresh=pl.lit(value=False)), self._covered.with_columns(__fresh=pl.lit(value=True))])
        placed = both.with_columns(__place=pl.col("__delivery").replace_strict(self._where, default=-1, return_dtype=pl.Int64))
        return placed.sort("__place", "__turn", "__fresh").unique("__scope", keep="last", maintain_order=True)

    @cached_property
    def _ranks(self) -> DataFrame:
        return self.request.engine.from_arrow(self._counted.select("__scope", "__delivery", "__place", "__turn", "__fresh").to_arrow().cast(_ranks_schema()))

    @property
    def _is_first(self) -> bool:
        return self.request.prior is None

    # -- rows

    def result(self) -> IngestResult:
        """The delta, and the entries of files. Stores what is to be remembered."""
        self._warn_of_empty()
        request = self.request
        names = ["_key", "__scope", *request.files.shape.columns]
        counting = self.records.where(F.col("_error").isNull()).join(F.broadcast(self._ranks.where("__fresh").select("__scope", F.col("__delivery").alias("_file"))), ["__scope", "_file"], "left_semi")
        fresh = chosen(counting, names)
        old, rest, shadowed = self._prior(fresh, names)
        live, shadows = self._ranked([fresh, *rest], names)
        self._remember(shadows, shadowed)
        rejects = self._rejects(names)
        compare = [*dict.fromkeys([*request.compared(), "__scope"])]
        if old is None:
            rows = as_appends(united(live, rejects).drop("__scope"), request.fresh_cause)
        else:
            rows = diff(united(old, self._old_rejects(names)), united(live, rejects), request.cause, compare=compare).drop("__scope")
            rows = rows.withColumn("_cause", F.when(F.col("_op") == 0, F.lit(request.fresh_cause)).otherwise(F.col("_cause")))
        bound = None if self.count is None or not self._is_first else self.count
        return IngestResult(Rows(request.engine, frame=rows), not self._is_first, self.files, (), bound, standing=None if old is None else self._standing)

    def _live_before(self, names: Sequence[str]) -> DataFrame | None:
        """The prior rows with their scopes."""
        prior = self.request.prior_rows
        if prior is None:
            return None
        good = prior.where(F.col("_error").isNull())
        pattern = self.request.source.scope_pattern
        if pattern is None:
            return good.withColumn("__scope", _of_fields(self.request)).select(*map(column, names))
        return good.join(F.broadcast(_of_files(self.request, pattern, self.request.changes.now)), "_file", "left").select(*map(column, names))

    def _prior(self, fresh: DataFrame, names: Sequence[str]) -> tuple[DataFrame | None, list[DataFrame], DataFrame | None]:
        """The prior rows of the keys that the run touches.

        Returns:
            The prior rows; the live and shadowed records that still count; and the shadowed ones of these keys.
        """
        before = self._live_before(names)
        if before is None:
            return None, [], None
        replaced = F.broadcast(self._ranks.where("__fresh").select("__scope"))
        kept = F.broadcast(self._ranks.where(~F.col("__fresh")).select("__scope"))
        again = self.request.rebuilt
        out_live = before.join(kept, "__scope", "left_anti") if again else before.join(replaced, "__scope", "left_semi")
        shadow = None if self._kept is None else self._kept.where(F.col("__kind") == _RECORD).withColumn("__shadow", F.col("_key")).withColumn("_key", F.col("__of"))
        shadow = None if shadow is None else _fitted(shadow, before, [*names, "__shadow"])
        keys = [fresh.select("_key"), out_live.select("_key")]
        if shadow is not None:
            out_shadow = shadow.join(kept, "__scope", "left_anti") if again else shadow.join(replaced, "__scope", "left_semi")
            keys.append(out_shadow.select("_key"))
        touched = united(*keys).distinct()
        old = before if again else before.join(touched, "_key", "left_semi")
        rest = [chosen(chosen(old, names).join(kept, "__scope", "left_semi"), names)]
        if shadow is None:
            return chosen(old, names), rest, None
        near = shadow if again else shadow.join(touched, "_key", "left_semi")
        rest.append(chosen(near.join(kept, "__scope", "left_semi"), names))
        return chosen(old, names), rest, near

    def _ranked(self, candidates: Sequence[DataFrame], names: Sequence[str]) -> tuple[DataFrame, DataFrame | None]:
        """The live records, and the records that another scope shadows."""
        if len(candidates) == 1 and not self._may_meet():
            return candidates[0], None
        ranks = F.broadcast(self._ranks.select("__scope", "__place", "__turn"))
        by_key = Window.partitionBy("_key").orderBy(F.col("__place").desc(), F.col("__turn").desc())
        ranked = united(*candidates).join(ranks, "__scope").withColumn("__rank", F.row_number().over(by_key))
        return chosen(ranked.where(F.col("__rank") == 1), names), chosen(ranked.where(F.col("__rank") > 1), names)

    def _may_meet(self) -> bool:
        """Whether a key may be in several files."""
        return len(self.parts) > 1

    def _remember(self, shadows: DataFrame | None, before: DataFrame | None) -> None:
        """Store the counted deliveries that are new, and the records that became shadowed or are no more. `before`: the records that were shadowed."""
        request = self.request
        counted = self._counted if request.rebuilt or self._is_first else self._counted.filter(pl.col("__fresh"))
        scopes = request.engine.from_arrow(counted.select("__scope", "__delivery", "__turn").to_arrow().cast(_scopes_schema()))
        rows = self._as_kept(scopes, _SCOPE, _key=F.concat(F.lit(b"s"), F.col("__scope")))
        if shadows is not None:
            made = self._as_kept(shadows, _RECORD, _key=F.concat(F.lit(b"r"), F.col("__scope"), F.col("_key")), __of=F.col("_key"))
            rows = united(rows, made)
            if before is not None and not request.rebuilt:
                stale = before.select(F.col("__shadow").alias("_key")).join(made.select("_key"), "_key", "left_anti")
                rows = united(rows, self._as_kept(stale, None))
        if request.rebuilt:
            rows = request.engine.from_arrow(request.engine.to_arrow(rows)) if self._kept is not None else rows
            self._memory.forget()
        self._memory.keep(rows, None if self.count is None or self._kept is not None else 3 * self.count + self._counted.height)

    def _as_kept(self, rows: DataFrame, kind: str | None, **set_columns: Column) -> DataFrame:
        """Rows of the state. What neither they have nor `set_columns` says is null. `kind`: what they are about; None for what is no more."""
        types = _KEPT | {field.name: field.dataType for field in self.records.schema.fields if field.name not in _KEPT}
        names = [name for name in self.request.files.shape.columns if name not in _KEPT]
        columns = {"__kind": F.lit(kind), **{name: column(name) for name in rows.columns}, **set_columns}
        return rows.select(*(columns.get(name, F.lit(None)).cast(types[name]).alias(name) for name in ("_key", *_KEPT, *names)))

    # -- rejects

    @cached_property
    def _silent(self) -> list[str]:
        """The files that counted before the run or were read, and count for no scope now: their rejects are none any more."""
        counting = set(self._counted["__delivery"])
        covering = {*self._known["__delivery"], *self._covered["__delivery"]}
        return sorted(covering - counting)

    def _rejects(self, names: Sequence[str]) -> DataFrame:
        """The rejects of the files that are read, but for files that cover scopes and count for none."""
        bad = self.records.where(F.col("_error").isNotNull())
        return chosen(bad.where(~F.col("_file").isin(self._silent)) if self._silent else bad, names)

    def _old_rejects(self, names: Sequence[str]) -> DataFrame:
        """The prior rejects of files that are read again or do not count any more."""
        prior = self.request.prior_rows
        assert prior is not None  # was asked for
        files = [*self._silent, *self._turns]
        bad = prior.where(F.col("_error").isNotNull() & F.col("_file").isin(files))
        return bad.withColumn("__scope", F.lit(None).cast("binary")).select(*map(column, names))

    # -- warnings and the guard

    def _standing(self) -> int:
        """The number of prior rows in the scopes that the run delivers."""
        before = self._live_before(["_key", "__scope"])
        assert before is not None  # else nothing is taken back
        delivered = self.request.engine.from_arrow(self._covered.select("__scope").unique().to_arrow().cast(pa.schema([("__scope", pa.binary())])))
        return int(before.join(F.broadcast(delivered), "__scope", "left_semi").count())

    def _warn_of_empty(self) -> None:
        """Warn of deliveries that cover no scope (W461)."""
        delivered = {record.path for record in (*self.request.delivered.added, *self.request.delivered.changed, *(part.record for part in self.request.delivered.grown))}
        covering = set(self._covered["__delivery"])
        for part in self.parts:
            if part.record.stored not in covering and part.record.path in delivered:
                self.request.warn(f"W461: source '{self.request.source.name}': {part.record.path} has no records, and so covers no scope: nothing changes")


def _to_read(request: IngestRequest) -> list[FileRecord]:
    """The files to read. An overwritten or longer one is a new delivery in its place."""
    changes = request.changes
    if request.rebuilt:
        fresh = {record.path for record in (*request.delivered.added, *request.delivered.changed, *(part.record for part in request.delivered.grown))}
        return [replace(record, rows=0, arrived=request.epoch if record.path in fresh else record.arrived) for record in changes.now if record.present]
    again = [*changes.changed, *(part.record for part in changes.grown)]
    return [*(replace(record, arrived=request.epoch) for record in changes.added), *(replace(record, rows=0, replaced=True, arrived=request.epoch) for record in again)]


def with_scopes(request: IngestRequest, records: DataFrame, parts: Sequence[Part]) -> DataFrame:
    """Records with their scopes. A record without one, or with another than the path of its file tells, is rejected."""
    pattern, good = request.source.scope_pattern, F.col("_error").isNull()
    if pattern is None:
        fields = _fields(request)
        null = any_of([column(name).isNull() for name in fields])
        scoped = rejected(records, good & null, "null_scope", F.lit(f"the scope ({', '.join(fields)}) is null"))
        return scoped.withColumn("__scope", F.when(F.col("_error").isNull(), _of_fields(request)))
    scoped = records.join(F.broadcast(_of_files(request, pattern, [part.record for part in parts])), "_file", "left")
    for name in pattern.types:
        scoped = rejected(scoped, F.col("_error").isNull() & column(name).isNull(), "null_scope", F.lit(f"the scope ({name}) is null"))
        other = ~column(name).eqNullSafe(column(f"__told_{name}"))
        detail = F.concat(F.lit(f"{name} is "), column(name).cast("string"), F.lit(", where the path of the file says "), column(f"__told_{name}").cast("string"))
        scoped = rejected(scoped, F.col("_error").isNull() & other, "out_of_scope", detail)
    return scoped.withColumn("__scope", F.when(F.col("_error").isNull(), F.col("__scope"))).drop(*(f"__told_{name}" for name in pattern.types))


def _fields(request: IngestRequest) -> list[str]:
    scope = request.config.merge.scope
    return list(scope) if isinstance(scope, list) else []


def _of_fields(request: IngestRequest) -> Column:
    """The scope that the fields of a record name."""
    return key_column([(column(name), config_type(request.config, name)) for name in _fields(request)])


def _of_files(request: IngestRequest, pattern: ScopePattern, records: Sequence[FileRecord]) -> DataFrame:
    """The scope of each file, and what its path says of columns (`_told_…`)."""
    fitting = [record for record in records if pattern.values(record.path) is not None]
    schema = request.files.reader.schema()
    columns = {"_file": pa.array([record.stored for record in fitting], pa.string()), "__scope": pa.array([pattern.scope(record.path) for record in fitting], pa.binary())}
    typed = [pattern.typed(record.path) for record in fitting]
    columns |= {f"__told_{name}": pa.array([one[name].as_py() for one in typed], schema.field(name).type) for name in pattern.types}
    return request.engine.from_arrow(pa.table(columns))


def _fitted(rows: DataFrame, like: DataFrame, names: Sequence[str]) -> DataFrame:
    """Kept records with the columns that the source's rows have now."""
    types = {field.name: field.dataType for field in like.schema.fields}
    return rows.select(*((column(name) if name in rows.columns else F.lit(None)).cast(types.get(name, "binary")).alias(name) for name in names))


def _ranks_schema() -> pa.Schema:
    return pa.schema([("__scope", pa.binary()), ("__delivery", pa.string()), ("__place", pa.int64()), ("__turn", pa.int64()), ("__fresh", pa.bool_())])


def _scopes_schema() -> pa.Schema:
    return pa.schema([("__scope", pa.binary()), ("__delivery", pa.string()), ("__turn", pa.int64())])
