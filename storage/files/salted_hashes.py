"""Salted hashes of the contents of files: whether a file has the content that it had.

They are XXH3 of 128 bits, computed as quickly as a file is read. Two contents never have the same hash by chance. XXH3 does not protect against somebody who
writes both versions of a file: two contents can be made that have the same hash under one random salt in a hundred.
"""

from __future__ import annotations

import secrets
from typing import Final

from blake3 import blake3
from xxhash import xxh3_128

from storage.files.stores import store_of
from storage.stores.places import Place

_SALT: Final = 16
"""Hexadecimal digits of a salt."""
_DIGITS: Final = _SALT + 32
_BLAKE3: Final = 64
"""Digits of the hashes in states of before."""
_AT_ONCE: Final = 1 << 20
"""Bytes that are read at once."""


def salted_hash(path: Place, like: str = "", length: int | None = None) -> str:
    """Return the salt and the hash of a file's bytes, 48 hexadecimal digits.

    Args:
        path: The file.
        like: A hash to compare with. It gives the salt, or, with 64 digits, BLAKE3 as the kind of hash. Any other text gives a new salt.
        length: How many bytes from the beginning count. None: all.

    Raises:
        OSError: The file cannot be read. Its `filename` is set.
        StorageError: A store fails.
    """
    salt = like[:_SALT] if len(like) == _DIGITS else "" if len(like) == _BLAKE3 else secrets.token_hex(_SALT // 2)
    hasher, store, left = xxh3_128(seed=int(salt, 16)) if salt else blake3(), store_of(path), length
    try:
        buffer = memoryview(bytearray(max(min(store.size(path), _AT_ONCE), 1)))
        with store.open(path) as file:
            while count := file.readinto(buffer if left is None else buffer[:left]):  # type: ignore[attr-defined]  # files of bytes have it
                hasher.update(buffer[:count])
                left = None if left is None else left - count
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error
    return salt + hasher.hexdigest()
