"""The live rejects of a plan as one table, each with its source record: what the DLQ file lists, and what cursors and `errata dlq` go by."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import polars as pl

from changelog.algebra import fold
from changelog.keys.decode import arrow_keys, bare_keys
from changelog.lazy_imports import F, pa
from errata.plan.correlation import TRIGGERS, key_fields
from errata.plan.plan import Node, Plan
from errata.rollback.categories import GROUP_REJECT
from errata.rollback.cell_texts import texts
from errata.rollback.first_epochs import first_epochs
from errata.rollback.group_fields import fields_in_keys, groups_in_words
from errata.rollback.groups import groups_in
from errata.rollback.provenance import branches, is_group_reject, leads_of_rejects
from errata.rollback.record_locations import PLACE, Places, SourceState
from errata.state.node_tables import Tables
from errata.state.run_state import RunState
from errata.state.trigger_table import Trigger, live_triggers
from operators.aggregate.operator import Aggregate
from operators.core.run_values import RunValues
from storage.state.entry import Entry
from storage.state.location import State

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from storage.engines.base import Engine


SAID = ("node", "category", "detail", "stage", "route", "trigger", "by", "raw")
"""Members of the error of a rejected row; empty where it has none. `by`: what rolled it back. `raw`: the text of a record that could not be read."""

FIELD = "field:"
"""The prefix of the columns with the source record's fields as text."""

COLUMNS = {
    "key": pl.Binary, "epoch": pl.Int64, **dict.fromkeys(SAID, pl.String), "source": pl.String, "record": pl.Binary, **PLACE, "group": pl.Binary,
}  # fmt: skip
"""One row a reject of `node`, then the fields of the sources; null where the record's source does not have them.

`source`, `record` (its key there) and the place are null where no single source record is behind the reject. `group` is the correlation group of a
single record. A row that many records made has the fields of its aggregate."""


