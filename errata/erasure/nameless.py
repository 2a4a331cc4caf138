"""Nameless rows: what stays of erased records where totals are kept. A source's row with a random key and some of the columns, that no file has.

The ledger carries their keys, so that deliveries are compared with the other rows alone and a return to an earlier epoch leaves them.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from changelog.keys.encoding import KeyValue, encode_key
from changelog.keys.positions import row_label
from changelog.lazy_imports import pa
from changelog.ops import Op
from changelog.rows import Rows
from errata.plan.plan import Node
from operators.core.row_type import CK
from storage.state.entry import NAMELESS, Entry

_NO_FILE: Final = (1 << 48) - 1
"""The label of no file."""
_RANDOM: Final[Mapping[str, Callable[[], KeyValue]]] = {
    "int": lambda: -secrets.randbits(62), "float": lambda: -float(secrets.randbits(62)), "decimal": lambda: Decimal(-secrets.randbits(62)),
    "bool": lambda: None, "date": lambda: date.fromordinal(1 + secrets.randbelow(3_000_000)),
    "date_time": lambda: datetime(1, 1, 2) + timedelta(seconds=secrets.randbits(37)),
    "string": lambda: f"erased-{secrets.token_hex(16)}",
}  # fmt: skip


def nameless_keys(head: Entry | None, source: str) -> frozenset[bytes]:
    """The keys of a source's nameless rows."""
    keys: Mapping[str, Sequence[str]] = {} if head is None else head.counters.get(NAMELESS, {})
    return frozenset(map(bytes.fromhex, keys.get(source, ())))


def without_nameless(rows: Rows, keys: Collection[bytes]) -> Rows:
    """Rows of a source without the nameless ones."""
    return rows.anti_join(Rows(rows.engine, pa.table({"_key": pa.array(sorted(keys), pa.binary())})), "_key") if keys else rows


def nameless(rows: pa.Table, node: Node, kept: Collection[str], cause: str) -> pa.Table:
    """The op rows that bring in a nameless row for each live row of a source, with the columns that are kept.

    Columns for correlation are kept with their data columns. All others are null.
    """
    stays = {*kept, *(CK + name for name in kept), "_source"}
    count = rows.num_rows
    own: dict[str, Any] = {
        "_op": pa.array([int(Op.APPEND)] * count, pa.int8()), "_key": pa.array([_key(node, bytes(key)) for key in rows.column("_key").to_pylist()], pa.binary()),
        "_cause": pa.array([cause] * count, pa.string()),
    }  # fmt: skip
    names = [name for name in rows.column_names if name not in ("_op", "_key", "_cause")]
    return pa.table(own | {name: rows.column(name) if name in stays else pa.nulls(count, rows.schema.field(name).type) for name in names})


def _key(node: Node, key: bytes) -> bytes:
    """A new key, made as the keys of the source are."""
    types = node.operator.output.key.types
    if types is None:
        return key[:1] + row_label((_NO_FILE,)) + row_label((1 + secrets.randbits(47),))
    return encode_key([_RANDOM[kind]() for kind in types], types)
