"""The record of an erasure: what kind of rows left, how many, when, by whom and why. It has no erased value, and is signed.

What has to be compared with values later is a hash of them with a key (HMAC), so that nobody can guess values by trying them without the key. The key
is made with the first erasure. It is a file of the state, or what `ERRATA_ERASURE_KEY` says. From then on every run needs this key: with another one
no hash would match, and erased records would come back.
"""

from __future__ import annotations

import hmac
import os
import secrets
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any, Final

import orjson

from storage import durable
from storage.errors import StorageError
from storage.state.entry import Entry
from storage.state.ledger import Ledger
from storage.state.location import State
from storage.stores.folders import folder_at

KEY_FILE: Final = "erasure.key"
KEY_VARIABLE: Final = "ERRATA_ERASURE_KEY"
RECORD, ERASED, PENDING, KEPT_OUT, PROOF = "erasure", "erased", "erasing", "kept_out", "proof"
"""Members of the ledger's counters."""
EARLIER: Final = "erasures"
"""The counter with the records of a ledger that a refresh replaced."""
SIGNATURE, FOLLOWS = "signature", "follows"
"""Members of a record: its signature, and the hash of the last of the entries before, as they were written anew."""
ERASURES: Final = (ERASED, PENDING, KEPT_OUT)
"""Counters of erasures that entries take over, also where a state is computed anew."""


def known_key(state: State) -> bytes | None:
    """The key of a state's erasures; None where none was made, or where it is kept elsewhere."""
    given = os.environ.get(KEY_VARIABLE)
    if given:
        return sha256(given.encode()).digest()
    folder = folder_at(state.root, state.connection)
    return bytes.fromhex(folder.read(KEY_FILE).decode()) if KEY_FILE in folder.names(KEY_FILE) else None


def made_key(state: State) -> bytes:
    """The key of a state's erasures, made where there is none and nothing was signed yet. One durable step then. Raises StorageError."""
    known = known_key(state)
    if known is None:
        require_key(state, Ledger(state.ledger).entries())
        folder, text = folder_at(state.root, state.connection), secrets.token_hex(32)
        durable.step("key:erasures", lambda: folder.create(KEY_FILE, text.encode()))
        known = bytes.fromhex(text)
    return known


def require_key(state: State, entries: Iterable[Entry]) -> None:
    """Raise StorageError where a ledger has erasures and their key is missing, or another one."""
    fault = key_fault(state, entries)
    if fault:
        raise StorageError(str(state.root), fault)


def key_fault(state: State, entries: Iterable[Entry]) -> str:
    """The fault of the key that a ledger's erasures need; empty where it is right, or where there are none."""
    entries = list(entries)
    records = records_of(entries).get(EARLIER, ())
    if not records and not any(entry.counters.get(KEPT_OUT) for entry in entries):
        return ""
    try:
        key = known_key(state)
    except (StorageError, ValueError) as problem:
        return f"the key of erasures cannot be read: {problem}"
    if key is None:
        return f"the key of erasures is missing: set {KEY_VARIABLE} as at the first erasure, or put {KEY_FILE} back"
    if records and not any(_is_signed(record, key) for record in records):
        return f"the key of erasures is another one, or no record is what was signed: set {KEY_VARIABLE} as at the first erasure; if it was not set then, unset it and keep {KEY_FILE} as it was"
    return ""


def keyed_hash(key: bytes, parts: Iterable[bytes]) -> str:
    """The HMAC-SHA256 of some bytes, each part with its length, in hexadecimal."""
    digest = hmac.new(key, digestmod=sha256)
    for part in parts:
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()


def signed(record: Mapping[str, Any], key: bytes) -> dict[str, Any]:
    """The record with its signature."""
    return {**record, SIGNATURE: _signature(record, key)}


def _signature(record: Mapping[str, Any], key: bytes) -> str:
    content = {name: value for name, value in record.items() if name != SIGNATURE}
    return keyed_hash(key, [b"record", orjson.dumps(content, option=orjson.OPT_SORT_KEYS)])


def _is_signed(record: Mapping[str, Any], key: bytes) -> bool:
    return hmac.compare_digest(str(record.get(SIGNATURE, "")), _signature(record, key))


def records_of(entries: Iterable[Entry]) -> dict[str, Any]:
    """The counter with all records of erasures in a ledger, for the entry of a refresh that begins a new one; nothing where there are none."""
    found = [record for entry in entries for record in (*entry.counters.get(EARLIER, ()), *(entry.counters[name] for name in (RECORD, PROOF) if name in entry.counters))]
    return {EARLIER: found} if found else {}


def record_faults(state: State, entries: Iterable[Entry]) -> Iterable[tuple[int, str]]:
    """Epochs whose record of an erasure is not what was signed, or was not completed, and what is wrong."""
    entries = list(entries)
    records = [(entry.epoch, record) for entry in entries for record in records_of([entry]).get(EARLIER, ())]
    if not records:
        return
    fault = key_fault(state, entries)
    key = None if fault else known_key(state)
    if key is None:
        yield records[-1][0], fault
        return
    for epoch, record in records:
        if not _is_signed(record, key):
            yield epoch, "the record of the erasure is not what was signed"
    last = next((entry for entry in reversed(entries) if RECORD in entry.counters), None)
    if last is not None and last.previous != last.counters[RECORD].get(FOLLOWS):
        yield last.epoch, "the entries before the erasure are not the ones that its record was signed for"
    if entries[-1].counters.get(PENDING):
        yield entries[-1].epoch, "an erasure has not ended: the next run removes what older versions of tables hold"
    yield from _values_left(records)


def _values_left(records: Sequence[tuple[int, Mapping[str, Any]]]) -> Iterable[tuple[int, str]]:
    """Epochs whose search found values, where no later search for the same erasure found none."""
    epochs = {id(record): epoch for epoch, record in records}
    for proof in last_proofs(record for _, record in records).values():
        if proof.get("found"):
            yield epochs[id(proof)], f"values of the erasure are still in {proof['found']} files: remove what the record names, and erase the same again"


def root_of(record: Mapping[str, Any]) -> str:
    """The signature of the first record of an erasure that was said several times."""
    return str(record.get("continues") or record.get(SIGNATURE))


def last_proofs(records: Iterable[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """The result of the last search for each erasure, by the signature of its first record. A search follows the record that it is for."""
    found: dict[str, Mapping[str, Any]] = {}
    root: str | None = None
    for record in records:
        if "was" in record:
            root = root_of(record)
        elif root is not None:
            found[root] = record
    return found
