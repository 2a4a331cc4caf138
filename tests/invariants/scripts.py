"""Sources of random pipelines in all formats and merge strategies, and random change scripts of their files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from hypothesis import strategies as st

Record = dict[str, Any]
Files = dict[str, list[Record]]
"""The records of each file of a source, by the file's name."""

Columns = Mapping[str, str]
"""Types by column name."""

EVENTS: Columns = {"id": "int", "k": "string", "g": "int", "v": "float", "w": "int", "ts": "date_time"}
ITEMS: Columns = {"no": "int", "k": "string", "low": "int", "high": "int", "label": "string"}
NAMES = ("a", "b", "c")
DRIFTED = ("c",)
"""Files that have the undeclared column where it came late."""
KEYS = {"events": "id", "more": "id", "items": "no"}
COMES, GOES = ("+A", "c"), ("-R", "d")
GONE = 4
"""A `w` or `high` of this value marks a record of an upsert source as gone."""

_keys = st.sampled_from(["x", "y", "z", "", "x-y"])
_small = st.sampled_from([None, 0, 1, 2, 3, 5])
_moments = st.one_of(st.none(), st.integers(0, 90).map(lambda minute: (datetime(2026, 3, 2) + timedelta(minutes=minute)).isoformat()))
_events = st.fixed_dictionaries({
    "id": st.just(0), "k": _keys, "g": st.one_of(_small, st.just("no number")), "v": st.sampled_from([None, 0.0, 0.1, 0.2, -7.25, 1e16, -1e16, 50.0]),
    "w": st.sampled_from([None, -3, 0, 1, 2, GONE, GONE]), "ts": _moments,
})  # fmt: skip
_items = st.fixed_dictionaries({"no": st.just(0), "k": _keys, "low": _small, "high": _small, "label": st.sampled_from(["one", "two", ""])})

EXTENSIONS = {"csv": "csv", "ndjson": "jsonl", "json": "json", "xml": "xml", "parquet": "parquet", "delta": "delta"}
GROWING = ("csv", "ndjson")
"""Forms of files to whose end records can be written."""
OPTIONS: Mapping[str, Record] = {"ndjson": {"format": "ndjson"}, "json": {"format": "array"}, "xml": {"record_path": "rows/row"}}


# Sources ------------------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Source:
    """A source of a pipeline: its columns, how its files change and what form they have, what the pipeline may say of it.

    `then`: its merge strategy once the pipeline is edited. `extra`: whether its files have a column that the schema does not name, "late": some of them.
    `marked`: it has a watermark. `together`: its correlation key. `feed`: its table has a change data feed. `unmapped`: the pipeline's word on undeclared columns, and that
    once it is edited. `backwards`: its files are read from the last to the first, and once the pipeline is edited.
    """

    name: str
    columns: Columns
    merge: str
    extra: str = "no"
    marked: bool = False
    then: str = ""
    form: str = "csv"
    feed: bool = False
    together: tuple[str, ...] = ()
    unmapped: tuple[str, str] = ("auto_widen", "auto_widen")
    backwards: tuple[bool, bool] = (False, False)

    @property
    def keyed(self) -> bool:
        """Whether its records ever have a primary key."""
        return "keyed" in (self.merge, self.then)

    @property
    def whole(self) -> bool:
        """Whether its files are the whole truth, so that they may change at will."""
        return self.merge in ("snapshot", "keyed")

    @property
    def key(self) -> str:
        """The column that numbers the records."""
        return KEYS[self.name]

    @property
    def records(self) -> st.SearchStrategy[Record]:
        """One record, its number left out."""
        return _events if self.name != "items" else _items

    @property
    def declared(self) -> Columns:
        """The columns that the schema names."""
        return {**self.columns, **({"op": "string"} if self.merge == "changelog" else {})}

    def node(self, *, edited: bool) -> Record:
        """The node as the pipeline has it."""
        place = {"path": f"tables/of_{self.name}"} if self.form == "delta" else {"glob": f"of_{self.name}/*.{EXTENSIONS[self.form]}"}
        files: Record = {} if self.form == "delta" else {"files": {"on_no_match": "skip", "sort_order": "desc" if self.backwards[edited] else "asc"}}
        watermark = {"watermark": {"column": "ts", "delay": "2m"}} if self.marked else {}
        together = {"correlation_key": list(self.together)} if self.together else {}
        options = {"options": OPTIONS[self.form]} if self.form in OPTIONS else {}
        absent = {"optional": True} if self.form == "xml" else {}  # a record has no element for null, and so a file may have none
        schema = [{"name": name, "type": type_, **absent} for name, type_ in self.declared.items()]
        more = {"on_unmapped": {"mode": self.unmapped[edited]}, "merge": self._merge(self.then if edited and self.then else self.merge), **watermark, **together}
        type_ = "json" if self.form == "ndjson" else self.form
        return {"type": "source", "name": self.name, "config": {"name": self.name, "type": type_, **place, **files, **options, **more, "schema": schema}}

    def _merge(self, wanted: str) -> Any:
        if wanted in ("snapshot", "append"):
            return wanted
        marks = {"changelog": {"op": "op"}, "upsert": {"deleted": f"{'high' if self.name == 'items' else 'w'} == {GONE}"}}
        return {"strategy": "snapshot" if wanted == "keyed" else wanted, "primary_key": [self.key], **marks.get(wanted, {})}

    def header(self, file: str) -> list[str]:
        """The columns of a file."""
        noted = self.extra == "all" or (self.extra == "late" and file in DRIFTED)
        return [*self.declared, *(["note"] if noted else [])]


