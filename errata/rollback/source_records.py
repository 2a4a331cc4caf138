"""What the keys of rows lead back to: a record of a source or a row of an aggregate, and the branch of a route on the way."""

from __future__ import annotations

import polars as pl

from changelog.keys.decode import KeyBytes, bare_keys
from errata.plan.plan import Node, Plan
from operators.core.row_type import KeyShape

LEADS = {"lead": pl.String, "record": pl.Binary, "grouped": pl.Boolean}
"""What a key leads back to: the node, the key there, and whether it is a row of an aggregate; all null where nothing is behind it."""


def leads_of(shape: KeyShape, keys: pl.Series) -> pl.DataFrame:
    """The records or the aggregates' rows inside keys of a shape, a row of `LEADS` each."""
    if shape.kind == "merge":
        return _by_part(shape, keys)
    if shape.parts:
        return leads_of(shape.parts[0], keys)
    if not shape.source or not len(keys):
        return pl.DataFrame({name: [None] * len(keys) for name in LEADS}, schema=LEADS)
    found = pl.DataFrame({"key": keys, "end": _own_ends(shape, KeyBytes.of(keys))})
    lead, grouped = pl.lit(shape.source).alias("lead"), pl.lit(shape.kind == "group").alias("grouped")
    return found.select(lead, pl.col("key").bin.slice(0, pl.col("end")).alias("record"), grouped)


def _by_part(shape: KeyShape, keys: pl.Series) -> pl.DataFrame:
    """The first byte of a key chooses the shape of the rest."""
    rows = pl.DataFrame({"key": keys}).with_row_index("at").with_columns(part=pl.col("key").bin.head(1), key=pl.col("key").bin.slice(1))
    found = [pl.DataFrame(schema={"at": pl.UInt32, **LEADS})]
    for number, part in enumerate(shape.parts):
        own = rows.filter(pl.col("part") == bytes([number]))
        found.append(own.select("at").hstack(leads_of(part, own["key"])))
    return rows.select("at").join(pl.concat(found), on="at", how="left", maintain_order="left").drop("at")


def _own_ends(shape: KeyShape, keys: KeyBytes) -> pl.Series:
    """Where the key of the record (or of the group) at the head of each key ends; other operators may have put more behind it."""
    if shape.types is not None:
        return pl.Series(keys.value_ends(keys.start(), shape.types))
    return pl.Series(keys.label_ends(keys.label_ends(keys.start() + 1)))


def leads_of_rejects(node: Node, keys: pl.Series, of_groups: pl.Series) -> pl.DataFrame:
    """What a node's rejects lead back to. An aggregate rejects records, and groups that cannot be finalized (`of_groups`)."""
    plain = bare_keys(keys)
    if node.is_source:
        return pl.DataFrame({"lead": [node.name] * len(keys), "record": plain, "grouped": [False] * len(keys)}, schema=LEADS)
    if not of_groups.any():
        return leads_of(node.operator.reject_shape, plain)
    rows = pl.DataFrame({"key": plain, "group": of_groups}).with_row_index("at")
    found = []
    for shape, own in ((node.operator.output.key, rows.filter("group")), (node.operator.reject_shape, rows.filter(~pl.col("group")))):
        found.append(own.select("at").hstack(leads_of(shape, own["key"])))
    return pl.concat(found).sort("at").drop("at")


def branches(plan: Plan, node: Node, keys: pl.Series) -> pl.Series:
    """`branch_of` each of many keys: it reads no more of a key than a byte for each merge and combine, and few keys differ in these."""
    heads = keys.bin.head(sum(one.operator.joins_inputs for one in (node, *plan.upstream(node.name))))
    known = {head: branch_of(plan, node, head) for head in heads.unique().to_list()}
    return heads.replace_strict(list(known), list(known.values()), return_dtype=pl.String) if known else pl.Series([], dtype=pl.String)


def branch_of(plan: Plan, node: Node, key: bytes) -> str:
    """The branch of the nearest route above a node through which a row of this key came; empty where there is none."""
    rejecting = True
    while node.inputs:
        index, key = node.operator.input_of(key, reject=rejecting)
        name, port = node.inputs[index]
        if plan[name].operator.ports():
            return port or ""
        node, rejecting = plan[name], False
    return ""
