"""Which op rows an erasure takes out of each table: by the keys of the erased records, and by their values.

A key is made of the keys before it, and no key begins with another one. So in the nodes behind a source a record's rows have keys that
begin with the record's, as far as rows come from single records. Behind that, in totals and joined rows, values tell.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from changelog.keys.decode import bare_keys
from changelog.lazy_imports import pl
from changelog.ops import Op
from errata.erasure.values import as_frame
from errata.plan.plan import Node, Plan
from operators.core.operator import Linear
from operators.core.row_type import KeyShape
from storage.delta.changelog_table import ChangelogTable

IDENTITY: Final = ("_epoch", "_op", "_key")
"""The identity of an op row of a table."""
_NEGATIVE: Final = (int(Op.RETRACT), int(Op.CORRECT_FROM))

Spans = tuple[tuple[int, int | None], ...]
"""Epochs in which a key was an erased record's: from one on, and before another one."""


@dataclass(frozen=True, slots=True)
class ErasedKeys:
    """Beginnings of keys: whoever has one is a row of an erased record.

    `spans`: by key the epochs in which it was an erased record's, where another record had it at other times.
    """

    keys: frozenset[bytes]
    spans: Mapping[bytes, Spans] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.keys)

    def matched(self, keys: pl.Series) -> pl.Series:
        """For each key of rows the erased key that it begins with; null where there is none."""
        found = pl.repeat(None, len(keys), dtype=pl.Binary, eager=True)
        for length in sorted({len(key) for key in self.keys}):
            begin = keys.bin.slice(0, length)
            among = begin.is_in(pl.Series([key for key in self.keys if len(key) == length], dtype=pl.Binary).implode())
            found = found.zip_with(found.is_not_null() | ~among.fill_null(value=False), begin)
        return found

    def behind(self, prefix: bytes) -> ErasedKeys:
        """The keys with bytes before them."""
        return ErasedKeys(frozenset(prefix + key for key in self.keys), {prefix + key: spans for key, spans in self.spans.items()})

    def union(self, other: ErasedKeys) -> ErasedKeys:
        """Both."""
        return ErasedKeys(self.keys | other.keys, {**self.spans, **other.spans})


NOTHING: Final = ErasedKeys(frozenset())


def keys_of_nodes(plan: Plan, erased: Mapping[str, ErasedKeys]) -> dict[str, ErasedKeys]:
    """The erased keys of each node, from the keys of the sources."""
    found: dict[str, ErasedKeys] = {}
    for node in plan:
        above = [found[name] for name, _ in node.inputs]
        found[node.name] = erased.get(node.name, NOTHING) if node.is_source else _passed_on(node, above)
    return found


def _passed_on(node: Node, above: Sequence[ErasedKeys]) -> ErasedKeys:
    shape, inputs = node.operator.output.key, node.operator.inputs
    return _of_shape(shape, [row.key for row in inputs], above) if above else NOTHING


def _of_shape(shape: KeyShape, inputs: Sequence[KeyShape], above: Sequence[ErasedKeys]) -> ErasedKeys:
    if shape.kind == "group":
        return NOTHING
    if shape == inputs[0]:
        return above[0]
    if shape.kind == "merge" and len(shape.parts) == len(inputs):
        found = NOTHING
        for number, one in enumerate(above):
            found = found.union(one.behind(bytes([number])))
        return found
    return _of_shape(shape.parts[0], inputs, above) if shape.parts else above[0]


def is_plain(plan: Plan, node: Node, known: dict[str, bool]) -> bool:
    """Whether each row of a node has the values of one source record alone. `known`: the answers of nodes before it."""
    known[node.name] = node.is_source or (isinstance(node.operator, Linear) and all(known[name] for name, _ in node.inputs))
    return known[node.name]


def plain_nodes(plan: Plan) -> set[str]:
    """The nodes whose rows each have the values of one source record alone."""
    known: dict[str, bool] = {}
    return {node.name for node in plan if is_plain(plan, node, known)}


def op_rows(table: ChangelogTable) -> Iterator[pl.DataFrame]:
    """The op rows of each data file."""
    return (as_frame(rows) for rows in table.stored_rows())


