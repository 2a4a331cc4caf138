"""Parquet and Arrow files as pyarrow itself writes them, Avro files as fastavro does."""

from io import BytesIO

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq


def parquet_file(table, **options):
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, **options)
    return sink.getvalue().to_pybytes()


def arrow_file(table, *, compression=None, rows=None):
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(table, max_chunksize=rows)
    return sink.getvalue().to_pybytes()


def avro_file(fields, rows, *, codec="null", interval=16000):
    """An Avro file. `fields`: types by name."""
    schema = {"type": "record", "name": "R", "fields": [{"name": name, "type": kind} for name, kind in fields.items()]}
    target = BytesIO()
    fastavro.writer(target, fastavro.parse_schema(schema), rows, codec=codec, sync_interval=interval, sync_marker=bytes(range(16)))
    return target.getvalue()


FILES = {"parquet": lambda table, rows=None: parquet_file(table, row_group_size=rows), "arrow": lambda table, rows=None: arrow_file(table, rows=rows)}
"""By format, a function that returns a table as a file, in groups of `rows` rows."""
