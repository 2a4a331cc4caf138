"""Sources that are read from local copies, from file to file: validation, runs, what `explain` says, and the warnings of a run's preflight."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path

import pytest

from tests.support.pipelines import Folder, command, standing_in

PIPELINE = """
pipeline: {name: staged}
error_handling: {strategy: continue}
nodes:
  - {type: source, name: s, config: {name: s, type: csv, glob: in/*.csv, schema: [{name: a, type: int}]}}
  - {type: transform, name: t, input: s, config: {cxl: "emit f = $source.file\\n"}}
  - {type: output, name: out, input: t, config: {name: out, type: csv, path: out.csv}}
"""


@pytest.fixture
def other_volume(tmp_path):
    """A folder on another volume than the tests' own, where the machine has one."""
    shared = Path("/dev/shm")
    if not shared.is_dir() or shared.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is no second volume")
    made = Path(tempfile.mkdtemp(dir=shared))
    yield made
    shutil.rmtree(made)


def project(path, staging, **settings):
    folder = Folder(path)
    folder.write("pipeline.yaml", PIPELINE)
    folder.write("in/a.csv", "a\n1\n2\n")
    folder.write("in/b.csv", "a\n3\n")
    keys = {"enabled": True, "dir": str(staging), "patterns": ["*.csv"], **settings}
    folder.write("errata.toml", "[storage.staging]\n" + "".join(f"{name} = {json.dumps(value)}\n" for name, value in keys.items()))
    return folder


def ran(folder):
    with standing_in(folder.path):
        code, _, stderr = command("run", "pipeline.yaml")
    return code, stderr


def test_records_come_from_the_copies_and_keep_their_files_names(tmp_path, other_volume):
    folder = project(tmp_path, other_volume, cleanup="never", on_existing="reuse")
    assert ran(folder)[0] == 0
    assert folder.text("out.csv") == "a,f\n1,in/a.csv\n2,in/a.csv\n3,in/b.csv\n"
    assert len(list(other_volume.glob("*.staged"))) == 2
    folder.write("in/b.csv", "a\n4\n")
    assert ran(folder)[0] == 0
    assert folder.text("out.csv") == "a,f\n1,in/a.csv\n2,in/a.csv\n4,in/b.csv\n"
    assert folder.violations() == []


def test_copies_are_removed_after_a_clean_run_and_kept_after_one_with_rejects(tmp_path, other_volume):
    folder = project(tmp_path, other_volume)
    folder.write("in/b.csv", "a\nx\n")
    assert ran(folder)[0] == 2
    assert len(list(other_volume.glob("*.staged"))) == 2
    folder.write("in/b.csv", "a\n3\n")
    assert ran(folder)[0] == 0
    assert [path.name for path in other_volume.glob("*.staged") if "b.csv" in path.with_suffix(".manifest.json").read_text()] == []


@pytest.mark.parametrize(("settings", "code"), [({"disk_cap_bytes": 8}, "E336"), ({"on_existing": "error", "cleanup": "never"}, "E337")])
def test_what_stops_a_run_changes_nothing(tmp_path, other_volume, settings, code):
    folder = project(tmp_path, other_volume, **settings)
    if code == "E337":
        assert ran(folder)[0] == 0
        folder.write("in/a.csv", "a\n9\n")
    before = folder.state_files() if code == "E337" else None
    exit_code, stderr = ran(folder)
    assert (exit_code, code in stderr, "Nothing was changed" in stderr or before is not None) == (4, True, True)
    assert before is None or folder.state_files() == before


def test_a_copy_on_the_same_volume_is_refused_where_it_matches(tmp_path):
    inside = tmp_path / "staging"
    inside.mkdir()
    folder = project(tmp_path, inside)
    code, stderr = ran(folder)
    assert (code, "E333" in stderr) == (1, True)
    folder = project(tmp_path, inside, patterns=["*.dat"])
    assert ran(folder)[0] == 0


@pytest.mark.parametrize("dir_", ["none", "in/a.csv"])
def test_the_folder_has_to_be_there(tmp_path, dir_):
    code, stderr = ran(project(tmp_path, dir_))
    assert (code, "storage.staging.dir" in stderr) == (1, True)


def test_explain_tells_what_would_be_staged(tmp_path, other_volume):
    folder = project(tmp_path, other_volume, patterns=["**/a.csv"], on_existing="reuse", cleanup="never")
    with standing_in(tmp_path):
        text = command("explain", "pipeline.yaml")[1]
        assert "in/b.csv → staged: no (no pattern match, reads in place)" in text
        assert "reuse: miss" in text
        assert not list(other_volume.iterdir())
        assert ran(folder)[0] == 0
        (source,) = json.loads(command("explain", "pipeline.yaml", "--format", "json")[1])["storage_summary"]["staging"]["sources"]
    (copy,) = other_volume.glob("*.staged")
    assert [(file["staged"], file.get("staged_path"), file.get("reuse")) for file in source["files"]] == [(True, str(copy), "hit"), (False, None, None)]


def test_a_run_warns_of_a_spill_cap_that_its_estimate_nears(tmp_path):
    folder = Folder(tmp_path)
    grouped = '  - {type: aggregate, name: g, input: s, config: {group_by: [a], cxl: "emit n = count(*)"}}\n'
    folder.write("pipeline.yaml", PIPELINE.replace("  - {type: transform", grouped + "  - {type: transform").replace('input: s, config: {cxl: "emit f', 'input: g, config: {cxl: "emit f').replace("$source.file", "n"))
    folder.write("in/a.csv", "a\n" + "1\n" * 40)
    folder.write("errata.toml", "[storage.spill]\ndisk_cap_bytes = 100\n")
    code, stderr = ran(folder)
    assert code == 0
    assert "W331: this run is estimated to spill up to 82 bytes, which is 82% of the configured spill cap" in stderr
    folder.write("errata.toml", "[storage.spill]\ndisk_cap_bytes = 1000\n")
    folder.write("in/a.csv", "a\n" + "1\n" * 41)
    assert "W331" not in ran(folder)[1]
