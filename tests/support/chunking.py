"""Small files that are read as large ones are: in chunks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from operators.source import reading
from operators.source.diff import chunk_index as listed
from storage.formats import content_chunks


@contextmanager
def small_chunks() -> Iterator[None]:
    """Every file is a large one and has many chunks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "SMALL_BYTES", 40)
        patch.setattr(content_chunks, "RECORDS", 3)
        patch.setattr(content_chunks, "_BEGIN", 16)
        patch.setattr(listed, "FEW_RANGES", 1)
        patch.setattr(listed, "MOST_CHANGED", 1)
        yield
