"""What a run is asked for, apart from the pipeline itself: the options of `errata run` as values (user guide, "CLI Reference")."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Literal

EngineKind = Literal["auto", "spark", "sail"]


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """Which engine does the data work. `auto`: what `[engine]` of errata.toml names, else spark for a cluster and for work that exceeds memory, else sail.

    `memory_limit` is in bytes; it and `threads` override what the pipeline file says.
    `engine_wait` is for how many seconds a cluster may give no executor, and a server no answer.
    """

    engine: EngineKind = "auto"
    master: str | None = None
    remote: str | None = None
    memory_limit: int | None = None
    threads: int | None = None
    engine_wait: int = 120


@dataclass(frozen=True, slots=True)
class Event:
    """What happens during a run, for progress.

    `kind`: `engine` (`node` is its name, `action` says why it is this one, `starting` tells whether it still starts), `begin` (a node begins, or what `action` says), `node` (a node ended),
    `warning` or `log` (`action` is the text; a log has a level), `end`.
    A node that begins has the rows that come in, one that ended all of its rows: in, out, by op (`+A -R -C +C`), rejected, and seconds.
    """

    kind: Literal["engine", "begin", "node", "warning", "log", "end"]
    node: str = ""
    type: str = ""
    action: str = ""
    rows_in: int = 0
    rows_out: int = 0
    ops: Mapping[str, int] = field(default_factory=dict)
    rejected: int = 0
    seconds: float = 0.0
    level: str = "info"
    starting: Callable[[], bool] = lambda: False


def ignore(event: Event) -> None:
    """The listener of a run that nobody watches."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """One run. `preview` is the number of records of each source under --dry-run (None: validation only, nothing read)."""

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
    wait: bool = False
    listener: Callable[[Event], None] = ignore


@dataclass(frozen=True, slots=True)
class Correction:
    """A correction by hand: the record of `source` with this key gets new values, or is taken back where there are none."""

    source: str
    key: Mapping[str, str]
    changes: Mapping[str, str]
    reason: str

    @property
    def retracts(self) -> bool:
        """Whether the record is taken back."""
        return not self.changes


@dataclass(frozen=True, slots=True)
class LogFilter:
    """Which rows of a changelog `errata log` shows. `since` includes its epoch; `cause` matches by prefix; `where` is CXL."""

    epoch: int | None = None
    since: int | None = None
    op: str | None = None
    cause: str | None = None
    where: str | None = None
    limit: int | None = None
    form: str = "two"


class Counts(dict[str, Mapping[str, int]]):
    """Op counts by node; a node without op rows has none and is not listed."""

    def __missing__(self, node: str) -> Mapping[str, int]:
        return {}


@dataclass(frozen=True, slots=True)
class RunResult:
    """What a run did (CONTRACT.md, "Python"). `epoch` is None before the first commit.

    `outputs` are the paths of all outputs, of one in parts that from which the names of the parts are made. `message` says why a run with exit code 3 or 4 stopped. `preview` is the text of a preview that goes to standard output.
    """

    exit_code: int
    epoch: int | None = None
    counts: Counts = field(default_factory=Counts)
    per_source_rollback_cursors: Mapping[str, int] = field(default_factory=dict)
    rejected: int = 0
    outputs: Mapping[str, Path] = field(default_factory=dict)
    seconds: float = 0.0
    message: str = ""
    preview: str = ""
    started: datetime | None = None
    execution_id: str = ""
    committed: bool = False

    def _repr_html_(self) -> str:
        """The run for a notebook: how it ended, and its rows by node and op."""
        from errata.rendering.html import table

        ended = f"epoch {self.epoch}" if self.committed else f"nothing changed, epoch {self.epoch}"
        rows = [{"node": name, **ops} for name, ops in self.counts.items()]
        return f"<p>{ended}, exit code {self.exit_code}, {self.rejected:,} rejected, {self.seconds:.1f} s</p>\n{table(rows, 'no rows')}"
