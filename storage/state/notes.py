"""Small JSON files of a state, beside its ledger: what runs noted after the commit."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import orjson

from storage import durable
from storage.errors import StorageError
from storage.state.location import State
from storage.stores.client import Bucket, bucket_of
from storage.stores.connections import of_environment

__all__ = ["note", "noted"]


def noted(state: State, name: str) -> dict[str, str]:
    """The texts of a file by their keys; none where there is no file. Raises StorageError."""
    if state.local:
        try:
            found = Path(state.root, name).read_bytes()
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise StorageError(state.root, error.strerror or str(error)) from error
    else:
        bucket, key = _object(state, name)
        small = bucket.small(key)
        found = b"{}" if small is None else small[0]
    return {str(key): str(text) for key, text in orjson.loads(found).items()}


def note(state: State, name: str, texts: Mapping[str, str]) -> None:
    """Write a file anew. One durable step. Raises StorageError."""
    body = orjson.dumps(dict(texts))
    durable.step(f"note:{name}", lambda: _write(state, name, body))


def _write(state: State, name: str, body: bytes) -> None:
    if not state.local:
        bucket, key = _object(state, name)
        bucket.put(key, body)
        return
    target = Path(state.root, name)
    staged = durable.staging_path(target)
    try:
        staged.write_bytes(body)
        durable.replace(staged, target)
    except OSError as error:
        raise StorageError(state.root, error.strerror or str(error)) from error


def _object(state: State, name: str) -> tuple[Bucket, str]:
    return bucket_of(f"{state.root}/{name}", state.connection or of_environment(state.root))
