"""Values that a search found are known by keyed hashes alone, and found again by these wherever they are."""

from __future__ import annotations

import gzip
import io
import json

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from errata.erasure.remains import Fingerprints, fingerprints
from errata.erasure.search import Search
from errata.erasure.values import Values
from tests.support.examples import examples

KEY = b"k" * 32


def known(values: Values, key: bytes = KEY) -> Fingerprints:
    left = fingerprints(values, key)
    text = json.dumps(left)
    assert not any(value in text for value in values.texts | values.words | values.parts)
    return Fingerprints.of(key, json.loads(text))


def found(prints: Fingerprints, content: bytes, *columns: pl.Series) -> Values:
    return prints.found_in(Search(Values()), content, columns)


@examples(24)
@given(before=st.binary(max_size=40), text=st.text(min_size=4, max_size=20), behind=st.binary(max_size=40))
def test_a_text_is_found_by_its_hash_wherever_it_is(before: bytes, text: str, behind: bytes) -> None:
    values = Values()
    values.add_text(text.encode(errors="ignore").decode() + "xyz!")
    [written] = values.texts | values.parts
    content = before + written.encode() + behind
    assert written in found(known(Values(texts={written})), content).texts
    assert not found(known(Values(texts={written})), before + behind + b"else").texts - {written}
    assert found(known(Values(texts={written}), b"j" * 32), content[:-1] if behind else b"").texts <= {written}


def test_packed_contents_and_cells_are_looked_at() -> None:
    prints = known(Values(texts={"annabella"}, parts={"Anna"}, cells={"amount": {"12.5"}}))
    assert found(prints, gzip.compress(b"x annabella y")).texts == {"annabella"}
    sink = io.BytesIO()
    pq.write_table(pa.table({"amount": [12.50, 3], "name": ["Anna", "Annabelle"]}), sink, compression="zstd")
    assert found(prints, sink.getvalue()) == Values(parts={"Anna"}, cells={"amount": {"12.5"}})
    assert found(prints, b"", pl.Series("other", ["12.5"]), pl.Series("amount", ["12.5"])) == Values(cells={"amount": {"12.5"}})


def test_a_text_at_the_end_of_a_piece_is_found() -> None:
    content = b" " * ((1 << 20) - 4) + b"annabella" + b" " * 100
    assert found(known(Values(texts={"annabella"})), content).texts == {"annabella"}
