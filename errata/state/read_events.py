"""The events that a source has read from a database and may read again, kept in its state: one row a digest."""

from __future__ import annotations

from changelog.lazy_imports import pa
from operators.source.diff.by_answer import DIGEST, TIMES
from storage.delta.changelog_table import ChangelogTable


def read_events(table: ChangelogTable) -> pa.Table | None:
    """Digests with the number of equal events; None where no epoch kept any."""
    if not table.exists():
        return None
    rows = table.read_arrow()
    return pa.table({DIGEST: rows.column("_key"), TIMES: rows.column(TIMES)})


def write_events(table: ChangelogTable, events: pa.Table, epoch: int) -> None:
    """Let these digests take the place of all that the table has. One durable step, more where the table is new."""
    rows = pa.table({"_key": events.column(DIGEST).cast(pa.binary()), TIMES: events.column(TIMES).cast(pa.int64())})
    if not table.exists():
        table.append(rows, epoch)
    else:
        table.replace_before(rows.append_column("_epoch", pa.repeat(pa.scalar(epoch, pa.int64()), rows.num_rows)), epoch + 1)
