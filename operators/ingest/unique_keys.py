"""The rule that a primary key is not null and stands for one record (CONTRACT, `merge:`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any

from changelog.lazy import F
from changelog.schema import column
from operators.ingest.hashes import FEW_KEYS, joined
from operators.ingest.intake import InputChanged, Intake

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame


@dataclass(frozen=True, slots=True)
class UniqueKeys:
    """The rule that a primary key is not null and stands for one record, among the new ones and those of `others`."""

    intake: Intake
    others: DataFrame | None

    @property
    def names(self) -> list[str]:
        """The columns of the key."""
        return self.intake.config.merge.primary_key

    def check_table(self, table: pa.Table) -> None:
        """Raise InputChanged for records on the driver."""
        import polars as pl

        names = ["_key", *self.names]
        frame = pl.DataFrame({name: table.column(name) for name in (*names, "_error")}).filter(pl.col("_error").is_null())
        counted = frame.group_by("_key").agg(pl.len().alias("__n"), *(pl.col(name).first() for name in self.names))
        wrong = counted.filter((pl.col("__n") > 1) | pl.any_horizontal(pl.col(name).is_null() for name in self.names)).sort("_key")
        if wrong.height:
            raise self._error(wrong.row(0, named=True))

    def check(self, delta: DataFrame) -> None:
        """Raise InputChanged for op rows."""
        import pyarrow as pa

        self.check_others(delta)
        if self._ascend(delta):
            return
        keys = delta.where(F.col("_op").isin(0, 3) & F.col("_error").isNull()).select(*map(column, ["_key", *self.names]))
        found = self.intake.engine.up_to(self._suspects(keys), FEW_KEYS)
        if isinstance(found, pa.Table):
            if not found.num_rows:
                return
            keys = joined(keys.withColumn("_k", F.xxhash64("_key")), found, self.intake.engine, "left_semi", "_k")
        counted = keys.groupBy("_key").agg(F.count(F.lit(1)).alias("__n"), *(F.first(column(name)).alias(name) for name in self.names))
        wrong = self.intake.engine.to_arrow(counted.where((F.col("__n") > 1) | self._null()).orderBy("_key"), 1).to_pylist()
        if wrong:
            raise self._error(wrong[0])

    def _ascend(self, delta: DataFrame) -> bool:
        """Whether the keys of op rows ascend as they are stored, so that each is there once, and none is null: one look at each, where a file is in the order of its key."""
        null = self._null().alias("_null")
        keys = delta.where(F.col("_op").isin(0, 3) & F.col("_error").isNull()).select("_key", null)
        runs = self.intake.engine.to_arrow(keys.mapInArrow(_runs, "first binary, last binary, ascending boolean")).sort_by("first")
        first, last = (runs.column(name).to_pylist() for name in ("first", "last"))
        return all(runs.column("ascending").to_pylist()) and all(before < behind for before, behind in zip(last, first[1:], strict=False))

    def _suspects(self, keys: DataFrame) -> DataFrame:
        """The hashes `_k` of keys that are null or have the hash of another one: numbers are counted in a fraction of the time that bytes take."""
        counted = keys.groupBy(F.xxhash64("_key").alias("_k")).agg(F.count(F.lit(1)).alias("__n"), F.max(self._null()).alias("__null"))
        return counted.where((F.col("__n") > 1) | F.col("__null")).select("_k")

    def check_others(self, delta: DataFrame) -> None:
        """Raise InputChanged for op rows that bring a key in which one of the others has."""
        import pyarrow as pa

        if self.others is None:
            return
        fresh = self.intake.engine.up_to(delta.where((F.col("_op") == 0) & F.col("_error").isNull()).select("_key"), FEW_KEYS)
        if isinstance(fresh, pa.Table) and not fresh.num_rows:
            return
        others = self.others.where(F.col("_error").isNull()).select(*map(column, ["_key", *self.names]))
        met = joined(others, fresh, self.intake.engine, "left_semi") if isinstance(fresh, pa.Table) else others.join(fresh, "_key", "left_semi")
        wrong = self.intake.engine.to_arrow(met.orderBy("_key"), 1).to_pylist()
        if wrong:
            raise self._error({**wrong[0], "__n": 2})

    def _null(self) -> Column:
        return reduce(or_, [column(name).isNull() for name in self.names])

    def _error(self, wrong: Mapping[str, Any]) -> InputChanged:
        shown = ", ".join(f"{name}={'null' if wrong[name] is None else wrong[name]}" for name in self.names)
        return InputChanged(f"the primary key {shown} {'is null' if wrong['__n'] == 1 else 'stands for ' + str(wrong['__n']) + ' records'}")


def _runs(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Of each batch the first key and the last, and whether its keys ascend, none of them null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for batch in batches:
        if batch.num_rows:
            keys = batch.column("_key")
            ascending = bool(pc.all(pc.less(keys[:-1], keys[1:]), min_count=0).as_py()) and not pc.any(batch.column("_null")).as_py()
            yield pa.RecordBatch.from_pydict({"first": keys[:1], "last": keys[-1:], "ascending": pa.array([ascending])})
