"""Remains of an erased record that a search found, and the way on: the same erasure said again.

Nothing of the values may be kept, so the record of the search has keyed hashes of the values that it found. The second erasure finds these values again by their hashes, wherever they still are,
and takes them out. The values of `--key` are known anyway.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

import orjson

from changelog.lazy_imports import np, pl
from errata.core.options import Erasure
from errata.erasure.record import keyed_hash, last_proofs, root_of
from errata.erasure.search import Search
from errata.erasure.spelling import spelled, spellings
from errata.erasure.values import Values

if TYPE_CHECKING:
    import numpy.typing as npt

LEFT: Final = "left"
"""The member of a record with the hashes of the values that were found."""
SELECTION, CONTINUES = "selection", "continues"
"""Members of a record: the keyed hash of the words that named the records, and the signature of the record that it continues."""
_WEAK: Final = 24
"""Bits of the hash that is computed at each place of a content; what meets it is compared by HMAC."""
_PIECE: Final = 1 << 20


def selection_of(wanted: Erasure, key: bytes) -> str:
    """The keyed hash of the words that name the records: the same command has the same one."""
    return keyed_hash(key, [b"selection", orjson.dumps([dict(wanted.key), wanted.where, wanted.source], option=orjson.OPT_SORT_KEYS)])


@dataclass(frozen=True, slots=True)
class Unfinished:
    """An erasure whose search found values, or that nobody searched for.

    Attributes:
        root: The signature of its first record.
        left: The hashes of what the last search found.
    """

    root: str
    left: Mapping[str, Any]

    @classmethod
    def of(cls, records: Iterable[Mapping[str, Any]], selection: str) -> Unfinished | None:
        """The last erasure with this selection; None where there is none, or where its search found nothing."""
        records = list(records)
        found = next((record for record in reversed(records) if record.get(SELECTION) == selection), None)
        if found is None:
            return None
        root = root_of(found)
        proof = last_proofs(records).get(root)
        if proof is not None and proof.get("searched_values") is not None and not proof.get("found"):
            return None
        return cls(root, {} if proof is None else proof.get(LEFT, {}))


@dataclass(frozen=True, slots=True)
class Fingerprints:
    """Keyed hashes of values.

    Attributes:
        key: The key of erasures.
        texts: By number of bytes the HMACs of texts, by their weak hash.
        cells: By column the HMACs of whole cells; of values of any column under an empty name.
    """

    key: bytes
    texts: Mapping[int, Mapping[int, frozenset[str]]]
    cells: Mapping[str, frozenset[str]]

    @classmethod
    def of(cls, key: bytes, left: Mapping[str, Any]) -> Fingerprints:
        """The hashes that a record has."""
        texts: dict[int, dict[int, frozenset[str]]] = {}
        for length, weak, strong in left.get("texts", ()):
            known = texts.setdefault(int(length), {})
            known[int(weak)] = known.get(int(weak), frozenset()) | {str(strong)}
        return cls(key, texts, {name: frozenset(hashes) for name, hashes in left.get("cells", {}).items()})

    def found_in(self, search: Search, content: bytes, columns: Iterable[pl.Series]) -> Values:
        """The values with these hashes that are in a content, its cells, or what it is the packed form of."""
        found = Values()
        for part in search.parts_of(content) if self.texts else ():
            for text in self._texts(part):
                found.add_text(text)
        for column in (*columns, *search.columns_of(content)) if self.cells else ():
            self._add_cells(found, column)
        return found

    def _texts(self, content: bytes) -> Iterator[str]:
        longest = max(self.texts)
        strong = {length: frozenset().union(*known.values()) for length, known in self.texts.items()}
        for start in range(0, max(len(content), 1), _PIECE):
            piece = content[start : start + _PIECE + longest - 1]
            weak = _Weak.of(self.key, piece)
            for length, known in self.texts.items():
                for at in np.flatnonzero(np.isin(weak.hashes(length), np.array(list(known), np.uint64))).tolist():
                    if _strong(self.key, one := piece[at : at + length]) in strong[length]:
                        yield one.decode(errors="ignore")

    def _add_cells(self, found: Values, column: pl.Series) -> None:
        hashes = self.cells.get(column.name, frozenset()) | self.cells.get("", frozenset())
        if not hashes or column.dtype == pl.Binary:
            return
        for cell in spelled(column).drop_nulls().unique():
            if (strong := _strong(self.key, cell.encode())) in hashes:
                if strong in self.cells.get("", ()):
                    found.parts.add(cell)
                else:
                    found.cells.setdefault(column.name, set()).add(cell)


def fingerprints(values: Values, key: bytes) -> dict[str, Any]:
    """The hashes of values, as a record has them."""
    written = sorted({spelling.encode() for text in values.texts | values.words for spelling in spellings(text)})
    cells = {name: sorted(_strong(key, cell.encode()) for cell in found) for name, found in values.cells.items()}
    parts = {"": sorted(_strong(key, text.encode()) for text in values.parts)} if values.parts else {}
    return {"texts": [[len(text), int(_Weak.of(key, text).hashes(len(text))[0]), _strong(key, text)] for text in written if text], "cells": cells | parts}


def _strong(key: bytes, text: bytes) -> str:
    return hmac.new(key, b"value" + text, sha256).hexdigest()


@dataclass(frozen=True, slots=True)
class _Weak:
    """Hashes at the places of a content, of bytes of any number: a polynomial modulo 2^64, whose base only the key tells.

    Args:
        sums: the polynomial up to each place
        inverse: the power of the inverse base at each place
    """

    sums: npt.NDArray[np.uint64]
    inverse: npt.NDArray[np.uint64]

    @classmethod
    def of(cls, key: bytes, content: bytes) -> _Weak:
        """The sums that the hashes of all lengths share."""
        base = int.from_bytes(sha256(key + b"base").digest()[:8], "big") | 1
        terms = np.frombuffer(content, np.uint8).astype(np.uint64) * _powers(base, len(content))
        return cls(np.concatenate([np.zeros(1, np.uint64), np.cumsum(terms, dtype=np.uint64)]), _powers(pow(base, -1, 1 << 64), len(content)))

    def hashes(self, length: int) -> npt.NDArray[np.uint64]:
        """Return the hash of the next `length` bytes at each place that has as many."""
        if length >= len(self.sums):
            return np.empty(0, np.uint64)
        found: npt.NDArray[np.uint64] = (self.sums[length:] - self.sums[:-length]) * self.inverse[: len(self.sums) - length]
        return found >> np.uint64(64 - _WEAK)


def _powers(base: int, count: int) -> npt.NDArray[np.uint64]:
    factors = np.full(count, base, np.uint64)
    factors[:1] = 1
    return np.cumprod(factors, dtype=np.uint64)
