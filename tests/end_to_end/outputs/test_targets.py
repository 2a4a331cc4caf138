"""Which files are a pipeline's own, and which may not be one file."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

import errata
from errata.core.failures import StorageFailed
from tests.support.pipelines import Folder

EXAMPLES = Path(__file__).parents[3] / "examples"
PIPELINE = """\
pipeline: { name: tenants, vars: { least: 0 } }
nodes:
  - { type: source, name: o, config: { name: o, type: csv, path: o.csv, schema: [{ name: id, type: int }] } }
  - { type: transform, name: large, input: o, config: { cxl: filter id > $vars.least } }
  - { type: output, name: out, input: large, config: { name: out, type: csv, path: "out-{channel}.csv" } }
"""
CHANNEL = "channel: {{ name: {0}, target: pipeline.yaml }}\nvars: {{ static: {{ least: {{ type: int, default: {1} }} }} }}\n"


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    made = Folder(tmp_path)
    made.write("pipeline.yaml", PIPELINE)
    made.write("o.csv", "id\n1\n2\n")
    for name, least in (("a", 0), ("b", 1)):
        made.write(f"{name}.channel.yaml", CHANNEL.format(name, least))
    return made


def run(folder: Folder, channel: str, **settings: Any) -> None:
    from errata.core.options import EngineOptions, RunOptions

    folder.load(channel=str(folder.path / f"{channel}.channel.yaml"), **settings).run(RunOptions(engine=EngineOptions("sail"), max_retract_share=1.0))


def test_channels_take_turns(folder: Folder) -> None:
    """A file that an earlier epoch wrote, under another channel, is the pipeline's own."""
    for channel in ("a", "b", "a"):
        run(folder, channel)
    assert folder.text("out-a.csv") == "id\n1\n2\n"
    assert folder.text("out-b.csv") == "id\n2\n"


def test_a_value_on_the_command_line_goes_before_a_channels(folder: Folder) -> None:
    """CLI Reference: "Precedence (highest to lowest): CLI flag, environment variable, YAML config value"; a channel gives `$source` values to single sources."""
    folder.write("pipeline.yaml", PIPELINE.replace("least: 0", "source: { least: { type: int, default: 5 } }").replace("$vars.", "$source."))
    folder.write("a.channel.yaml", "channel: { name: a, target: pipeline.yaml }\nvars: { source: { o: { least: { type: int, default: 0 } } } }\n")
    for given, text in (({}, "id\n1\n2\n"), ({"source.least": "1"}, "id\n2\n")):
        run(folder, "a", variables=given)
        assert folder.text("out-a.csv") == text


def test_another_channel_alone_writes_its_file(folder: Folder) -> None:
    """Nothing else differs, and still each channel has its own; the next run of the same one does nothing."""
    folder.write("b.channel.yaml", CHANNEL.format("b", 0))
    run(folder, "a")
    run(folder, "b")
    assert folder.text("out-b.csv") == folder.text("out-a.csv") == "id\n1\n2\n"
    before = folder.load().head_epoch()
    run(folder, "b")
    assert folder.load().head_epoch() == before == 2


def test_a_file_that_somebody_wrote_since_is_foreign(folder: Folder) -> None:
    run(folder, "a")
    run(folder, "b")
    folder.write("out-a.csv", "mine\n")
    with pytest.raises(StorageFailed, match="was not written by this pipeline"):
        run(folder, "a")
    assert folder.text("out-a.csv") == "mine\n"


@pytest.mark.parametrize("path", ["out.csv", "./out.csv"])
def test_rejected_records_go_to_no_output(path: str, folder: Folder) -> None:
    folder.write("pipeline.yaml", PIPELINE.replace("out-{channel}.csv", "out.csv") + f"error_handling: {{ strategy: continue, dlq: {{ path: {path} }} }}\n")
    with pytest.raises(errata.PipelineErrors) as caught:
        folder.load()
    (wrong,) = caught.value.diagnostics
    assert wrong.code == "E322"
    assert wrong.message == f"output 'out' and the dead letter queue both write '{path}'"


