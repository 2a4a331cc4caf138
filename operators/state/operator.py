"""Operators of state nodes: records that pass by themselves, and records that pass one at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from changelog.columns import column, fields
from changelog.frames import mapped, mapped_groups, united
from changelog.lazy_imports import F
from changelog.rows import Rows
from cxl import Program, spark
from cxl.spark import FAILED
from cxl.typed import tree
from cxl.types.types import Schema, Type
from operators.core.evaluate import as_new, as_output, prepare, rejects
from operators.core.operator import Keyed, Linear
from operators.core.provenance import ASKER, file_scope
from operators.core.row_type import RowType, physical_type
from operators.core.run_values import RunValues, riding
from operators.core.settings import NodeSpec
from operators.state.assignments import Writes, expression_of
from operators.state.fold import WHY, Assigned, Fold, Given

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


ENVELOPE = ("_epoch", "_op", "_key", "_cause")


def _output(row: RowType, writes: Writes, *hidden: str) -> RowType:
    return replace(row, hidden=(), riders=writes.riders).carrying(["_error", *hidden])


class PlainState(Linear):
    """Values that are functions of the record."""

    kind = "state"

    def __init__(self, spec: NodeSpec, row: RowType, writes: Writes) -> None:
        super().__init__(spec.name, (row,), _output(row, writes), writes.fingerprint())
        self.writes = writes

    def reads_source(self) -> frozenset[str]:
        """The provenance of a record that the assignments read."""
        return self.writes.reads

    def describe(self) -> Sequence[str]:
        """The assignments."""
        return self.writes.describe()

    def images(self, rows: Rows, index: int, values: RunValues) -> Rows:
        """Each op row with the variables that it sets."""
        return rows.through(lambda frame: self._images(frame, values))

    def _images(self, frame: DataFrame, values: RunValues) -> DataFrame:
        program = _as_row_program(self.writes)
        ready, context = prepare(frame, program.reads_system, self.inputs[0], values)
        applied = spark.apply(ready, program, context)
        names = [*(name for name in frame.columns if name in ENVELOPE), *self.output.columns()]
        written = {name: value.cast(physical_type(type_)) for (name, type_), value in zip(self.writes.riders.items(), applied.meta.values(), strict=True)}
        passed = applied.frame.where(~F.col(FAILED)) if applied.can_fail else applied.frame
        kept = [_placed(name, written) for name in names]
        rows = passed.select(*kept)
        if not applied.can_fail:
            return rows
        failed = spark.errors(applied.frame.where(F.col(FAILED)), program, context, WHY)
        why = F.col(WHY)
        bad = rejects(failed, why.getField("category"), why.getField("message"), self.name)
        bare = bad.drop(*(name for name in written if name in bad.columns))
        return united(rows, as_output(bare, names, self.output))


def _placed(name: str, written: Mapping[str, Column]) -> Column:
    if name == "_error":
        return F.lit(None).cast("string").alias(name)
    return written[name].alias(name) if name in written else column(name)


def _as_row_program(writes: Writes) -> Program:
    """The assignments as metadata of a row program: values without the checks of output fields."""
    first = writes.parts[0][2]
    slots = max(program.slots for _, _, program in writes.parts)
    statements, offset = [], slots
    for name, _, program in writes.parts:
        expression = expression_of(program)
        statements.append(tree.EmitMeta(expression.span, name, offset, expression))
        offset += 1
    meta = Schema((name, type_) for name, type_, _ in writes.parts)
    return replace(first, mode="row", statements=tuple(statements), expression=None, meta=meta, slots=offset)


class PassingState(Keyed):
    """Records of a scope that pass one at a time; records by themselves where only the clock or dynamic values are in the way."""

    kind = "state"

    def __init__(self, spec: NodeSpec, row: RowType, writes: Writes) -> None:
        super().__init__(spec.name, (row,), _output(row, writes, "_lookup"), writes.fingerprint())
        self.writes = writes
        self.alone = not writes.looks_back(row)
        self.deterministic = writes.deterministic

    def reads_source(self) -> frozenset[str]:
        """The provenance of a record that the assignments read, and its file where that is the scope."""
        return self.writes.reads | ({"source.file"} if self.writes.scope == "source" else frozenset())

    def describe(self) -> Sequence[str]:
        """The assignments, and how records pass."""
        how = "each record by itself" if self.alone else f"records pass one at a time, by {'file' if self.writes.scope == 'source' else 'run'}"
        return (*self.writes.describe(), how)

    def lookup(self, frame: DataFrame, index: int, values: RunValues) -> DataFrame:
        """The scope of each record."""
        return frame.withColumn("_lookup", self._scope())

    def _scope(self) -> Column:
        if self.alone:
            return F.col("_key")
        return file_scope(self.inputs[0]) if self.writes.scope == "source" else F.lit(b"")

    def origins(self, rows: DataFrame, inputs: Sequence[DataFrame], values: RunValues, reads: frozenset[str]) -> list[DataFrame]:
        """The record itself; where somebody reads what it wrote, the records of its scope before it too."""
        if self.alone or not reads & set(self.writes.dotted):
            return super().origins(rows, inputs, values, reads)
        last = rows.withColumn("_lookup", self._scope()).groupBy(ASKER, F.col("_lookup").alias("__scope")).agg(F.max(F.hex("_key")).alias("__last"))
        placed = self.lookup(as_new(inputs[0]), 0, values)
        before = (F.col("_lookup") == F.col("__scope")) & (F.hex("_key") <= F.col("__last"))
        return [placed.select("_key", "_lookup").join(last, before).select(ASKER, "_key")]

    def compute(self, frames: Sequence[DataFrame], values: RunValues) -> DataFrame:
        """All records of the scopes with the variables as their passes left them."""
        frame = self.lookup(as_new(frames[0]), 0, values)
        ready, context = prepare(frame, self.writes.reads, self.inputs[0], values)
        given = list(self._given(ready, context))
        kept = [name for name in frame.columns if name not in self.writes.riders]
        laid = ready.select(*map(column, kept), *(value.alias(one.column) for one, value in given))
        fold = self._fold(tuple(one for one, _ in given), tuple(kept), values)
        schema = _schema(laid, kept, self.writes.riders)
        passed = mapped(laid, fold.batches, schema) if self.alone else mapped_groups(laid, "_lookup", fold.table, schema)
        return passed.select(*(self._finished(name, set(laid.columns)) for name in self._names(frame)))

    def _names(self, frame: DataFrame) -> list[str]:
        return [*(name for name in frame.columns if name in ENVELOPE), *self.output.columns()]

    def _given(self, frame: DataFrame, context: spark.Context) -> Iterator[tuple[Given, Column]]:
        """The inputs of the assignments in columns of their own; variables that the records carry on are among them."""
        fresh = {*self.writes.dotted, "now"} - set(riding(self.inputs[0]))
        nodes = [node for _, _, program in self.writes.parts for node in program.nodes()]
        fields = {node.name: node for node in nodes if isinstance(node, tree.Field)}
        system = {node.name: node for node in nodes if isinstance(node, tree.System) and node.name not in fresh}
        for number, node in enumerate(fields.values()):
            yield Given(f"__field_{number}", "field", node.name, node.type), column(node.name)
        for number, variable in enumerate(system.values()):
            yield Given(f"__system_{number}", "system", variable.name, variable.type), context.lower(variable).value

    def _fold(self, given: tuple[Given, ...], kept: tuple[str, ...], values: RunValues) -> Fold:
        assigned = tuple(
            Assigned(f"{self.writes.scope}.{name}", type_, expression_of(program), program.calls, program.slots) for name, type_, program in self.writes.parts
        )
        start = {name: values.values.get(name) for name in self.writes.dotted}
        return Fold(assigned, given, start, kept, self.writes.dotted, self.alone)

    def _finished(self, name: str, there: set[str]) -> Column:
        """A column of the answer: rejects have a key of their own, why they failed, and no values."""
        failed = F.col(WHY).isNotNull()
        if name == "_key":
            return F.when(failed, F.concat(F.col("_key"), F.lit(b"!"))).otherwise(F.col("_key")).alias(name)
        if name == "_error":
            return F.when(failed, _reason(self.name)).alias(name)
        if name in self.output.data or name in self.writes.riders:
            return F.when(~failed, column(name)).alias(name)
        return column(name) if name in there else F.lit(None).cast(self.output.columns()[name]).alias(name)


def _reason(stage: str) -> Column:
    """Why a record failed, in the form of all rejects."""
    parts = {name: F.get_json_object(F.col(WHY), f"$.{name}") for name in ("category", "detail")}
    return F.to_json(F.struct(*(value.alias(name) for name, value in parts.items()), F.lit(stage).alias("stage"), F.lit("").alias("trigger")))


def _schema(frame: DataFrame, kept: Sequence[str], riders: Mapping[str, Type]) -> Any:
    """The engine's schema of what the workers give back."""
    from pyspark.sql.types import StringType, StructType

    types = {field.name: field.dataType for field in frame.schema.fields}
    schema = StructType()
    for name in kept:
        schema = schema.add(name, types[name])
    for one in fields({name: physical_type(type_) for name, type_ in riders.items()}):
        schema = schema.add(one)
    return schema.add(WHY, StringType())
