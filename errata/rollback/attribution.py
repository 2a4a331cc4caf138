"""From failures to suppressed records: a trigger keeps the category of its failure, every other record of its group is `correlated`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from changelog.keys.encoding import bare
from errata.plan.correlation import keeps_mates, key_fields
from errata.plan.plan import Node, Plan
from errata.rollback.categories import CORRELATED, OVERFLOW
from errata.rollback.groups import Groups
from errata.rollback.outcome import Settled
from errata.rollback.provenance import Failure, branch_of
from errata.rollback.record_locations import Places
from errata.state.suppressed_rows import Suppression
from operators.aggregate.operator import Aggregate
from operators.core.row_type import Status

ROLLED_BACK = "rolled back with its group: "
"""The beginning of the detail of a record that did not fail itself."""


@dataclass(frozen=True, slots=True)
class Attribution:
    """The reason why records are rolled back: who did it (`by`, the same in every run), the cause of the rows, the error for the DLQ."""

    by: str
    cause: str
    error: Mapping[str, str]

    def own(self) -> Suppression:
        """The suppression of the record that failed."""
        return Suppression(self._text(self.error), self.cause)

    def collateral(self, status: Status = Status.SUPPRESSED) -> Suppression:
        """The suppression of a record that did not fail."""
        detail = f"{ROLLED_BACK}{self.error['detail']}"
        return Suppression(self._text({**self.error, "category": CORRELATED, "detail": detail}), self.cause, collateral=True, status=status)

    def _text(self, error: Mapping[str, str]) -> str:
        return json.dumps({"by": self.by, **error}, ensure_ascii=False)


class Attributions:
    """Decides which records a run suppresses."""

    def __init__(self, plan: Plan, groups: Groups, places: Places, settled: Settled) -> None:
        self.plan = plan
        self.groups = groups
        self.places = places
        self.settled = settled

    # -- what is wrong with the sources' records alone

    def of_sources(self, rejected: Mapping[str, Sequence[Failure]], cap: int, at_most: int | None) -> dict[str, dict[bytes, Suppression]]:
        """The group mates of records that a source rejected, and the groups with more records than the cap. `at_most`: no group has more."""
        marks = {source: self._mates_of_rejects(source, failures) for source, failures in rejected.items()}
        self.settled.largest, overflowing = self.groups.overflowing(cap, at_most)
        for one in overflowing:
            for source, found in self._overflowed(one.sources, one.groups, one.fields, cap).items():
                marks[source] = {**marks.get(source, {}), **found}
        return marks

    def _mates_of_rejects(self, source: str, failures: Sequence[Failure]) -> dict[bytes, Suppression]:
        fields = self._fields(self.plan[source], self.plan[source])
        by_key = {one.lead.key: one for one in failures}
        groups = self.groups.of_rejects(source, by_key, fields)
        first = {group: by_key[key] for key, group in sorted(groups.items(), reverse=True)}
        blames = self._record_blames(source, {one.lead.key: one for one in first.values()})
        return self._mates(self.plan[source], {group: blames[one.lead.key] for group, one in first.items()}, fields)

    def _mates(self, node: Node, groups: Mapping[bytes, Attribution], fields: Sequence[str]) -> dict[bytes, Suppression]:
        """The suppressions of the other records in groups of a source that were rolled back."""
        record = self.plan.model.error_handling.retraction_scope == "record"
        if not groups or (record and keeps_mates(self.plan.nodes, node)):
            return {}
        status = Status.COUNTED if record and node.operator.takes_counted else Status.SUPPRESSED
        fates = {group: blame.collateral(status) for group, blame in groups.items()}
        return {key: fates[group] for key, group in self.groups.mates(node.name, groups, fields).items()}

    def _overflowed(self, names: Sequence[str], groups: Iterable[bytes], fields: Sequence[str], cap: int) -> dict[str, dict[bytes, Suppression]]:
        members = {source: self.groups.mates(source, groups, fields) for source in names}
        blames: dict[bytes, Attribution] = {}
        marks: dict[str, dict[bytes, Suppression]] = {}
        for source, found in members.items():
            numbers = self.places.numbers(source, found)
            marks[source] = {}
            for key, group in sorted(found.items()):
                trigger = group not in blames
                if trigger:
                    error = {"category": OVERFLOW, "detail": f"the correlation group has more than {cap:,} records", "stage": f"source:{source}", "route": "", "trigger": "", "node": source}
                    blames[group] = Attribution(f"{source}:{key.hex()}", _cause(source, numbers.get(key), key), error)
                marks[source][key] = blames[group].own() if trigger else blames[group].collateral()
                if key in numbers:
                    self.settled.lower(source, numbers[key])
        return marks

    # -- what failed at a node

    def of_failures(self, records: Mapping[str, Mapping[bytes, Failure]], rows: Sequence[Failure]) -> dict[str, dict[bytes, Suppression]]:
        """The records that failures roll back, with their group mates in the same source. `rows`: the failed rows of aggregates."""
        behind = {(one.node, one.key): self._row_blame(one) for one in rows}
        return {source: self._of_source(self.plan[source], found, behind) for source, found in records.items()}

    def _of_source(self, node: Node, found: Mapping[bytes, Failure], behind: Mapping[tuple[str, bytes], Attribution]) -> dict[bytes, Suppression]:
        source = node.name
        own = {key: one for key, one in found.items() if not one.lead.grouped}
        blames = self._record_blames(source, own) | {key: behind[one.node, one.key] for key, one in found.items() if one.lead.grouped}
        marks: dict[bytes, Suppression] = {}
        mates: dict[bytes, Suppression] = {}
        by_node = {name: self._fields(node, self.plan[name]) for name in dict.fromkeys(one.node for one in found.values())}
        for fields in dict.fromkeys(by_node.values()):
            keys = [key for key, one in found.items() if by_node[one.node] == fields]
            groups = self.groups.of_records(source, keys, fields)
            marks |= {key: blames[key].own() if key in own else blames[key].collateral() for key in groups}
            first = {group: key for key, group in sorted(groups.items(), reverse=True) if group is not None}
            mates |= self._mates(node, {group: blames[key] for group, key in first.items()}, fields)
        return {**mates, **marks}

    def _record_blames(self, source: str, failures: Mapping[bytes, Failure]) -> dict[bytes, Attribution]:
        numbers = self.places.numbers(source, failures)
        return {key: Attribution(f"{source}:{key.hex()}", _cause(source, numbers.get(key), key), self._error_members(one)) for key, one in failures.items()}

    def _row_blame(self, failure: Failure) -> Attribution:
        return Attribution(f"{failure.node}:{failure.key.hex()}", f"rollback:{failure.lead.node}:{self._group_text(failure)}", self._error_members(failure))

    def _group_text(self, failure: Failure) -> str:
        node = cast("Aggregate", self.plan[failure.lead.node].operator)
        return ",".join("" if value is None else str(value) for value in node.values_in(failure.lead.key).values())

    def trigger_error(self, failure: Failure) -> dict[str, Any]:
        """The error of an aggregate's failed row for the DLQ."""
        return {"by": self._row_blame(failure).by, **self._error_members(failure)}

    def _error_members(self, failure: Failure) -> dict[str, str]:
        error, node = failure.error, self.plan[failure.node]
        stage = error.get("stage") or f"{node.kind}:{node.name}"
        route = error.get("route") or branch_of(self.plan, node, bare(failure.key))
        members = {"category": error.get("category"), "detail": error.get("detail"), "stage": stage, "route": route, "trigger": error.get("trigger")}
        return {name: str(value or "") for name, value in members.items()} | {"node": node.name}

    def _fields(self, source: Node, failed: Node) -> tuple[str, ...]:
        """The key fields that make a group for a failure at a node: under the policy `primary` the first one alone."""
        fields = key_fields(source)
        return fields[:1] if self._policy(failed) == "primary" else fields

    def _policy(self, node: Node) -> str:
        """The fan-out policy that holds at a node: that of a combine above it, else that of an output below it, else the pipeline's."""
        above = [one for one in (*self.plan.upstream(node.name), node) if not one.is_output]
        below = [one for one in self.plan.of_kind("output") if one.name == node.name or node in self.plan.upstream(one.name)]
        own = [policy for one in (*reversed(above), *below) if (policy := getattr(one.spec.config, "correlation_fanout_policy", None))]
        return own[0] if own else self.plan.model.error_handling.correlation_fanout_policy


def _cause(source: str, number: int | None, key: bytes) -> str:
    return f"rollback:{source}:{key.hex() if number is None else number}"
