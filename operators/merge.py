"""Merge nodes: inputs with the same columns become one stream.

The key of a row is the number of its input and its key there. So the first input's rows come first and each input keeps its order, in every mode.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal, Self

from pydantic import Field, model_validator

from changelog.columns import column
from changelog.keys.spark import with_prefix
from changelog.lazy_imports import F
from changelog.rows import Rows
from cxl.types.types import ANY, MOST_DIGITS, Kind, OpenSchema, Schema, Type, combined, type_name, unify
from operators.core.binding import Binding
from operators.core.config import Strict
from operators.core.decimal_columns import at_scale, may_overflow, overflows
from operators.core.evaluate import error_text, first_case, reject_key
from operators.core.json_columns import json_text
from operators.core.operator import Linear
from operators.core.provenance import ASKER, key_slice, numbered_input
from operators.core.registry import node_type
from operators.core.row_type import CK, HIDDEN_TYPES, OWN_HIDDEN, KeyShape, RowType, physical_type
from operators.core.run_values import RunValues, dotted
from operators.core.settings import NodeSpec

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


MAX_INPUTS = 255


class MergeConfig(Strict):
    """How inputs follow each other. A fixed order that keeps the order of each input serves every mode."""

    mode: Literal["concat", "interleave"] = Field(
        default="concat", description="Either mode gives the rows of one input after the other, in the order of inputs; each input keeps its order."
    )
    interleave_seed: int | None = Field(default=None, ge=0, lt=1 << 64, description="Accepted with mode: interleave; it has no effect on the order.", examples=[7])

    @model_validator(mode="after")
    def _seed_of_interleave(self) -> MergeConfig:
        if self.interleave_seed is not None and self.mode != "interleave":
            raise ValueError("'interleave_seed' needs 'mode: interleave'")
        return self


class Merge(Linear):
    """Rows of all inputs in the columns of the first; types that differ are widened. A row with a Decimal that does not fit there becomes a reject."""

    kind = "merge"
    joins_inputs = True

    def __init__(self, spec: NodeSpec, inputs: Sequence[RowType], data: Schema) -> None:
        config: MergeConfig = spec.config
        output = RowType(data, emitted=_emitted(inputs), key=KeyShape("merge", parts=tuple(row.key for row in inputs)))
        super().__init__(spec.name, inputs, output, {"mode": config.mode, "seed": config.interleave_seed})
        self.mode = config.mode

    @property
    def may_reject(self) -> bool:
        """Whether a column has a greater scale than in an input: a Decimal may have too many digits there."""
        return any(_narrow(row, self.output) for row in self.inputs)

    @property
    def reject_shape(self) -> KeyShape:
        """The number of the input, then the key of its record."""
        return self.output.key

    def input_of(self, key: bytes, *, reject: bool) -> tuple[int, bytes]:
        """Read the number of the input off the first byte."""
        return numbered_input(key, len(self.inputs))

    def with_hidden(self, inputs: Sequence[RowType], wanted: frozenset[str]) -> Self:
        """Return the merge with the hidden columns of any input. Where inputs disagree on the type of a rider, it is widened."""
        riders: dict[str, Type] = {}
        for row in inputs:
            riders |= {name: merged_type(riders.get(name, type_), type_) or ANY for name, type_ in row.riders.items()}
        hidden = [name for row in inputs for name in row.hidden if name not in OWN_HIDDEN]
        output = RowType(self.output.data, emitted=self.output.emitted, key=self.output.key)
        output = output.carrying(hidden, riders)
        rejecting = any(_narrow(row, output) for row in inputs)
        return self.with_attributes(inputs=tuple(inputs), output=output.carrying(["_error"]) if rejecting else output)

    def describe(self) -> Sequence[str]:
        """The mode."""
        return (f"mode: {self.mode}",)

    def origins(self, rows: DataFrame, inputs: Sequence[DataFrame], values: RunValues, reads: frozenset[str]) -> list[DataFrame]:
        """The rows of each input by the byte that the keys begin with."""
        first = F.substring(F.hex("_key"), 1, 2)
        return [rows.where(first == F.lit(f"{at:02X}")).select(ASKER, key_slice(F.col("_key"), 2).alias("_key")) for at in range(len(inputs))]

    def images(self, rows: Rows, index: int, values: RunValues) -> Rows:
        """The rows of an input under its number, in the common columns."""
        return rows.through(lambda frame: self._images(frame, index, values))

    def _images(self, frame: DataFrame, index: int, values: RunValues) -> DataFrame:
        row = self.inputs[index]
        key = with_prefix(bytes([index]), F.col("_key")).alias("_key")
        envelope = [key if name == "_key" else column(name) for name in frame.columns if name in ("_epoch", "_op", "_key", "_cause")]
        fixed = [_present(name, name in row.hidden, HIDDEN_TYPES[name]) for name in HIDDEN_TYPES if name in self.output.hidden and name != "_error"]
        riders = [_started(name, type_, values) if name not in row.riders else _converted(name, row.riders[name], type_) for name, type_ in self.output.riders.items()]
        data = [_converted(name, row.data.get(name), type_) for name, type_ in self.output.data.items()]
        if "_error" not in self.output.hidden:
            return frame.select(*envelope, *fixed, *riders, *data)
        made = frame.select(*envelope, *fixed, *riders, *data, _error(_narrow(row, self.output), self.name).alias("_error"))
        bad = F.col("_error").isNotNull()
        values_of_rejects = {name: F.when(~bad, column(name)) for name in self.output.data}
        return made.withColumns({"_key": F.when(bad, reject_key()).otherwise(F.col("_key")), **values_of_rejects})


def _narrow(row: RowType, output: RowType) -> Sequence[tuple[str, Type, Type]]:
    """The columns of an input whose values may have too many digits in the output, with both types."""
    types = {**output.data, **output.riders}
    return [(name, given, types[name]) for name, given in {**row.data, **row.riders}.items() if name in types and may_overflow(given, types[name])]


def _error(narrow: Sequence[tuple[str, Type, Type]], stage: str) -> Column:
    """The `_error` of rows with a value of too many digits, null for the others."""
    cases = [
        (overflows(column(name), given, wanted.scale), F.lit(f"overflow: column '{name}' has more than {MOST_DIGITS} digits with {wanted.scale} of them behind the point"))
        for name, given, wanted in narrow
    ]
    detail = first_case(cases, F.lit(None).cast("string"))
    return F.when(detail.isNotNull(), error_text("type_coercion_failure", detail, stage))


def _started(name: str, type_: Type, values: RunValues) -> Column:
    """A rider that the records of an input lack: a variable has the value that it had before anything was written."""
    from cxl.spark.columns import literal

    variable = dotted(name)
    value = values.values.get(variable) if variable is not None else None
    return literal(value, type_).alias(name)


def _present(name: str, there: bool, type_: str) -> Column:
    return column(name) if there else F.lit(None).cast(type_).alias(name)


def _converted(name: str, given: Type | None, wanted: Type) -> Column:
    """A column in a wider type; null where the input lacks it."""
    if given is None or given.kind is Kind.NULL:
        return _present(name, False, physical_type(wanted))
    if wanted.is_dynamic:
        return json_text(column(name), given).alias(name)
    if wanted.kind is Kind.DECIMAL:
        return at_scale(column(name), given, wanted.scale).alias(name)
    return column(name).cast(physical_type(wanted)).alias(name)


def merged_type(left: Type, right: Type) -> Type | None:
    """The type of a column that holds values of both; None where there is none. A dynamic one takes all."""
    if left.is_dynamic or right.is_dynamic:
        return combined(left.kind if left == right else Kind.ANY, left, right)
    return unify(left, right)


def _emitted(inputs: Sequence[RowType]) -> tuple[str, ...] | None:
    """The names that any input's transform emits; None (all columns) where one of them has none."""
    emitted = [row.emitted for row in inputs]
    if any(names is None for names in emitted):
        return None
    return tuple(dict.fromkeys(name for names in emitted for name in names or ()))


