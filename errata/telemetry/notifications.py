"""Notifications: a request or a command says what a run changed.

A notification is sent after the run's end. It never changes how the run ends, and takes no longer than its `timeout`; one that arrives nowhere is a warning (W490).
"""

from __future__ import annotations

import hashlib
import hmac
import json
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from threading import Thread
from time import monotonic, sleep
from typing import Any, Final
from urllib.parse import urlsplit

from changelog.ops import Changed
from errata.core.env_references import redacted
from errata.plan.pipeline import LoadedPipeline
from errata.project.model import Notify
from errata.state.tally import Tally
from errata.telemetry.run_end import Ended
from storage.delta.changelog_table import ChangelogTable
from storage.state.entry import Entry
from storage.stores.connections import given_environment

VERSION: Final = 1
"""The version of the message."""
SIGNATURE, MESSAGE = "Errata-Signature", "Errata-Message"
"""The headers with the signature and the name of a message."""
_FAILED: Final = frozenset({408, 425, 429})
"""Answers below 500 that another try may change."""
_MOST_LETTERS: Final = 200


@dataclass(frozen=True)
class Run:
    """A run that ended.

    Attributes:
        started, finished: In UTC.
        delivered: By source the records that its new and changed files have.
    """

    pipeline: LoadedPipeline
    started: datetime
    finished: datetime
    execution_id: str
    ended: Ended
    delivered: Mapping[str, int]

    @property
    def committed(self) -> bool:
        """Whether it made an epoch."""
        return self.ended.result.committed

    @property
    def failed(self) -> bool:
        """Whether it ended by an error; rejected records are none."""
        return self.ended.exit_code not in (0, 2)

    def changes(self, names: Sequence[str]) -> list[dict[str, Any]]:
        """The nodes among some that changed: how many rows were added, removed and corrected, and how many there are."""
        found = []
        for name in names:
            changed = self._changed(name)
            if changed.total:
                live = int(self.head.nodes.get(name, {}).get("live", 0)) if self.head is not None else 0
                share = changed.total / max(live + changed.removed, 1)
                found.append({"node": name, "live": live, **changed._asdict(), "share": round(share, 6)})
        return found

    def _changed(self, name: str) -> Changed:
        """The changes of the run in a node."""
        return Changed.of(self.ended.result.counts[name] if self.committed else {})

    @cached_property
    def head(self) -> Entry | None:
        """The last committed epoch."""
        return self.pipeline.head()

    @cached_property
    def causes(self) -> Mapping[str, Mapping[str, int]]:
        """By source the op rows of the epoch by their cause, `-C` not counted."""
        if not self.committed or self.head is None:
            return {}
        found = {}
        for node in self.pipeline.plan.of_kind("source"):
            path = f"changelog/{node.name}"
            if self.ended.result.counts[node.name]:
                table = ChangelogTable(f"{self.pipeline.state.root}/{path}", node.operator.output.stored(), pinned=self.head.tables.get(path))
                found[node.name] = table.statistics.causes(self.head.epoch)
        return found

    def message(self, notify: Notify) -> dict[str, Any] | None:
        """The text of a notification; None where it does not ask for this run."""
        plan = self.pipeline.plan
        changes = self.changes(notify.nodes or [node.name for node in plan if node.is_output])
        if not _asked(notify, changes, self.causes):
            changes = []
        outcome = "failed" if self.failed else "changed" if changes else "unchanged"
        if outcome not in notify.on:
            return None
        epoch, tally = None if self.head is None else self.head.epoch, Tally.noted(self.head.counters if self.head else {})
        return {
            "version": VERSION, "pipeline": plan.settings.name, "outcome": outcome, "exit_code": self.ended.exit_code, "epoch": epoch, "execution_id": self.execution_id,
            "started": self.started.isoformat(), "finished": self.finished.isoformat(), "error": self.ended.error, "rejected": tally.open, "waived": tally.waived, "nodes": changes,
            "sources": list(self._sources()),
        }  # fmt: skip

    def _sources(self) -> Iterator[dict[str, Any]]:
        """The deliveries of the sources, and how many rows differ from before."""
        for node in self.pipeline.plan.of_kind("source"):
            differ = self._changed(node.name).total
            if differ or node.name in self.delivered:
                yield {"node": node.name, "delivered": self.delivered.get(node.name, 0), "differ": differ, "causes": self.causes.get(node.name, {})}


