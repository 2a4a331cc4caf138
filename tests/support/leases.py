"""Claims as leases of an object store that lies in memory, for tests that need no server."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from typing import Any

from obstore.store import MemoryStore

from storage.stores.client import Bucket, Facts
from storage.stores.connections import StoreConnection

NOWHERE = StoreConnection("nowhere", "s3://nowhere")


@dataclass(frozen=True, slots=True)
class BucketInMemory(Bucket):
    """A bucket in memory. `shift` is added to its clock; objects keep the time at which they were written."""

    memory: MemoryStore = field(default_factory=MemoryStore, compare=False)
    shift: list[float] = field(default_factory=lambda: [0.0], compare=False)
    written: dict[str, float] = field(default_factory=dict, compare=False)
    lock: threading.RLock = field(default_factory=threading.RLock, compare=False)  # so that nobody reads an object before the clock that it was written by

    @classmethod
    def new(cls) -> BucketInMemory:
        """An empty bucket."""
        return cls("s3://nowhere", NOWHERE)

    def put(self, key: str, body: bytes, *, absent: bool = False, over: str = "") -> str:
        """Write an object."""
        with self.lock:
            made = Bucket.put(self, key, body, absent=absent, over=over)
            self.written[key] = self.shift[0]
            return made

    def facts(self, key: str) -> Facts | None:
        """The known facts of an object."""
        with self.lock:
            found = Bucket.facts(self, key)
            return None if found is None else self._shifted(found)

    def small(self, key: str, most: int | None = None) -> tuple[bytes, Facts] | None:
        """The content of an object."""
        with self.lock:
            found = Bucket.small(self, key, most)
            return None if found is None else (found[0], self._shifted(found[1]))

    def _shifted(self, facts: Facts) -> Facts:
        return replace(facts, modified=facts.modified + self.written.get(facts.key, 0.0))

    def _client(self, *, fresh: bool) -> Any:
        return self.memory


def small(bucket: Bucket, key: str) -> tuple[bytes, Facts]:
    """The content of an object that is there."""
    found = bucket.small(key)
    assert found is not None
    return found