class Rejects:
    """Finds the live rejects of a plan's nodes and leads them back to their source records."""

    def __init__(self, plan: Plan, tables: Tables, engine: Engine, values: RunValues, places: Places) -> None:
        self.plan = plan
        self.tables = tables
        self.engine = engine
        self.values = values
        self.places = places

    def live_rejects(self, nodes: Iterable[str], triggers: Sequence[Trigger]) -> pl.DataFrame:
        """All live rejects of the nodes named, by source, file and row; those without a source record behind them, and last rows of aggregates that rolled records back."""
        found = [self._of_node(self.plan[name]) for name in nodes]
        rows = pl.concat([pl.DataFrame(schema=COLUMNS), *found], how="diagonal")
        order = {name: at for at, name in enumerate(self.plan.nodes)}
        ranks = [pl.col(name).replace_strict(order, default=0, return_dtype=pl.Int64) for name in ("source", "node")]
        ordered = rows.sort(pl.col("source").is_null(), ranks[0], pl.col("number").fill_null(0), ranks[1], "key", maintain_order=True)
        return pl.concat([ordered, self._triggers(triggers)], how="diagonal")

    def _triggers(self, triggers: Sequence[Trigger]) -> pl.DataFrame:
        known = [(at, one) for at, one in enumerate(triggers) if one.node in self.plan.nodes]
        found = [pl.DataFrame(schema={"at": pl.Int64, **COLUMNS})]
        for name in dict.fromkeys(one.node for _, one in known):
            own = [(at, one.key, one.epoch, one.text) for at, one in known if one.node == name]
            schema = {"at": pl.Int64, "key": pl.Binary, "epoch": pl.Int64, "error": pl.String}
            fields = {field: FIELD + field for field in fields_above(self.plan, name)}
            described = self._described(self.plan[name], pl.DataFrame(own, schema=schema, orient="row"), fields)
            found.append(described.with_columns(pl.col("fields").struct.field(field).alias(column) for field, column in fields.items()).drop("fields", strict=False))
        return pl.concat(found, how="diagonal").sort("at").drop("at")

    def behind(self, node: Node, key: bytes, error: Mapping[str, Any]) -> tuple[str, int | None] | None:
        """File and row of the source record behind a row that a node other than a source rejected; None where no single one is."""
        lead = leads_of_rejects(node, pl.Series([key], dtype=pl.Binary), pl.Series([is_group_reject(error)])).row(0, named=True)
        if lead["lead"] is None or lead["grouped"]:
            return None
        place = self.places.of(lead["lead"], pl.Series([lead["record"]], dtype=pl.Binary)).row(0, named=True)
        return None if place["file"] is None else (place["file"], place["row"])

    def _of_node(self, node: Node) -> pl.DataFrame:
        op_rows = self.tables.op_rows_of_rejects(self.engine, node, self.places.at)
        rows = fold(op_rows).as_table()
        kept = pl.DataFrame({"key": rows.column("_key"), "epoch": first_epochs(rows, op_rows, list(node.operator.output.data)), "error": rows.column("_error")})
        return self._of_source(node, kept, rows) if node.is_source else self._of_operator(node, kept)

    def _of_source(self, node: Node, kept: pl.DataFrame, rows: pa.Table) -> pl.DataFrame:
        """Records that were rejected as they left the source, and suppressed ones: the record is in the row."""
        records = bare_keys(kept["key"])
        known = pl.DataFrame({"file": rows.column("_file"), "row": rows.column("_row")}) if "_file" in rows.column_names else None
        lead = kept.select(pl.lit(node.name).alias("source"), records.alias("record")).hstack(self.places.of(node.name, records, known))
        group = pl.Series("group", groups_in(rows, node.operator.output, key_fields(node)), dtype=pl.Binary)
        described = self._described(node, kept, node.operator.output.data)
        unread = pl.col("fields").struct  # of a record whose cells could not be read their texts are in the error
        found = described.hstack(lead).with_columns(group, *_fields(node, rows))
        return found.with_columns(pl.coalesce(unread.field(name), FIELD + name).alias(FIELD + name) for name in node.operator.output.data).drop("fields", strict=False)

    def _of_operator(self, node: Node, kept: pl.DataFrame) -> pl.DataFrame:
        described = self._described(node, kept)
        lead = leads_of_rejects(node, kept["key"], described["category"] == GROUP_REJECT)
        rows = described.hstack(lead)
        found = [rows.filter(pl.col("lead").is_null())]
        for behind, is_group in rows.filter(pl.col("lead").is_not_null()).select("lead", "grouped").unique(maintain_order=True).iter_rows():
            own = rows.filter((pl.col("lead") == behind) & (pl.col("grouped") == is_group))
            fields = self._groups if is_group else self._records
            found.append(own.join(fields(self.plan[behind], own["record"].unique()), on="record", how="left"))
        single = pl.when(~pl.col("grouped"))
        return pl.concat(found, how="diagonal").with_columns(source=single.then("lead"), record=single.then("record")).drop("lead", "grouped")

    def _described(self, node: Node, kept: pl.DataFrame, fields: Iterable[str] = ()) -> pl.DataFrame:
        """Rows of a node (`key`, `epoch`, `error`) with the members of their errors, and with the wanted `fields`; the details of failed groups name them.

        The members of a group share one error, which is read once.
        """
        own = dict.fromkeys(fields, pl.String)
        said = pl.DataFrame({"error": kept["error"].unique()})
        parts = said["error"].str.json_decode(pl.Struct({**dict.fromkeys(SAID, pl.String), **({"fields": pl.Struct(own)} if own else {})})).struct.unnest()
        rows = kept.join(said.hstack(parts.with_columns(pl.col(SAID).fill_null(""))), on="error", how="left", maintain_order="left").drop("error")
        if isinstance(node.operator, Aggregate) and (of_groups := rows["category"] == GROUP_REJECT).any():
            words = groups_in_words(node.operator, bare_keys(rows.filter(of_groups)["key"]))
            rows = rows.with_columns(pl.Series("detail", [""] * rows.height).scatter(of_groups.arg_true(), words) + pl.col("detail"))
        known: dict[str, pl.Expr | pl.Series] = {"node": pl.lit(node.name), "stage": pl.lit(f"{node.kind}:{node.name}"), "route": branches(self.plan, node, bare_keys(kept["key"]))}
        return rows.with_columns(pl.when(pl.col(name) != "").then(name).otherwise(value).alias(name) for name, value in known.items())

    def _records(self, node: Node, keys: pl.Series) -> pl.DataFrame:
        """The live records of a source with these keys: `record`, their places and fields."""
        rows = self._live(node, keys)
        record = pl.Series("record", rows.column("_key"))
        known = pl.DataFrame({"file": rows.column("_file"), "row": rows.column("_row")}) if "_file" in rows.column_names else None
        return record.to_frame().hstack(self.places.of(node.name, record, known)).with_columns(_fields(node, rows))

    def _groups(self, node: Node, keys: pl.Series) -> pl.DataFrame:
        """The rows of an aggregate with these keys: `record` and their fields."""
        return group_fields(node, self._live(node, keys), keys)

    def _live(self, node: Node, keys: pl.Series) -> pa.Table:
        return live_rows(self.tables.live(self.engine, node, self.values, self.places.at).as_frame(), keys, self.engine)


def live_rows(live: DataFrame, keys: pl.Series, engine: Engine) -> pa.Table:
    """The accepted live rows of a node with one of some keys."""
    wanted = engine.from_arrow(pa.table({"_key": arrow_keys(keys)}))
    return engine.to_arrow(live.where(F.col("_error").isNull()).join(F.broadcast(wanted), "_key", "left_semi"))


