"""Stream forms without an engine: op rows as dictionaries become the objects that `errata log --format jsonl` prints.

For changelogs on the driver. `changelog.forms.frames` gives the same events as a DataFrame.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from changelog.columns import CAUSE, EPOCH, KEY, OP, RESERVED
from changelog.forms.names import PAIRED, PLAIN, Form, known, op_names
from changelog.ops import NEGATIVE, POSITIVE, Op

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

Row: TypeAlias = "Mapping[str, Any]"
Event: TypeAlias = dict[str, Any]

_NOTHING: Final[dict[int, int]] = {}


class _Change(NamedTuple):
    row: Row
    op: Op
    payload: Event


def events(rows: Iterable[Row], form: str = "two", *, hidden: Collection[str] = ()) -> Iterator[Event]:
    """Return the events of stored op rows in changelog order. Offsets count from 0 without gaps.

    An event has `epoch`, `offset`, `op`, `op_code`, `key` (hexadecimal) and `cause`. Paired forms add `before` and `after`, other forms `data`.

    Args:
        rows: The op rows.
        form: Name of the stream form. Raises ValueError for an unknown name.
        hidden: Columns that are not data.
    """
    name = known(form)
    ordered = sorted(rows, key=_order)
    changes = _paired(ordered, hidden) if name in PAIRED else _single(ordered, name, hidden)
    names = op_names(name)
    for offset, (row, op, payload) in enumerate(changes):
        envelope = {"epoch": row[EPOCH], "offset": offset, "op": names[op], "op_code": int(op)}
        yield {**envelope, "key": row[KEY].hex(), "cause": row[CAUSE], **payload}


def debezium(event: Event, pipeline: str, node: str, committed: Mapping[int, int] = _NOTHING) -> Event:
    """Return an event of the form `debezium` in Debezium's envelope.

    `committed` has the commit time of each epoch in milliseconds since 1970, for `ts_ms`.
    """
    source = {"pipeline": pipeline, "node": node, "epoch": event["epoch"], "offset": event["offset"]}
    return {"before": event["before"], "after": event["after"], "op": event["op"], "ts_ms": committed.get(event["epoch"]), "source": source}


def _order(row: Row) -> tuple[int, bytes, int]:
    return row[EPOCH], row[KEY], row[OP]


def _single(ordered: list[Row], form: Form, hidden: Collection[str]) -> Iterator[_Change]:
    if form == "retract":
        ordered = sorted(ordered, key=lambda row: (row[EPOCH], row[OP] in POSITIVE))
    for row in ordered:
        op = Op(row[OP])
        if form == "upsert" and op is Op.CORRECT_FROM:
            continue
        plain = Op.RETRACT if op in NEGATIVE else Op.APPEND
        yield _Change(row, plain if form in PLAIN else op, {"data": _data(row, hidden)})


def _paired(ordered: list[Row], hidden: Collection[str]) -> Iterator[_Change]:
    for _, group in groupby(ordered, key=lambda row: (row[EPOCH], row[KEY])):
        images = {row[OP] in POSITIVE: row for row in group}
        row, before, after = images[max(images)], images.get(False), images.get(True)
        op = Op.CORRECT_TO if len(images) > 1 else Op(row[OP])
        yield _Change(row, op, {"before": before and _data(before, hidden), "after": after and _data(after, hidden)})


def _data(row: Row, hidden: Collection[str]) -> Event:
    return {name: value for name, value in row.items() if name not in RESERVED and name not in hidden}
