"""Hashes of the records and the chunks of a file, from their bytes. They tell which chunks changed, and which of their records, so that no others are parsed.

All are XXH3, computed as quickly as memory is read. Polars hashes many records in one call. A chunk takes a call of its own: a walk through a file needs each hash before the next.
They are compared only with hashes of the same salt, which nobody knows who writes the file.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, Final, TypeAlias

from blake3 import blake3
from xxhash import xxh3_64_intdigest

from changelog.lazy_imports import np, pa, pl
from storage.files.errors import Buffer
from storage.files.local import by_places

if TYPE_CHECKING:
    import numpy.typing as npt

    RecordHashes: TypeAlias = npt.NDArray[np.uint64]
    Positions: TypeAlias = npt.NDArray[np.int64]

WIDTH: Final = 8
"""Bytes of a hash."""
MOST: Final = (1 << 31) - 1
"""Bytes of hashes that a column holds."""
_TOGETHER: Final = 32 << 20
"""Bytes of records that are put together and hashed at once, about."""


def new_salt() -> int:
    """Return a salt for the hashes of a file."""
    return secrets.randbits(63)


def seed_of(salt: int, reading: bytes, number: int) -> int:
    """Return the seed of some hashes of a file. Another version of Polars may compute other hashes, so it has other seeds.

    Args:
        salt: The salt of the file.
        reading: What decides how records are read.
        number: Which of the file's hashes it is for.
    """
    facts = b"\0".join((salt.to_bytes(WIDTH, "little"), pl.__version__.encode(), bytes([number]), reading))
    return int.from_bytes(blake3(facts).digest(WIDTH), "little")


def of_chunk(content: memoryview, seed: int) -> int:
    """Return the hash of a chunk's bytes."""
    return xxh3_64_intdigest(content, seed)


def of_run(data: Buffer, bounds: Positions, seed: int) -> RecordHashes:
    """Return the hashes of records that follow each other. `bounds`: where each begins, then where the last one ends."""
    if len(bounds) < 2:
        return np.empty(0, np.uint64)
    first = int(bounds[0])
    return _hashed(memoryview(data)[first : int(bounds[-1])], bounds - first, seed)


def of_runs(data: Buffer, runs: Sequence[Positions], seed: int) -> RecordHashes:
    """Return the hashes of the records of several runs, in their order. `runs`: the bounds of each."""
    found, texts, offsets, size = [np.empty(0, np.uint64)], [b""], [np.zeros(1, np.int64)], 0
    with memoryview(data) as view:
        for bounds in chain.from_iterable(by_places(data, runs)):
            first, last = int(bounds[0]), int(bounds[-1])
            texts.append(bytes(view[first:last]))
            offsets.append(bounds[1:] - first + size)
            size += last - first
            if size >= _TOGETHER:
                found.append(_hashed(b"".join(texts), np.concatenate(offsets), seed))
                texts, offsets, size = [b""], [np.zeros(1, np.int64)], 0
    return np.concatenate([*found, _hashed(b"".join(texts), np.concatenate(offsets), seed)])


def by_chunk(hashes: RecordHashes, counts: Positions) -> pa.Array:
    """Return the hashes of each chunk as bytes, null where they are more than a column holds. `counts`: the numbers of their records."""
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]) * WIDTH
    if ends[-1] > MOST:
        return pa.nulls(len(counts), pa.binary())
    return pa.Array.from_buffers(pa.binary(), len(counts), [None, pa.py_buffer(ends.astype("<i4")), pa.py_buffer(hashes.astype("<u8", copy=False))])


def of_chunks(hashes: pa.Array, counts: Positions) -> RecordHashes | None:
    """Return the hashes of the records of some chunks; None where one of them has none.

    Args:
        hashes: The hashes by chunk, as `by_chunk` gives them.
        counts: The numbers of their records.
    """
    texts = hashes.to_pylist()
    if any(one is None or len(one) != WIDTH * count for one, count in zip(texts, counts.tolist(), strict=True)):
        return None
    return np.frombuffer(b"".join(texts), "<u8")


def paired(old: RecordHashes, new: RecordHashes) -> tuple[Positions, Positions]:
    """Return the places of records with equal hashes, before and now. Of equal records the first is paired with the first, the second with the second."""
    before, now = (pl.DataFrame({"hash": hashes}).with_row_index(at) for at, hashes in (("left", old), ("right", new)))
    if all(side["hash"].n_unique() == side.height for side in (before, now)):  # which takes a tenth of the time of counting
        met = before.join(now, on="hash")
    else:
        met = before.with_columns(_count()).join(now.with_columns(_count()), on=["hash", "count"])
    return met["left"].to_numpy().astype(np.int64), met["right"].to_numpy().astype(np.int64)


def _count() -> pl.Expr:
    """How many records before a record have its hash."""
    return pl.int_range(pl.len()).over("hash").alias("count")


def _hashed(text: bytes | memoryview, offsets: Positions, seed: int) -> RecordHashes:
    buffers = [None, pa.py_buffer(offsets.astype("<i8", copy=False)), pa.py_buffer(text)]
    hashes: RecordHashes = pl.Series(pa.Array.from_buffers(pa.large_binary(), len(offsets) - 1, buffers)).hash(seed).to_numpy()
    return hashes