def fields_above(plan: Plan, name: str) -> list[str]:
    """The fields of the sources above a node, which is what an entry of its DLQ rows may show."""
    return list(dict.fromkeys(field for source in plan.sources_of(name) for field in plan[source].operator.output.data))


def group_fields(node: Node, rows: pa.Table, keys: pl.Series) -> pl.DataFrame:
    """The fields of an aggregate's rows with these keys as text, beside `record`. A group that failed has no row among the live `rows`, so its key tells its fields."""
    live = pl.Series("record", rows.column("_key")).to_frame().with_columns(_fields(node, rows))
    failed = keys.filter(~keys.is_in(live["record"].implode()))
    known = fields_in_keys(cast("Aggregate", node.operator), failed)
    return pl.concat([live, pl.DataFrame({"record": failed, **{FIELD + name: found for name, found in known.items()}})], how="diagonal")


def fields_of_groups(run: RunState, node: Node, keys: Iterable[bytes]) -> dict[bytes, dict[str, str]]:
    """The fields of rows of an aggregate as text, while a run is under way."""
    wanted = pl.Series(list(dict.fromkeys(keys)), dtype=pl.Binary)
    rows = live_rows(run.tables.live(run.engine, node, run.values).as_frame(), wanted, run.engine)
    found = group_fields(node, rows, wanted).rename(lambda name: name.removeprefix(FIELD)).iter_rows(named=True)
    return {one.pop("record"): {name: text for name, text in one.items() if text is not None} for one in found}


def rejects_now(run: RunState, plan: Plan, places: Places) -> pl.DataFrame:
    """All live rejects while a run is under way."""
    found = Rejects(plan, run.tables, run.engine, run.values, places)
    triggers = live_triggers(run.tables.triggers) if run.rejected_live(TRIGGERS) else []
    return found.live_rejects((node.name for node in plan if run.rejected_live(node.name)), triggers)




def _fields(node: Node, rows: pa.Table) -> list[pl.Series]:
    """The data of rows of a source or an aggregate as text."""
    return [texts(rows.column(name), type_).alias(FIELD + name) for name, type_ in node.operator.output.data.items()]


def field_of(rejects: pl.DataFrame, name: str) -> pl.Expr:
    """A field of the source records as text, empty where a record's source does not have it."""
    return pl.col(FIELD + name).fill_null("") if FIELD + name in rejects.columns else pl.lit("")


def source_columns(plan: Plan, rejects: pl.DataFrame) -> list[str]:
    """The declared columns of the sources that rejects lead to, and of all sources above where one leads to none."""
    return list(dict.fromkeys(name for node in sources_of(plan, rejects) for name in node.operator.output.data))


def sources_of(plan: Plan, rejects: pl.DataFrame) -> list[Node]:
    """The sources that rejects lead to, and all sources above where one leads to none, in the plan's order."""
    names = set(rejects["source"].drop_nulls().unique())
    for node in rejects.filter(pl.col("source").is_null())["node"].unique():
        names.update(plan.sources_of(node))
    return [node for node in plan.of_kind("source") if node.name in names]


LOGGED = 10
"""The most records that are listed one by one where the pipeline names no file for them."""


def in_words(rejects: pl.DataFrame) -> Iterator[tuple[str, str]]:
    """Warnings about rejected records that go to no file: each with its place, its node and why, and the same without why; the first ones where there are many."""
    for one in rejects.head(LOGGED).iter_rows(named=True):
        place = f"{one['file']}: record {one['row']}: " if one["row"] is not None else ""
        redacted = f"{place}{one['category']} at {one['stage']}"
        yield f"{redacted}: {one['detail']}", redacted
    if rejects.height > LOGGED:
        further = f"{rejects.height - LOGGED:,} further records were rejected; `errata dlq` lists them all"
        yield further, further


def rejecting_nodes(entry: Entry, plan: Plan) -> list[str]:
    """The nodes with live rejects after an epoch."""
    return [name for name, counts in entry.nodes.items() if name in plan.nodes and counts.get("rejected_live")]


def rejects_at(entry: Entry, plan: Plan, state: State, engine: Engine, nodes: Sequence[str]) -> pl.DataFrame:
    """All live rejects of some nodes after an epoch, whatever their tables have received since."""
    tables = Tables(state.root, plan)
    values = RunValues.none()
    places = Places(plan, tables, engine, values, SourceState.left(entry, plan), entry.epoch)
    found = Rejects(plan, tables, engine, values, places)
    rows = live_triggers(tables.triggers, entry.epoch) if entry.nodes.get(TRIGGERS, {}).get("rejected_live") else []
    return found.live_rejects(nodes, rows)
