"""The options of commands as values."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from errata.core.events import Event, ignore

EngineKind = Literal["auto", "spark", "sail"]


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """Which engine does the data work.

    Args:
        engine: `auto` takes what `[engine]` of errata.toml names; else spark for a cluster and for work that exceeds memory, else sail.
        memory_limit: Bytes; overrides the pipeline file.
        threads: Overrides the pipeline file.
        engine_wait: How many seconds to wait for executors of a cluster, or for a server's answer.
    """

    engine: EngineKind = "auto"
    master: str | None = None
    remote: str | None = None
    memory_limit: int | None = None
    threads: int | None = None
    engine_wait: int = 120


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options of one run.

    Args:
        preview: How many records of each source a dry run reads. None: it only validates, and reads no data.
        preview_output: The file for the preview. None: standard output.
        error_threshold: Stop above this number of rejected records; 0 is no limit.
        max_retract_share: Stop where more than this share of a source's rows would be retracted.
        reopen: Whether rows of closed periods may change.
        notify: Whether the receivers of notifications hear about it.
        wait: Wait for the lock of another run.
        listener: Receives the run's events.
        log_level: The level below which `trace` and `debug` of programs are not evaluated: error, warn, info, debug or trace.
        execution_id: The name of the run, where the command has made it already.
    """

    engine: EngineOptions = EngineOptions()
    batch_id: str | None = None
    dry_run: bool = False
    preview: int | None = None
    preview_output: Path | None = None
    error_threshold: int = 0
    force: bool = False
    metrics_spool_dir: Path | None = None
    from_cursors: bool = False
    full_refresh: bool = False
    ephemeral: bool = False
    max_retract_share: float | None = None
    reopen: bool = False
    notify: bool = True
    wait: bool = False
    listener: Callable[[Event], None] = ignore
    log_level: str = "info"
    execution_id: str | None = None


@dataclass(frozen=True, slots=True)
class Correction:
    """A manual correction of one source record: new values for columns, or, without any, its retraction."""

    source: str
    key: Mapping[str, str]
    changes: Mapping[str, str]
    reason: str

    @property
    def retracts(self) -> bool:
        """Whether the record is retracted."""
        return not self.changes


@dataclass(frozen=True, slots=True)
class Erasure:
    """The records that `errata erase` takes out.

    Args:
        key: Columns of sources with the values of the records.
        where: A CXL condition over the data columns of sources, in place of `key`.
        source: The source; None: each source with these columns.
        reason: Why; it stays in the record of the erasure.
        by: Who erases.
        keep_totals: Columns of nameless rows that stay of the records; none: nothing stays.
        keep_out: Whether later runs leave the records out where an input file brings them again.
    """

    reason: str
    by: str
    key: Mapping[str, str] = field(default_factory=dict)
    where: str | None = None
    source: str | None = None
    keep_out: bool = False
    keep_totals: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class LetterChoice:
    """Which entries of the dead letter queue a command means. All parts must hold; of several names one.

    Args:
        names: Ids of entries, or their beginnings, and names of groups.
        older_than: The least age, such as `12h` or `30d`.
        waived: Only waived entries, or only the others; None: both.
    """

    names: Sequence[str] = ()
    source: str | None = None
    stage: str | None = None
    category: str | None = None
    assigned: str | None = None
    older_than: str | None = None
    waived: bool | None = None


@dataclass(frozen=True, slots=True)
class LetterDecision:
    """A decision about entries of the dead letter queue.

    Args:
        action: `unwaive` takes a waiver back.
        author: Who; empty: the user of the operating system.
        assignee: Who has the entries from now on; empty: nobody.
    """

    action: Literal["assign", "waive", "unwaive"]
    reason: str = ""
    author: str = ""
    assignee: str = ""


@dataclass(frozen=True, slots=True)
class RepairNotes:
    """Notes that go with repaired cells.

    Args:
        into: The file of corrections, below the pipeline's folder; None: the one of the source's corrections, or of the node behind it.
        reason: Why, where a row of the table does not say so itself.
    """

    into: str | None = None
    reason: str = ""
    author: str = ""
    ticket: str = ""


CORRECTION_STATES = ("applied", "spent", "conflict", "dangling", "pending", "draft", "withdrawn")
"""States of a correction as code. `pending`: no run has seen it yet."""
CORRECTION_COLUMNS = ("node", "state", "place", "key", "column", "from", "to", "reason", "author", "ticket", "records")
"""The columns of `errata corrections`."""


@dataclass(frozen=True, slots=True)
class Restatement:
    """The comparison that `errata restate` makes.

    Args:
        by: The fields whose values are a period.
        fields: The columns that are compared; none: all of them.
        start: What was live at this epoch counts as published; None: the first publication of each period.
        end: The epoch that is compared with it; None: the last one.
    """

    by: Sequence[str]
    fields: Sequence[str] = ()
    start: int | None = None
    end: int | None = None


@dataclass(frozen=True, slots=True)
class LogFilter:
    """Which rows of a changelog `errata log` shows.

    Args:
        since: The first epoch.
        cause: The beginning of the cause.
        where: A CXL condition over the data columns.
        form: The form of the stream.
    """

    epoch: int | None = None
    since: int | None = None
    op: str | None = None
    cause: str | None = None
    where: str | None = None
    limit: int | None = None
    form: str = "two"
