"""The message of `fail_fast` about the record that ended a run: the statement that failed and the fields that it read."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from changelog.columns import column
from changelog.keys.encoding import bare
from changelog.lazy_imports import F
from changelog.ops import Op, is_positive
from cxl import Program, spark
from cxl.diagnostics.source import Span
from cxl.typed import tree
from errata.core.failures import Stopped, StorageFailed
from errata.plan.plan import Node
from errata.rendering.event_stream import without_values
from errata.rollback.categories import TOLERATED
from errata.rollback.cell_texts import value_in_words
from errata.rollback.dead_letters import Rejects
from errata.rollback.group_fields import groups_in_words
from errata.rollback.provenance import is_group_reject
from errata.rollback.record_locations import Places
from errata.state.run_state import NodeDelta, RunState
from errata.state.source_files import place_of
from operators.aggregate.operator import Aggregate
from operators.core.evaluate import prepare
from operators.source.file_changes import FileRecord
from operators.source.node import SourceNode

_DETAILED = ("type_coercion_failure", "malformed_record", "expansion_limit_exceeded", "nan_in_output_field", "aggregate_type_error", "aggregate_finalize")
"""Categories whose texts have values of the data in quotes, or behind `got`."""
_GOES_ON = "error_handling: { strategy: continue } sends such records to the dead letter queue"
_GOT = re.compile(r", got .*", re.DOTALL)


def stop_at_first(
    run: RunState, node: Node, delta: NodeDelta, files: Sequence[FileRecord], places: Callable[[], Places], *, strict: bool, key: bytes | None = None
) -> None:
    """End a run at the first record that a node rejects.

    Args:
        run: The run.
        node: The node.
        delta: What the run did with it.
        files: The source's files.
        places: Finds the records behind other nodes' rows.
        strict: Whether each reject ends the run, unless it is merely late; else only what the node calls fatal does.
        key: The only row that counts; None: all of them.

    Raises:
        Stopped: A record is rejected. StorageFailed where it is malformed.
    """
    fatal = node.operator.fatal
    if not delta.rejected or not (strict or fatal):
        return
    first = _first_reject(run, node, frozenset() if strict else fatal, key)
    if first:
        place = place_of(first, files) if node.is_source else _place_behind(run, node, first, places())
        where, category = _in_words(place), first.get("category", "")
        message = f"node '{node.name}': {where}{_key_in_words(node, first)}{first.get('detail', '')} ({category})"
        details = _details(run, node, first["_key"])
        detail = _without_cells(first, {name for one in run.plan for name in one.operator.output.data}) if category in _DETAILED else ""
        redacted = f"node '{node.name}': {where}{detail} ({category})" if detail else f"node '{node.name}': {where}{category}"
        raise _kind(category)(message, help="" if first.get("category") in fatal else _GOES_ON, details=details, file=place[0] if place else "", redacted=redacted)


def stop_at_new(run: RunState, entries: pl.DataFrame, files: Mapping[str, Sequence[FileRecord]], places: Callable[[], Places]) -> None:
    """End a run at the first record that it rejects and that nobody waived.

    Args:
        run: The run, whose rows are all computed.
        entries: All live rejects with what people decided about them.
        files: The files of each source.
        places: Finds the records behind other nodes' rows.

    Raises:
        Stopped: A record is rejected. StorageFailed where it is malformed.
    """
    new = entries.filter(pl.col("waiver").is_null(), pl.col("epoch") == run.epoch, ~pl.col("category").is_in(TOLERATED))
    first = dict(new.group_by("node").agg(pl.col("key").min()).iter_rows())
    for node in run.plan:
        if node.name in first and node.name in run.done:
            stop_at_first(run, node, run.done[node.name], files.get(node.name, ()), places, strict=True, key=first[node.name])
    for one in new.head(1).iter_rows(named=True):  # its node has no such row any more: the records behind it were rolled back
        where = _in_words(None if one["file"] is None else (one["file"], one["row"]))
        told = f"node '{one['node']}': {where}"
        raise _kind(one["category"])(f"{told}{one['detail']} ({one['category']})", help=_GOES_ON, file=one["file"] or "", redacted=f"{told}{one['category']}")


def _kind(category: str) -> type[Stopped | StorageFailed]:
    """How a record of a category ends a run."""
    return StorageFailed if category == "malformed_record" else Stopped


def _first_reject(run: RunState, node: Node, categories: frozenset[str], key: bytes | None) -> dict[str, Any]:
    """The first record that this run rejected at a node: category, detail and `_key`; of a keyed source `_file` and `_row` too.

    Args:
        run: The run.
        node: The node.
        categories: The categories that count; all but late records where there are none.
        key: The only row that counts; None: all of them.
    """
    own = run.done[node.name].rows
    rows = (own if own is not None and own.are_here else run.epoch_rows(node)).as_frame()
    rows = rows.where(F.col("_error").isNotNull() & F.col("_op").isin(int(Op.APPEND), int(Op.CORRECT_TO)))
    rows = rows.where(F.get_json_object("_error", "$.category").isin(*categories) if categories else ~F.col("_error").contains('"category":"late_record"'))
    rows = rows if key is None else rows.where(F.col("_key") == F.lit(key))
    names = [name for name in ("_key", "_error", "_file", "_row") if name in rows.columns]
    found = run.engine.to_arrow(rows.orderBy("_key").select(*names), 1).to_pylist()
    return {**found[0], **json.loads(found[0]["_error"])} if found else {}


def _place_behind(run: RunState, node: Node, first: Mapping[str, Any], places: Places) -> tuple[str, int | None] | None:
    """File and number of the source record behind a row that a node rejected; None where no single one is."""
    return Rejects(run.plan, run.tables, run.engine, run.values, places).behind(node, first["_key"], first)


def _key_in_words(node: Node, first: Mapping[str, Any]) -> str:
    """The key of a record that a table or a query has, which has no number; that it has none where no primary key is declared. The fields of a group that failed."""
    operator = node.operator
    if isinstance(operator, Aggregate) and is_group_reject(first):
        return groups_in_words(operator, [bare(first["_key"])])[0]
    if not isinstance(operator, SourceNode) or not operator.config.asks:
        return ""
    fields = first.get("fields") or {}
    names = [name for name in operator.config.merge.primary_key if name in fields]
    if not operator.config.merge.primary_key:
        return "a record without a primary key: "
    shown = ", ".join(f"{name}={'null' if fields[name] is None else fields[name]}" for name in names)
    return f"record {shown}: " if names else ""


def _without_cells(first: Mapping[str, Any], names: Collection[str]) -> str:
    """The detail of a rejected record, with `...` for cells."""
    detail = str(first.get("detail", ""))
    cells = [repr(text) for text in (first.get("fields") or {}).values()]
    for cell in sorted(cells, key=len, reverse=True):
        detail = detail.replace(f"cannot read {cell} as", "cannot read '...' as")
    return _GOT.sub(", got ...", without_values(detail, names))


def _in_words(place: tuple[str, int | None] | None) -> str:
    """`orders.csv: record 3: ` of a record's place; nothing where it is not known."""
    if place is None:
        return ""
    file, row = place
    return f"{file}: " if row is None else f"{file}: record {row}: "


