"""Blocks against golden hashes: events and hashes are out of kamu's tests of its serializer, `test_serde_flatbuffers.rs`."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from datetime import UTC, datetime
from importlib import import_module
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.odf.buffers import DamagedBuffer, Schema
from storage.odf.layout import SCHEMA, encoded_block, read_block
from storage.odf.multiformats import ED25519_PUBLIC, METADATA_BLOCK, sha3_of, varint
from tests.support.examples import examples

NOON = datetime(2020, 1, 1, 12, tzinfo=UTC)
STATE = {"source_name": "push-source-1", "kind": "kamu/kafka-offset", "value": "SOME_OFFSET"}


def hashed(text: bytes) -> bytes:
    return sha3_of(text).content


def data(logical: bytes, physical: bytes, start: int, end: int, size: int) -> dict[str, Any]:
    return {"logical_hash": hashed(logical), "physical_hash": hashed(physical), "offset_interval": {"start": start, "end": end}, "size": size}


def seeded(seed: bytes) -> bytes:
    """The identity that kamu's tests derive from a seed: xoshiro256++ gives the bytes of the key."""
    state = [int.from_bytes(seed.ljust(32, b"\0")[at : at + 8], "little") for at in range(0, 32, 8)]
    made = b""
    while len(made) < 32:
        word = (turned((state[0] + state[3]) % 2**64, 23) + state[0]) % 2**64
        made += word.to_bytes(8, "little")
        shifted = state[1] << 17 & (2**64 - 1)
        state[2] ^= state[0]
        state[3] ^= state[1]
        state[1] ^= state[2]
        state[0] ^= state[3]
        state[2] ^= shifted
        state[3] = turned(state[3], 45)
    return varint(ED25519_PUBLIC) + made


def turned(word: int, by: int) -> int:
    return (word << by | word >> 64 - by) & (2**64 - 1)


def field(name: str, kind: tuple[str, Any], **extra: str) -> dict[str, Any]:
    return {"name": name, "type": kind} | {name: {"entries": text} for name, text in extra.items()}


