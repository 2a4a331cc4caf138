"""The events of a run for other programs: one JSON object a line. `docs/reference/commands.md` lists them.

No event holds a value of the data. A text for people may quote one; `without_values` takes it out.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from io import StringIO
from threading import Lock
from time import monotonic
from typing import Any, TextIO

from errata.core.diagnostics import Diagnostic, PipelineErrors
from errata.core.env_references import redacted
from errata.core.events import Event, RunResult
from errata.core.failures import Exit, Failure
from errata.rendering.diagnostics import as_object
from storage.errors import EngineUnavailable, StorageError
from storage.files.errors import FormatError
from storage.sql.errors import DatabaseError

SCHEMA = 1
OPS = ("+A", "-R", "-C", "+C")
MOST_PROGRESS = 1_000
"""How many progress events a run may have; at most one a second."""
_OUTCOMES: Mapping[int, str] = {Exit.CLEAN: "clean", Exit.REJECTED: "rejected", Exit.INTERRUPTED: "interrupted"}
_RETRIES: Mapping[int, str] = {
    Exit.CLEAN: "none", Exit.REJECTED: "none", Exit.STORAGE: "later", Exit.BUSY: "later", Exit.INTERRUPTED: "later", Exit.DEFECT: "report",
}  # fmt: skip
_PROBLEM = ("code", "severity", "message", "file", "line", "column", "help", "node")
_REAL = ("committed", "output_written", "rejected")
"""Events of a dry run that happen in a state of its own, which nobody sees."""
_PLANS = ("problem", "planned", "progress")
"""Events before there is work."""
_CODE = re.compile(r"(?:^|(?<=: ))(?:[\w']+ )*'?[\w.-]*'?:? ?\b([EW][0-9]{3}): ")
_NODE = re.compile(r"(?:node|source|output) '([^']+)'")
_QUOTE = re.compile(r"(?<![A-Za-z0-9_])b?(['\"])")

_NUMBER = re.compile(r"(?<![\w.])[-+]?\.?\d(?:[\w.:+-]*\w)?")
_IN_PARENTHESES = re.compile(r"=\s*\(.*", re.DOTALL)
_REFUSED = {"unique": "a unique index or key has the values already", "constraint": "a constraint or a trigger refuses the rows"}


@dataclass(slots=True)
class EventStream:
    """The events of one command. A reader that closes the pipe does not stop the run.

    Args:
        out: Takes the lines.
        run: The execution id.
        engine: The engine that was asked for: auto, spark or sail.
        pipeline: The name of the pipeline; None where its file cannot be planned.
        stands: Returns the last committed epoch and the number of rejected records.
        names: Names of the pipeline, which texts may quote.
        result: What the run did, where it ended by itself.
        holds: Whether the plan is held back until there is work, since the command may still find that its words fit nothing.
    """

    out: TextIO
    run: str
    engine: str = "auto"
    batch_id: str | None = None
    dry_run: bool = False
    channel: str | None = None
    pipeline: str | None = None
    stands: Callable[[], tuple[int, int]] = lambda: (0, 0)
    names: Collection[str] = frozenset()
    result: RunResult | None = None
    holds: bool = False
    clock: Callable[[], float] = monotonic
    began: float = field(init=False)
    _lock: Lock = field(default_factory=Lock)
    _seq: int = 0
    _progressed: float | None = None
    _progress: int = 0
    _committed: bool = False
    _started: Mapping[str, Any] | None = None
    _code: str | None = None
    _held: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Begin to count."""
        self.began = self.clock()

    def begin(self) -> None:
        """Note what is known at the start. It is written with the first event that follows, since a command may still refuse its words."""
        self._started = {
            "pipeline": self.pipeline, "batch_id": self.batch_id or self.run, "engine": self.engine, "version": _version(), "epoch": self._stands()[0],
            "dry_run": self.dry_run, "channel": self.channel,
        }  # fmt: skip

    def start(self) -> None:
        """Write the first event."""
        self.write("run_started", {})

    def problems(self, found: Iterable[Diagnostic]) -> None:
        """Write the problems of the pipeline."""
        for one in found:
            members = as_object(one)
            self._code = self._code or (one.code if one.is_error else None)
            self.write("problem", {name: members[name] or None if name in ("node", "help", "file", "line", "column") else members[name] for name in _PROBLEM})

    def heard(self, event: Event) -> None:
        """Write what a run tells."""
        if self.dry_run and event.kind in _REAL:
            return
        if event.kind == "committed":
            self._committed = True
        if event.kind in ("planned", "source_read", "expectation", *_REAL):
            self.write(event.kind, event.facts)
        elif event.kind == "node" and event.action != "skip":
            self.write("node_finished", {"node": event.node, "ops": ops_of(event.ops), "rejected": event.rejected, "seconds": round(event.seconds, 6)})
        elif event.kind == "warning":
            self._warning(event)
        elif event.kind == "begin" and event.facts and self._may_progress():
            self.write("progress", event.facts)

    def _warning(self, event: Event) -> None:
        text = without_values(event.action, self.names) if event.redacted is None else event.redacted
        self.write("warning", {"code": code_in(text), "message": text, "node": event.node or self._node_in(text)})

    def _may_progress(self) -> bool:
        now = self.clock()
        if self._progress >= MOST_PROGRESS or (self._progressed is not None and now - self._progressed < 1):
            return False
        self._progressed, self._progress = now, self._progress + 1
        return True

    def finish(self, code: int, error: BaseException | None = None) -> None:
        """Write the last event. A command whose words were refused has no events."""
        if code == Exit.USAGE and self._seq == 0:
            return
        if self._started is None:
            self.begin()
        if isinstance(error, PipelineErrors):
            self.problems(error.diagnostics)
        epoch, rejected = self._stands() if self.result is None or self.result.epoch is None else (self.result.epoch, self.result.rejected)
        message = self._message(error)
        self.write("run_finished", {
            "exit_code": int(code), "outcome": _OUTCOMES.get(code, "failed"), "committed": self._committed, "epoch": epoch, "rejected": rejected,
            "retry": _RETRIES.get(code, "after_change"), "code": self._code or code_in(message or ""), "message": message,
            "seconds": round(self.clock() - self.began, 6), "batch_id": self.batch_id or self.run, "outputs": self._outputs(),
        })  # fmt: skip

    def _outputs(self) -> list[dict[str, Any]]:
        """The changes of the run in each output."""
        changes = () if self.result is None or self.dry_run else self.result.output_changes
        return [{"node": one.node, "added": one.added, "removed": one.removed, "corrected": one.corrected, "delivered": one.delivered} for one in changes]

    def _message(self, error: BaseException | None) -> str | None:
        """Why the command stopped, without values."""
        if isinstance(error, Failure):
            return without_values(error.message, self.names) if error.redacted is None else error.redacted
        if isinstance(error, PipelineErrors):
            count = sum(one.is_error for one in error.diagnostics)
            return f"the pipeline has {count} error{'s' * (count != 1)}"
        if isinstance(error, KeyboardInterrupt):
            return "interrupted"
        if isinstance(error, (StorageError, FormatError, EngineUnavailable)):
            return without_values(str(error), self.names)
        if isinstance(error, OSError) and error.strerror:
            return f"{error.filename}: {error.strerror}" if error.filename is not None else error.strerror
        if error is not None:
            return type(error).__name__
        return without_values(self.result.message, self.names) if self.result is not None and self.result.message else None

    def _node_in(self, text: str) -> str | None:
        found = _NODE.match(text)
        return found[1] if found and found[1] in self.names else None

    def _stands(self) -> tuple[int, int]:
        with suppress(Exception):  # what cannot be read is reported by the command itself
            return self.stands()
        return 0, 0

    def write(self, name: str, members: Mapping[str, Any]) -> None:
        """Write one event, behind the first one."""
        with self._lock:
            if self.holds and name in _PLANS:
                self._held.append((name, members))
                return
            if self._seq == 0:
                if self._started is None:
                    self.begin()
                self._line("run_started", self._started or {})
            for held in (*self._held, (name, members)):
                if held[0] != "run_started":
                    self._line(*held)
            self._held.clear()
            self.holds = False

    def _line(self, name: str, members: Mapping[str, Any]) -> None:
        self._seq += 1
        now = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        line = json.dumps({"schema": SCHEMA, "seq": self._seq, "time": now, "run": self.run, "event": name, **members}, separators=(",", ":"))
        try:
            self.out.write(redacted(line) + "\n")
            self.out.flush()
        except (OSError, ValueError):
            self._reader_gone()

    def _reader_gone(self) -> None:
        """Let what follows go nowhere: nobody reads it any more."""
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.out.fileno())
        self.out = StringIO()


