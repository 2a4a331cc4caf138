"""Salted hashes of the contents of files: whether a file has the content that it had.

They are XXH3 of 128 bits, computed as quickly as a file is read. Nobody who writes a file knows the salt, so nobody can write another content of the same hash.
"""

from __future__ import annotations

import secrets
from typing import Final

from xxhash import xxh3_128

from storage.files.stores import store_of
from storage.stores.places import Place

_SALT: Final = 16
"""Hexadecimal digits of a salt."""
_DIGITS: Final = _SALT + 32
_AT_ONCE: Final = 1 << 20
"""Bytes that are read at once."""


def salted_hash(path: Place, like: str = "", length: int | None = None) -> str:
    """Return the salt and the hash of a file's bytes, 48 hexadecimal digits.

    Args:
        path: The file.
        like: A hash with the salt to use. One of another form equals no hash.
        length: How many bytes from the beginning count. None: all.

    Raises:
        OSError: The file cannot be read. Its `filename` is set.
        StorageError: A store fails.
    """
    salt = int(like[:_SALT], 16) if len(like) == _DIGITS else secrets.randbits(4 * _SALT)
    hasher, buffer, left = xxh3_128(seed=salt), memoryview(bytearray(_AT_ONCE)), length
    try:
        with store_of(path).open(path) as file:
            while count := file.readinto(buffer if left is None else buffer[:left]):  # type: ignore[attr-defined]  # files of bytes have it
                hasher.update(buffer[:count])
                left = None if left is None else left - count
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error
    return f"{salt:0{_SALT}x}{hasher.hexdigest()}"