SAME = {
    "a step of nothing": ("path: x/o.csv", "path: x//o.csv", "x/o.csv"),
    "a step to the folder itself": ("path: x/o.csv", "path: x/./o.csv", "x/o.csv"),
    "a sidecar": ("path: o.csv, write_meta: true", "path: o.csv.meta.json", "o.csv.meta.json"),
    "changes": ('path: o.csv, changelog: { path: "c-{epoch}.jsonl" }', 'path: "c-{epoch}.jsonl"', "c-{epoch}.jsonl"),
}
TWO = """\
pipeline: {{ name: two }}
nodes:
  - {{ type: source, name: s, config: {{ name: s, type: csv, path: s.csv, schema: [{{ name: id, type: int }}] }} }}
  - {{ type: output, name: one, input: s, config: {{ name: one, type: csv, {} }} }}
  - {{ type: output, name: other, input: s, config: {{ name: other, type: csv, {} }} }}
"""


@pytest.mark.parametrize("case", SAME)
def test_two_outputs_with_one_path(case: str, folder: Folder) -> None:
    one, other, path = SAME[case]
    folder.write("pipeline.yaml", TWO.format(one, other))
    with pytest.raises(errata.PipelineErrors) as caught:
        folder.load()
    assert [(wrong.code, wrong.message) for wrong in caught.value.diagnostics] == [("E322", f"outputs 'one' and 'other' both write '{path}'")]


def test_an_output_that_is_its_own_changelog(folder: Folder) -> None:
    folder.write("pipeline.yaml", TWO.format("path: o.csv, changelog: { path: ./o.csv }", "path: p.csv"))
    with pytest.raises(errata.PipelineErrors) as caught:
        folder.load()
    assert [wrong.message for wrong in caught.value.diagnostics] == ["output 'one' writes twice to 'o.csv'"]


@pytest.mark.parametrize("one", ['path: "o_{batch_id}.csv"', 'path: x.csv, changelog: { path: "o_{batch_id}.csv" }'])
def test_two_outputs_whose_tokens_make_one_path(folder: Folder, one: str) -> None:
    folder.write("pipeline.yaml", TWO.format(one, "path: o_B.csv"))
    folder.write("s.csv", "id\n1\n")
    with pytest.raises(errata.PipelineErrors) as caught:
        folder.run(batch_id="B")
    assert [wrong.message for wrong in caught.value.diagnostics] == ["output 'one' and output 'other' both write 'o_B.csv'"]
    assert not (folder.path / "o_B.csv").exists()
    folder.run(batch_id="C")


def test_a_part_of_one_output_that_is_another_output(folder: Folder) -> None:
    folder.write("pipeline.yaml", TWO.format("path: o.csv, split: { max_records: 1 }", "path: o_0002.csv"))
    folder.write("s.csv", "id\n1\n")
    folder.run()
    folder.write("s.csv", "id\n1\n2\n")
    with pytest.raises(StorageFailed, match=r"two outputs write .*o_0002.csv"):
        folder.run()
    assert folder.text("o_0002.csv") == "id\n1\n"
    assert folder.load().head_epoch() == 1


MOVING = """\
pipeline: {{ name: moving }}
error_handling: {{ strategy: continue{0} }}
nodes:
  - {{ type: source, name: o, config: {{ name: o, type: csv, path: o.csv, schema: [{{ name: id, type: int }}] }} }}
  - {{ type: output, name: out, input: o, config: {{ name: out, type: {1}, path: {2} }} }}
"""


@pytest.mark.parametrize(("type_", "before", "after"), [("csv", "a.csv", "b.csv"), ("delta", "a", "b")])
def test_an_output_that_moved_is_the_pipelines_own(type_: str, before: str, after: str, folder: Folder) -> None:
    """A new path alone is written to the ledger, so the next correction may replace what lies there; the old file is left alone."""
    folder.write("pipeline.yaml", MOVING.format("", type_, before))
    folder.run()
    folder.write("pipeline.yaml", MOVING.format("", type_, after))
    assert folder.run().committed
    assert not folder.run().committed
    folder.write("o.csv", "id\n1\n3\n")
    folder.run()
    assert _ids(folder.path / before) == ["1", "2"]
    assert _ids(folder.path / after) == ["1", "3"]


