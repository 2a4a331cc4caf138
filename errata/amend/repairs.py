"""`errata dlq import`: cells of dead letters that people repaired in a table, as corrections as code.

Only changed cells become corrections. A source that has `corrections` takes them for all of its records, also for rejected ones. Records that the
source accepted can be corrected in a corrections node behind it too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import polars as pl
import yaml

from changelog.lazy_imports import pa
from cxl.types.types import Type, type_name
from errata.amend.correct import given_value
from errata.amend.saved_correction import Saved, append, key_of, place_of, says_something
from errata.core.failures import Usage
from errata.core.options import RepairNotes
from errata.inspect.dlq import letters_of
from errata.inspect.letter_sheets import ABOUT, FIELD_PREFIX, ID, REASON, unguarded
from errata.plan.expectations import delivering
from errata.project.correction_files import SHEETS, UnreadableTable, table_rows
from errata.rollback.dead_letters import FIELD, field_of
from operators.corrections.entries import cell_text
from operators.corrections.operator import Corrections
from operators.source.node import SourceNode, correction_key
from storage.uris import below
from storage.values.coerce import coerce

if TYPE_CHECKING:
    from errata.inspect.snapshot import Snapshot
    from errata.plan.pipeline import LoadedPipeline
    from errata.plan.plan import Node
    from operators.corrections.correction import Correction, Fixed

Row = Mapping[str, Any]
REPAIRS = ("id", "source", "place", "column", "from", "to", "verdict", "why")
"""The columns of a repaired cell."""
WRITTEN, REFUSED = "written", "refused"


@dataclass(frozen=True, slots=True)
class Repair:
    """A cell that somebody changed in a table. `file` is where its correction is written; `why` says why it is not, and what can be done."""

    letter: Row
    column: str
    before: str
    after: str
    reason: str
    file: str = ""
    why: str = ""

    def row(self) -> Row:
        """The row of the answer."""
        place = f"{self.letter['file'] or ''}:{self.letter['row']}" if self.letter["row"] is not None else self.letter["file"] or ""
        values = (self.letter["id"], self.letter["source"] or "", place, self.column, self.before, self.after, REFUSED if self.why else WRITTEN, self.why or self.file)
        return dict(zip(REPAIRS, values, strict=True))


@dataclass(frozen=True, slots=True)
class Target:
    """Where the corrections of a source's records are declared.

    Attributes:
        pattern: The files.
        key: The columns that name a record.
        at_source: Whether cells are corrected as they are read.
        known: The places of the corrections that are there, by column and texts of the key.
        fixed: The columns that no correction may change.
    """

    pattern: str
    key: Sequence[str]
    at_source: bool
    types: Mapping[str, Type]
    known: Mapping[tuple[str | None, tuple[str, ...]], str]
    fixed: Mapping[str, Fixed] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Repairs:
    """Makes corrections of repaired cells."""

    pipeline: LoadedPipeline
    letters: pl.DataFrame
    notes: RepairNotes
    targets: dict[tuple[str, bool], tuple[Target, ...]] = field(default_factory=dict)
    """Where the records of each source can be corrected, as far as it was looked up."""
    alike: dict[tuple[str, tuple[str, ...]], Mapping[tuple[str, ...], tuple[int, int]]] = field(default_factory=dict)
    """By the keys and columns looked up so far: texts that several entries have, with their number and the number of different records among them."""

    @classmethod
    def of(cls, pipeline: LoadedPipeline, reading: Snapshot, notes: RepairNotes) -> Repairs:
        """Repairs of the present dead letters of a pipeline."""
        return cls(pipeline, letters_of(reading), notes)

    def take(self, sheet: Path, *, dry: bool = False) -> list[Row]:
        """Write a correction for each changed cell of a table that can have one.

        Args:
            sheet: The table, as `export` wrote it and people changed it.
            dry: Whether nothing is written.

        Returns:
            A row for each changed cell, the refused ones too.

        Raises:
            Usage: The table cannot be read, or is none of dead letters.
        """
        found = [self._placed(one) for one in self._changes(sheet)]
        found = list(self._one_each(found))
        by_file: dict[str, list[Repair]] = {}
        for one in (one for one in found if not one.why):
            by_file.setdefault(one.file, []).append(one)
        for name, several in by_file.items() if not dry else ():
            entries = list(self._entries(several))
            text = yaml.safe_dump(entries, sort_keys=False, allow_unicode=True, default_flow_style=None, width=120)
            append(Saved(self.pipeline.plan.settings.folder / name, name, text), self.pipeline.plan.settings, partial(_doubles, _by_key(entries)), len(entries))
        return [one.row() for one in found]

    # -- the table

    def _changes(self, sheet: Path) -> Iterator[Repair]:
        """The cells that differ from the entries' fields. An entry that is not there any more has one that is refused."""
        rows = _rows(sheet)
        known = self.letters.filter(pl.col("id").is_in([str(row[ID]) for row in rows]))
        by_id = {row["id"]: row for row in known.iter_rows(named=True)}
        for row in rows:
            letter = by_id.get(str(row[ID]))
            if letter is not None:
                yield from self._cells(row, letter)
                continue
            gone = {"id": str(row[ID]), "source": None, "file": None, "row": None}
            yield Repair(gone, "", "", "", "", why="no entry has this id any more: it was repaired, or is another one by now")

    def _cells(self, row: Row, letter: Row) -> Iterator[Repair]:
        """The changed cells of one row."""
        reason = str(row.get(REASON) or "").strip() or self.notes.reason
        for heading in (heading for heading in row if heading and heading not in ABOUT):
            name, text = heading.removeprefix(FIELD_PREFIX), row[heading]
            before = letter.get(FIELD + name)
            if text != (before or ""):
                why = "" if before is not None else f"source '{letter['source'] or ''}' has no column '{name}'"
                yield Repair(letter, name, before or "", text, reason, why=why)

    # -- where a correction goes

    def _placed(self, one: Repair) -> Repair:
        """The repair with the file of its correction, or with what is in the way."""
        if one.why:
            return one
        targets = self._targets(one.letter)
        fits = [target for target in targets if self.notes.into is None or self._in_pattern(target)]
        why = self._unplaced(one.letter, targets, fits) or ("no reason is given: write one into the column '_reason', or --reason" if not one.reason else "")
        if why:
            return replace(one, why=why)
        target = fits[0]
        why = self._misfit(one, target)
        try:
            return replace(one, why=why) if why else replace(one, file=self.notes.into or place_of(target.pattern, self.pipeline.plan.settings.folder)[1])
        except Usage as error:
            return replace(one, why=f"{error.message}: {error.help}")

    def _targets(self, letter: Row) -> Sequence[Target]:
        """Where a record can be corrected: at its source, and in corrections nodes that read it, unless the source rejected it."""
        if letter["source"] is None or letter["raw"]:
            return ()
        found = (letter["source"], letter["node"] != letter["source"] or bool(letter["by"]))
        if found not in self.targets:
            self.targets[found] = tuple(self._targets_of(*found))
        return self.targets[found]

    def _targets_of(self, source: str, accepted: bool) -> Iterator[Target]:
        """Where records of a source can be corrected that it rejected, or accepted."""
        plan = self.pipeline.plan
        operator = cast("SourceNode", plan[source].operator)
        if operator.config.corrections is not None:
            active = [one for one in operator.corrections if one.active]
            yield Target(operator.config.corrections.path, correction_key(operator.config), True, operator.output.data, _places(active))
        for node in plan.of_kind("corrections") if accepted else ():
            if source in delivering(plan, node):
                yield _of_node(node)

    def _in_pattern(self, target: Target) -> bool:
        """Whether the file that is asked for is one of a target's."""
        into = self.notes.into or ""
        return fnmatch(into, target.pattern) or below(str(self.pipeline.plan.settings.folder / into), self.pipeline.plan.settings.folder) == target.pattern

    def _unplaced(self, letter: Row, targets: Sequence[Target], fits: Sequence[Target]) -> str:
        """Why a record can be corrected nowhere."""
        if letter["source"] is None:
            return "the row was made of several records: correct these"
        if letter["raw"]:
            return "the record could not be read: correct its file"
        if not targets:
            return f"source '{letter['source']}' takes no corrections: add corrections: {{ path: corrections/{letter['source']}/*.yaml }} to its config"
        return "" if fits else f"'{self.notes.into}' is no file of the corrections for source '{letter['source']}': {', '.join(one.pattern for one in targets)}"

    def _misfit(self, one: Repair, target: Target) -> str:
        """The fault of a correction; empty where it fits."""
        if one.column in target.fixed:
            return f"{target.fixed[one.column].reason}: {target.fixed[one.column].help}"
        try:
            given_value(one.column, one.after, target.types[one.column], self.pipeline.plan.settings.date_formats)
        except Usage as error:
            return error.message
        place = target.known.get((one.column, self._normal(one.letter, target)))
        if place is not None:
            return f"it is corrected at {place} already: edit it there"
        count, different = self._alike(one, target)
        return f"{count} entries have its key ({', '.join(target.key)}): name more columns in the key of the corrections" if different > 1 else ""

    def _alike(self, one: Repair, target: Target) -> tuple[int, int]:
        """The number of entries that have the key and the cell of a repair, and the number of different records among them."""
        names = (*target.key, one.column)
        known = (one.letter["source"], names)
        if known not in self.alike:
            texts = self.letters.filter(pl.col("source") == one.letter["source"]).select(
                *(field_of(self.letters, name).alias(f"__{at}") for at, name in enumerate(names)), pl.struct(FIELD + name for name in sorted(target.types) if FIELD + name in self.letters.columns).alias("__record")
            )
            counted = texts.group_by(f"__{at}" for at in range(len(names))).agg(pl.len(), pl.col("__record").n_unique()).filter(pl.col("len") > 1)
            self.alike[known] = {row[:-2]: row[-2:] for row in counted.iter_rows()}
        return self.alike[known].get(tuple(one.letter[FIELD + name] or "" for name in names), (1, 1))

    def _normal(self, letter: Row, target: Target) -> tuple[str, ...]:
        """The texts of a record's key, as corrections have theirs."""
        return tuple(self._normal_text(letter[FIELD + name] or "", target.types[name]) for name in target.key)

    def _normal_text(self, text: str, type_: Type) -> str:
        value = coerce(pa.array([text], pa.string()), type_name(type_), self.pipeline.plan.settings.date_formats).values[0].as_py()
        return text if value is None or type_.is_dynamic else cell_text(value)

    # -- entries

    def _one_each(self, found: Sequence[Repair]) -> Iterator[Repair]:
        """The repairs; of two that say different things of records with one key the later one is refused."""
        said: dict[tuple[Any, ...], str] = {}
        for one in found:
            if not one.why:
                place = (one.letter["source"], one.file, one.column, *self._key(one).values())
                if said.setdefault(place, one.after) != one.after:
                    one = replace(one, why=f"another entry with its key gets '{said[place]}'")  # noqa: PLW2901
            yield one

    def _key(self, one: Repair) -> dict[str, str]:
        target = next(target for target in self._targets(one.letter) if self.notes.into is None or self._in_pattern(target))
        return {name: one.letter[FIELD + name] or "" for name in target.key}

    def _entries(self, repairs: Sequence[Repair]) -> Iterator[Row]:
        """An entry for each record, with its cells. Records that say the same share one."""
        records: dict[tuple[str, ...], dict[str, Any]] = {}
        notes = {name: text for name, text in (("author", self.notes.author), ("ticket", self.notes.ticket)) if text}
        for one in repairs:
            key = self._key(one)
            entry = records.setdefault((one.letter["source"], one.reason, *key.values()), {"key": key, "set": {}, "reason": one.reason, **notes})
            entry["set"][one.column] = {"from": one.before, "to": one.after}
        yield from records.values()