def _provisional(config: MergeConfig, inputs: Sequence[RowType]) -> Schema | None:
    if any(isinstance(row.data, OpenSchema) or set(row.data) != set(inputs[0].data) for row in inputs):
        return None
    return Schema((name, ANY) for name in inputs[0].data)


@node_type("merge", MergeConfig, wiring="inputs", config_optional=True, provisional=_provisional)
def bind(spec: NodeSpec, binding: Binding) -> Merge | None:
    """Check a merge and give its operator."""
    if len(binding.inputs) > MAX_INPUTS:
        binding.problems.report("E273", f"merge '{spec.name}' has {len(binding.inputs)} inputs, {MAX_INPUTS} at most", ("inputs",), help="merge some of them first, and read that merge here")
        return None
    wrong = any(row.guessed for row in binding.inputs)
    for code, index, message, help_text in () if wrong else _disagreements(spec, binding.inputs):
        binding.problems.report(code, f"merge '{spec.name}': {message}", ("inputs", index), help=help_text)
        wrong = True
    return None if wrong else Merge(spec, binding.inputs, _data(binding.inputs))


def _data(inputs: Sequence[RowType]) -> Schema:
    """The first input's columns with the types that hold the values of all."""
    types = dict(inputs[0].data)
    for row in inputs[1:]:
        types = {name: merged_type(type_, row.data[name]) or ANY for name, type_ in types.items()}
    return Schema(types.items())