def gathered(parts: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """Rows of several files together."""
    found = [one for one in parts if one.height]
    return pl.concat(found, how="diagonal_relaxed") if found else pl.DataFrame(schema={"_epoch": pl.Int64, "_op": pl.Int8, "_key": pl.Binary})


@dataclass(frozen=True, slots=True)
class Cut:
    """The rows that leave a table by keys.

    Attributes:
        rows: The whole op rows that leave.
        left: Rows that stay and whose other half leaves, with their new operation as `__new`.
    """

    rows: pl.DataFrame
    left: pl.DataFrame


def cut(table: ChangelogTable, erased: ErasedKeys) -> Cut:
    """The op rows of erased records in a table."""
    found = gathered(_of_records(rows, erased) for rows in op_rows(table)) if erased and table.exists() else gathered(())
    none = pl.DataFrame(schema={**{name: found.schema[name] for name in IDENTITY}, "__new": pl.Int8})
    if not erased.spans or not found.height:
        return Cut(found.drop("__of", strict=False), none)
    mixed = found["__of"].is_in(pl.Series(list(erased.spans), dtype=pl.Binary).implode())
    parts = [_split(rows, erased.spans[rows["__of"][0]]) for _, rows in found.filter(mixed).group_by("_key")]
    left = [one for _, one in parts if one.height]
    return Cut(gathered([found.filter(~mixed), *(one for one, _ in parts)]).drop("__of", strict=False), pl.concat(left) if left else none)


def _of_records(rows: pl.DataFrame, erased: ErasedKeys) -> pl.DataFrame:
    return rows.with_columns(__of=erased.matched(rows["_key"])).filter(pl.col("__of").is_not_null())


def _split(rows: pl.DataFrame, spans: Spans) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The op rows of one key that leave; and rows that stay without their other half, with their new operation."""
    ordered = rows.with_columns(_order=~pl.col("_op").is_in(_NEGATIVE)).sort("_epoch", "_order").drop("_order")
    goes, going = [], False
    for epoch, op in ordered.select("_epoch", "_op").iter_rows():
        if op not in _NEGATIVE:
            going = any(first <= epoch and (end is None or epoch < end) for first, end in spans)
        goes.append(going)
    left = ordered.filter(~pl.Series(goes))
    alone = left.with_columns(__number=pl.len().over("_epoch")).filter(pl.col("__number") == 1, pl.col("_op").is_in([int(Op.CORRECT_FROM), int(Op.CORRECT_TO)]))
    new = pl.when(pl.col("_op") == int(Op.CORRECT_FROM)).then(int(Op.RETRACT)).otherwise(int(Op.APPEND)).cast(pl.Int8)
    return ordered.filter(pl.Series(goes)), alone.select(*IDENTITY, new.alias("__new"))


def of_images(rows: pl.DataFrame, all_rows: pl.DataFrame) -> ErasedKeys:
    """The keys of records that are known by their values alone: a place in a file may have been another record's at other times.

    Args:
        rows: The op rows of the erased records.
        all_rows: All op rows of the same keys.
    """
    named = all_rows.select(*IDENTITY, __bare=bare_keys(all_rows["_key"]))
    marks = named.join(rows.select(*IDENTITY).with_columns(__goes=True), IDENTITY, "left").select(
        "_epoch", "__bare", __goes=pl.col("__goes").fill_null(value=False), _order=~pl.col("_op").is_in(_NEGATIVE)
    )
    versions = marks.filter("_order").sort("_epoch").group_by("__bare", maintain_order=True).agg("_epoch", "__goes", __all=pl.col("__goes").all())
    spans = {bytes(key): tuple(_spans(epochs, goes)) for key, epochs, goes in versions.filter(~pl.col("__all")).select("__bare", "_epoch", "__goes").iter_rows()}
    return ErasedKeys(frozenset(map(bytes, marks["__bare"].unique())), spans)


def _spans(epochs: Sequence[int], goes: Sequence[bool]) -> Iterator[tuple[int, int | None]]:
    """The epochs of the versions that go, each until the next version."""
    for at, (epoch, going) in enumerate(zip(epochs, goes, strict=True)):
        if going:
            yield epoch, next((later for later in epochs[at + 1 :] if later > epoch), None)


def live_of(rows: pl.DataFrame) -> pl.DataFrame:
    """The op rows that bring in the live rows, out of all op rows of some keys."""
    last = rows.with_columns(_order=~pl.col("_op").is_in(_NEGATIVE)).sort("_epoch", "_order").group_by("_key", maintain_order=True).last()
    return last.filter("_order").select(*IDENTITY)