MERGES = (
    *[("snapshot", "")] * 4, ("keyed", ""), ("keyed", ""), ("append", ""), ("ledger", ""), ("upsert", ""), ("changelog", ""), ("snapshot", "keyed"), ("keyed", "snapshot"),
)  # fmt: skip


@st.composite
def sources(draw: st.DrawFn) -> list[Source]:
    """One or two sources of events and one of items."""
    marked, extra = draw(st.booleans()), draw(st.sampled_from(["no", "no", "all", "late"]))
    together = draw(st.sampled_from([(), (), (), ("k",), ("k", "w")]))
    unmapped = draw(st.sampled_from([("auto_widen", "auto_widen"), ("auto_widen", "auto_widen"), ("drop", "auto_widen"), ("auto_widen", "drop")]))
    found = []
    for name in (*("events", "more")[: draw(st.integers(1, 2))], "items"):
        merge, then = draw(st.sampled_from(MERGES))
        one = Source(name, ITEMS if name == "items" else EVENTS, merge, "no", marked and name != "items", then, _form(draw, merge, then), draw(st.booleans()))
        if name != "items":
            one = replace(one, extra="all" if extra == "late" and one.form == "delta" else extra, together=together, unmapped=unmapped)
        if one.whole and one.form != "delta":
            one = replace(one, backwards=(draw(st.integers(0, 7)) == 0, draw(st.integers(0, 7)) == 0))
        found.append(one)
    return found


def _form(draw: st.DrawFn, merge: str, then: str) -> str:
    """Mostly text that stretches are cut of; a table is the whole truth."""
    forms = ["csv", "csv", "csv", "csv", "ndjson", "ndjson", "json", "xml", "parquet"]
    return draw(st.sampled_from([*forms, "delta", "delta"] if merge in ("snapshot", "keyed") else forms))


# Change scripts -----------------------------------------------------------------------------------------------------------
class ManualCorrections(NamedTuple):
    """A manual correction: the record of this number gets a new value."""

    source: str
    number: int
    column: str
    value: Any


class Step(NamedTuple):
    """One step of a story: the files as they are then, the version of the pipeline, and what is done. `at` is a number that it needs.

    `act` is one of ACTS, or "correct" with its correction, which the files then agree with.
    """

    files: Mapping[str, Files]
    edited: bool = False
    act: str = "run"
    at: int = 0
    correction: ManualCorrections | None = None


ACTS = ("run", "run", "run", "kill", "kill", "revert", "compact", "cursors", "refresh", "twice")
"""A plain run, one that is killed and run again, one that is reverted and back again, compacted behind it, asked for what lies beyond the cursors at first, made from
nothing, and run again over the same."""


@st.composite
def scripts(draw: st.DrawFn, sources: Sequence[Source], most: int) -> list[Step]:
    """The steps of a story; from one of them on the pipeline may be edited, and that may be undone later."""
    numbers = iter(range(1, 100_000))
    count = draw(st.sampled_from([1, 1, 2, 2, most]))
    begin = draw(st.sampled_from([count + 1, *range(1, count + 1)]))
    end = draw(st.integers(begin + 1, count + 1)) if begin <= count else begin
    now = {one.name: {"b": [_record(draw, one, numbers) for _ in range(draw(st.integers(0, 7)))]} for one in sources}
    steps = [Step(_copied(now))]
    for number in range(1, count + 1):
        edited, turns = begin <= number < end, number in (begin, end)
        correction = None if turns or draw(st.integers(0, 5)) else _correction(draw, sources, now)
        if correction:
            steps.append(Step(_copied(now), edited, "correct", 0, correction))
        for _ in range(draw(st.integers(0 if turns else 1, 4))):
            one = draw(st.sampled_from(sources))
            (_change if one.whole else _grow)(draw, one, now[one.name], numbers)
        steps.append(Step(_copied(now), edited, draw(st.sampled_from(ACTS)), draw(st.integers(0, 40))))
    return steps