def _disagreements(spec: NodeSpec, inputs: Sequence[RowType]) -> Iterator[tuple[str, int, str, str]]:
    """Code, number of the input, message and help for each input that does not go with the first."""
    first = inputs[0]
    names = [str(ref) for ref in spec.inputs]
    for index, row in enumerate(inputs[1:], 1):
        pair = f"'{names[index]}' and '{names[0]}'"
        if set(row.data) != set(first.data):
            yield "E270", index, f"{pair} have different columns: {_difference((names[0], names[index]), (first, row))}", "a transform ahead of the merge can rename columns; combine joins inputs that differ"
            continue
        for name, type_ in row.data.items():
            if merged_type(first.data[name], type_) is None:
                message = f"column '{name}' is {type_name(first.data[name].base)} in '{names[0]}' and {type_name(type_.base)} in '{names[index]}'"
                yield "E272", index, message, "convert one side in a transform ahead of the merge"
        if not (row.key.sources() and first.key.sources()):
            continue  # what an aggregate gives carries neither undeclared fields nor the keys of single records
        if row.widened != first.widened:
            message = f"input schemas disagree on the `$widened` auto_widen sidecar column: {_policy(names[0], first)}, {_policy(names[index], row)}"
            yield "E315", index, message, "give all sources above the merge the same on_unmapped"
        if set(row.riding(CK)) != set(first.riding(CK)):
            message = f"{pair} have different correlation keys: {_keys(first)} and {_keys(row)}"
            yield "E271", index, message, "give the sources above the merge the same correlation_key"


def _difference(names: Sequence[str], inputs: Sequence[RowType]) -> str:
    first, other = (list(row.data) for row in inputs)
    missing = [(names[1], [name for name in first if name not in other]), (names[0], [name for name in other if name not in first])]
    return "; ".join(f"'{name}' lacks {', '.join(columns)}" for name, columns in missing if columns)


def _policy(name: str, row: RowType) -> str:
    return f"'{name}' {'carries' if row.widened else 'does not carry'} it"


def _keys(row: RowType) -> str:
    return ", ".join(row.riding(CK)) or "none"
