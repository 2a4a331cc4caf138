"""Objects of others at the places of a pipeline's new objects, noted in its state: the ledger named the places before the store refused to write there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import orjson

from storage import durable
from storage.errors import StorageError
from storage.state.location import State
from storage.stores.client import Bucket, bucket_of
from storage.stores.connections import of_environment

__all__ = ["note_occupied", "occupied"]

NAME = "occupied"


def occupied(state: State) -> Mapping[str, str]:
    """The identity (`Facts.identity`) of each object that was in the way, by its URI. One that has another identity now is not meant. Raises StorageError."""
    if state.local:
        try:
            found = Path(state.root, NAME).read_bytes()
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise StorageError(state.root, error.strerror or str(error)) from error
    else:
        bucket, key = _object(state)
        small = bucket.small(key)
        found = b"{}" if small is None else small[0]
    return {str(uri): str(identity) for uri, identity in orjson.loads(found).items()}


def note_occupied(state: State, found: Mapping[str, str]) -> None:
    """Note objects that are in the way, beside what was noted before. One durable step. Raises StorageError."""
    body = orjson.dumps({**occupied(state), **found})
    durable.step("note:occupied", lambda: _write(state, body))


def _write(state: State, body: bytes) -> None:
    if not state.local:
        bucket, key = _object(state)
        bucket.put(key, body)
        return
    target = Path(state.root, NAME)
    staged = durable.staging_path(target)
    try:
        staged.write_bytes(body)
        durable.replace(staged, target)
    except OSError as error:
        raise StorageError(state.root, error.strerror or str(error)) from error


def _object(state: State) -> tuple[Bucket, str]:
    return bucket_of(f"{state.root}/{NAME}", state.connection or of_environment(state.root))
