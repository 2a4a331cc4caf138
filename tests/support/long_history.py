"""A state of many epochs without as many runs: the ledger of three epochs goes on with entries that repeat the last one."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from deltalake import write_deltalake

from storage.state.entry import Entry
from storage.state.ledger import Ledger, _rows
from tests.support.audited import with_history
from tests.support.pipelines import Folder


def many_epochs(path: Path, count: int) -> Folder:
    """The project of `audited`, whose ledger has this number of epochs in few files, as after maintenance."""
    folder = with_history(path)
    ledger = Ledger(folder.load().state.ledger)
    head = ledger.entries()[-1]
    added: list[Entry] = []
    for epoch in range(head.epoch + 1, count + 1):
        before = added[-1] if added else head
        later = timedelta(hours=6)
        made = replace(before, epoch=epoch, started=before.started + later, finished=before.finished + later, execution_id=f"run-{epoch}")
        added.append(made.sealed(before.hash))
    write_deltalake(ledger.uri, _rows(added), mode="append")
    return folder
