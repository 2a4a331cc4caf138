"""Suppressed records at the beginning of a run: which are tried again, and which stay because no cause of their failure changed.

A record that fails at a node by its own values fails there in every run. So its group stays suppressed while the logic is the same and no
record of the group comes, goes or changes. All other records take part again, and the run settles them anew.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from changelog.keys.decode import bare_keys
from changelog.lazy_imports import F, np, pa, pl
from errata.plan.correlation import key_fields, ranks
from errata.plan.plan import Node, Plan
from errata.rollback.categories import CORRELATED, OVERFLOW
from errata.rollback.groups import GROUP, group_column, groups_in
from errata.state.run_state import RunState

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class Parted:
    """The suppressed records of a source: live rows of the records to try `again`, the number that stay, and how many of these are `collateral`."""

    again: pa.Table
    staying: int
    collateral: int


@dataclass(frozen=True)
class Steady:
    """Tells the suppressed records of a run's sources apart, once the sources have been read."""

    run: RunState
    plan: Plan

    @cached_property
    def alone(self) -> frozenset[str]:
        """The nodes at which a record fails by what it holds alone: neither other records nor the clock nor variables decide."""
        order = ranks(self.plan)
        return frozenset(
            node.name for node in self.plan
            if order[node.name] == 0 and all(one.operator.deterministic and not one.feeds for one in (*self.plan.upstream(node.name), node))
        )  # fmt: skip

    def parted(self, node: Node, held: pa.Table) -> Parted:
        """The suppressed live rows of a source (`held`) by whether they are tried again."""
        texts = held.column("_error").combine_chunks().dictionary_encode()  # the members of a group share one
        errors, which = [json.loads(text) for text in texts.dictionary.to_pylist()], texts.indices.to_numpy()
        large = {one["by"] for one in errors if one.get("category") == OVERFLOW}
        steady = np.array([one["by"] not in large and self._is_steady(node, one) for one in errors], bool)[which]
        stays = steady & ~self._moved(node, held).to_numpy()
        collateral = np.array([one.get("category") == CORRELATED for one in errors], bool)[which]
        return Parted(held.filter(pa.array(~stays)), int(stays.sum()), int((stays & collateral).sum()))

    def _is_steady(self, node: Node, error: Mapping[str, Any]) -> bool:
        """Whether the failure in an `_error` rolls its record back in every run while the group is the same."""
        return error["by"].startswith(f"{node.name}:") and error.get("node") in self.alone

    def _moved(self, node: Node, held: pa.Table) -> pl.Series:
        """Whether records of the groups of suppressed ones come, go or change in this run."""
        group, key = pl.col("group"), pl.col("key")
        rows = pl.DataFrame({"group": groups_in(held, node.operator.output, key_fields(node)[:1]), "key": bare_keys(pl.Series(held.column("_key")))})
        touched = pl.Series(list(self._touched(set(rows["group"].drop_nulls().unique()))), dtype=pl.Binary)
        own = pl.Series(list(self._own_keys(node, set(rows.filter(group.is_null())["key"]))), dtype=pl.Binary)
        return rows.select(moved=pl.when(group.is_null()).then(key.is_in(own.implode())).otherwise(group.is_in(touched.implode())))["moved"]

    def _touched(self, groups: Collection[bytes]) -> set[bytes]:
        """The groups that this run brings records to or takes records from, in whatever source."""
        found: set[bytes] = set()
        for node in self.plan.of_kind("source"):
            done, fields, row = self.run.done[node.name], key_fields(node)[:1], node.operator.output
            if done.rows is None or not fields or not groups:
                continue
            if done.rows.are_here:
                found |= set(groups).intersection(groups_in(done.rows.as_table(), row, fields).to_pylist())
            else:
                found |= self._met(done.rows.as_frame().select(group_column(row, fields).alias(GROUP)), GROUP, groups)
        return found

    def _own_keys(self, node: Node, keys: Collection[bytes]) -> set[bytes]:
        """The keys of records without a group that this run brings or takes."""
        done = self.run.done[node.name]
        wanted = {marked for key in keys for marked in (key, key + b"!")}
        if done.rows is None or not wanted:
            return set()
        there = set(done.rows.as_table().column("_key").to_pylist()) if done.rows.are_here else self._met(done.rows.as_frame().select("_key"), "_key", wanted)
        return {key for key in keys if key in there or key + b"!" in there}

    def _met(self, rows: DataFrame, name: str, wanted: Collection[bytes]) -> set[bytes]:
        met = rows.join(F.broadcast(self.run.engine.keys_frame(wanted, name)), name, "left_semi").distinct()
        return set(self.run.engine.to_arrow(met).column(name).to_pylist())
