"""Hashes of erased records, which ledgers keep: what they were made of is gone, so they stay as they are."""

from __future__ import annotations

from hashlib import sha256
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest

from changelog.keys.encoding import encode_key
from cxl.types.types import Schema
from errata.erasure.kept_out import hash_of


@pytest.mark.parametrize(("kind", "text"), [("array", "[1.0,-0.0]"), ("map", '{"k":1.0}')])
def test_arrays_and_maps_are_hashed_as_they_are_written(sail: Any, kind: str, text: str) -> None:
    node = cast("Any", SimpleNamespace(operator=SimpleNamespace(output=SimpleNamespace(data=Schema.of({"v": kind})))))
    found = sail.from_arrow(pa.table({"v": [text]})).select(hash_of(node, ["v"], "s").alias("h")).collect()
    key = encode_key([text], ["string"]).hex().upper()
    inner = sha256(f"s{len(key)}:{key}".encode()).hexdigest()
    assert [row["h"] for row in found] == [sha256(f"s{inner}".encode()).hexdigest()]
