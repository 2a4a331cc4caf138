"""Datasets of Open Data Fabric for tests: made without Errata, and checked by the rules that the specification and kamu state."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from storage.odf.layout import encoded_block, read_block
from storage.odf.logical_hash import LogicalHash

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
MOMENT = pa.timestamp("ms", "UTC")
OWN = [pa.field("offset", pa.int64()), pa.field("op", pa.int32()), pa.field("system_time", MOMENT), pa.field("event_time", MOMENT)]


def hash_name(content: bytes) -> str:
    """The name of a block or of a file."""
    return f"f1620{hashlib.sha3_256(content).hexdigest()}"


@dataclass
class Dataset:
    """A dataset that a test writes block by block."""

    root: Path
    blocks: list[str] = field(default_factory=list)
    last: int | None = None

    def add(self, event: tuple[str, Any], **changed: Any) -> str:
        """Write a block behind the others and make it the head. `changed`: members of the block that are other ones."""
        for name in ("blocks", "data", "refs"):
            (self.root / name).mkdir(parents=True, exist_ok=True)
        before = {"prev_block_hash": bytes.fromhex(self.blocks[-1][1:])} if self.blocks else {}
        number = len(self.blocks)
        content = encoded_block({"system_time": BEGIN + timedelta(minutes=number), **before, "sequence_number": number, "event": event, **changed})
        self.blocks.append(hash_name(content))
        (self.root / "blocks" / self.blocks[-1]).write_bytes(content)
        (self.root / "refs/head").write_text(self.blocks[-1])
        return self.blocks[-1]

    def seed(self, identity: bytes = b"\xed\x01" + bytes(32), **vocabulary: str) -> Dataset:
        """Begin the chain."""
        self.add(("Seed", {"dataset_id": identity, "dataset_kind": 1}))
        self.add(("SetVocab", vocabulary))
        self.add(("SetDataSchema", {"schema": {"fields": []}}))
        return self

    def append(self, rows: Sequence[Mapping[str, Any]], data: Sequence[pa.Field], *, kind: str = "AddData", own: Sequence[pa.Field] = OWN, **changed: Any) -> Path:
        """Add rows, each with its `op`, by a file and a block that names it."""
        start = 0 if self.last is None else self.last + 1
        names = [one.name for one in own]
        made = [{names[0]: start + at, names[2]: BEGIN, names[3]: BEGIN, **row} for at, row in enumerate(rows)]
        sink = pa.BufferOutputStream()
        pq.write_table(pa.Table.from_pylist(made, pa.schema([*own, *data])), sink, store_schema=False)
        content = sink.getvalue().to_pybytes()
        file = self.root / "data" / hash_name(content)
        file.write_bytes(content)
        block = {"logical_hash": bytes(5), "physical_hash": bytes.fromhex(file.name[1:]), "offset_interval": {"start": start, "end": start + len(rows) - 1}, "size": len(content)}
        before = {} if self.last is None else {"prev_offset": self.last}
        self.add((kind, {**before, "new_data": {**block, **changed}}))
        self.last = start + len(rows) - 1
        return file


def chain(root: Path) -> list[dict[str, Any]]:
    """The blocks of a dataset, the seed first; each hash is checked."""
    found: list[dict[str, Any]] = []
    name: str | None = (root / "refs/head").read_text()
    while name is not None:
        content = (root / "blocks" / name).read_bytes()
        assert hash_name(content) == name
        block = read_block(content)
        found.append(block)
        name = f"f{block['prev_block_hash'].hex()}" if "prev_block_hash" in block else None
    return found[::-1]


def tables(root: Path) -> list[pa.Table]:
    """The rows of each block with data."""
    slices = [block["event"][1]["new_data"] for block in chain(root) if "new_data" in block["event"][1]]
    return [pq.read_table(root / "data" / f"f{one['physical_hash'].hex()}") for one in slices]


def folded(root: Path, own: Iterable[str] = ("offset", "op", "system_time", "event_time")) -> Counter[Any]:
    """How often each row is live, as its values without the dataset's own columns."""
    live: Counter[Any] = Counter()
    for table in tables(root):
        for row in table.to_pylist():
            values = tuple(sorted((name, repr(value)) for name, value in row.items() if name not in own and value is not None))
            live[values] += 1 if row["op"] in (0, 3) else -1
    return +live


def check(root: Path) -> None:
    """Assert what the specification and kamu's validators ask of a dataset."""
    blocks = chain(root)
    assert [block["sequence_number"] for block in blocks] == list(range(len(blocks)))
    names = [block["event"][0] for block in blocks]
    assert names[:3] == ["Seed", "SetVocab", "SetDataSchema"]
    assert "Seed" not in names[1:]
    assert blocks[0]["event"][1]["dataset_id"][:2] == b"\xed\x01"
    times = [block["system_time"] for block in blocks]
    assert times == sorted(times)
    last, watermark, live = None, BEGIN.min.replace(tzinfo=UTC), Counter[Any]()
    for block in blocks:
        name, event = block["event"]
        if name != "AddData":
            continue
        assert event.get("prev_offset") == last
        assert event["new_watermark"] >= watermark
        watermark = event["new_watermark"]
        if "new_data" in event:
            last = _check_slice(root, event["new_data"], last, block["system_time"], live)
    assert not -live


def _check_slice(root: Path, data: Mapping[str, Any], last: int | None, moment: datetime, live: Counter[Any]) -> int:
    file = root / "data" / f"f{data['physical_hash'].hex()}"
    assert hash_name(file.read_bytes()) == file.name
    assert file.stat().st_size == data["size"]
    start, end = data["offset_interval"]["start"], data["offset_interval"]["end"]
    table = pq.read_table(file)
    hasher = LogicalHash(table.schema)
    for batch in table.to_batches():
        hasher.update(batch)
    assert hasher.result().content == data["logical_hash"]
    rows = table.to_pylist()
    assert [row["offset"] for row in rows] == list(range(start, end + 1))
    assert start == (0 if last is None else last + 1)
    assert [one.type for one in table.schema][:4] == [pa.uint64(), pa.uint8(), MOMENT, MOMENT]
    for at, row in enumerate(rows):
        assert row["system_time"] == moment
        same = tuple((name, repr(value)) for name, value in row.items() if name not in ("offset", "op", "system_time") and value is not None)
        live[same] += 1 if row["op"] in (0, 3) else -1
        assert live[same] >= 0, "a row is taken back that was not there with these values and this event time"
        assert (row["op"] == 2) == (at + 1 < len(rows) and rows[at + 1]["op"] == 3), "-C stands before +C"
    return end
