"""Parquet and Arrow files as pyarrow itself writes them."""

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


FILES = {"parquet": lambda table, rows=None: parquet_file(table, row_group_size=rows), "arrow": lambda table, rows=None: arrow_file(table, rows=rows)}
"""By format, a function that returns a table as a file, in groups of `rows` rows."""
