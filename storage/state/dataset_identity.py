"""The identities under which nodes are exported as datasets: a key pair each, in the state folder, whose public key is the identity.

Beside a key pair lies what the last export knew of the chain of its dataset.
"""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path

from storage.errors import StorageError
from storage.files.stores import store_of
from storage.folder_lock import alone
from storage.odf.chain import Chain
from storage.odf.kept_chain import kept, kept_text
from storage.odf.multiformats import ED25519_PUBLIC, dataset_id, varint
from storage.state.location import State
from storage.stores.connections import of_environment
from storage.stores.folders import folder_at
from storage.stores.places import ObjectPath, Place

__all__ = ["exported_nodes", "identity_of", "keep_chain", "kept_chain"]


def identity_of(state: State, node: str) -> bytes:
    """The identity of a node's dataset as blocks have it, made on first use. Raises StorageError, and ImportError without the library cryptography."""
    place = _place(state, node)
    try:
        if store_of(place).stamp(place) is None:
            _make(place)  # of two at once the second finds what the first made
        return varint(ED25519_PUBLIC) + bytes.fromhex(json.loads(bytes(store_of(place).content(place)))["public_key"])
    except OSError as problem:
        raise StorageError(str(place), problem.strerror or str(problem)) from problem
    except (ValueError, KeyError) as damage:
        raise StorageError(str(place), "it is no identity of a dataset; put it back from a copy") from damage


def exported_nodes(state: State) -> dict[str, str]:
    """The nodes that were exported as datasets, each with the identity as text; of a file that is damaged an empty one. Raises StorageError."""
    folder = folder_at(_folder(state), state.connection)
    return {name.removesuffix(".json"): _identity_in(folder.read(name)) for name in folder.names() if name.endswith(".json")}


def _identity_in(content: bytes) -> str:
    try:
        return str(json.loads(content)["dataset_id"])
    except (ValueError, KeyError, TypeError):
        return ""


def _folder(state: State) -> str:
    return f"{state.root}/identities"


def _place(state: State, node: str) -> Place:
    path = f"{_folder(state)}/{node}.json"
    return Path(path) if state.local else ObjectPath(path, state.connection or of_environment(path))


def kept_chain(state: State, node: str) -> Chain | None:
    """The chain of the dataset that the last export of a node kept; None where there is none of use."""
    try:
        return kept(folder_at(_folder(state), state.connection).read(f"{node}.chain"))
    except StorageError:
        return None


def keep_chain(state: State, node: str, chain: Chain) -> None:
    """Keep the chain of a node's dataset, so that the next export reads newer blocks only. Raises StorageError."""
    folder_at(_folder(state), state.connection).create(f"{node}.chain", kept_text(chain).encode())


def _make(place: Place) -> None:
    """Make a key pair, if there is none. Only the owner of a local state can read it."""
    if not isinstance(place, Path):
        _write(place)
        return
    place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with alone(place.parent):
        if not place.exists():
            _write(place)


def _write(place: Place) -> None:
    key = import_module("cryptography.hazmat.primitives.asymmetric.ed25519").Ed25519PrivateKey.generate()
    public = key.public_key().public_bytes_raw()
    identity = {"dataset_id": dataset_id(varint(ED25519_PUBLIC) + public), "public_key": public.hex(), "private_key": key.private_bytes_raw().hex()}
    store = store_of(place)
    staged = store.staging(place)
    staged.touch(mode=0o600)
    staged.write_text(f"{json.dumps(identity, indent=2)}\n")
    store.publish(staged, place, first=True)