def _ids(place: Path) -> list[str]:
    from deltalake import DeltaTable

    return sorted(str(row["id"]) for row in DeltaTable(str(place)).to_pyarrow_table().to_pylist()) if place.is_dir() else place.read_text().split()[1:]


@pytest.mark.parametrize("before", ["", ", dlq: { path: rejected-1.csv }"])
def test_a_dead_letter_file_that_is_named_anew_is_written(before: str, folder: Folder) -> None:
    """It holds the live rejects, although no record changed."""
    folder.write("o.csv", "id\n1\nx\n")
    folder.write("pipeline.yaml", MOVING.format(before, "csv", "out.csv"))
    folder.run()
    folder.write("pipeline.yaml", MOVING.format(", dlq: { path: rejected-2.csv }", "csv", "out.csv"))
    assert folder.run().committed
    assert [row["id"] for row in folder.rows("rejected-2.csv")] == ["x"]
    assert not folder.run().committed


@pytest.mark.parametrize("edit", [("out/shipped.csv", "out/moved.csv"), ("  - type: output\n    name: shipped\n    input: valued\n    config: { name: shipped, type: csv, path: out/shipped.csv }\n", "")])
def test_what_is_rolled_back_stays_so_where_an_output_moves_or_goes(edit: tuple[str, str], tmp_path: Path) -> None:
    shutil.copytree(EXAMPLES / "rollback", tmp_path / "sales", ignore=shutil.ignore_patterns(".errata", "out"))
    made = Folder(tmp_path / "sales")
    made.run()
    rejected = made.text("out/rejected.csv")
    made.write("pipeline.yaml", made.text("pipeline.yaml").replace(*edit))
    result = made.run()
    assert (result.committed, result.exit_code, result.rejected) == (True, 2, 2)
    assert made.text("out/rejected.csv") == rejected
    assert made.violations() == []


@pytest.mark.parametrize(
    ("path", "there", "message"),
    [
        ("out.csv, write_meta: true", "out.csv.meta.json/kept.txt", "output 'out': {}/out.csv.meta.json is a folder"),
        ("'o.csv', changelog: { path: out, form: two, format: csv }", "out/kept.txt", "output 'out': {}/out is a folder"),
        ("out", "out/kept.txt", "output 'out': {}/out is a folder"),
        ("out.csv/in.csv", "out.csv", "output 'out': {}/out.csv is no folder"),
        ("out.csv", "rejects.csv/kept.txt", "the dead letter queue: {}/rejects.csv is a folder"),
    ],
)
def test_what_no_file_can_replace_is_told_before_anything_is_read(path: str, there: str, message: str, tmp_path: Path) -> None:
    """On exit code 4 state and outputs stay at the last committed epoch; `--force` does not remove folders."""
    folder = Folder(tmp_path)
    folder.write(there, "kept")
    folder.write("rows.csv", "id\n1\n")
    folder.write("pipeline.yaml", f"""\
pipeline: {{ name: blocked }}
error_handling: {{ strategy: continue, dlq: {{ path: rejects.csv }} }}
nodes:
  - {{ type: source, name: rows, config: {{ name: rows, type: csv, path: rows.csv, schema: [{{ name: id, type: int }}] }} }}
  - {{ type: output, name: out, input: rows, config: {{ name: out, type: csv, path: {path}, if_exists: overwrite }} }}
""")
    with pytest.raises(StorageFailed) as caught:
        folder.run(force=True)
    assert str(caught.value) == message.format(tmp_path)
    assert folder.text(there) == "kept"
    assert folder.load().head() is None


