"""Which keys of a `distinct` have another first record after a delta, on the driver.

As long as the first record of a key stays, only records ahead of it take its place, and these are in the delta. Where it goes, the next one may be
any live record of the key. A record that reaches no `distinct` has a key of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from changelog import arrow_algebra
from changelog.lazy_imports import pl
from operators.core.operator import SHARED

if TYPE_CHECKING:
    import pyarrow as pa

KEYED, UNKEYED = b"\x01", b"\x00"
"""The first byte of the lookup key of a record that reaches a `distinct`, and of others."""


@dataclass(frozen=True, slots=True)
class FirstRecords:
    """The records that decide the rows of the keys that a delta changes.

    Attributes:
        came: Records of these keys that came.
        left: Keys that their first record left: `_lookup` and `SHARED`. All their live records are needed.
        prior: The prior rows of these keys.
    """

    came: pa.Table
    left: pa.Table
    prior: pa.Table

    @classmethod
    def of(cls, changes: pa.Table, prior: pa.Table) -> Self:
        """Decide by the op rows of a delta and the prior rows of their keys.

        Args:
            changes: The op rows with `_lookup` and `SHARED`.
            prior: The prior rows, one for each key that had a record, maybe its reject.
        """
        came = pl.Series(arrow_algebra.weights(changes) > 0)
        moved = pl.DataFrame({"key": changes.column("_key"), "lookup": changes.column("_lookup"), "came": came})
        stood = pl.DataFrame({"first": prior.column("_key"), "refused": prior.column("_error").is_valid(), "lookup": prior.column("_lookup")})
        size = pl.col("first").bin.size() - pl.col("refused").cast(pl.UInt32)  # a reject's key has a byte more than its record's
        met = moved.join(stood.select("lookup", first=pl.col("first").bin.slice(0, size)), "lookup", "left")
        own = pl.col("key") == pl.col("first")
        keys = met.group_by("lookup").agg(
            pl.col("first").first(), went=(own & ~pl.col("came")).any(), back=(own & pl.col("came")).any(),
            ahead=((pl.col("key") <= pl.col("first")) & pl.col("came")).any(),
        )  # fmt: skip
        new, gone = pl.col("first").is_null(), pl.col("went") & ~pl.col("back")
        left = keys.filter(gone & pl.col("lookup").bin.starts_with(KEYED))["lookup"]
        changed = keys.filter(new | pl.col("went") | pl.col("ahead"))["lookup"]
        mine = moved["lookup"].is_in(changed.implode())
        return cls(
            changes.filter((mine & came).to_arrow()),
            changes.filter(moved["lookup"].is_in(left.implode()).to_arrow()).select(["_lookup", SHARED]).group_by(["_lookup", SHARED]).aggregate([]),
            prior.filter(stood["lookup"].is_in(changed.implode()).to_arrow()),
        )
