"""Corrections as code that name or quote an erased record. They lie in the user's files, and the state would keep what they say: they leave before the erasure begins."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import orjson

from changelog.keys.encoding import encode_key
from changelog.lazy_imports import pl
from errata.erasure.selection import IDENTITY, ErasedKeys, cut, gathered, op_rows
from errata.erasure.spelling import plain_digits, spelled
from errata.erasure.values import Values
from errata.plan.plan import Node, Plan
from operators.core.row_type import key_type
from operators.corrections.correction import Correction
from operators.corrections.entries import EntryPath, WrittenCorrection, cell_text
from operators.corrections.operator import Corrections
from operators.source.node import SourceNode, correction_key
from storage.delta.changelog_table import ChangelogTable

Name = tuple[str | None, ...]
"""The values of the columns by which corrections name a record, as texts."""


def corrected_nodes(plan: Plan) -> Iterator[tuple[Node, Sequence[str], Sequence[Correction]]]:
    """The nodes and sources with corrections as code: the node, the columns that name a record, and the corrections."""
    for node in plan:
        operator = node.operator
        if isinstance(operator, Corrections):
            yield node, operator.key, operator.all
        elif isinstance(operator, SourceNode) and operator.corrections:
            yield node, correction_key(operator.config), operator.corrections


@dataclass(frozen=True)
class QuotingCorrections:
    """Looks for the corrections of one node that are about erased records.

    Attributes:
        node: The node.
        key: The columns by which its corrections name a record.
        corrections: Its corrections, drafts and withdrawn ones among them.
        names: How they name the erased records.
        values: The values of the erased records.
    """

    node: Node
    key: Sequence[str]
    corrections: Sequence[Correction]
    names: Collection[Name]
    values: Values

    def places(self) -> Iterator[str]:
        """Where they name or quote a record: file, line and column, and which of both it is."""
        seen: set[tuple[str, int]] = set()
        for one in self.corrections:
            written = one.written
            if (mark := (written.file, written.spans[()].start if not written.in_table else written.line)) in seen:
                continue
            seen.add(mark)
            if _name_of(one) in self.names:
                first = _parts(written, self.key)[0]
                yield f"{_place(written, *first[:1], first[2])}: names the record"
                continue
            quoted = next((part for part in _parts(written, self.key) if self._quotes(*part[1:])), None)
            if quoted is not None:
                yield f"{_place(written, quoted[0], quoted[2])}: quotes a value of the record"

    def _quotes(self, column: str, text: str) -> bool:
        cells = pl.Series(column, list(dict.fromkeys([text, plain_digits(text)])), pl.String)
        return bool(self.values.holding(cells, whole=True).any()) or self.values.blanked(text) != text


def _parts(written: WrittenCorrection, key: Sequence[str]) -> list[tuple[EntryPath, str, str]]:
    """The parts of a correction: where it is in the entry, the column that it is of (empty for none), and its text."""
    entry, given = written.entry, written.entry.key
    named = given.items() if isinstance(given, Mapping) else [(key[0], given)]
    parts: list[tuple[EntryPath, str, str]] = [(("key", name), name, written.text(("key", name), value)) for name, value in named]
    for name, change in entry.set.items():
        parts += [(("set", name, side), name, written.text(("set", name, side), value)) for side, value in (("from", change.before), ("to", change.after)) if value is not None]
    return [*parts, *(((name,), "", text) for name, text in (("reason", entry.reason), ("author", entry.author), ("ticket", entry.ticket)) if text)]


def _place(written: WrittenCorrection, path: EntryPath, text: str) -> str:
    """File, line and column of a part of a correction; of one whose place is not known the first place with its text, or the entry."""
    whole = written.spans[()]
    near = path if path in written.spans else path[:1]
    if near != () and near in written.spans:
        at = written.origin.locate(written.spans[near].start)
        return f"{written.file}:{at.line}:{at.column}"
    first, last = written.origin.locate(whole.start), written.origin.locate(whole.end)
    for line in range(first.line, last.line + 1):
        if (found := written.origin.line_text(line).find(text)) >= 0:
            return f"{written.file}:{line}:{found + 1}"
    return f"{written.file}:{first.line}:{first.column}"


def _name_of(one: Correction) -> Name:
    """The record that a correction names, as texts."""
    return tuple(None if value is None else _spelled(value) for value in one.values)


def _spelled(value: object) -> str | None:
    return cell_text(value) if isinstance(value, str) else cast("str | None", spelled(pl.Series([value]))[0])


@dataclass(frozen=True)
class ErasedNames:
    """How a node's corrections name erased records, and nobody else's.

    Attributes:
        plan: The pipeline.
        keys: The erased keys of each node.
        table: Gives the table at a path of the state.
        paths: The tables that there are.
        older: Op rows of erased records that only older versions of tables have.
    """

    plan: Plan
    keys: Mapping[str, ErasedKeys]
    table: Callable[[str], ChangelogTable]
    paths: Collection[str]
    older: pl.DataFrame

    def of(self, node: Node, key: Sequence[str]) -> set[Name]:
        """The names by the columns of a key; none where the rows of the node, or before it, do not have them."""
        rows, others = self._rows(self._read(node))
        mine = _names(rows, key) | _names(self.older, key) | _raw_names(rows, key)
        return mine - _names(others, key)

    def lookups(self, node: Node) -> set[bytes]:
        """The bytes by which a node of corrections knows the erased records."""
        operator = cast("Corrections", node.operator)
        rows, others = self._rows(self._read(node))
        if not {*operator.key} <= {*rows.columns}:
            return set()
        kinds = [key_type(operator.inputs[0].data[name]) for name in operator.key]
        found, alien = ({encode_key(row, kinds) for row in part.select(*operator.key).unique().iter_rows()} for part in (rows, others))
        return found - alien

    def _read(self, node: Node) -> Node:
        """The node whose rows corrections name: a source itself, else the nearest one before that stores its rows."""
        while not node.is_source and node.inputs:
            node = self.plan[node.inputs[0][0]]
            if f"changelog/{node.name}" in self.paths:
                break
        return node

    def _rows(self, node: Node) -> tuple[pl.DataFrame, pl.DataFrame]:
        """The op rows of erased records, and the others."""
        known = self._parted
        if node.name not in known:
            table, erased = self.table(f"changelog/{node.name}"), self.keys[node.name]
            rows = cut(table, erased).rows
            others = gathered(part.join(rows, IDENTITY, "anti") for part in op_rows(table)) if table.exists() else gathered(())
            known[node.name] = rows, others
        return known[node.name]

    @cached_property
    def _parted(self) -> dict[str, tuple[pl.DataFrame, pl.DataFrame]]:
        return {}


def _names(rows: pl.DataFrame, key: Sequence[str]) -> set[Name]:
    """The names of rows that have all columns of a key."""
    if not rows.height or not {*key} <= {*rows.columns}:
        return set()
    return set(pl.DataFrame([spelled(rows[name]).alias(name) for name in key]).unique().iter_rows()) - {(None,) * len(key)}


def _raw_names(rows: pl.DataFrame, key: Sequence[str]) -> set[Name]:
    """The names of rejected rows, by the texts of their cells."""
    if "_error" not in rows.columns:
        return set()
    rejects = (orjson.loads(text).get("fields") or {} for text in rows["_error"].drop_nulls().unique())
    named = {tuple(fields.get(name) for name in key) for fields in rejects}
    return {row for row in named if None not in row}
