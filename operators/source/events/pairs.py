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

_RECORD: Final = ("_file", "_row", "_turn")
"""The columns that both halves of a record share."""


def settled(events: DataFrame, base: DataFrame | None, rules: Rules, request: IngestRequest) -> DataFrame:
    """Events without the second halves of bad pairs. Their first halves become corrections of nothing.

    Args:
        events: Events with `_place`.
        base: The keys (`_key`) with a prior row; None for none.
        rules: How events are replayed.
        request: The request of the source.
    """
    engine, first = request.engine, F.col("_part") == 1
    pairs = engine.to_arrow(events.where(first).select("_of", "_ref"))
    if not pairs.num_rows:
        return events
    keys = pa.table({"_of": pa.chunked_array([*pairs.column("_of").chunks, *pairs.column("_ref").chunks], pa.binary())}).group_by("_of").aggregate([])
    named = engine.from_arrow(keys)
    slim = ["_of", "_does", "_part", *(["_version"] if rules.by_version else []), "_place", *_RECORD]
    kept = F.col("_kept").isNull() & F.col("_does").isin(GOES, STANDS)
    setters = engine.to_arrow(events.where(kept).join(named, "_of", "left_semi").select(*slim))
    live = None if base is None else engine.to_arrow(base.join(named.withColumnRenamed("_of", "_key"), "_key", "left_semi").select("_key"))
    bad = _bad(pl.DataFrame(setters), None if live is None else pl.DataFrame(live), rules)
    if not bad.height:
        return events
    marked = events.join(engine.from_arrow(bad.with_columns(_bad=pl.lit(value=True)).to_arrow().cast(_schema())), list(_RECORD), "left")
    is_bad = F.coalesce(F.col("_bad"), F.lit(False)) & (F.col("_part") > 0)
    names = events.columns
    return marked.where(~(is_bad & (F.col("_part") == 2))).withColumn("_does", F.when(is_bad, CORRECTS).otherwise(F.col("_does")).cast("tinyint")).select(*(F.col(f"`{name}`") for name in names))


def _schema() -> pa.Schema:
    return pa.schema([("_file", pa.string()), ("_row", pa.int64()), ("_turn", pa.int64()), ("_bad", pa.bool_())])


def _bad(setters: pl.DataFrame, live: pl.DataFrame | None, rules: Rules) -> pl.DataFrame:
    """The records (`_RECORD`) of pairs whose named key is not live before them."""
    events = setters.sort(rules.order_names, nulls_last=False).with_row_index("_seq").with_columns(pl.col("_seq").cast(pl.Int64), _sets=pl.col("_does") == STANDS, _pair=pl.col("_part") > 0)
    base = pl.DataFrame({"_of": []}, schema={"_of": pl.Binary}) if live is None else live.rename({"_key": "_of"})
    records = events.filter(pl.col("_part") == 1).select(*_RECORD, "_of", "_seq").with_columns(_live=pl.col("_of").is_in(base["_of"].implode()))
    open_pairs, bad = records, records.clear().select(_RECORD)
    while open_pairs.height:
        waiting = events.join(open_pairs.select(*_RECORD, _open=pl.lit(value=True)), on=list(_RECORD), how="left").with_columns(_open=pl.col("_open").fill_null(value=False) & pl.col("_pair"))
        before = open_pairs.sort("_seq").join_asof(
            waiting.select("_of", "_seq", "_sets", "_open").sort("_seq"), on="_seq", by="_of", strategy="backward", allow_exact_matches=False, check_sortedness=False
        )
        known = before.filter(~pl.col("_open").fill_null(value=False)).with_columns(_good=pl.coalesce("_sets", "_live"))
        refused = known.filter(~pl.col("_good")).select(_RECORD)
        bad = pl.concat([bad, refused])
        events = events.join(refused.with_columns(_refused=pl.lit(value=True)), on=list(_RECORD), how="left").filter(~(pl.col("_refused").fill_null(value=False) & pl.col("_pair"))).drop("_refused")
        open_pairs = open_pairs.join(known.select(_RECORD), on=list(_RECORD), how="anti")
    return bad


def connected(fresh: DataFrame, earlier: DataFrame, request: IngestRequest) -> DataFrame:
    """The keys (`_of`) of new events, and all keys that pairs connect with them."""
    engine, first = request.engine, F.col("_part") == 1
    links = pl.concat([pl.DataFrame(engine.to_arrow(one.where(first).select("_of", "_ref"))) for one in (fresh, earlier)])
    both = pl.concat([links, links.select(_of="_ref", _ref="_of")]).unique()
    keys = pl.DataFrame(engine.to_arrow(fresh.select("_of").distinct()))
    edge = keys
    while edge.height:
        met = both.join(edge, on="_of").select(_of="_ref").unique()
        edge = met.join(keys, on="_of", how="anti")
        keys = pl.concat([keys, edge])
    return engine.from_arrow(keys.to_arrow().cast(pa.schema([("_of", pa.binary())])))