TEXT = ("String", {})
GOLDEN = [
    (("AddData", {}), "a93874702479f83ddff1e7a660ca78085def333c86501b0d895fa3aec79c7189"),
    (("AddData", {"prev_checkpoint": hashed(b"prev"), "prev_offset": 9}), "86aeb7dee0502b4886761de5e45b5111c0bc9e0fbfee02e3685487109305ef56"),
    (("AddData", {"prev_checkpoint": hashed(b"prev"), "prev_offset": 9, "new_watermark": NOON}), "d1b412dab2a6af53f3e1b183834557bbf1c4689e2fc9b92fc0d04741ef607ecc"),
    (
        ("AddData", {"prev_checkpoint": hashed(b"prev"), "prev_offset": 9, "new_data": data(b"logical", b"physical", 10, 99, 100), "new_watermark": NOON}),
        "1fcf10cb843746c4c44e6c288e216995701aa073426fc4bebe14f1680f8ec6d1",
    ),
    (
        ("AddData", {"prev_checkpoint": hashed(b"checkpoint"), "prev_offset": 9, "new_data": data(b"logical", b"physical", 10, 99, 100), "new_source_state": STATE}),
        "9326dc5daab04877a9f006ff6b1636a8fa9dcec9615b54f741a1a90091eaf694",
    ),
    (
        (
            "AddData",
            {
                "prev_checkpoint": hashed(b"checkpoint"), "prev_offset": 9, "new_data": data(b"logical", b"physical", 10, 99, 100), "new_source_state": STATE,
                "extra": {"entries": '{"opendatafabric.org/linkedObjects":{"numObjectsNaive":10,"sizeNaive":100}}'},
            },
        ),
        "54f64c642cca6f67416ebe2b29e5d9414ece91f819efe97cd437fbe542c61bbb",
    ),
    (
        (
            "ExecuteTransform",
            {
                "query_inputs": [
                    {"dataset_id": seeded(b"input1"), "prev_block_hash": hashed(b"a"), "new_block_hash": hashed(b"b"), "prev_offset": 9, "new_offset": 20},
                    {"dataset_id": seeded(b"input2"), "prev_block_hash": hashed(b"a"), "new_block_hash": hashed(b"b")},
                ],
                "prev_checkpoint": hashed(b"checkpoint"), "prev_offset": 9, "new_data": data(b"foo", b"bar", 10, 19, 10), "new_watermark": NOON,
            },
        ),
        "21cab7396525e614beeafe21c05a38bf597a39a191cc14147b9c5ec32210cf82",
    ),
    (
        (
            "SetDataSchema",
            {
                "schema": {
                    "fields": [
                        field("city", TEXT, extra='{"arrow.apache.org/bufferEncoding":{"kind":"View","offsetBitWidth":32}}'),
                        field("population", ("UInt64", {})),
                        field("census", ("Option", {"inner": TEXT}), extra='{"opendatafabric.org/type":{"kind":"ObjectLink","linkType":{"kind":"Multihash"}}}'),
                        field("links", ("List", {"item_type": TEXT})),
                    ],
                    "extra": {"entries": '{"kamu.dev/archetype":"Collection"}'},
                }
            },
        ),
        "80865248519d55fa04598e24ba42884728efe70956e640dca4df5ec8043c69ca",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("event", "digest"), GOLDEN, ids=range(len(GOLDEN)))
def test_blocks_have_the_bytes_that_kamu_writes(event: tuple[str, Any], digest: str) -> None:
    block = {"system_time": NOON, "prev_block_hash": hashed(b"prev"), "sequence_number": 117, "event": event}
    content = encoded_block(block)
    assert hashlib.sha3_256(content).hexdigest() == digest
    assert read_block(content) == block


def test_the_first_block_of_a_chain_has_no_hash_before_it() -> None:
    """Hash and size are out of `test_metadata_block_repository_shared.rs`."""
    block = {"system_time": datetime(2050, 1, 1, 12, tzinfo=UTC), "sequence_number": 0, "event": ("SetInfo", {"description": "foo"})}
    content = encoded_block(block)
    assert (str(sha3_of(content)), len(content)) == ("f1620e4773ca5765b41781e721cb891182e43a2df35665cd82b378e54b9ea25f4f50f", 120)
    assert read_block(content) == block


def test_events_that_are_not_read_keep_their_name() -> None:
    """Members that only a writer of datasets needs are passed over."""
    wider = Schema("MetadataBlock: system_time time, prev_block_hash bytes, sequence_number u64, event MetadataEvent\nSetPollingSource: fetch text", SCHEMA.unions)
    content = wider.encode("MetadataBlock", {"system_time": NOON, "sequence_number": 1, "event": ("SetPollingSource", {"fetch": "anything"})})
    found = read_block(SCHEMA.encode("Manifest", {"kind": METADATA_BLOCK, "version": 2, "content": content}))
    assert found == {"system_time": NOON, "sequence_number": 1, "event": ("SetPollingSource", {})}


@pytest.mark.parametrize(("kind", "version", "said"), [(METADATA_BLOCK, 4, "block of version 4"), (METADATA_BLOCK, 1, "block of version 1"), (METADATA_BLOCK + 1, 3, "of kind 0x400001")])
def test_other_envelopes_are_refused(kind: int, version: int, said: str) -> None:
    with pytest.raises(DamagedBuffer, match=said):
        read_block(SCHEMA.encode("Manifest", {"kind": kind, "version": version, "content": b""}))


def shared(levels: int) -> bytes:
    """A block with structs in structs: each has four fields, and these are one table."""
    builder = import_module("flatbuffers").Builder(1024)
    number = {name: at + 1 for at, name in enumerate(SCHEMA.unions["DataType"])}
    name = builder.CreateString("a")
    builder.StartObject(0)
    type_, kind = builder.EndObject(), number["Bool"]
    for _ in range(levels):
        builder.StartObject(4)
        builder.PrependUint8Slot(1, kind, 0)
        builder.PrependUOffsetTRelativeSlot(2, type_, 0)
        builder.PrependUOffsetTRelativeSlot(0, name, 0)
        field_ = builder.EndObject()
        builder.StartVector(4, 4, 4)
        for _ in range(4):
            builder.PrependUOffsetTRelative(field_)
        fields = builder.EndVector()
        builder.StartObject(1)
        builder.PrependUOffsetTRelativeSlot(0, fields, 0)
        type_, kind = builder.EndObject(), number["Struct"]
    builder.Finish(type_)
    return bytes(builder.Output())


@pytest.mark.parametrize("levels", [6, 20])
def test_tables_that_share_others_do_not_unfold_without_end(levels: int) -> None:
    """20 levels of four are 4 ** 20 fields."""
    with pytest.raises(DamagedBuffer, match="share others so often"):
        SCHEMA.decode("Struct", shared(levels))


def test_a_text_that_many_share_is_read_so_often_only_as_it_could_stand_there() -> None:
    builder = import_module("flatbuffers").Builder(1 << 20)
    text = builder.CreateString("a" * 100_000)
    builder.StartVector(4, 50_000, 4)
    for _ in range(50_000):
        builder.PrependUOffsetTRelative(text)
    texts = builder.EndVector()
    builder.StartObject(2)
    builder.PrependUOffsetTRelativeSlot(1, texts, 0)
    builder.Finish(builder.EndObject())
    with pytest.raises(DamagedBuffer, match="share others so often"):
        SCHEMA.decode("SetInfo", bytes(builder.Output()))


def test_a_wide_schema_is_within_the_limit() -> None:
    fields = [field("", ("Struct", {"fields": [field("a", ("Bool", {}))] * 3})) for _ in range(2000)]
    block = {"system_time": NOON, "sequence_number": 1, "event": ("SetDataSchema", {"schema": {"fields": fields}})}
    assert read_block(encoded_block(block)) == block


@pytest.mark.property
@given(place=st.integers(0, 400), byte=st.integers(0, 255), cut=st.integers(0, 400))
@examples(200)
def test_a_damaged_block_is_an_error_of_its_own(place: int, byte: int, cut: int) -> None:
    content = bytearray(encoded_block({"system_time": NOON, "prev_block_hash": hashed(b"prev"), "sequence_number": 117, "event": GOLDEN[-1][0]}))
    content[place % len(content)] = byte
    for damaged in (bytes(content), bytes(content[:cut])):
        with suppress(DamagedBuffer):
            read_block(damaged)
