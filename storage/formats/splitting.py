"""One output cut into several files.

Limits are checked before a record is written: the record that exceeds `max_bytes` is still completed. With a group key a file ends only where the key
changes. A group is oversize when it alone exceeds a limit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from changelog.lazy_imports import pa
from storage.files.errors import OutputError
from storage.formats.base import Writer
from storage.formats.options import OptionError

_SEQ = re.compile(r"\{seq(?::0?(?P<width>[0-9]+))?\}")
_TOKEN = re.compile(r"\{[^{}]*\}")


@dataclass(frozen=True, slots=True)
class SplitPlan:
    """The `split:` block of an output. `repeat_header` applies only to header rows of names.

    Raises OptionError for a naming without `{seq}` or with an unknown token.
    """

    max_records: int | None = None
    max_bytes: int | None = None
    group_key: str | None = None
    naming: str = "{stem}_{seq:04}.{ext}"
    repeat_header: bool = True
    oversize_group: Literal["warn", "error", "allow"] = "warn"

    def __post_init__(self) -> None:
        rest = _SEQ.sub("", self.naming).replace("{stem}", "").replace("{ext}", "")
        if unknown := _TOKEN.search(rest):
            raise OptionError(f"split.naming: unknown token {unknown[0]}; there are {{stem}}, {{seq:0N}} and {{ext}}", ("split", "naming"))
        if not _SEQ.search(self.naming):
            raise OptionError("split.naming: without {seq} all parts would have one name", ("split", "naming"))
        if "/" in rest or "\\" in rest:
            raise OptionError("split.naming: a name, not a path: the parts stand beside the output's path", ("split", "naming"))

    def name(self, file_name: str, seq: int) -> str:
        """The name of part `seq` (from 1) of the output file `file_name`."""
        return _named(_SEQ.sub(lambda found: str(seq).zfill(int(found["width"] or 0)), self.naming), file_name)

    def pattern(self, file_name: str) -> str:
        """A regular expression of the names of all parts of the output file `file_name`."""
        return "[0-9]+".join(re.escape(_named(text, file_name)) for text in _SEQ.split(self.naming)[::2])

    def full(self, records: int, size: int) -> bool:
        """Whether a file with these numbers of records and bytes has reached a limit."""
        return _reached(records, self.max_records) or _reached(size, self.max_bytes)

    def oversize(self, records: int, size: int) -> bool:
        """Whether a group with these numbers of records and bytes exceeds a limit."""
        return _reached(records - 1, self.max_records) or _reached(size - 1, self.max_bytes)


def _named(text: str, file_name: str) -> str:
    stem, dot, ext = file_name.rpartition(".")
    stem, ext = (stem, ext) if dot and stem else (file_name, "dat")
    return text.replace("{stem}", stem).replace("{ext}", ext)


def _reached(count: int, limit: int | None) -> bool:
    return limit is not None and count >= limit


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes to append to part `seq`. Parts come one after another."""

    seq: int
    data: bytes


@dataclass(slots=True)
class _Part:
    """The open file and the open group."""

    seq: int = 1
    records: int = 0
    size: int = 0
    group_records: int = 0
    group_size: int = 0
    judged: bool = False
    """Whether the open group was reported as oversize."""

    def add(self, size: int, *, new_group: bool) -> None:
        self.records, self.size = self.records + 1, self.size + size
        self.group_records = 1 if new_group else self.group_records + 1
        self.group_size = size if new_group else self.group_size + size
        self.judged &= not new_group

    def next(self, header: int) -> None:
        self.seq, self.records, self.size = self.seq + 1, 0, header


def split(
    plan: SplitPlan,
    writer: Writer,
    batches: Iterable[pa.RecordBatch],
    *,
    group: int | None = None,
    warn: Callable[[str], None] = lambda _: None,
) -> Iterator[Piece]:
    """The parts of an ordered stream of batches, each with header and footer; one part where there are no records.

    Raises OutputError for an oversize group under `oversize_group: error`.

    Args:
        plan: the limits and the names of the parts
        writer: writes the columns of its plan; further columns of the batches are not written
        batches: the records in order
        group: the index of the group key among the columns; None without a group key
        warn: called with a message for each oversize group under `oversize_group: warn`
    """
    first = writer.header()
    later = _repeated(plan, writer, first)
    part = _Part(size=len(first))
    previous: pa.Scalar | None = None
    yield Piece(1, first)
    for rows in batches:
        changed, previous = _changes(rows, group, previous)
        batch = rows.select(list(range(len(writer.plan.columns))))
        sizes = writer.rows(batch) if plan.max_bytes is not None else None
        start = 0
        for at in range(batch.num_rows):
            new_group = changed is None or changed[at]
            if part.records and new_group and plan.full(part.records, part.size):
                yield from _body(part, writer, batch.slice(start, at - start), continues=start == 0)
                yield from _close(part, writer, later)
                start = at
            part.add(len(sizes[at]) if sizes else 0, new_group=new_group)
            _judge(plan, part, warn, grouped=changed is not None)
        yield from _body(part, writer, batch.slice(start), continues=start == 0)
    yield Piece(part.seq, writer.footer())


def _repeated(plan: SplitPlan, writer: Writer, header: bytes) -> bytes:
    """The header of every part but the first one."""
    return header if plan.repeat_header or not writer.has_header_row else b""


def _close(part: _Part, writer: Writer, header: bytes) -> Iterator[Piece]:
    yield Piece(part.seq, writer.footer())
    part.next(len(header))
    yield Piece(part.seq, header)


def _body(part: _Part, writer: Writer, batch: pa.RecordBatch, *, continues: bool) -> Iterator[Piece]:
    if batch.num_rows:
        between = writer.separator() if continues and part.records > batch.num_rows else b""
        yield Piece(part.seq, between + writer.render(batch))


def _changes(batch: pa.RecordBatch, group: int | None, previous: pa.Scalar | None) -> tuple[list[bool] | None, pa.Scalar | None]:
    """Whether each record's key differs from the one before, null being a key, and the last key. None without a group key."""
    if group is None or not batch.num_rows:
        return None if group is None else [], previous
    key = batch.column(group).dictionary_encode(null_encoding="encode").indices.to_pylist()
    first = batch.column(group)[0]
    changed = [previous is None or not previous.equals(first)]
    changed.extend(left != right for left, right in pairwise(key))
    return changed, batch.column(group)[-1]


def _judge(plan: SplitPlan, part: _Part, warn: Callable[[str], None], *, grouped: bool) -> None:
    if not grouped or part.judged or not plan.oversize(part.group_records, part.group_size):
        return
    part.judged = True
    text = f"a group of '{plan.group_key}' has more than the limit of one file (part {part.seq})"
    if plan.oversize_group == "error":
        raise OutputError(text)
    if plan.oversize_group == "warn":
        warn(text)
