"""Small files that are read as large ones are: in stretches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from operators.ingest import reading
from operators.ingest import stretches as listed
from storage.formats import stretches


@contextmanager
def short_stretches() -> Iterator[None]:
    """Every file is a large one and has many stretches."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "SMALL_BYTES", 40)
        patch.setattr(stretches, "RECORDS", 3)
        patch.setattr(stretches, "LEAST", 1)
        patch.setattr(listed, "FEW_RANGES", 1)
        patch.setattr(listed, "MOST_CHANGED", 1)
        yield
