"""Output files that somebody removed or changed are brought back by the next run, once: after that they are as the ledger knows them."""

from __future__ import annotations

from pathlib import Path

from tests.support.pipelines import Folder

PIPELINE = """\
pipeline: {name: prices}
error_handling: {strategy: continue, dlq: {path: out/rejected.csv}}
nodes:
  - {type: source, name: s, config: {name: s, type: csv, path: in.csv, schema: [{name: id, type: int}, {name: v, type: int}]}}
  - {type: output, name: whole, input: s, config: {name: whole, type: csv, path: out/whole.csv, write_meta: true}}
  - {type: output, name: parts, input: s, config: {name: parts, type: csv, path: out/parts.csv, split: {max_records: 1}}}
"""


def files(folder: Folder) -> dict[str, tuple[str, int, int]]:
    """Text, time and inode of each file that was written."""
    found = sorted((folder.path / "out").iterdir())
    return {file.name: (file.read_text(encoding="utf-8"), (stat := file.stat()).st_mtime_ns, stat.st_ino) for file in found}


def test_files_come_back_once_with_the_times_that_they_had(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", PIPELINE)
    folder.write("in.csv", "id,v\n1,10\nx,1\n2,20\n")
    assert folder.run().exit_code == 2
    written, state = files(folder), folder.state_files()
    assert set(written) >= {"whole.csv", "rejected.csv"}
    for name in written:
        (folder.path / "out" / name).unlink()
    result = folder.run()
    assert not result.committed
    back = files(folder)
    assert {name: found[:2] for name, found in back.items()} == {name: found[:2] for name, found in written.items()}
    folder.run()
    assert files(folder) == back
    assert folder.state_files() == state


def test_a_changed_file_is_written_again(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", PIPELINE)
    folder.write("in.csv", "id,v\n1,10\n")
    folder.run()
    written = files(folder)
    folder.write("out/whole.csv", "id,v\n9,9\n")
    folder.run()
    assert files(folder)["whole.csv"][:2] == written["whole.csv"][:2]