def _asked(notify: Notify, changes: Sequence[Mapping[str, Any]], causes: Mapping[str, Mapping[str, int]]) -> bool:
    """Whether changes are of the size and the cause that a notification asks for."""
    large = any(one["share"] >= notify.min_share for one in changes)
    named = [cause for one in causes.values() for cause in one]
    return large and (not notify.causes or any(cause.startswith(tuple(notify.causes)) for cause in named))


def send_all(run: Run, warn: Callable[[str], None]) -> None:
    """Send the notifications of a pipeline that ask for a run, side by side. `warn` takes what did not arrive."""
    folder = run.pipeline.plan.settings.folder
    asked = [(notify, message) for notify in run.pipeline.plan.model.notify if (message := run.message(notify)) is not None]
    faults: dict[int, str] = {}

    def send(number: int, notify: Notify, message: Mapping[str, Any]) -> None:
        body = redacted(json.dumps(message, ensure_ascii=False, default=str)).encode()
        try:
            fault = _posted(notify, body, run.execution_id) if notify.url is not None else _commanded(notify, body, folder)
        except (OSError, RuntimeError, ValueError) as error:
            fault = f"{type(error).__name__}: {error}"
        faults[number] = fault or ""

    threads = [Thread(target=send, args=(number, *one), daemon=True) for number, one in enumerate(asked)]
    began = monotonic()
    for thread in threads:
        thread.start()
    for number, (thread, (notify, _)) in enumerate(zip(threads, asked, strict=True)):
        thread.join(max(began + notify.timeout + 1 - monotonic(), 0))
        fault = faults.get(number, f"it took longer than {notify.timeout:g} s")
        if fault:
            warn(f"W490: {_name(notify)} was not notified: {redacted(fault)[:_MOST_LETTERS]}")


def _name(notify: Notify) -> str:
    """The receiver as messages have it. The rest of an address may be a secret."""
    return f"'{notify.command[0]}'" if notify.command else str(urlsplit(notify.url or "").hostname)


def _posted(notify: Notify, body: bytes, name: str) -> str | None:
    """Send a message by POST until somebody takes it; what went wrong at last."""
    import httpx  # only runs that tell somebody need it

    headers = {"Content-Type": "application/json", "User-Agent": "errata", MESSAGE: name}
    if notify.secret is not None:
        headers[SIGNATURE] = f"sha256={hmac.new(notify.secret.get_secret_value().encode(), body, hashlib.sha256).hexdigest()}"
    until, fault, number = monotonic() + notify.timeout, "", 0
    while number < notify.tries and (left := until - monotonic()) > 0:
        sleep(min(2 ** (number - 1), left) if number else 0)
        number += 1
        try:
            with httpx.stream("POST", str(notify.url), content=body, headers=headers, timeout=max(until - monotonic(), 0.1), follow_redirects=False) as answer:
                if answer.is_success:
                    return None
                fault = f"it answered {answer.status_code}"
                if answer.status_code < 500 and answer.status_code not in _FAILED:
                    return fault
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            fault = str(error) or type(error).__name__
    return f"{fault} ({number} {'try' if number == 1 else 'tries'})"


def _commanded(notify: Notify, body: bytes, folder: Path) -> str | None:
    """Run a command with a message on its standard input; what went wrong."""
    try:
        done = subprocess.run(list(notify.command or ()), input=body, cwd=folder, env=given_environment(), capture_output=True, timeout=notify.timeout, check=False)
    except subprocess.TimeoutExpired:
        return f"it took longer than {notify.timeout:g} s"
    except (OSError, ValueError) as error:
        return str(error)
    if done.returncode == 0:
        return None
    said = done.stderr.decode(errors="replace").strip().splitlines()
    return f"it ended with {done.returncode}{f': {said[-1]}' if said else ''}"


