"""`errata correct`: one record of a source gets other values or is taken back."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any, cast

from changelog.columns import column
from changelog.lazy_imports import F, pa
from changelog.rows import is_null
from changelog.spark_algebra import diff
from cxl.types.types import Kind, Type, type_name
from errata.amend.amendment import Change
from errata.core.diagnostics import did_you_mean
from errata.core.failures import Usage
from errata.core.options import Correction
from errata.inspect.why import value_is
from errata.plan.plan import Node, Plan
from errata.state.run_state import RunState
from errata.state.suppressed_rows import truth
from operators.core.row_type import CK
from operators.corrections.correction import shown_key
from operators.source.node import SourceNode
from storage.values.coerce import coerce
from storage.values.decimals import DIGITS, DecimalType, plain_digits, unscaled, value_at

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


@dataclass(frozen=True, slots=True)
class Correct(Change):
    """One record of a source gets other values or is taken back."""

    correction: Correction

    def sources(self, names: Sequence[str]) -> Mapping[str, str]:
        """The one that has the record."""
        return {self.correction.source: "corrected by hand"}

    def rows(self, run: RunState, node: Node) -> DataFrame:
        """The record's two images, or its retraction; a suppressed record changes as if it took part."""
        live = truth(run.tables.live(run.engine, node, run.values, at=run.epoch - 1).without("_epoch")).where(is_null("_error")).as_frame()
        old = self._found(run, live, node)
        return diff(old, old.limit(0) if self.correction.retracts else self._changed(run, old, node), "correction")

    def _found(self, run: RunState, live: DataFrame, node: Node) -> DataFrame:
        for name in self.correction.key:
            _refuse_unknown(name, node)
        found = live
        for name, text in self.correction.key.items():
            found = found.where(value_is(column(name), node.operator.output.data[name], text))
        table = run.engine.to_arrow(found, 2)
        shown = shown_key(self.correction.key)
        if table.num_rows != 1:
            several = f"several records of '{node.name}' have" if table.num_rows else f"no record of '{node.name}' has"
            unread = "a rejected record is repaired by corrections of its source, or in its file: errata dlq lists it" if run.rejects.get(node.name) else ""
            raise Usage(f"{several} {shown}", help="name more columns with --key" if table.num_rows else unread)
        return run.engine.from_arrow(table)

    def _changed(self, run: RunState, old: DataFrame, node: Node) -> DataFrame:
        source = cast("SourceNode", node.operator)
        types, digits = source.output.columns(), source.digits
        for name, text in self.correction.changes.items():
            _refuse_unknown(name, node)
            if name in source.config.merge.primary_key:
                raise Usage(f"'{name}' is part of the primary key: retract the record instead, and correct another")
            if name in digits:
                value = _decimal(name, text, digits[name])
            else:
                value = given_value(name, text, source.output.data[name], source.date_formats_of(name)).cast(types[name])
            old = old.withColumn(name, value)
        return old.withColumns(_derived(source)) if _derived(source) else old

    def corrected(self, run: RunState, node: Node) -> list[int]:
        """The earlier ones and this one."""
        return [*run.corrected.get(node.name, ()), run.epoch]

    def counters(self) -> dict[str, Any]:
        """The record that was corrected, and the reason, for the ledger."""
        return {"kind": "correct", "source": self.correction.source, "key": dict(self.correction.key), "reason": self.correction.reason}


def _refuse_unknown(name: str, node: Node) -> None:
    known = list(node.operator.output.data)
    if name not in known:
        raise Usage(f"source '{node.name}' has no column '{name}'", help=did_you_mean(name, known) or f"its columns: {', '.join(known)}")


def _decimal(name: str, text: str, digits: DecimalType) -> Column:
    """A decimal by the rules for cells; null for an empty text. Raises Usage for a text that is no decimal of these digits."""
    found = unscaled(text, digits)
    if found is None and text:
        raise Usage(f"column '{name}' is decimal({digits.precision},{digits.scale}): '{text}' does not fit", help="write it with a decimal point and without signs between thousands")
    return F.lit(None if found is None else plain_digits(value_at(found, digits.scale))).cast(f"decimal({DIGITS},{digits.scale})")


def given_value(name: str, text: str, type_: Type, date_formats: Sequence[str]) -> Column:
    """A value of the command line as a column, by the rules for cells of files.

    Args:
        name: The column.
        text: The value; an empty one is null but for strings.
        type_: The type of the column. Values of type any are JSON, or else text; arrays and maps are JSON.
        date_formats: The formats of dates of the column.

    Raises:
        Usage: The text is no value of the type.
    """
    if type_.kind is Kind.STRING:
        return F.lit(text)
    if not text:
        return F.lit(None)
    if type_.kind is Kind.ANY:
        return F.lit(_json_text(text))
    read = coerce(pa.array([text], pa.string()), type_name(type_.base), date_formats)
    if read.failed is not None:
        raise Usage(f"column '{name}' is {type_name(type_.base)}: '{text}' cannot be read as one", help=_way_to_write(type_, date_formats))
    value = read.values[0].as_py()
    return F.lit(value.isoformat() if isinstance(value, date) else value)


def _json_text(text: str) -> str:
    """JSON unchanged, another text as a text of JSON."""
    try:
        json.loads(text)
    except ValueError:
        return json.dumps(text, ensure_ascii=False)
    return text


def _way_to_write(type_: Type, date_formats: Sequence[str]) -> str:
    """How a value of a type is written; empty where that is plain."""
    if type_.kind is Kind.ARRAY:
        return "an array is JSON: '[\"a\", 2]'"
    if type_.kind is Kind.MAP:
        return "a map is JSON: '{\"a\": 2}'"
    if type_.kind not in (Kind.DATE, Kind.DATE_TIME):
        return ""
    example = "2026-03-01" if type_.kind is Kind.DATE else "2026-03-01T12:00:00"
    return f"write it like {example}" + (f", or as date_formats say: {', '.join(date_formats)}" if date_formats else "")


def _derived(source: SourceNode) -> dict[str, Column]:
    """The hidden columns that are made from data columns: correlation keys and event time."""
    made = {name: column(name.removeprefix(CK)) for name in source.output.riders if name.startswith(CK)}
    if source.shape.event_time is not None:
        name, delay = source.shape.event_time
        made["_event_time"] = F.timestamp_micros(F.unix_micros(column(name).cast("timestamp")) - F.lit(delay))
    return made


def correction_of(plan: Plan, correction: Correction) -> Correct:
    """The change that a correction makes. Raises Usage where it names no source."""
    node = plan.nodes.get(correction.source)
    if node is None or not node.is_source:
        sources = [one.name for one in plan.of_kind("source")]
        raise Usage(f"'{correction.source}' is no source", help=f"sources: {', '.join(sources)}")
    return Correct(correction)
