"""The combine operator: records of several inputs joined by a predicate.

The driver's rows are matched one by one with the other inputs. The key of a row is its driver's; under `match: all` the keys of the build rows follow. The
key of a reject is the number of the input whose record failed, and that record's key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

from changelog.columns import column
from changelog.frames import united
from changelog.lazy_imports import F, Window
from changelog.rows import Rows
from cxl import Program, spark
from cxl.types.types import Schema
from operators.combine.affected_keys import affected
from operators.combine.config import CombineConfig, NamedKeys
from operators.combine.join_plan import Chain, Step
from operators.combine.matching import ERROR, FAILED, FROM, ID, MISSING, Live, Matching, Predicate, Side, from_column
from operators.combine.range_join import FEW_PAIRS
from operators.core.context import OperatorContext
from operators.core.delta import Delta
from operators.core.evaluate import Narrow, as_it_is, evaluate, prepare
from operators.core.following import outweighs, require_few
from operators.core.operator import Keyed
from operators.core.provenance import ASKER, key_slice, numbered_input, without_index
from operators.core.row_type import CK, META, OWN_HIDDEN, KeyShape, RowType
from operators.core.run_values import SOURCE, RunValues
from operators.core.settings import NodeSpec

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


Settle = Callable[["DataFrame"], "DataFrame"]
"""Computes a frame of few rows once."""


@dataclass(frozen=True, slots=True)
class Logic:
    """A combine's compiled predicate and body (None under `match: collect`), the order of its joins, and its output's columns."""

    where: Program
    body: Program | None
    chain: Chain
    data: Schema


class Combine(Keyed):
    """A combine, bound to its inputs in the order in which they are written."""

    kind = "combine"
    joins_inputs = True
    most_affected = 0.08

    def __init__(self, spec: NodeSpec, inputs: Sequence[RowType], logic: Logic) -> None:
        self.config: CombineConfig = spec.config
        self.qualifiers = tuple(ref.qualifier or ref.node for ref in spec.inputs)
        self.where, self.body, self.chain = where, body, chain = logic.where, logic.body, logic.chain
        self.driver = self.qualifiers.index(chain.driver)
        self.deterministic = where.deterministic and (body is None or body.deterministic)
        texts = {"where": where.normal_text(), "cxl": body.normal_text() if body else ""}
        fingerprint = texts | self.config.model_dump(mode="json", exclude={"where", "cxl", "strategy"}) | {"qualifiers": list(self.qualifiers)}
        super().__init__(spec.name, inputs, RowType(logic.data), fingerprint)
        self.output = self._row_type(inputs)

    # -- what the planner asks

    def input_of(self, key: bytes, *, reject: bool) -> tuple[int, bytes]:
        """A reject's key begins with the number of its input; a row has its driver's key."""
        return numbered_input(key, len(self.inputs)) if reject else (self.driver, key)

    def with_hidden(self, inputs: Sequence[RowType], wanted: frozenset[str]) -> Self:
        """Return the combine with the hidden columns of the driver; of the builds only correlation keys, as `propagate_ck` says."""
        return self.with_attributes(inputs=tuple(inputs), output=self._row_type(inputs))

    def _row_type(self, inputs: Sequence[RowType]) -> RowType:
        """The row type of the output with the hidden columns of the inputs."""
        driver = inputs[self.driver]
        own = {META + name: type_ for name, type_ in self.body.meta.items()} if self.body else {}
        riders = {name: type_ for name, type_ in driver.riders.items() if not name.startswith(CK)}
        riders |= {name: inputs[at].riders[name] for name, at in self._correlated(inputs).items()} | own
        hidden = ["_lookup", "_error", *(name for name in driver.hidden if name not in OWN_HIDDEN)]
        shape = KeyShape("join", parts=(driver.key,))
        key = KeyShape("index", parts=(shape,)) if self.body is not None and self.body.fans_out else shape
        return RowType(self.output.data, emitted=tuple(self.output.data), key=key).carrying(hidden, riders)

    def _correlated(self, inputs: Sequence[RowType]) -> dict[str, int]:
        """Metadata columns of all inputs, each with its input's number, the driver's first: correlation keys, and source variables by input."""
        order = [self.driver, *(at for at in range(len(inputs)) if at != self.driver)]
        wanted = self.config.propagate_ck
        found: dict[str, int] = {}
        for at in order:
            found |= {name: at for name in inputs[at].riders if name.startswith(SOURCE) and name not in found}
        for at in order[:1] if wanted == "driver" else order:
            for name in inputs[at].riding(CK):
                if not isinstance(wanted, NamedKeys) or name in wanted.named:
                    found.setdefault(CK + name, at)
        return found

    @property
    def collected(self) -> tuple[str, ...]:
        """The columns of arrays under `match: collect`."""
        return tuple(step.build for step in self.chain.steps) if self.config.match == "collect" else ()

    @property
    def reject_shape(self) -> KeyShape:
        """A byte for the input, then the key of its record."""
        return KeyShape("merge", parts=tuple(row.key for row in self.inputs))

    @property
    def fatal(self) -> frozenset[str]:
        """Under `on_miss: error` a driver without match ends the run."""
        return frozenset({MISSING}) if self.config.on_miss == "error" else frozenset()

    def bound(self, changes: int, live: int) -> int | None:
        """All rows of the touched drivers, before and after; under `all` every combination of the inputs' rows."""
        if self.body is not None and self.body.fans_out:
            return None
        rows = changes + live
        count = len(self.inputs)
        return 2 * rows + (2 * (rows // count + 1) ** count if self.config.match == "all" else 0)

    def reads_source(self) -> frozenset[str]:
        """The fields of the driver's record that predicate and body read."""
        return self.where.reads_system | (self.body.reads_system if self.body else frozenset())

    def describe(self) -> Sequence[str]:
        """Driver, one line a build with how it is joined, match mode."""
        lines = [f"driving input: {self.chain.driver}"]
        for step in self.chain.steps:
            residual = len(step.left) + len(step.right) - 2 * step.keys + len(step.pairs) - step.ranges
            lines.append(f"build input: {step.build}: {self._how(step)}, {step.keys} equalities, {step.ranges} ranges, {residual} residual")
        return (*lines, f"match: {self.config.match}, on_miss: {self.config.on_miss}", *self._left_out())

    def _left_out(self) -> Iterator[str]:
        """The declared fields that the body does not read, and where undeclared ones go."""
        read = self.body.reads if self.body else frozenset()
        unread = [f"{name}.{field}" for name, row in zip(self.qualifiers, self.inputs, strict=True) for field in row.data if f"{name}.{field}" not in read]
        if self.body is not None and unread:
            yield f"declared fields left out: {', '.join(unread)}"
        for name, row in zip(self.qualifiers, self.inputs, strict=True):
            if row.widened:
                yield f"undeclared fields of '{name}' {'pass on' if name == self.chain.driver else 'are dropped'}"

    def _how(self, step: Step) -> str:
        """How a build input is joined, and why so."""
        if step.keys:
            return "partitioned hash join" if self._partitioned and not step.pairs else "hash or sort-merge join"
        if step.band is None:
            return "nested loop over ranges (no two fields of either input bound the other from both ends)"
        ends = "interval", "point"
        left, right = (ends[point] for point in step.band.points)
        return f"range join by buckets ({left} against {right}, as wide as the data asks; nested loop up to {FEW_PAIRS:,} pairs)"

    @property
    def _partitioned(self) -> bool:
        return self.config.strategy == "grace_hash"

    # -- rows

    def sides(self) -> dict[str, Side]:
        """The columns that are read of each input, by qualifier."""
        read = self.where.reads | (self.body.reads if self.body else frozenset())
        extra = self._correlated(self.inputs)
        found: dict[str, Side] = {}
        for at, (qualifier, row) in enumerate(zip(self.qualifiers, self.inputs, strict=True)):
            names = row.data if self.body is None else {name: type_ for name, type_ in row.data.items() if f"{qualifier}.{name}" in read}
            extras = {name: row.riders[name] for name, of in extra.items() if of == at and at != self.driver}
            found[qualifier] = Side(at, qualifier, dict(names), extras)
        return found

    def _predicate(self) -> Predicate:
        config = self.config
        return Predicate(self.name, self.where, self.chain, self.sides(), config.match, config.on_miss, self._partitioned)

    def lookup(self, frame: DataFrame, index: int, values: RunValues) -> DataFrame:
        """Each record of each input by itself."""
        return frame.withColumn("_lookup", self.sides()[self.qualifiers[index]].lookup())

    def compute(self, frames: Sequence[DataFrame], values: RunValues) -> DataFrame:
        """The rows of all drivers given."""
        return self._compute(self._driving(frames[self.driver]), _given(frames), values)

    def answer(self, context: OperatorContext) -> Delta:
        """Compute the rows of the drivers whose matches a delta can change, and compare them with the prior ones."""
        if context.first:
            frames = [delta.frame if (delta := context.delta(at)) is not None else context.live_input(at) for at in range(len(self.inputs))]
            few = context.limits.are_small(context.live_rows(self.driver))
            return Delta.insertion(context.rows(self._compute(self._driving(frames[self.driver]), _given(frames), context.values, few=few)))
        found = affected(context, self._predicate(), self._static(context.values), self._riding, self._require_few)
        if found is None:
            every = self._compute(self._driving(context.live_input(self.driver)), context.live_input, context.values)
            return Delta.between(context.live_own(), context.rows(every))
        rows = context.rows(self._compute(found.drivers, context.live_input, context.values, found.lookups.as_frame(), context.values.settle))
        return Delta.insertion(rows) if found.prior is None else Delta.between(context.live_own(found.prior), rows)

    def is_outweighed(self, context: OperatorContext) -> bool:
        """Whether many drivers were corrected, or build rows that lead to many drivers. New build rows mostly meet no driver yet."""
        if context.limits.are_small(context.live_rows(self.driver)):
            return False
        corrected = (at for at in range(len(self.inputs)) if (delta := context.delta(at)) is not None and delta.signed)
        return any(outweighs(context, [at], self.most_changed if at == self.driver else 2 * self.most_affected) for at in corrected)

    def _require_few(self, context: OperatorContext, drivers: Rows) -> None:
        """Raise `Outgrown` where build rows lead to many drivers."""
        require_few(self, context, drivers, context.live_rows(self.driver), self.most_affected)

    @property
    def _riding(self) -> list[str]:
        """Metadata and hidden columns of the driver."""
        return self.inputs[self.driver].carried()

    def _driving(self, rows: DataFrame) -> DataFrame:
        """Return rows of the driver as they are joined: `_key`, its metadata and hidden columns, the fields by qualifier."""
        return rows.select("_key", *map(column, self._riding), *self.sides()[self.chain.driver].qualified())

    def origins(self, rows: DataFrame, inputs: Sequence[DataFrame], values: RunValues, reads: frozenset[str]) -> list[DataFrame]:
        """The driver's record of each row, and the build records that it was joined with."""
        keys = rows.select(ASKER, key_slice(F.col("_lookup"), 2).alias("_key")).distinct()
        drivers = self._driving(inputs[self.driver].join(keys, "_key", "left_semi"))
        matching, joined = self._matched(drivers, _given(inputs), values, narrow=True, traced=True)
        asked = rows.select(ASKER, (without_index(F.col("_key")) if self.output.key.kind == "index" else F.col("_key")).alias(ID)).distinct()
        kept = joined.join(asked, ID)
        found = []
        for at in range(len(inputs)):
            pairs = matching.pairs.get(at)
            met = keys if at == self.driver else kept.select(ASKER, F.col(from_column(at)).alias("_key")) if pairs is None else _of_pairs(pairs, asked)
            found.append(met.where(F.col("_key").isNotNull()).distinct())
        return found

    def builds_of(self, lookups: DataFrame, inputs: Sequence[DataFrame], values: RunValues) -> dict[int, DataFrame]:
        """The build rows with which drivers that were rejected met, by number of the input: `_key`. `lookups` has the drivers' `_lookup`."""
        keys = lookups.select(key_slice(F.col("_lookup"), 2).alias("_key")).distinct()
        drivers = self._driving(inputs[self.driver].join(keys, "_key", "left_semi"))
        matching, joined = self._matched(drivers, _given(inputs), values, narrow=True, traced=True)
        found = {}
        for at in (at for at in range(len(inputs)) if at != self.driver):
            met = matching.pairs[at].select(F.col(FROM).alias("_key")) if at in matching.pairs else joined.select(F.col(from_column(at)).alias("_key"))
            met = met.unionByName(matching.failed[at].select(F.col(FROM).alias("_key"))) if at in matching.failed else met
            found[at] = met.where(F.col("_key").isNotNull()).distinct()
        return found

    def _static(self, values: RunValues) -> spark.Context:
        return spark.Context({name: value for name, value in values.values.items() if name in self.where.reads_system})

    def _compute(self, drivers: DataFrame, builds: Live, values: RunValues, touched: DataFrame | None = None, settle: Settle = as_it_is, *, few: bool = False) -> DataFrame:
        """The rows and rejects of the drivers given; `touched`: of the rejects only those. `few`: the driver has few rows."""
        matching, rows = self._matched(drivers, builds, values, narrow=touched is not None, few=few, settle=settle)
        rows = settle(rows)
        driver = matching.predicate.sides[self.chain.driver]
        done = rows.withColumn("_lookup", driver.lookup()).withColumn("_key", F.col(ID))
        good, rejected = (self._collected(done), matching.rejected) if self.body is None else self._shaped(done, matching, values)
        return self._with_rejects(good, rejected if touched is None else [bad.join(touched, "_lookup", "left_semi") for bad in rejected])

    def _matched(
        self, drivers: DataFrame, builds: Live, values: RunValues, *, narrow: bool, few: bool = False, settle: Settle = as_it_is, traced: bool = False
    ) -> tuple[Matching, DataFrame]:
        """The matches of the drivers given, and what was noted on the way."""
        ready, context = prepare(drivers, self.where.reads_system, self.inputs[self.driver], values)
        matching = Matching(self._predicate(), context, narrow=narrow, few=few, settle=settle, traced=traced)
        rows = matching.run(ready, builds)
        return matching, rows.drop("__prefix", "__path")

    def _collected(self, rows: DataFrame) -> DataFrame:
        """The output under `collect`: the driver's columns and the arrays; rejects among them."""
        names = {name: f"{self.chain.driver}.{name}" for name in self.inputs[self.driver].data}
        names |= {step.build: step.build for step in self.chain.steps}
        bad = F.col(ERROR).isNotNull()
        data = [F.when(~bad, column(names[name])).alias(name) for name in self.output.data]
        key = F.when(bad, F.concat("_lookup", F.lit(b"!"))).otherwise(F.col("_key")).alias("_key")
        return rows.select(key, *self._hidden(F.col(ERROR)), *data)

    def _shaped(self, rows: DataFrame, matching: Matching, values: RunValues) -> tuple[DataFrame, list[DataFrame]]:
        """The output of the body, and rejects; a driver with a row that fails is rejected with all its rows."""
        assert self.body is not None  # `collect` alone has none
        rejected = list(matching.rejected)
        if self.fatal:
            rejected.append(rows.where(F.col(ERROR).isNotNull()).select("_lookup", F.col(ERROR).alias("_error")))
            rows = rows.where(F.col(ERROR).isNull())
        ops = rows.select(F.lit(0).cast("tinyint").alias("_op"), F.lit("recompute").alias("_cause"), *map(column, rows.columns))
        row = replace(self.inputs[self.driver], key=self.output.key)
        done = evaluate(ops, self.body, row, self.name, values, category=FAILED)
        if done.bad is not None:
            rejected.append(done.bad.select("_lookup", "_error"))
        good = done.good.select("_key", *self._hidden(F.lit(None).cast("string")), *map(column, self.output.data))
        if self.config.match == "all" and rejected:
            once = Window.partitionBy("_lookup").orderBy("_error")
            bad = united(*rejected).withColumn("__rank", F.row_number().over(once)).where(F.col("__rank") == 1).drop("__rank")
            good = good.join(bad.select("_lookup"), "_lookup", "left_anti").select(*map(column, good.columns))
            rejected = [bad]
        return good, rejected

    def _hidden(self, error: Column) -> list[Column]:
        """The hidden columns of the output from a frame of matches."""
        of = self._correlated(self.inputs)
        found: list[Column] = []
        for name in self.output.hidden_columns():
            at = of.get(name, self.driver)
            source = column(name) if at == self.driver else column(f"{self.qualifiers[at]}.{name}")
            found.append((error if name == "_error" else source).alias(name))
        return found

    def _with_rejects(self, good: DataFrame, rejected: Sequence[DataFrame]) -> DataFrame:
        """The rows and the rejects in the columns of the output."""
        types = self.output.columns()
        for bad in rejected:
            key = F.concat("_lookup", F.lit(b"!")).alias("_key")
            empty = [F.lit(None).cast(kind).alias(name) for name, kind in types.items() if name not in ("_lookup", "_error")]
            good = united(good, bad.select(key, "_lookup", "_error", *empty))
        return good


def _given(frames: Sequence[DataFrame]) -> Live:
    """Return these rows in place of the live ones."""

    def live(index: int, narrow: Narrow = as_it_is) -> DataFrame:
        return narrow(frames[index].withColumn("_epoch", F.lit(0).cast("bigint")))

    return live


def _of_pairs(pairs: DataFrame, asked: DataFrame) -> DataFrame:
    return pairs.join(asked, ID).select(ASKER, F.col(FROM).alias("_key"))
