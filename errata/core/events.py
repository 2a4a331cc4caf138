"""Reports of a run: events while it goes on, a result at its end."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from html import escape
from typing import Any, Literal, Protocol

from errata.core.diagnostics import did_you_mean
from errata.core.node_rows import NodeRows, small_table
from storage.stores.places import Place


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happens during a run, for progress and metrics.

    Args:
        kind: `engine` (chosen), `begin` (a node, or another step), `node` (a node ended), `warning`, `log` or `end`; `planned`, `source_read`, `rejected`,
            `committed`, `output_written` and `expectation` are for other programs and have their members in `facts`.
        node: The node's name; for `engine` the engine's.
        action: What the node or the step does, the text of a warning or a log, why the engine was chosen.
        rows_in: Rows that a node reads.
        rows_out, ops, rejected, seconds: What a node that ended wrote: op rows, their counts by op (`+A -R -C +C`), rejected records, its time.
        level: The level of a log.
        redacted: The text of a warning without values of the data; None where `action` has none but in quotes.
        facts: Members of an event for other programs (`errata.rendering.event_stream`); of a source that begins, of its progress.
        starting: Whether the engine is still starting.
    """

    kind: Literal["engine", "begin", "node", "warning", "log", "end", "planned", "source_read", "rejected", "committed", "output_written", "expectation"]
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
    redacted: str | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)


def ignore(event: Event) -> None:
    """The default listener of a run."""


class RowReader(Protocol):
    """Reads rows of nodes as a run left them."""

    @property
    def nodes(self) -> Collection[str]:
        """The nodes whose rows can be read."""

    def live(self, node: str, epoch: int | None) -> NodeRows:
        """The live rows of a node at an epoch."""

    def changes(self, node: str, epoch: int | None) -> NodeRows:
        """The op rows of a node in an epoch."""


class Counts(dict[str, Mapping[str, int]]):
    """Op counts by node. Nodes without op rows are not listed; their counts read as empty."""

    def __missing__(self, node: str) -> Mapping[str, int]:
        return {}


@dataclass(frozen=True, slots=True)
class OutputChange:
    """Changes of a run in one output.

    Args:
        node: The output.
        added, removed, corrected: Rows that came, went and changed.
        delivered: Rows that the last epoch had delivered; None where there was none.
        booked: How many of the rows that came, went or changed are late changes of closed periods.
    """

    node: str
    added: int
    removed: int
    corrected: int
    delivered: int | None = None
    booked: int = 0

    @property
    def differing(self) -> int:
        """How many of the delivered rows are not what they were."""
        return self.removed + self.corrected


@dataclass(frozen=True, slots=True)
class RunResult:
    """The result of a run.

    Args:
        epoch: The last committed epoch, None before the first.
        counts: Op rows by node and op.
        rejected: How many rejected records there are now, without the waived ones.
        waived: How many rejected records are waived.
        outputs: The path of each output. An output in parts has the path from which the names of its parts are made.
        dlq_file: The file of the dead letter queue, as the pipeline names it; None where none is written.
        message: Why a run with exit code 3 or 4 stopped, why the run would stop after a dry one that ends with 0, or which records a trial of a correction would reject.
        preview: The text of a preview that goes to standard output.
        committed: Whether the run committed an epoch.
        expectations: Failing rows of each expectation, by node and name (`orders.amount_positive`).
        reader: Reads rows of a node as the run left them; None where nothing was committed. `result["revenue"]` and `result.changes("revenue")` call it.
        output_changes: What the run changed in each output; outputs without a change are not listed.
    """

    exit_code: int
    epoch: int | None = None
    counts: Counts = field(default_factory=Counts)
    per_source_rollback_cursors: Mapping[str, int] = field(default_factory=dict)
    rejected: int = 0
    waived: int = 0
    outputs: Mapping[str, Place] = field(default_factory=dict)
    dlq_file: str | None = None
    seconds: float = 0.0
    message: str = ""
    preview: str = ""
    started: datetime | None = None
    execution_id: str = ""
    committed: bool = False
    expectations: Mapping[str, int] = field(default_factory=dict)
    output_changes: Sequence[OutputChange] = ()
    reader: RowReader | None = field(default=None, repr=False, compare=False)

    def __getitem__(self, node: str) -> NodeRows:
        """The live rows of a node after the run. Raises KeyError for a node that is not there."""
        return self._reading(node).live(node, self.epoch)

    def changes(self, node: str) -> NodeRows:
        """The op rows that the run brought to a node: none where it committed nothing. Raises KeyError for a node that is not there."""
        return self._reading(node).changes(node, self.epoch if self.committed else 0)

    def _reading(self, node: str) -> RowReader:
        if self.reader is None or node not in self.reader.nodes:
            raise KeyError(f"{node!r}: {self._near(node)}")
        return self.reader

    def _near(self, node: str) -> str:
        """Why the rows of a node cannot be read, with the nearest name."""
        if self.reader is None:
            return "the run committed nothing"
        near = did_you_mean(node, self.reader.nodes)
        return f"no node whose rows can be read{f'; {near}' if near else ''}"

    def _repr_html_(self) -> str:
        """The run in a notebook: how it ended, and its op rows by node."""
        ended = f"epoch {self.epoch}" if self.committed else f"nothing changed, epoch {self.epoch}"
        head = f"<p>{ended}, exit code {self.exit_code}, {self.rejected:,} rejected, {self.seconds:.1f} s</p>"
        if not self.counts:
            return f"{head}\n<p>no rows</p>"
        ops = list(dict.fromkeys(op for counts in self.counts.values() for op in counts))
        table = small_table(["node", *ops], [{"node": node, **counts} for node, counts in self.counts.items()])
        failing = {name: count for name, count in self.expectations.items() if count}
        return "\n".join([head, table, *([f"<p>failing: {escape(', '.join(f'{name} {count:,}' for name, count in failing.items()))}</p>"] if failing else [])])
