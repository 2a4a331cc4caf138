"""Hashes, identities and their texts, as the multiformats specifications have them: a code, a length, the bytes."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["ARROW0_SHA3_256", "ED25519_PUBLIC", "METADATA_BLOCK", "SHA3_256", "Multihash", "dataset_id", "from_multibase", "sha3_of", "sha3_of_file", "to_multibase"]

SHA3_256: Final = 0x16
ARROW0_SHA3_256: Final = 0x300016
"""The logical hash of rows (ODF's RFC-002)."""
METADATA_BLOCK: Final = 0x400000
ED25519_PUBLIC: Final = 0xED
_LONGEST_TEXT: Final = 200
"""Characters of a text; hashes and identities have fewer. Base 58 takes time with the square of them."""
_BASE58: Final = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


@dataclass(frozen=True, slots=True)
class Multihash:
    """A digest and the code of its algorithm."""

    code: int
    digest: bytes

    @property
    def content(self) -> bytes:
        """The bytes in blocks."""
        return varint(self.code) + varint(len(self.digest)) + self.digest

    def __str__(self) -> str:
        return to_multibase(self.content)

    @classmethod
    def of(cls, content: bytes) -> Multihash:
        """Read the bytes of a block. Raises ValueError."""
        code, rest = take_varint(content)
        length, digest = take_varint(rest)
        if length != len(digest):
            raise ValueError(f"a hash says that it has {length} bytes, and has {len(digest)}")
        return cls(code, digest)

    @classmethod
    def parse(cls, text: str) -> Multihash:
        """Read the text of a reference or of a file's name. Raises ValueError."""
        return cls.of(from_multibase(text))


def sha3_of(content: bytes) -> Multihash:
    """The hash of a block or of a file."""
    return Multihash(SHA3_256, hashlib.sha3_256(content).digest())


def sha3_of_file(path: Path) -> Multihash:
    """The hash of a file that may be large."""
    with path.open("rb") as file:
        return Multihash(SHA3_256, hashlib.file_digest(file, hashlib.sha3_256).digest())


def dataset_id(content: bytes) -> str:
    """The `did:odf:…` of an identity's bytes."""
    return f"did:odf:{to_multibase(content)}"


def varint(number: int) -> bytes:
    """A number in the groups of seven bits that multiformats have."""
    made = bytearray()
    while number > 0x7F:
        made.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*made, number])


def take_varint(content: bytes) -> tuple[int, bytes]:
    """The number at the begin, and what follows it. Raises ValueError."""
    number = 0
    for at, byte in enumerate(content[:9]):
        number |= (byte & 0x7F) << 7 * at
        if byte < 0x80:
            return number, content[at + 1 :]
    raise ValueError("a number has no end")


def to_multibase(content: bytes) -> str:
    """Bytes as text, in the base that ODF recommends: hexadecimal digits behind an `f`."""
    return f"f{content.hex()}"


def from_multibase(text: str) -> bytes:
    """The bytes of a text in one of the bases that the specification calls final. Raises ValueError."""
    if len(text) > _LONGEST_TEXT:
        raise ValueError(f"a multibase text has at most {_LONGEST_TEXT} characters, and '{text[:20]}…' has {len(text):,}")
    read = _BASES.get(text[:1])
    if read is None:
        raise ValueError(f"'{text[:80]}' is in no base that is known")
    try:
        return read(text[1:])
    except (binascii.Error, ValueError) as wrong:
        raise ValueError(f"'{text[:80]}' is no multibase text: {wrong}") from None


def _from_base58(text: str) -> bytes:
    number = 0
    for sign in text:
        at = _BASE58.find(sign)
        if at < 0:
            raise ValueError(f"'{sign}' is no digit of base58")
        number = number * 58 + at
    zeros = len(text) - len(text.lstrip("1"))
    return bytes(zeros) + number.to_bytes((number.bit_length() + 7) // 8, "big")


def _padded(decode: Callable[[str], bytes], to: int) -> Callable[[str], bytes]:
    return lambda text: decode(text + "=" * (-len(text) % to))


_BASES: Final[Mapping[str, Callable[[str], bytes]]] = {
    "f": bytes.fromhex, "F": bytes.fromhex, "z": _from_base58,
    "b": _padded(lambda text: base64.b32decode(text.upper()), 8), "B": _padded(base64.b32decode, 8),
    "m": _padded(lambda text: base64.b64decode(text, validate=True), 4), "u": _padded(base64.urlsafe_b64decode, 4), "U": base64.urlsafe_b64decode,
}  # fmt: skip
