"""Salted hashes of files."""

from __future__ import annotations

import pytest
from blake3 import blake3
from xxhash import xxh3_128

from storage.files.salted_hashes import salted_hash

LONG = bytes(range(256)) * 8192  # twice what is read at once
SALT = "00000000000000ff"


@pytest.mark.parametrize("content", [b"", b"a,b\n", LONG, LONG + b"x"], ids=len)
def test_hash_is_that_of_the_content_under_its_salt(tmp_path, content):
    path = tmp_path / "a.csv"
    path.write_bytes(content)
    assert salted_hash(path, SALT + "0" * 32) == SALT + xxh3_128(content, seed=255).hexdigest()


@pytest.mark.parametrize("length", [0, 1, 1 << 20, (1 << 20) + 1, len(LONG)])
def test_hash_of_the_beginning(tmp_path, length):
    path = tmp_path / "a.csv"
    path.write_bytes(LONG + b"x")
    assert salted_hash(path, SALT + "0" * 32, length) == SALT + xxh3_128(LONG[:length], seed=255).hexdigest()


def test_salts_differ_unless_a_hash_is_given(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"a,b\n")
    first, second = salted_hash(path), salted_hash(path)
    assert first != second
    assert salted_hash(path, first) == first


@pytest.mark.parametrize("length", [None, 0, 3, (1 << 20) + 1])
def test_a_hash_of_before_is_compared_with_one_of_its_kind(tmp_path, length):
    path = tmp_path / "a.csv"
    path.write_bytes(LONG)
    assert salted_hash(path, "ab" * 32, length) == blake3(LONG[:length]).hexdigest()


def test_an_error_names_the_file(tmp_path):
    with pytest.raises(OSError, match="Is a directory") as raised:
        salted_hash(tmp_path)
    assert raised.value.filename == str(tmp_path)
