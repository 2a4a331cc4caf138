"""Streams of `--events jsonl`, each held to its schema, to the exit code of its process and to the ledger."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import errata
from errata.core.diagnostics import PipelineErrors
from errata.rendering.event_schema import event_schema
from tests.support.json_schema import faults

OUTCOMES = {0: "clean", 2: "rejected", 130: "interrupted"}
RETRIES = {0: "none", 2: "none", 1: "after_change", 3: "after_change", 5: "after_change", 4: "later", 6: "later", 130: "later", 70: "report"}


def checked(text: str, code: int, pipeline: str | Path) -> list[dict[str, Any]]:
    """The events of a process that ended with an exit code; none after an error of usage."""
    events = [json.loads(line) for line in text.splitlines()]
    assert (code == 64) == (not events), text
    if not events:
        return []
    assert [fault for one in events for fault in faults(one, event_schema())] == []
    assert [one["seq"] for one in events] == [*range(1, len(events) + 1)]
    assert len({one["run"] for one in events}) == 1
    assert [one["event"] for one in events].count("run_started") == [one["event"] for one in events].count("run_finished") == 1
    first, last = events[0], events[-1]
    assert (first["event"], last["event"]) == ("run_started", "run_finished")
    assert (last["exit_code"], last["outcome"], last["retry"]) == (code, OUTCOMES.get(code, "failed"), RETRIES[code])
    committed = [one for one in events if one["event"] == "committed"]
    assert last["committed"] == bool(committed)
    assert [one["epoch"] for one in committed] == [last["epoch"]] * len(committed)
    _agree_with_the_ledger(committed, last, pipeline)
    return events


def _agree_with_the_ledger(committed: list[dict[str, Any]], last: dict[str, Any], pipeline: str | Path) -> None:
    try:
        head = errata.load(pipeline).head()
    except PipelineErrors:  # then no run was begun
        assert committed == []
        return
    assert last["epoch"] == (0 if head is None else head.epoch)
    assert [one["ledger"] for one in committed] == [head and head.hash] * len(committed)
