"""A project over which records are erased: every way in which a value goes on, and a search of its own over all bytes."""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.support.pipelines import Folder

PIPELINE = """\
pipeline:
  name: shop
error_handling: { strategy: continue, dlq: { path: out/rejected.csv, include_source_row: true } }
nodes:
  - type: source
    name: orders
    config:
      name: orders
      type: csv
      path: in/orders.csv
      correlation_key: basket
      MERGE
      schema:
        - { name: id, type: int }
        - { name: customer, type: string }
        - { name: basket, type: string }
        - { name: region, type: string }
        - { name: amount, type: float }
        - { name: note, type: string }
  - type: source
    name: people
    config:
      name: people
      type: csv
      path: in/people.csv
      merge: { strategy: snapshot, primary_key: [customer] }
      schema: [{ name: customer, type: string }, { name: mail, type: string }, { name: city, type: string }]
  - type: transform
    name: shaped
    input: orders
    config:
      cxl: |
        emit id = id
        emit customer = customer
        emit loud = customer.upper()
        emit region = region
        emit amount = amount
        emit digits = note.to_int()
  - type: combine
    name: mailed
    input: { shaped: shaped, people: people }
    config:
      where: "shaped.customer == people.customer"
      match: first
      on_miss: null_fields
      propagate_ck: driver
      cxl: |
        emit id = shaped.id
        emit customer = shaped.customer
        emit mail = people.mail
        emit city = people.city
        emit amount = shaped.amount
  - type: route
    name: sized
    input: mailed
    config:
      mode: exclusive
      conditions: { large: amount > 100 }
      default: small
  - type: aggregate
    name: regions
    input: shaped
    config:
      group_by: [region]
      cxl: |
        emit total = sum(amount)
        emit orders = count(*)
        emit loudest = max(loud)
        emit largest = max(amount)
        emit names = collect(customer)
  - type: aggregate
    name: customers
    input: mailed
    config:
      group_by: [customer]
      cxl: |
        emit total = sum(amount)
        emit mail = first(mail)
  - type: transform
    name: running
    input: shaped
    config:
      analytic_window:
        group_by: [region]
        sort_by: [{ field: id }]
      cxl: |
        emit id = id
        emit before = $window.lag(1).customer
        emit so_far = $window.sum(amount)
  - { type: output, name: large_out, input: sized.large, config: { name: large_out, type: json, path: out/large.json, changelog: { path: "out/large-{epoch}.jsonl", form: single } } }
  - { type: output, name: small_out, input: sized.small, config: { name: small_out, type: csv, path: out/small.csv } }
  - { type: output, name: regions_out, input: regions, config: { name: regions_out, type: parquet, path: out/regions.parquet } }
  - { type: output, name: running_out, input: running, config: { name: running_out, type: csv, path: out/running.csv } }
  - { type: output, name: history_out, input: people, config: { name: history_out, type: csv, path: out/people.csv, history: { key: [customer], recorded: epoch } } }
  - { type: output, name: table_out, input: shaped, config: { name: table_out, type: delta, path: out/table } }
  - { type: output, name: log_out, input: shaped, config: { name: log_out, type: delta, path: out/log, options: { mode: changelog } } }
  - { type: output, name: lite_out, input: customers, config: { name: lite_out, type: sql, connection: lite, table: customers, primary_key: [customer] } }
  - { type: output, name: duck_out, input: customers, config: { name: duck_out, type: sql, connection: duck, table: customers, primary_key: [customer] } }
"""
KEYED = "merge: { strategy: snapshot, primary_key: [id] }"
PLACED = "merge: { strategy: snapshot }"
ORDER = ("id", "customer", "basket", "region", "amount", "note")
PERSON = ("customer", "mail", "city")

Rows = Sequence[tuple[Any, ...]]


def project(path: Path, merge: str = KEYED) -> Folder:
    """The folder of the project, without its files."""
    folder = Folder(path)
    folder.write("pipeline.yaml", PIPELINE.replace("MERGE", merge))
    folder.write("errata.toml", '[connections.lite]\nurl = "sqlite:lite.db"\n[connections.duck]\nurl = "duckdb:duck.db"\n')
    return folder


def lay(folder: Folder, orders: Rows, people: Rows) -> None:
    """Write the files of both sources."""
    for name, header, rows in (("orders", ORDER, orders), ("people", PERSON, people)):
        folder.write_csv(f"in/{name}.csv", header, [dict(zip(header, row, strict=True)) for row in rows])


def shop(columns: str, *nodes: str) -> str:
    """The text of a pipeline over orders in CSV: each has an `id`, a `customer` and some more `columns`. `nodes`: what is behind the source."""
    behind = "".join(f"  - {node}\n" for node in nodes)
    return f"""\
pipeline: {{ name: shop }}
error_handling: {{ strategy: continue }}
nodes:
  - type: source
    name: orders
    config:
      name: orders
      type: csv
      path: in/orders.csv
      merge: {{ strategy: snapshot, primary_key: [id] }}
      schema: [{{ name: id, type: int }}, {{ name: customer, type: string }}, {columns}]
{behind}"""


def holding(path: Path, words: Sequence[str], skip: Sequence[str] = ("in",)) -> list[str]:
    """The files below a folder that hold one of the words anywhere: as bytes, in Parquet pages, in zstd or gzip."""
    files = (file for file in sorted(path.rglob("*")) if file.is_file() and file.relative_to(path).parts[0] not in skip)
    return [f"{file.relative_to(path)}: {word}" for file in files for content in contents(file) for word in words if word.encode() in content]


def contents(file: Path) -> Iterator[bytes]:
    """The bytes of a file, and what they are the packed form of."""
    content = file.read_bytes()
    yield content
    if content[:4] == b"PAR1":
        for column in pq.read_table(io.BytesIO(content)).columns:
            cells = (value if isinstance(value, bytes) else str(value).encode() for value in column.to_pylist() if value is not None)
            yield b"\0" + b"\0".join(cells) + b"\0"
    elif content[:2] == b"\x1f\x8b":
        yield gzip.decompress(content)
    elif content[:4] == b"\x28\xb5\x2f\xfd":
        yield pa.CompressedInputStream(io.BytesIO(content), "zstd").read()