def test_a_folder_may_have_the_name_that_parts_are_named_after(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("out/kept.txt", "kept")
    folder.write("rows.csv", "id\n1\n2\n")
    folder.write("pipeline.yaml", """\
pipeline: { name: parts }
nodes:
  - { type: source, name: rows, config: { name: rows, type: csv, path: rows.csv, schema: [{ name: id, type: int }] } }
  - { type: output, name: out, input: rows, config: { name: out, type: csv, path: out, split: { max_records: 1 } } }
""")
    result = folder.run()
    assert (result.exit_code, result.outputs) == (0, {"out": tmp_path / "out"})
    assert len([path for path in tmp_path.iterdir() if path.name.startswith("out_")]) == 2


def test_a_result_names_files_that_stand(tmp_path: Path) -> None:
    """`.outputs` names unchanged outputs too, at the path where an earlier run wrote them."""
    folder = Folder(tmp_path)
    nodes = "".join(f"""\
  - {{ type: source, name: {one}, config: {{ name: {one}, type: csv, path: {one}.csv, schema: [{{ name: id, type: int }}] }} }}
  - {{ type: output, name: out_{one}, input: {one}, config: {{ name: out_{one}, type: csv, path: "{one}_{{epoch}}.csv" }} }}
""" for one in "ab")  # fmt: skip
    folder.write("pipeline.yaml", "pipeline: { name: two }\nnodes:\n" + nodes)
    for one in "ab":
        folder.write(f"{one}.csv", "id\n1\n")
    folder.run()
    folder.write("a.csv", "id\n1\n2\n")
    expected = {"out_a": tmp_path / "a_2.csv", "out_b": tmp_path / "b_1.csv"}
    assert (folder.run().outputs, folder.run().outputs) == (expected, expected)
    assert all(path.is_file() for path in expected.values())


SUFFIXED = """\
pipeline: {{ name: suffixed }}
nodes:
  - {{ type: source, name: rows, config: {{ name: rows, type: csv, glob: "in/*.csv", schema: [{{ name: id, type: int }}] }} }}
  - {{ type: output, name: out, input: rows, config: {{ name: out, type: csv, if_exists: unique_suffix, {0} }} }}
"""


def _there(folder: Folder) -> dict[str, str]:
    """The content of `out`: the ids of each file, and the text of a foreign one."""
    return {path.name: " ".join(path.read_text().removeprefix("id\n").split()) for path in sorted((folder.path / "out").iterdir())}


def test_parts_stand_beside_foreign_files(folder: Folder) -> None:
    """Parts of a split follow the same rules: the suffix comes before the extension, and own files are rewritten."""
    folder.write("pipeline.yaml", SUFFIXED.format("path: out/o.csv, split: { max_records: 1 }"))
    foreign = {"o.csv": "whole", "o_0002.csv": "x", "o_0004.csv": "y"}
    for name, text in foreign.items():
        folder.write(f"out/{name}", text)
    for rows, written in {
        "1 2 3": {"o_0001.csv": "1", "o_0002-1.csv": "2", "o_0003.csv": "3"},
        "1 5 3 4": {"o_0001.csv": "1", "o_0002-1.csv": "5", "o_0003.csv": "3", "o_0004-1.csv": "4"},
        "6": {"o_0001.csv": "6"},
    }.items():
        folder.write("in/a.csv", "\n".join(["id", *rows.split(), ""]))
        folder.run()
        assert _there(folder) == foreign | written
        assert not folder.run().committed
        assert _there(folder) == foreign | written


@pytest.mark.parametrize("foreign", [True, False])
def test_a_file_of_its_own_is_rewritten(foreign: bool, folder: Folder) -> None:
    """The sidecar follows its file."""
    folder.write("pipeline.yaml", SUFFIXED.format("path: out/o.csv, write_meta: true"))
    there = {"o.csv": "x"} if foreign else {}
    for name, text in there.items():
        folder.write(f"out/{name}", text)
    name = "o-1.csv" if foreign else "o.csv"
    for rows in ("1 2", "1 3", "4"):
        folder.write("in/a.csv", "\n".join(["id", *rows.split(), ""]))
        folder.run()
        assert {key: value for key, value in _there(folder).items() if not key.endswith(".json")} == there | {name: rows}
        sidecar = json.loads(folder.text(f"out/{name}.meta.json"))
        assert (Path(sidecar["resolved_path"]).name, sidecar["record_count"]) == (name, len(rows.split()))
        assert not folder.run().committed
    folder.write("pipeline.yaml", SUFFIXED.format("path: out/p.csv"))
    folder.run()
    assert _there(folder)["p.csv"] == "4"


@pytest.mark.parametrize("foreign", [True, False])
def test_a_table_of_its_own_is_continued(foreign: bool, folder: Folder) -> None:
    folder.write("pipeline.yaml", SUFFIXED.format("path: out/t").replace("name: out, type: csv", "name: out, type: delta"))
    if foreign:
        folder.write("out/t", "x")
    for rows in ([1, 2], [1, 3]):
        folder.write("in/a.csv", "\n".join(["id", *map(str, rows), ""]))
        folder.run()
        assert sorted(path.name for path in (folder.path / "out").iterdir()) == (["t", "t-1"] if foreign else ["t"])
        table = DeltaTable(folder.path / "out" / ("t-1" if foreign else "t")).to_pyarrow_table()
        assert max(table["id"].to_pylist()) == rows[-1]
    folder.write("pipeline.yaml", folder.text("pipeline.yaml").replace("path: out/t", "path: out/t-9"))
    folder.run()
    folder.write("pipeline.yaml", folder.text("pipeline.yaml").replace("path: out/t-9", "path: out/u"))
    folder.run()
    assert sorted(path.name for path in (folder.path / "out").iterdir()) == (["t", "t-1", "t-9", "u"] if foreign else ["t", "t-9", "u"])


@pytest.mark.parametrize("kind", ["delta", "csv"])
def test_no_output_takes_the_path_of_another(kind: str, folder: Folder) -> None:
    first = SUFFIXED.format("path: out/o").replace("name: out, type: csv", f"name: out, type: {kind}")
    folder.write("pipeline.yaml", first + f"  - {{ type: output, name: other, input: rows, config: {{ name: other, type: {kind}, path: out/o-1 }} }}\n")
    folder.write("out/o", "x")
    folder.write("in/a.csv", "id\n1\n")
    folder.run()
    assert sorted(path.name for path in (folder.path / "out").iterdir()) == ["o", "o-1", "o-2"]


def test_parts_keep_the_names_that_were_chosen(folder: Folder) -> None:
    """Also where the file in the way is gone, or a part has to be restored."""
    folder.write("pipeline.yaml", SUFFIXED.format("path: out/o.csv, split: { max_records: 1 }, unique_suffix_width: 3"))
    folder.write("out/o_0002.csv", "x")
    folder.write("in/a.csv", "id\n1\n2\n")
    folder.run()
    written = {"o_0001.csv": "1", "o_0002-001.csv": "2"}
    for name in ("o_0002.csv", "o_0002-001.csv"):
        (folder.path / "out" / name).unlink()
    assert not folder.run().committed
    assert _there(folder) == written
    folder.write("in/a.csv", "id\n1\n3\n")
    folder.run()
    assert _there(folder) == written | {"o_0002-001.csv": "3"}


def test_files_of_source_files_stand_beside_foreign_ones(folder: Folder) -> None:
    """No name is chosen that another source file's is."""
    folder.write("pipeline.yaml", SUFFIXED.format('path: "out/{source_file}.csv", unique_suffix_width: 0'))
    folder.write("out/a.csv", "x")
    for name, id in {"a": 1, "a-1": 2}.items():
        folder.write(f"in/{name}.csv", f"id\n{id}\n")
    folder.run()
    assert _there(folder) == {"a.csv": "x", "a-1.csv": "2", "a-2.csv": "1"}
    folder.write("in/a-2.csv", "id\n3\n")
    folder.write("in/a.csv", "id\n4\n")
    folder.run()
    assert _there(folder) == {"a.csv": "x", "a-1.csv": "2", "a-2.csv": "4", "a-2-1.csv": "3"}


def test_changes_stand_beside_a_foreign_file(folder: Folder) -> None:
    folder.write("pipeline.yaml", SUFFIXED.format("path: out/o.csv, changelog: { path: out/changes.jsonl }"))
    folder.write("out/changes.jsonl", "x")
    folder.write("in/a.csv", "id\n1\n")
    folder.run()
    assert list(_there(folder)) == ["changes-1.jsonl", "changes.jsonl", "o.csv"]
    assert folder.text("out/changes.jsonl") == "x"
