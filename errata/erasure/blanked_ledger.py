"""The ledger's entries before an erasure, without erased values: they are written anew with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from errata.erasure.scrub import Scrub
from errata.outputs.database_targets import CHAINS
from storage.state.entry import Entry


def blanked_history(history: Sequence[Entry], scrub: Scrub) -> list[Entry]:
    """The entries without values of the records, without seals of files that go, and with other names for files whose names have a value."""
    first, *others = history
    chains = [first.hash, *first.counters.get(CHAINS, ())]
    return [_blanked(entry, scrub) for entry in (replace(first, counters={**first.counters, CHAINS: chains}), *others)]


def _blanked(entry: Entry, scrub: Scrub) -> Entry:
    counters, nodes, sources = (_without_values(part, scrub) for part in (entry.counters, entry.nodes, entry.sources))
    for source in sources.values():
        source["files"] = [{name: scrub.file_name(value) if name in ("path", "stored_as") and value else value for name, value in file.items()} for file in source.get("files", ())]
    return replace(entry, files={}, marks={}, counters=counters, nodes=nodes, sources=sources)


def _without_values(document: Any, scrub: Scrub) -> Any:
    """JSON with no erased value in it; the names of files stay."""
    if isinstance(document, dict):
        return {name: value if name == "files" else _without_values(value, scrub) for name, value in document.items()}
    if isinstance(document, list):
        return [_without_values(value, scrub) for value in document]
    return scrub.values.blanked(document) if isinstance(document, str) else document