def ops_of(ops: Mapping[str, int]) -> dict[str, int]:
    """Return counts of all four ops."""
    return {op: int(ops.get(op, 0)) for op in OPS}


def code_in(text: str) -> str | None:
    """Return the first code that a text or a part of it behind a colon begins with, if there is one."""
    found = _CODE.search(text)
    return found[1] if found else None


def without_values(text: str, names: Collection[str]) -> str:
    """Return a text with `...` for what it may quote of the data: quoted pieces that are no names of the pipeline, and values behind `name=`.

    Texts put quotes around values without escaping the quotes inside, so everything up to the last quote of the kind is left out.
    """
    at = 0
    while (opening := _QUOTE.search(text, at)) is not None:
        closing = text.find(opening[1], opening.end())
        piece = text[opening.end() : closing] if closing >= 0 else text[opening.end() :]
        if closing >= 0 and piece in names:
            at = closing + 1
            continue
        last = text.rfind(opening[1])
        begun = f"{text[: opening.end()]}..."
        at, text = len(begun) + 1, f"{begun}{text[last:] if last >= opening.end() else ''}"
    found = next((one for one in re.finditer(r"([\w.$-]+)=(?!=)", text) if one[1] in names), None)
    return text if found is None else f"{text[: found.end()]}..."


def database_text(error: DatabaseError, *statements: str) -> str:
    """Return the text of an error of a database without values of the data.

    A database that was not reached, or that lost the connection, has said nothing about data, and a constraint quotes rows as it likes.
    Of other reasons, quoted pieces and numbers stay where the statements have them.
    """
    if error.trouble in ("unreachable", "password", "moment", "busy"):
        return str(error)
    if error.trouble in _REFUSED:
        return error.with_reason(_REFUSED[error.trouble])
    words = {word for statement in statements for word in re.findall(r"[\w.]+", statement)}
    words |= {part for word in words for part in word.split(".")}
    text = _IN_PARENTHESES.sub("=(...", without_values(error.reason, words))
    return error.with_reason(_NUMBER.sub(lambda found: found[0] if found[0] in words else "...", text))


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("errata")
    except PackageNotFoundError:
        return "unknown"
