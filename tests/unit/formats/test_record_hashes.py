"""Hashes of the records of a file."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.formats import record_hashes
from tests.support.examples import examples

records = st.lists(st.sampled_from([b"1,a\n", b"2,a\n", b"2,b\n", b'3,"x\ny"\n', b"\n"]), max_size=12)


def bounds(texts: list[bytes], start: int = 0) -> np.ndarray:
    """Where some records begin, and the last one ends."""
    return start + np.cumsum([0, *map(len, texts)], dtype=np.int64)


@examples(200, 25)
@given(records, records)
def test_equal_records_are_paired_in_their_order(old: list[bytes], new: list[bytes]) -> None:
    was, now = (record_hashes.of_run(b"".join(texts), bounds(texts), 5) for texts in (old, new))
    left, right = record_hashes.paired(was, now)
    assert [old[at] for at in left] == [new[at] for at in right]
    assert Counter(old[at] for at in left) == Counter(old) & Counter(new)
    for text in set(old) & set(new):
        mine = sorted((at, to) for at, to in zip(left.tolist(), right.tolist(), strict=True) if old[at] == text)
        assert mine == [*zip(*([at for at, one in enumerate(texts) if one == text] for texts in (old, new)), strict=False)]


@examples(100, 15)
@given(st.lists(records.filter(bool), min_size=1, max_size=5), st.integers(1, 30))
def test_runs_together_have_the_hashes_of_each(runs: list[list[bytes]], together: int) -> None:
    """However many bytes are put together."""
    data, places = b"#" + b"".join(text for run in runs for text in run), []
    at = 1
    for run in runs:
        places.append(bounds(run, at))
        at = int(places[-1][-1])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(record_hashes, "_TOGETHER", together)
        found = record_hashes.of_runs(data, places, 5)
    assert found.tolist() == [one for place in places for one in record_hashes.of_run(data, place, 5).tolist()]


def test_chunks_give_back_their_hashes() -> None:
    hashes = np.arange(6, dtype=np.uint64)
    column = record_hashes.by_chunk(hashes, np.array([2, 1, 3]))
    chosen = record_hashes.of_chunks(column.take(pa.array([0, 2])), np.array([2, 3]))
    assert chosen is not None
    assert chosen.tolist() == [0, 1, 3, 4, 5]


@pytest.mark.parametrize("column", [pa.array([b"12345678", None]), pa.array([b"12345678", b"short"])], ids=["a chunk without", "of other records"])
def test_chunks_without_hashes_have_none(column: pa.Array) -> None:
    assert record_hashes.of_chunks(column, np.array([1, 1])) is None


def test_more_hashes_than_a_column_holds_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_hashes, "MOST", 15)
    assert record_hashes.by_chunk(np.arange(2, dtype=np.uint64), np.array([1, 1])).null_count == 2


def test_salt_header_number_and_version_decide_the_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hashes of another version of Polars never count as hashes of this one."""
    known = record_hashes.seed_of(1, b"id,v", 0)
    assert len({known, record_hashes.seed_of(2, b"id,v", 0), record_hashes.seed_of(1, b"v,id", 0), record_hashes.seed_of(1, b"id,v", 1)}) == 4
    monkeypatch.setattr(record_hashes, "pl", SimpleNamespace(__version__="0.0.1"))
    assert record_hashes.seed_of(1, b"id,v", 0) != known
