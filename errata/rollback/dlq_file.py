"""The CSV file that lists every live reject of a pipeline with its source record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from hashlib import blake2b

import polars as pl

from errata.core.uuid7 import uuids_of
from errata.plan.plan import Plan
from errata.rollback.dead_letters import field_of, source_columns, sources_of
from operators.core.row_type import CK
from storage.formats.csv.write import lines

METADATA = (
    "_cxl_dlq_id", "_cxl_dlq_timestamp", "_cxl_dlq_source_file", "_cxl_dlq_source_row", "_cxl_dlq_stage", "_cxl_dlq_route", "_cxl_dlq_trigger",
)  # fmt: skip
REASON = ("_cxl_dlq_error_category", "_cxl_dlq_error_detail")
RAW = "_cxl_dlq_raw"
"""Where some record could not be read: its text."""
WAIVED = "_cxl_dlq_waived"
"""Where some record was waived: why."""

PIECE_ROWS = 50_000


def dlq_pieces(plan: Plan, rejects: pl.DataFrame, started: Mapping[int, datetime]) -> Iterator[bytes]:
    """The DLQ file piece by piece. `rejects`: as `errata.rollback.triage.triaged` gives them; `started`: when the runs of epochs began.

    The documents' columns, the text of unreadable records, the declared columns of the sources concerned, then `$ck.*`.
    """
    dlq, now = plan.model.error_handling.dlq, datetime.now(UTC)
    moments = {epoch: started.get(epoch, now) for epoch in rejects["epoch"].unique()}
    times = pl.col("epoch").replace_strict({epoch: _rfc3339(moment) for epoch, moment in moments.items()}, return_dtype=pl.String)
    cells = [times, pl.col("file"), pl.col("row").cast(pl.String), pl.col("stage"), pl.col("route"), pl.col("trigger")]
    names = [*METADATA, *(REASON if dlq.include_reason else ())]
    cells += [pl.col("category"), pl.col("detail")] if dlq.include_reason else []
    if rejects["waiver"].count():
        names.append(WAIVED)
        cells.append(pl.col("waived").fill_null(""))
    for name, cell in _record(plan, rejects) if dlq.include_source_row else ():
        names.append(name)
        cells.append(cell)
    yield lines(pl.DataFrame([names], orient="row"))
    for piece in rejects.iter_slices(PIECE_ROWS):
        yield lines(piece.select(ids_of(piece, moments), *(cell.alias(str(at)) for at, cell in enumerate(cells))))


def _record(plan: Plan, rejects: pl.DataFrame) -> Iterator[tuple[str, pl.Expr]]:
    """The cells of a row's source record, each with the name of its column."""
    if (rejects["raw"] != "").any():
        yield RAW, pl.col("raw")
    for name in source_columns(plan, rejects):
        yield name, field_of(rejects, name)
    sources = sources_of(plan, rejects)
    for name in dict.fromkeys(name for node in sources for name in node.operator.output.riding(CK)):
        own = [node.name for node in sources if CK + name in node.operator.output.riders]
        yield f"$ck.{name}", pl.when(pl.col("source").is_in(own)).then(field_of(rejects, name))


def ids_of(rejects: pl.DataFrame, moments: Mapping[int, datetime]) -> pl.Series:
    """UUIDs v7 of the times of the rejections that are the same whenever they are asked for."""
    milliseconds = rejects["epoch"].replace_strict({epoch: int(moment.timestamp() * 1000) for epoch, moment in moments.items()}, return_dtype=pl.Int64)
    begins = {node: node.encode() + b"\x00" for node in rejects["node"].unique()}
    hashes = [blake2b(begins[node] + key, digest_size=16).digest() for node, key in zip(rejects["node"].to_list(), rejects["key"].to_list(), strict=True)]
    return uuids_of(milliseconds, b"".join(hashes)).alias("id")


def _rfc3339(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
