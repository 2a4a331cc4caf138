"""Room for values that are nested as deep as files may have them: 1,000 levels."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Final, TypeVar

_FRAMES: Final = 4_000
"""Python frames for such values, several a level."""
_T = TypeVar("_T")


def with_room(work: Callable[[], _T]) -> _T:
    """Return what `work` returns. Raises RecursionError for values that are nested deeper."""
    try:
        return work()
    except RecursionError:
        sys.setrecursionlimit(max(sys.getrecursionlimit(), _FRAMES))
        return work()
