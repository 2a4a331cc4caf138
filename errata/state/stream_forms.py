"""The forms in which a changelog is shown and exported."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

Row = Mapping[str, Any]
Change = tuple[dict[str, Any], Any, Any]
"""The last row of a change, its values before and after."""

TIMED = frozenset({"debezium", "odf"})
"""The forms whose events say when."""

_FLINK = {"+A": "+I", "-R": "-D", "-C": "-U", "+C": "+U"}


@dataclass(frozen=True, slots=True)
class Stream:
    """Whose changelog is shown. `moments`: when epochs were made, for the forms of `TIMED`. `keeps`: which events, by what says their op, epoch and cause, and their images."""

    pipeline: str
    node: str
    moments: Mapping[int, datetime] = field(default_factory=dict)
    keeps: Callable[[Row, Sequence[Any]], bool] = lambda row, images: True


def formed(rows: Iterable[dict[str, Any]], form: str, stream: Stream) -> Iterator[Row]:
    """Op rows of one node, in changelog order, in another form. Raises KeyError for an unknown one."""
    if form in _PAIRED:
        events = (change for change in _changes(rows) if stream.keeps(change[0], change[1:]))
        return _PAIRED[form](events, stream)
    return _SHOWN[form]((row for row in _OPS[form](rows) if stream.keeps(row, (row["data"],))), stream)


def columns(form: str, data: Sequence[str]) -> list[str]:
    """The columns that a form has in csv (`flat`), for data with these columns. Raises KeyError for an unknown one."""
    names = ("epoch", "offset", "op", "op_code", "node", "cause", "key")
    pair: list[dict[str, Any]] = [{**dict.fromkeys(names), "op": op, "data": dict.fromkeys(data)} for op in ("-C", "+C")]
    return list(flat(next(formed(pair, form, Stream("", "")))))


def _two(rows: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    return iter(rows)


def _as_they_are(rows: Iterable[dict[str, Any]], stream: Stream) -> Iterator[Row]:
    return iter(rows)


def _flink(rows: Iterable[dict[str, Any]], stream: Stream) -> Iterator[Row]:
    return (row | {"op": _FLINK[row["op"]]} for row in rows)


def _retract(rows: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Within an epoch all retractions before all appends, each in key order."""
    for _, group in groupby(rows, key=lambda row: row["epoch"]):
        epoch = list(group)
        for signs, op, code in ((("-R", "-C"), "-R", 1), (("+A", "+C"), "+A", 0)):
            yield from (row | {"op": op, "op_code": code} for row in epoch if row["op"] in signs)


def _upsert(rows: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """`+A` inserts or replaces, `-R` removes; no before-images."""
    for row in rows:
        if row["op"] != "-C":
            yield row | ({"op": "+A", "op_code": 0} if row["op"] == "+C" else {})


def _changes(rows: Iterable[dict[str, Any]]) -> Iterator[Change]:
    before: dict[str, Any] | None = None
    for row in rows:
        if row["op"] == "-C":
            before = row["data"]
        elif row["op"] == "+C":
            yield row, before, row["data"]
        else:
            yield row, *((row["data"], None) if row["op"] == "-R" else (None, row["data"]))


def _single(changes: Iterable[Change], stream: Stream) -> Iterator[Row]:
    """One event a change: `+A`, `-R` or `+C` with `before` and `after`."""
    for row, before, after in changes:
        yield {name: value for name, value in row.items() if name != "data"} | {"before": before, "after": after}


def _debezium(changes: Iterable[Change], stream: Stream) -> Iterator[Row]:
    """Debezium's envelope; `ts_ms` is when the epoch was committed; in a file of the run that commits it, when the run began."""
    letters = {"+A": "c", "+C": "u", "-R": "d"}
    for row, before, after in changes:
        source = {"pipeline": stream.pipeline, "node": stream.node, "epoch": row["epoch"], "offset": row["offset"]}
        yield {"before": before, "after": after, "op": letters[row["op"]], "ts_ms": _milliseconds(stream.moments.get(row["epoch"])), "source": source}


def _odf(rows: Iterable[dict[str, Any]], stream: Stream) -> Iterator[Row]:
    """Open Data Fabric's own columns ahead of the data; the time of the events is that of the epoch, as in files (`errata.outputs.files`)."""
    for row in rows:
        moment = _iso(stream.moments.get(row["epoch"]))
        yield beside({"offset": row["offset"], "op": row["op_code"], "system_time": moment, "event_time": moment}, row["data"])


_PAIRED = {"single": _single, "debezium": _debezium}
_OPS = {"two": _two, "flink": _two, "odf": _two, "retract": _retract, "upsert": _upsert}
_SHOWN = {"two": _as_they_are, "flink": _flink, "odf": _odf, "retract": _as_they_are, "upsert": _as_they_are}


def _iso(moment: datetime | None) -> str | None:
    return None if moment is None else moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def beside(system: Row, data: Row) -> dict[str, Any]:
    """System columns, then the data; a system column whose name a data column has gets an underscore."""
    return {f"_{name}" if name in data else name: value for name, value in system.items()} | dict(data)


def _milliseconds(moment: datetime | None) -> int | None:
    return None if moment is None else int(moment.timestamp() * 1000)


def flat(row: Row) -> Row:
    """A row of any form for csv: the data columns themselves, `old_<column>` for what an event took back."""
    system = {name: value for name, value in row.items() if name not in ("data", "before", "after")}
    if "after" not in row:
        return beside(system, row["data"] or {}) if "data" in row else row
    new, old = row["after"] or {}, row["before"] or {}
    names = list(dict.fromkeys([*new, *old]))
    return beside(system, {name: new.get(name) for name in names}) | {f"old_{name}": old.get(name) for name in names}