def _rows(sheet: Path) -> list[Row]:
    """The rows of a table as texts. Raises Usage where it cannot be read, or is none of dead letters."""
    as_text = _text if sheet.suffix.lower() in SHEETS else _unguarded_text
    try:
        rows: list[Row] = [{name: as_text(value) for name, value in cells.items()} for _, cells, _, _ in table_rows(sheet)]
    except UnreadableTable as error:
        raise Usage(f"'{sheet.name}' cannot be read: {error}", help=error.help or "") from error
    if rows and ID not in rows[0]:
        raise Usage(f"'{sheet.name}' has no column '{ID}'", help="errata dlq PIPELINE export writes the table")
    return rows


def _unguarded_text(value: Any) -> str:
    return unguarded(_text(value))


def _by_key(new: Sequence[Row]) -> Mapping[frozenset[tuple[str, str]], Sequence[Row]]:
    """Entries by the texts of their keys."""
    found: dict[frozenset[tuple[str, str]], list[Row]] = {}
    for one in new:
        found.setdefault(frozenset(one["key"].items()), []).append(one)
    return found


def _doubles(new: Mapping[frozenset[tuple[str, str]], Sequence[Row]], entry: Any) -> bool:
    """Whether an active entry of a file says something about a cell of new ones, which are given by their keys."""
    firsts = dict.fromkeys(next(iter(several[0]["key"])) for several in new.values())
    keys = [key for first in firsts if (key := key_of(entry, first)) is not None]
    return any(says_something(entry, one["key"], one["set"]) for key in keys for one in new.get(frozenset(key.items()), ()))


def _of_node(node: Node) -> Target:
    operator = cast("Corrections", node.operator)
    return Target(str(node.spec.config.path), operator.key, False, operator.inputs[0].data, _places(operator.active), operator.fixed)


def _places(corrections: Sequence[Correction]) -> Mapping[tuple[str | None, tuple[str, ...]], str]:
    """The places of corrections by column and texts of the key."""
    return {(one.column, tuple(one.key.values())): one.written.place for one in reversed(corrections)}


def _text(value: Any) -> str:
    """The text of a cell: a date without a time is one."""
    if value is None:
        return ""
    return cell_text(value).removesuffix("T00:00:00")
