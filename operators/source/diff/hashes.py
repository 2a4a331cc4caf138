"""Records compared by 64-bit hashes on the driver, and what was found there brought back to the engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from changelog.equality import parts
from changelog.frames import of_keys
from changelog.lazy_imports import F, pa

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from storage.engines import Engine

FEW_KEYS: Final = 100_000
"""So many keys are sent to every task instead of being shuffled."""


def image_hash(frame: DataFrame, names: Sequence[str]) -> Column:
    """A hash of columns that is the same exactly where they print the same."""
    return F.xxhash64(*(side for part in parts(frame, names) for side in (part, part.isNull())))


def joined(frame: DataFrame, keys: pa.Table, engine: Engine, how: str, on: str = "_key") -> DataFrame:
    """A frame joined with keys that the driver has: sent to every task while they are few."""
    other = engine.from_arrow(keys)
    few = F.broadcast(other) if keys.num_rows <= FEW_KEYS else other
    return of_keys(frame, few, on) if how == "left_semi" else frame.join(few, on, how)
