"""The tables of ODF's published flatbuffers schema that a dataset is made of, and the envelope of its blocks."""

from __future__ import annotations

from typing import Any, Final

from storage.odf.buffers import DamagedBuffer, Schema, Table
from storage.odf.multiformats import METADATA_BLOCK

__all__ = ["BLOCK_VERSION", "SCHEMA", "encoded_block", "read_block"]

BLOCK_VERSION: Final = 3
"""The version of blocks that are written. Blocks of version 2 differ in their padding only."""
_READ = (2, 3)

_EVENTS = (
    "AddData", "ExecuteTransform", "Seed", "SetPollingSource", "SetTransform", "SetVocab", "SetAttachments", "SetInfo", "SetLicense", "SetDataSchema",
    "AddPushSource", "DisablePushSource", "DisablePollingSource",
)  # fmt: skip
_TYPES = (
    "Binary", "Bool", "Date", "Decimal", "Duration", "Float16", "Float32", "Float64", "Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64",
    "List", "Map", "Null", "Option", "Struct", "Time", "Timestamp", "String",
)  # fmt: skip

SCHEMA: Final = Schema(
    """
Manifest: kind i64, version i32, content bytes
MetadataBlock: system_time time, prev_block_hash bytes, sequence_number u64, event MetadataEvent
Seed: dataset_id bytes, dataset_kind i32
SetVocab: offset_column text, operation_type_column text, system_time_column text, event_time_column text
SetInfo: description text, keywords [text]
SetLicense: short_name text, name text, spdx_id text, website_url text
SetDataSchema: raw_arrow_schema bytes, schema DataSchema
AddData: prev_checkpoint bytes, prev_offset u64?, new_data DataSlice, new_checkpoint Checkpoint, new_watermark time, new_source_state SourceState, extra ExtraAttributes
ExecuteTransform: query_inputs [ExecuteTransformInput], prev_checkpoint bytes, prev_offset u64?, new_data DataSlice, new_checkpoint Checkpoint, new_watermark time
ExecuteTransformInput: dataset_id bytes, prev_block_hash bytes, new_block_hash bytes, prev_offset u64?, new_offset u64?
DataSlice: logical_hash bytes, physical_hash bytes, offset_interval OffsetInterval, size u64
OffsetInterval: start u64, end u64
Checkpoint: physical_hash bytes, size u64
SourceState: source_name text, kind text, value text
ExtraAttributes: entries text
DataSchema: fields [DataField], extra ExtraAttributes
DataField: name text, type DataType, extra ExtraAttributes
Binary: fixed_length u64?
Bool:
Date:
Decimal: precision u32, scale i32
Duration: unit i16?
Float16:
Float32:
Float64:
Int8:
Int16:
Int32:
Int64:
UInt8:
UInt16:
UInt32:
UInt64:
List: item_type DataType, fixed_length u64?
Map: key_type DataType, value_type DataType, keys_sorted bool?
Null:
Option: inner DataType
Struct: fields [DataField]
Time: unit i16?
Timestamp: unit i16?, timezone text
String:
""",
    {"MetadataEvent": _EVENTS, "DataType": _TYPES},
)


def encoded_block(block: Table) -> bytes:
    """The bytes of a block in its envelope, whose hash is the block's name."""
    return SCHEMA.encode("Manifest", {"kind": METADATA_BLOCK, "version": BLOCK_VERSION, "content": SCHEMA.encode("MetadataBlock", block)})


def read_block(data: bytes) -> dict[str, Any]:
    """The block in an envelope. Raises DamagedBuffer."""
    envelope = SCHEMA.decode("Manifest", data)
    if envelope["kind"] != METADATA_BLOCK:
        raise DamagedBuffer(f"it is no block of metadata, but of kind {envelope['kind']:#x}")
    if envelope["version"] not in _READ:
        raise DamagedBuffer(f"it is a block of version {envelope['version']}, and versions {' and '.join(map(str, _READ))} are read")
    return SCHEMA.decode("MetadataBlock", envelope.get("content", b""))