def _correction(draw: st.DrawFn, sources: Sequence[Source], now: Mapping[str, Files]) -> ManualCorrections | None:
    """A correction of a record whose number no other has; the files follow it."""
    one = draw(st.sampled_from(sources))
    rows = [row for rows in now[one.name].values() for row in rows]
    numbers = [row[one.key] for row in rows]
    alone = [row for row in rows if numbers.count(row[one.key]) == 1 and row.get("g") != "no number"]
    if not alone or not one.whole:
        return None
    row = draw(st.sampled_from(alone))
    column = draw(st.sampled_from([name for name in one.columns if name not in (one.key, "ts", "v", *one.together)]))
    value = draw(one.records.map(lambda record: record[column]).filter(lambda value: value not in (None, "no number")))
    row[column] = value
    return ManualCorrections(one.name, row[one.key], column, value)


def _record(draw: st.DrawFn, source: Source, numbers: Iterator[int], number: int | None = None) -> Record:
    record = {**draw(source.records), source.key: next(numbers) if number is None else number}
    if source.merge == "changelog":
        record["op"] = draw(st.sampled_from([*COMES, *COMES, *GOES]))
    return record | ({"note": draw(st.sampled_from(["p", "q"]))} if source.extra != "no" else {})


def _grow(draw: st.DrawFn, source: Source, files: Files, numbers: Iterator[int]) -> None:
    """Records at the end of the last file, or of one behind it; of upserts and changelogs at the end of any file. Keyed ones may be known.

    A file that does not begin with the bytes that it had is a delivery of its own, so those with an end of their own do not grow.
    """
    anywhere = source.merge in ("upsert", "changelog")
    possible = [name for name in NAMES if anywhere or name >= max(files, default="a")]
    if source.form not in GROWING:
        possible = [name for name in possible if name not in files]
    if not possible:
        return
    name = draw(st.sampled_from(possible))
    known = [row[source.key] for rows in files.values() for row in rows] if source.merge != "append" else []
    for _ in range(draw(st.integers(0, 3))):
        again = draw(st.sampled_from(known)) if known and draw(st.booleans()) else None
        files.setdefault(name, []).append(_record(draw, source, numbers, again))


def _change(draw: st.DrawFn, source: Source, files: Files, numbers: Iterator[int]) -> None:
    """Records that come anywhere, go, are corrected, change places or files, or come again; files that come, go and get other names."""
    kind = draw(st.sampled_from(["insert", "insert", "remove", "correct", "touch", "touch", "swap", "again", "move", "file", "rename"]))
    name = draw(st.sampled_from(NAMES))
    if kind == "file":
        files.pop(name, None)
        return
    if kind == "rename":
        other = draw(st.sampled_from(NAMES))
        files[other] = files.pop(name, []) + ([] if source.keyed or other == name else files.get(other, []))
        return
    rows = files.setdefault(name, [])
    at = draw(st.integers(0, len(rows)))
    if kind == "insert" or not rows:
        rows.insert(at, _record(draw, source, numbers))
        return
    at = min(at, len(rows) - 1)
    if kind == "remove":
        del rows[at]
    elif kind == "correct":
        rows[at] = _record(draw, source, numbers, rows[at][source.key])
    elif kind == "touch":
        column = draw(st.sampled_from([name for name in source.columns if name != source.key]))
        rows[at] = {**rows[at], column: draw(source.records)[column]}
    elif kind == "swap":
        rows[0], rows[at] = rows[at], rows[0]
    elif kind == "move":
        files.setdefault(draw(st.sampled_from(NAMES)), []).append(rows.pop(at))
    elif not source.keyed:
        rows.append(dict(rows[at]))


def _copied(now: Mapping[str, Files]) -> dict[str, Files]:
    return {source: {name: [dict(row) for row in rows] for name, rows in files.items()} for source, files in now.items()}
