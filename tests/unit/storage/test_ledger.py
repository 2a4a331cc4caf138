"""The ledger: every change breaks its chain of hashes, only one run can commit, and other formats are refused."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from hypothesis import given
from hypothesis import strategies as st

from storage import durable
from storage.errors import LedgerMoved, StorageError
from storage.state.entry import FORMAT, Entry, verify_chain
from storage.state.ledger import Ledger

if TYPE_CHECKING:
    from pathlib import Path

START = datetime(2024, 2, 29, 12, 0, 0, 123456, UTC)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=5,
)
DOCUMENTS = st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=4), JSON, max_size=3)
OTHERS: dict[str, Any] = {"epoch": 99, "exit_code": 4, "started": START - timedelta(microseconds=1), "finished": START - timedelta(days=1)}


def entry(epoch: int, **changes: Any) -> Entry:
    members = {"tables": {"changelog/orders": epoch}, "nodes": {"orders": {"+A": epoch}}, "sources": {"orders": {"cursor": 41}}}
    return replace(Entry(epoch, f"run {epoch}", "batch", START, START + timedelta(seconds=1), 0, **members), **changes)


def chain(length: int) -> list[Entry]:
    made: list[Entry] = []
    for epoch in range(1, length + 1):
        made.append(entry(epoch).sealed(made[-1].hash if made else ""))
    return made


def test_what_is_committed_is_read_back(tmp_path: Path) -> None:
    ledger = Ledger(str(tmp_path / "ledger"))
    assert ledger.head() is None
    assert ledger.entries() == []
    head = None
    for epoch in (1, 2, 3):
        head = ledger.append(entry(epoch), head)
        assert ledger.head() == head
    assert ledger.entries() == chain(3)
    assert ledger.verify_chain() == []


def test_the_starts_of_runs_by_epoch(tmp_path: Path) -> None:
    ledger = Ledger(str(tmp_path / "ledger"))
    assert ledger.started([1]) == {}
    head = None
    for epoch in (1, 2, 3):
        head = ledger.append(entry(epoch, started=START + timedelta(days=epoch)), head)
    later = {"started": START + timedelta(days=9), "finished": START + timedelta(days=9)}
    ledger.append(entry(3, counters={"kind": "compact"}, **later), head)  # maintenance of an epoch, which began before
    assert ledger.started([1, 3, 7]) == {epoch: START + timedelta(days=epoch) for epoch in (1, 3)}


@given(documents=DOCUMENTS)
def test_a_hash_depends_on_the_content_and_not_on_the_order_of_keys(documents: dict[str, Any]) -> None:
    turned = dict(reversed(documents.items()))
    assert entry(1, plan=documents).digest() == entry(1, plan=turned).digest()


@given(documents=DOCUMENTS)
def test_any_json_comes_back_with_its_hash(tmp_path_factory: pytest.TempPathFactory, documents: dict[str, Any]) -> None:
    ledger = Ledger(str(tmp_path_factory.mktemp("l") / "ledger"))
    written = ledger.append(entry(1, plan=documents, nodes={"n": documents}), None)
    assert ledger.entries() == [written]
    assert ledger.verify_chain() == []


@given(length=st.integers(1, 5), data=st.data())
def test_an_edited_entry_is_found(length: int, data: st.DataObject) -> None:
    entries = chain(length)
    at = data.draw(st.integers(0, length - 1))
    name = data.draw(st.sampled_from([member.name for member in fields(Entry)]))
    before = getattr(entries[at], name)
    entries[at] = replace(entries[at], **{name: OTHERS.get(name, {"forged": 1} if isinstance(before, dict) else "forged")})
    assert verify_chain(entries)


@given(length=st.integers(2, 5), data=st.data())
def test_a_dropped_repeated_or_moved_entry_is_found(length: int, data: st.DataObject) -> None:
    entries = chain(length)
    at = data.draw(st.integers(0, length - 2))
    how = data.draw(st.sampled_from(["drop", "repeat", "swap"]))
    if how == "drop":
        del entries[at]
    elif how == "repeat":
        entries.insert(at, entries[at])
    else:
        entries[at], entries[at + 1] = entries[at + 1], entries[at]
    assert {fault.kind for fault in verify_chain(entries)} & {"unlinked", "repeated"}


def test_a_resealed_forgery_breaks_the_link_after_it() -> None:
    entries = chain(3)
    entries[1] = entry(2, exit_code=4).sealed(entries[0].hash)
    assert [(fault.epoch, fault.kind) for fault in verify_chain(entries)] == [(3, "unlinked")]


def test_a_run_that_was_overtaken_does_not_commit(tmp_path: Path) -> None:
    ledger = Ledger(str(tmp_path / "ledger"))
    first = ledger.append(entry(1), None)
    ledger.append(entry(2), first)
    with pytest.raises(LedgerMoved, match="after epoch 1"):
        ledger.append(entry(2, execution_id="late"), first)
    assert [one.execution_id for one in ledger.entries()] == ["run 1", "run 2"]


def test_of_two_commits_at_the_same_moment_one_lands(tmp_path: Path) -> None:
    ledger = Ledger(str(tmp_path / "ledger"))
    head = ledger.append(entry(1), None)
    inside = False

    def other_commits_first(moment: durable.Moment) -> None:
        nonlocal inside
        if moment.side == "before" and not inside:
            inside = True
            Ledger(ledger.uri).append(entry(2, execution_id="other"), head)

    with durable.probing(other_commits_first), pytest.raises(LedgerMoved):
        ledger.append(entry(2, execution_id="late"), head)
    assert [one.execution_id for one in ledger.entries()] == ["run 1", "other"]
    assert ledger.verify_chain() == []


def test_a_new_chain_takes_the_place_of_the_old_one_in_one_commit(tmp_path: Path) -> None:
    ledger = Ledger(str(tmp_path / "ledger"))
    head = ledger.append(entry(2), ledger.append(entry(1), None))
    with pytest.raises(LedgerMoved):
        ledger.append(entry(1), None, afresh=True)
    fresh = ledger.append(entry(1, batch_id="fresh"), head, afresh=True)
    assert ledger.entries() == [fresh]
    assert ledger.verify_chain() == []
    ledger.append(entry(2), fresh)
    assert [one.epoch for one in ledger.entries()] == [1, 2]


@pytest.mark.parametrize("found", [0, FORMAT + 1, None])
def test_a_state_of_another_format_is_refused(tmp_path: Path, found: int | None) -> None:
    ledger = Ledger(str(tmp_path / "state/p/ledger"))
    if found is None:
        write_deltalake(ledger.uri, pa.table({"epoch": [1], "hash": ["h"]}))
    else:
        ledger.append(entry(1, format=found), None)
    shown = "no number" if found is None else f"number {found}"
    expected = f"the format of this state has {shown}, this version of Errata reads number {FORMAT}; move {tmp_path}/state/p away and run with --force"
    for look in (ledger.head, ledger.entries, lambda: ledger.append(entry(1), None), ledger.verify_chain):
        with pytest.raises(StorageError, match=re.escape(expected)):
            look()
