"""Records that replace another key, where a correction of nothing is rejected: whether the named key was live decides about both keys.

Such a record is two events, a *pair*. Pairs are settled in rounds on a few columns: a round settles each pair whose named key was last changed by no
open pair. The first open pair is always one of these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from changelog.lazy_imports import F, pa, pl
from operators.source.events.columns import CORRECTS, GOES, STANDS
from operators.source.events.replay import Rules
from operators.source.request import IngestRequest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_RECORD: Final = ("_file", "_row", "__turn")
"""The columns that both halves of a record share."""


def settled(events: DataFrame, base: DataFrame | None, rules: Rules, request: IngestRequest) -> DataFrame:
    """Events without the second halves of bad pairs. Their first halves become corrections of nothing.

    Args:
        events: Events with `__place`.
        base: The keys (`_key`) with a prior row; None for none.
        rules: How events are replayed.
        request: The request of the source.
    """
    engine, first = request.engine, F.col("__part") == 1
    pairs = engine.to_arrow(events.where(first).select("__of", "__ref"))
    if not pairs.num_rows:
        return events
    keys = pa.table({"__of": pa.chunked_array([*pairs.column("__of").chunks, *pairs.column("__ref").chunks], pa.binary())}).group_by("__of").aggregate([])
    named = engine.from_arrow(keys)
    slim = ["__of", "__does", "__part", *(["__version"] if rules.by_version else []), "__place", *_RECORD]
    kept = F.col("__kept").isNull() & F.col("__does").isin(GOES, STANDS)
    setters = engine.to_arrow(events.where(kept).join(named, "__of", "left_semi").select(*slim))
    live = None if base is None else engine.to_arrow(base.join(named.withColumnRenamed("__of", "_key"), "_key", "left_semi").select("_key"))
    bad = _bad(pl.DataFrame(setters), None if live is None else pl.DataFrame(live), rules)
    if not bad.height:
        return events
    marked = events.join(engine.from_arrow(bad.with_columns(__bad=pl.lit(value=True)).to_arrow().cast(_schema())), list(_RECORD), "left")
    is_bad = F.coalesce(F.col("__bad"), F.lit(False)) & (F.col("__part") > 0)
    names = events.columns
    return marked.where(~(is_bad & (F.col("__part") == 2))).withColumn("__does", F.when(is_bad, CORRECTS).otherwise(F.col("__does")).cast("tinyint")).select(*(F.col(f"`{name}`") for name in names))


def _schema() -> pa.Schema:
    return pa.schema([("_file", pa.string()), ("_row", pa.int64()), ("__turn", pa.int64()), ("__bad", pa.bool_())])


def _bad(setters: pl.DataFrame, live: pl.DataFrame | None, rules: Rules) -> pl.DataFrame:
    """The records (`_RECORD`) of pairs whose named key is not live before them."""
    events = setters.sort(rules.order_names, nulls_last=False).with_row_index("__seq").with_columns(pl.col("__seq").cast(pl.Int64), __sets=pl.col("__does") == STANDS, __pair=pl.col("__part") > 0)
    base = pl.DataFrame({"__of": []}, schema={"__of": pl.Binary}) if live is None else live.rename({"_key": "__of"})
    records = events.filter(pl.col("__part") == 1).select(*_RECORD, "__of", "__seq").with_columns(__live=pl.col("__of").is_in(base["__of"].implode()))
    open_pairs, bad = records, records.clear().select(_RECORD)
    while open_pairs.height:
        waiting = events.join(open_pairs.select(*_RECORD, __open=pl.lit(value=True)), on=list(_RECORD), how="left").with_columns(__open=pl.col("__open").fill_null(value=False) & pl.col("__pair"))
        before = open_pairs.sort("__seq").join_asof(
            waiting.select("__of", "__seq", "__sets", "__open").sort("__seq"), on="__seq", by="__of", strategy="backward", allow_exact_matches=False, check_sortedness=False
        )
        known = before.filter(~pl.col("__open").fill_null(value=False)).with_columns(__good=pl.coalesce("__sets", "__live"))
        refused = known.filter(~pl.col("__good")).select(_RECORD)
        bad = pl.concat([bad, refused])
        events = events.join(refused.with_columns(_refused=pl.lit(value=True)), on=list(_RECORD), how="left").filter(~(pl.col("_refused").fill_null(value=False) & pl.col("__pair"))).drop("_refused")
        open_pairs = open_pairs.join(known.select(_RECORD), on=list(_RECORD), how="anti")
    return bad


def connected(fresh: DataFrame, earlier: DataFrame, request: IngestRequest) -> DataFrame:
    """The keys (`__of`) of new events, and all keys that pairs connect with them."""
    engine, first = request.engine, F.col("__part") == 1
    links = pl.concat([pl.DataFrame(engine.to_arrow(one.where(first).select("__of", "__ref"))) for one in (fresh, earlier)])
    both = pl.concat([links, links.select(__of="__ref", __ref="__of")]).unique()
    keys = pl.DataFrame(engine.to_arrow(fresh.select("__of").distinct()))
    edge = keys
    while edge.height:
        met = both.join(edge, on="__of").select(__of="__ref").unique()
        edge = met.join(keys, on="__of", how="anti")
        keys = pl.concat([keys, edge])
    return engine.from_arrow(keys.to_arrow().cast(pa.schema([("__of", pa.binary())])))
