"""Hashes and identities as text."""

from __future__ import annotations

import pytest

from storage.odf.multiformats import ARROW0_SHA3_256, Multihash, dataset_id, from_multibase, sha3_of, to_multibase
from tests.unit.odf.test_blocks import seeded


def test_a_hash_is_a_code_a_length_and_a_digest() -> None:
    text = "f1620e4773ca5765b41781e721cb891182e43a2df35665cd82b378e54b9ea25f4f50f"
    found = Multihash.parse(text)
    assert (found.code, len(found.digest), str(found)) == (0x16, 32, text)
    assert str(Multihash(ARROW0_SHA3_256, bytes(32))).startswith("f9680c00120")  # as in ODF's RFC-017


def test_identities_are_those_of_the_specification() -> None:
    """The seeded identity is that of kamu's `test_dataset_id.rs`; both texts of the other are of one key."""
    assert dataset_id(seeded(b"multihash")) == "did:odf:fed012126262ba49e1ba8392c26f7a39e1ba8d756c7469786d3365200c68402ff65dc"
    assert to_multibase(from_multibase("z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK")) == "fed012e6fcce36701dc791488e0d0b1745cc1e33a4c1c9fcc41c63bd343dbbe0970e6"


@pytest.mark.parametrize("text", ["f68656c6c6f", "F68656C6C6F", "zCn8eVZg", "bnbswy3dp", "BNBSWY3DP", "maGVsbG8", "uaGVsbG8", "UaGVsbG8="])
def test_every_final_base_is_read(text: str) -> None:
    """The multibase specification has these texts of the word `hello`."""
    assert from_multibase(text) == b"hello"


@pytest.mark.parametrize("text", ["", "f1", "fxy", "z0", "q", "?", "m*", "b1"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="base"):
        from_multibase(text)


@pytest.mark.parametrize("base", "fzbBmuU")
def test_a_long_text_is_refused_before_it_is_decoded(base: str) -> None:
    with pytest.raises(ValueError, match="at most 200 characters"):
        from_multibase(base + "2" * 200)


@pytest.mark.parametrize("content", [b"", b"\x16", b"\x16\x20", b"\x16\x21" + bytes(32), b"\xff" * 12])
def test_other_hashes_are_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"number|bytes"):
        Multihash.of(content)


def test_sha3_is_the_hash_of_blocks_and_files() -> None:
    assert str(sha3_of(b"")) == "f1620a7ffc6f8bf1ed76651c14756a061d662f580ff4de43b49fa82d80a4b80f8434a"
