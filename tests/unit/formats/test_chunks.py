"""Files read in tasks: the function for `mapInArrow` without an engine, compressed files, pickled readers."""

import bz2
import gzip
import lzma
import zipfile
from itertools import chain

import pyarrow as pa
import pytest
from pyspark import cloudpickle

from storage import formats
from storage.files import local
from storage.formats import ERROR, ROW, Column, InputError, ReadPlan
from storage.formats.tasks import chunk_reader, read_task, task_table, tasks_of, undeclared_columns

READER = formats.reader("csv", {}, ReadPlan((Column("id", "int"),)))
TEXT = b"id,x\n" + b"".join(b"%d,%d\n" % (number, number * 2) for number in range(1, 501))


@pytest.fixture
def csv_file(tmp_path):
    path = tmp_path / "f.csv"
    path.write_bytes(TEXT)
    return path


def test_tasks_run_as_a_pickled_function_with_attached_columns(csv_file):
    reader = READER.with_undeclared(undeclared_columns(READER, csv_file, "f.csv"))
    attached = pa.schema([("_file", pa.binary())])
    tasks = tasks_of(reader, csv_file, "f.csv", {"_file": b"\x01"}, target=700)
    assert len(tasks) > 3
    table = task_table(tasks, attached)
    function = cloudpickle.loads(cloudpickle.dumps(chunk_reader(reader, attached)))
    read = pa.Table.from_batches(function(iter(table.to_batches(max_chunksize=2))))
    assert read.schema.names == ["id", "x", ROW, ERROR, "_file"]
    assert read["id"].to_pylist() == read[ROW].to_pylist() == list(range(1, 501))
    assert read["x"].to_pylist() == [str(number * 2) for number in range(1, 501)]
    assert set(read["_file"].to_pylist()) == {b"\x01"}


def test_each_batch_may_be_finished_where_it_is_read(csv_file):
    table = task_table(tasks_of(READER, csv_file, "f.csv"))
    function = chunk_reader(READER, finish=lambda batch, _: batch.select([ROW]))
    assert pa.Table.from_batches(function(iter(table.to_batches()))).schema.names == [ROW]


@pytest.mark.parametrize("target", [100, 1 << 20])
def test_a_bad_byte_is_reported_with_its_line(csv_file, target):
    csv_file.write_bytes(TEXT + b"501,caf\xe9\r\n")
    tasks = tasks_of(READER, csv_file, "f.csv", target=target)
    with pytest.raises(InputError) as caught:
        list(chain.from_iterable(read_task(READER, task) for task in tasks))
    message = "not valid UTF-8: invalid continuation byte; options.encoding names the encoding that the file has, such as cp1252"
    assert str(caught.value) == f"f.csv: line 502, byte {len(TEXT) + 7}: {message}"


COMPRESS = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


def compressed(path, suffix):
    target = path.with_name(path.name + suffix)
    if suffix in COMPRESS:
        target.write_bytes(COMPRESS[suffix](TEXT))
    elif suffix == ".zip":
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("inner.csv", TEXT)
    else:
        target.write_bytes(pa.compress(TEXT, "zstd", asbytes=True))
    return target


@pytest.mark.parametrize("suffix", [*COMPRESS, ".zip", ".zst"])
def test_compressed_files(csv_file, suffix):
    path = compressed(csv_file, suffix)
    assert local.is_compressed(path)
    rows = [
        row for task in tasks_of(READER, path, "f", target=700) for batch in read_task(READER, task) for row in batch[ROW].to_pylist()
    ]
    assert rows == list(range(1, 501))
    assert len(tasks_of(READER, path, "f", target=700)) == 1


def test_a_bomb_and_a_damaged_archive_are_input_errors(csv_file, monkeypatch):
    monkeypatch.setattr("storage.files.local.EXPANSION_FREE", 1 << 20)
    for suffix, compress in COMPRESS.items():
        bomb = csv_file.with_name("bomb" + suffix)
        bomb.write_bytes(compress(b"\0" * 3_000_000))
        with pytest.raises(InputError, match="b: E236: the file unpacks to more than 200 times its size"):
            local.buffer_of(bomb, "b")
    for suffix in (*COMPRESS, ".zip", ".zst"):
        damaged = csv_file.with_name("d" + suffix)
        damaged.write_bytes(compressed(csv_file, suffix).read_bytes()[:-20])
        with pytest.raises(InputError, match="d: cannot be decompressed: "):
            local.buffer_of(damaged, "d")


def test_an_empty_and_a_missing_file(tmp_path):
    (tmp_path / "e.csv").write_bytes(b"")
    assert local.buffer_of(tmp_path / "e.csv", "e") == b""
    with pytest.raises(InputError, match="n: file not found"):
        local.buffer_of(tmp_path / "n.csv", "n")
    with pytest.raises(InputError, match="d: cannot be read: "):
        local.buffer_of(tmp_path, "d")
