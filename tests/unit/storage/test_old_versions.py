"""Old versions of a table are removed, the last hundred stay readable."""

from __future__ import annotations

from pathlib import Path
from shutil import copytree

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from storage.delta.maintenance import PROPERTIES
from storage.delta.old_versions import KEPT_VERSIONS, oldest_kept, remove_old_versions
from storage.delta.scrubbing import LOG
from storage.errors import StorageError
from storage.stores.folders import folder_at

VERSIONS = 170
LAST = VERSIONS - 1


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A table of one row a version; version 20 replaces the data files of all before it."""
    place = str(tmp_path_factory.mktemp("tables") / "t")
    for version in range(VERSIONS):
        mode = "overwrite" if version == 20 else "append"
        write_deltalake(place, pa.table({"n": range(21) if version == 20 else [version]}), mode=mode, configuration=PROPERTIES if version == 0 else None)
    return place


@pytest.fixture
def table(written: str, tmp_path: Path) -> str:
    return str(copytree(written, tmp_path / "t"))


def rows(place: str, version: int) -> list[int]:
    return sorted(DeltaTable(place, version=version).to_pyarrow_table().column("n").to_pylist())


def test_the_last_hundred_versions_stay(table: str) -> None:
    folder = folder_at(table)
    oldest = oldest_kept(folder.names(LOG), LAST)
    assert LAST - KEPT_VERSIONS - 10 < oldest <= LAST - KEPT_VERSIONS
    remove_old_versions(folder, table, LAST - 50, LAST, "t")
    logged = sorted(int(name.removeprefix(LOG)[:20]) for name in folder.names(LOG) if name.endswith(".json"))
    assert logged == list(range(oldest, VERSIONS))
    assert {name for name in folder.names() if not name.startswith(LOG)} == {Path(uri).name for uri in DeltaTable(table).file_uris()}  # what version 20 replaced is gone
    for version in (oldest, LAST - KEPT_VERSIONS, LAST):
        assert rows(table, version) == list(range(version + 1))
    remove_old_versions(folder, table, LAST - 50, LAST, "t")
    assert rows(table, LAST) == list(range(VERSIONS))
    write_deltalake(table, pa.table({"n": [VERSIONS]}), mode="append")
    assert rows(table, VERSIONS) == list(range(VERSIONS + 1))


@pytest.mark.parametrize(("before", "version"), [(LAST - 1, LAST), (150, LAST), (0, 99)])
def test_nothing_is_removed_in_between_or_of_few_versions(table: str, before: int, version: int) -> None:
    folder = folder_at(table)
    known = list(folder.names())
    remove_old_versions(folder, table, before, version, "t")
    assert list(folder.names()) == known


@pytest.mark.parametrize(("after", "ending"), [(1, "json"), (0, "checkpoint.parquet")])
def test_a_log_that_cannot_be_read_is_an_error_and_nothing_is_removed(table: str, after: int, ending: str) -> None:
    folder = folder_at(table)
    file = Path(table) / "_delta_log" / f"{oldest_kept(folder.names(LOG), LAST) + after:020}.{ending}"
    file.write_bytes(file.read_bytes()[:-9])
    known = list(folder.names())
    with pytest.raises(StorageError):
        remove_old_versions(folder, table, LAST - 50, LAST, "t")
    assert list(folder.names()) == known
