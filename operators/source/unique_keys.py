"""The rule that a primary key is not null and identifies one record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any, Final

from changelog.columns import column
from changelog.lazy_imports import F, pa, pc, pl
from operators.core.value_text import shown
from operators.source.diff.sides import FEW_KEYS, joined
from operators.source.request import IngestRequest, InputChanged
from storage.delta.chosen_rows import InValues

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_SHOWN: Final = 2
"""How many of the records of one key a message names."""


@dataclass(frozen=True, slots=True)
class UniqueKeys:
    """Checks that a primary key is not null and unique among new records and `others`."""

    request: IngestRequest
    others: DataFrame | None

    @property
    def names(self) -> list[str]:
        """The columns of the key."""
        return self.request.config.merge.primary_key

    def check_table(self, table: pa.Table) -> None:
        """Raise InputChanged for records on the driver."""
        frame = pl.DataFrame({name: table.column(name) for name in ("_key", "_file", "_row", "_error", *self.names)}).filter(pl.col("_error").is_null())
        if frame["_key"].n_unique() == frame.height and not any(frame[name].null_count() for name in self.names):
            return
        counted = frame.group_by("_key").agg(pl.len().alias("__n"), *(pl.col(name).first() for name in self.names))
        wrong = counted.filter((pl.col("__n") > 1) | pl.any_horizontal(pl.col(name).is_null() for name in self.names)).sort("_key")
        if wrong.height:
            places = frame.filter(pl.col("_key") == wrong["_key"][0]).select("_file", "_row").sort("_file", "_row").head(_SHOWN)
            raise self._error(wrong.row(0, named=True), places.rows())

    def check_files(self, records: DataFrame) -> None:
        """Raise InputChanged for records where a key is null, or is twice in one file."""
        good = records.where(F.col("_error").isNull()).select(*map(column, dict.fromkeys(["_key", "_file", "_row", *self.names])))
        counted = good.groupBy("_file", "_key").agg(F.count(F.lit(1)).alias("__n"), *(F.first(column(name)).alias(name) for name in self.names))
        found = self.request.engine.to_arrow(counted.where((F.col("__n") > 1) | self._null()).orderBy("_file", "_key"), 1).to_pylist()
        if found:
            met = good.where((F.col("_key") == F.lit(found[0]["_key"])) & (F.col("_file") == found[0]["_file"])).select("_file", "_row")
            places = self.request.engine.to_arrow(met.orderBy("_row"), _SHOWN).to_pylist()
            raise self._error(found[0], [(place["_file"], place["_row"]) for place in places])

    def check(self, delta: DataFrame) -> None:
        """Raise InputChanged for op rows."""
        self.check_others(delta)
        if self._ascend(delta):
            return
        keys = delta.where(F.col("_op").isin(0, 3) & F.col("_error").isNull()).select(*map(column, ["_key", *self.names]))
        found = self.request.engine.up_to(self.suspects(keys), FEW_KEYS)
        if isinstance(found, pa.Table):
            if not found.num_rows:
                return
            keys = joined(keys.withColumn("__k", F.xxhash64("_key")), found, self.request.engine, "left_semi", "__k")
        counted = keys.groupBy("_key").agg(F.count(F.lit(1)).alias("__n"), *(F.first(column(name)).alias(name) for name in self.names))
        wrong = self.request.engine.to_arrow(counted.where((F.col("__n") > 1) | self._null()).orderBy("_key"), 1).to_pylist()
        if wrong:
            raise self._error(wrong[0], self._places(delta, wrong[0]["_key"]))

    def _ascend(self, delta: DataFrame) -> bool:
        """Return whether the stored keys ascend and none is null, so that each occurs once."""
        null = self._null().alias("__null")
        keys = delta.where(F.col("_op").isin(0, 3) & F.col("_error").isNull()).select("_key", null)
        runs = self.request.engine.to_arrow(keys.mapInArrow(_runs, "first binary, last binary, ascending boolean")).sort_by("first")
        first, last = (runs.column(name).to_pylist() for name in ("first", "last"))
        return all(runs.column("ascending").to_pylist()) and all(before < behind for before, behind in zip(last, first[1:], strict=False))

    def suspects(self, keys: DataFrame) -> DataFrame:
        """Return the hashes `__k` of keys (`_key` and the columns of the key) that are null or share their hash. Counting numbers takes a fraction of the time that bytes take."""
        counted = keys.groupBy(F.xxhash64("_key").alias("__k")).agg(F.count(F.lit(1)).alias("__n"), F.count(F.when(self._null(), 1)).alias("__null"))
        return counted.where((F.col("__n") > 1) | (F.col("__null") > 0)).select("__k")

    def check_others(self, delta: DataFrame) -> None:
        """Raise InputChanged for inserted keys that one of the others has."""
        if self.others is None:
            return
        fresh = self.request.engine.up_to(delta.where((F.col("_op") == 0) & F.col("_error").isNull()).select("_key"), FEW_KEYS)
        if isinstance(fresh, pa.Table) and not fresh.num_rows:
            return
        wrong = self._met(self.others, fresh)
        if wrong:
            raise self._error({**wrong[0], "__n": 2}, self._places(delta, wrong[0]["_key"]), wrong[0]["_file"])

    def _met(self, others: DataFrame, fresh: pa.Table | DataFrame) -> list[dict[str, Any]]:
        """Return the first of the others that has one of the fresh keys. Few keys are looked for on the driver, in files whose bounds include them."""
        names = list(dict.fromkeys(["_key", "_file", *self.names]))
        if isinstance(fresh, pa.Table) and self.request.prior is not None:
            keys = fresh.column("_key").unique().sort().to_pylist()
            found = self.request.prior.chosen(InValues("_key", keys))
            if found is not None:
                return list(found.filter(found.column("_error").is_null()).select(names).sort_by("_key").slice(0, 1).to_pylist())
        good = others.where(F.col("_error").isNull()).select(*map(column, names))
        met = joined(good, fresh, self.request.engine, "left_semi") if isinstance(fresh, pa.Table) else good.join(fresh, "_key", "left_semi")
        return list(self.request.engine.to_arrow(met.orderBy("_key"), 1).to_pylist())

    def _places(self, delta: DataFrame, key: bytes) -> list[tuple[str, int | None]]:
        """Files and rows of the first records that a delta brings under a key."""
        brought = delta.where(F.col("_op").isin(0, 3) & F.col("_error").isNull()).select("_key", "_file", "_row")
        under = joined(brought, pa.table({"_key": pa.array([key], pa.binary())}), self.request.engine, "left_semi")
        found = self.request.engine.to_arrow(under.orderBy("_file", "_row"), _SHOWN)
        return [(place["_file"], place["_row"]) for place in found.to_pylist()]

    def _null(self) -> Column:
        return reduce(or_, [column(name).isNull() for name in self.names])

    def _error(self, wrong: Mapping[str, Any], places: Sequence[tuple[str, int | None]], stayed: str | None = None) -> InputChanged:
        """The error of a key.

        Args:
            wrong: The columns of the key, and the number of its records, `__n`.
            places: Files and rows of records.
            stayed: The file of a record that did not change, whose row is not known.
        """
        records = wrong["__n"]
        null = [name for name in self.names if wrong[name] is None]
        if null:
            key = f"column{'s' if len(null) > 1 else ''} {', '.join(null)}"
            fault = f"{'are' if len(null) > 1 else 'is'} null" if records == 1 else f"{'are' if len(null) > 1 else 'is'} null in {records} records"
            way = "fill the column, name another primary_key"
        else:
            key, fault = ", ".join(f"{name}={shown(wrong[name])}" for name in self.names), f"stands for {records} records"
            way = "name columns that are unique together as primary_key"
            if not (self.request.source.versioned or self.request.config.asks):
                way += ", take merge strategy upsert, where the last record of a key counts"
        paths = {record.stored: record.path for record in self.request.changes.now}
        where = [f"{paths.get(file, file)} row {row}" for file, row in places if row is not None]
        where += [] if stayed is None else [f"an unchanged record of {paths.get(stayed, stayed)}"]
        place = f" ({', '.join(where)})" if where else ""
        return InputChanged(f"the primary key {key} {fault}{place}", help=f"{way}, mend the file, or leave primary_key out (strategy append, where records only come)")


def _runs(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Of each batch the first key and the last, and whether its keys ascend, none of them null."""
    for batch in batches:
        if batch.num_rows:
            keys = batch.column("_key")
            ascending = bool(pc.all(pc.less(keys[:-1], keys[1:]), min_count=0).as_py()) and not pc.any(batch.column("__null")).as_py()
            yield pa.RecordBatch.from_pydict({"first": keys[:1], "last": keys[-1:], "ascending": pa.array([ascending])})