def _details(run: RunState, node: Node, key: bytes) -> tuple[str, ...]:
    """Two lines, the expression and the record, for the reject of a transform with this key; none where its program did not fail."""
    logic = getattr(node.operator, "logic", None)
    program: Program | None = getattr(logic, "program", None)
    delta = run.done.get(node.inputs[0][0]) if node.inputs else None
    if program is None or program.windows or delta is None or delta.rows is None:
        return ()
    found = _failed(run, node, logic, bare(key))
    statement = None if found is None else next((one.span for one in program.syntax.statements if one.span.start <= found["__start"] < one.span.end), None)
    if found is None or statement is None:
        return ()
    text = " ".join(program.text[statement.start : statement.end].split())
    return (f"expression: {text}", f"record: {{{', '.join(_read(node, program, statement, found))}}}")


def _failed(run: RunState, node: Node, logic: Any, key: bytes) -> dict[str, Any] | None:
    """The record as the node read it, with the place in the program where it fails."""
    program: Program = logic.program
    found = run.done[node.inputs[0][0]].rows
    assert found is not None  # the caller looked
    rows = found.as_frame().where((F.col("_key") == F.lit(key)) & is_positive(F.col("_op")))
    ready, context = prepare(rows, program.reads_system, node.operator.inputs[0], run.values_of(node), logic.config.max_expansion)
    why = spark.errors(ready, program, context, "__why")
    why = why.where(F.col("__why").isNotNull()).withColumn("__start", F.col("__why").getField("start"))
    fields = [name for name in node.operator.inputs[0].data if name in program.reads]
    found = run.engine.to_arrow(why.select("__start", *map(column, fields)), 1).to_pylist()
    return found[0] if found else None


def _read(node: Node, program: Program, statement: Span, record: Mapping[str, Any]) -> Iterator[str]:
    """The fields that a statement reads (all that the program does, where it reads none itself) with their values."""
    own = [one.name for one in program.nodes() if isinstance(one, tree.Field) and statement.start <= one.span.start < statement.end]
    types = node.operator.inputs[0].data
    for name in dict.fromkeys(own or (one for one in types if one in program.reads)):
        yield f"{name}: {value_in_words(record[name], types[name])}"
