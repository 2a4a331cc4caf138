"""The files of a run: patterns and paths that are refused, files that are in the way, the rest that a failed writer leaves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from errata.core.options import EngineOptions, RunOptions
from storage import durable
from storage.durable import Moment
from tests.support.killing import Died
from tests.support.pipelines import Folder, command, standing_in

PIPELINE = """
pipeline: {name: files}
nodes:
  - {type: source, name: s, config: {name: s, type: csv, WHERE, schema: [{name: a, type: int}, {name: b, type: string}]}}
  - {type: output, name: out, input: s, config: {name: out, type: csv, path: out.csv}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    made = Folder(tmp_path)
    made.write("pipeline.yaml", PIPELINE.replace("WHERE", "path: in.csv"))
    made.write("in.csv", "a,b\n1,x\n2,y\n3,z\n")
    return made


def ran(folder: Folder, *words: str) -> tuple[int, str]:
    with standing_in(folder.path):
        code, _, stderr = command("run", "pipeline.yaml", *words)
    return code, stderr


BOUNDS = [
    ("regex: '(['", "regex '([' cannot be read: missing ]"),
    ("glob: '*.csv', min_size: huge", "'huge' is no size"),
    ("glob: '*.csv', max_size: 5 KiB", "'5 KiB' is no size"),
    ("glob: '*.csv', modified_after: yesterday", "'yesterday' is no time"),
    ("glob: '*.csv', modified_before: 5 weeks", "'5 weeks' is no time"),
]


@pytest.mark.parametrize(("where", "message"), BOUNDS)
def test_what_cannot_be_understood_is_a_configuration_error(where, message, folder):
    """Exit code 1: "Invalid YAML, CXL syntax error, type mismatch, or DAG wiring problem. Fix the pipeline configuration"."""
    folder.write("pipeline.yaml", PIPELINE.replace("WHERE", where))
    code, stderr = ran(folder)
    assert code == 1
    assert f"error[E223]: {message}" in stderr


@pytest.mark.parametrize(("policy", "warns"), [("warn", True), ("skip", False)])
def test_no_match_is_warned_of_where_that_is_asked_for(policy, warns, folder):
    folder.write("pipeline.yaml", PIPELINE.replace("WHERE", f"glob: 'x/*.csv', files: {{on_no_match: {policy}}}"))
    code, stderr = ran(folder)
    assert code == 0
    assert ("warning: source 's': no file matches glob x/*.csv" in stderr) is warns
    assert folder.text("out.csv") == "a,b\n"


SPLIT = PIPELINE.replace("WHERE", "path: in.csv").replace("path: out.csv", "path: out.csv, split: {max_records: 2}")


def test_a_foreign_part_of_a_split_output_stops_the_run(folder):
    """ "Without it, the pipeline aborts if any of the output chunk files already exist." """
    folder.write("pipeline.yaml", SPLIT)
    folder.write("out_0002.csv", "mine\n")
    code, stderr = ran(folder)
    assert code == 4
    assert "out_0002.csv exists and was not written by this pipeline" in stderr
    assert sorted(path.name for path in folder.path.iterdir() if path.is_file()) == ["in.csv", "out_0002.csv", "pipeline.yaml"]
    assert folder.text("out_0002.csv") == "mine\n"
    assert ran(folder, "--force")[0] == 0
    assert folder.text("out_0002.csv") == "a,b\n3,z\n"
    assert ran(folder)[0] == 0


def test_a_writer_that_fails_leaves_nothing(folder):
    folder.write("pipeline.yaml", PIPELINE.replace("WHERE", "path: in.json").replace("type: csv, path: in.json", "type: json, path: in.json").replace("{name: b, type: string}", "{name: b, type: any}"))
    folder.write("in.json", '[{"a": 1, "b": {"c": 1}}]')
    assert ran(folder)[0] == 4
    assert not list(folder.path.glob(".*.tmp"))


@pytest.mark.parametrize("path", ["out.csv", "./out.csv"])
def test_the_dead_letter_queue_may_not_be_an_output(path, folder):
    folder.write("pipeline.yaml", PIPELINE.replace("WHERE", "path: in.csv") + f"error_handling: {{strategy: continue, dlq: {{path: {path}}}}}\n")
    code, stderr = ran(folder)
    assert code == 1
    assert f"error[E322]: output 'out' and the dead letter queue both write '{path}'" in stderr


@pytest.mark.parametrize(("path", "code"), [("../rules", "E232"), ("/etc", "E231"), ("~/rules", "E230")])
def test_modules_lie_inside_the_project(path, code, folder):
    folder.write("pipeline.yaml", PIPELINE.replace("WHERE", "path: in.csv").replace("{name: files}", f"{{name: files, rules_path: {path}}}"))
    exit_code, stderr = ran(folder)
    assert exit_code == 1
    assert f"error[{code}]: '{path}'" in stderr


def test_notes_may_stand_beside_the_pipeline(folder):
    folder.write("pipeline.yaml", PIPELINE.replace("WHERE", "path: in.csv") + "_notes: {canvas: {zoom: 2}}\n")
    assert ran(folder)[0] == 0


@pytest.mark.parametrize(("given", "name"), [("daily-2026-04-11", "daily-2026-04-11"), ("a/../b", "a_.._b"), (".hidden", "_hidden")])
def test_a_batch_id_is_the_execution_id_of_the_metrics(given, name, folder):
    """`execution_id`: "UUID v7 or custom `--batch-id` value"; the file is "named `<execution_id>.json`"."""
    assert ran(folder, "--batch-id", given, "--metrics-spool-dir", str(folder.path / "spool"))[0] == 0
    (file,) = (folder.path / "spool").iterdir()
    assert file.name == f"{name}.json"
    assert json.loads(file.read_text())["execution_id"] == given


EDI = """
pipeline: {name: edi}
nodes:
  - {type: source, name: s, config: {name: s, type: csv, path: in.csv, correlation_key: msg_ref,
     schema: [{name: seg_id, type: string}, {name: msg_ref, type: string}, {name: e01, type: string}]}}
  - type: output
    name: out
    input: s
    config: {name: out, type: edifact, path: out.edi, include_correlation_keys: true,
      options: {interchange: ["UNOA:1", S, R, "240101:1200", "1"], message_type: T}}
"""


def test_columns_of_the_engine_are_left_out_of_an_interchange(folder):
    """ "Engine-internal `$`-namespaced columns are excluded automatically." """
    folder.write("pipeline.yaml", EDI)
    folder.write("in.csv", "seg_id,msg_ref,e01\nBGM,7,x\n")
    assert ran(folder)[0] == 0
    assert folder.text("out.edi") == "UNB+UNOA:1+S+R+240101:1200+1'\nUNH+7+T'\nBGM+x'\nUNT+3+7'\nUNZ+1+1'\n"


def test_what_is_no_interchange_is_told_what_one_begins_with(folder):
    folder.write("pipeline.yaml", PIPELINE.replace("WHERE", "path: in.csv").replace("type: csv, path: in.csv", "type: edifact, path: in.csv"))
    code, stderr = ran(folder)
    assert code == 4
    assert "in.csv: segment 1: an interchange begins with UNB, not with 'a,b" in stderr


@pytest.mark.parametrize("old", ["path: in.csv", "path: out.csv", "path: dlq.csv"])
@pytest.mark.parametrize("outside", [True, False])
def test_a_link_may_not_lead_out_of_the_project(old, outside, folder, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere") if outside else folder.path / "inside"
    elsewhere.mkdir(exist_ok=True)
    (elsewhere / "in.csv").write_text("a,b\n1,x\n")
    (folder.path / "linked").symlink_to(elsewhere)
    text = PIPELINE.replace("WHERE", "path: in.csv") + "error_handling: {strategy: continue, dlq: {path: dlq.csv}}\n"
    folder.write("pipeline.yaml", text.replace(old, old.replace("path: ", "path: linked/")))
    code, stderr = ran(folder)
    assert code == (1 if outside else 0)
    assert ("error[E232]: 'linked/" in stderr) is outside
    assert not (outside and {path.name for path in elsewhere.iterdir()} - {"in.csv"})


@pytest.mark.parametrize("pattern", ["glob: 'in*.csv'", "regex: '^in.*csv$'"])
def test_a_pattern_does_not_follow_a_link_out_of_the_project(pattern, folder, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "in.csv"
    elsewhere.write_text("a,b\n2,y\n")
    (folder.path / "in2.csv").symlink_to(elsewhere)
    folder.write("pipeline.yaml", PIPELINE.replace("WHERE", pattern))
    code, stderr = ran(folder)
    assert code == 1
    assert "error[E232]: source 's': path 'in2.csv' is a link that leads out of the pipeline's folder" in stderr
    assert pattern.split(": ")[1] in stderr
    folder.write("pipeline.yaml", PIPELINE.replace("WHERE", f"{pattern}, exclude: [in2.csv]"))
    assert ran(folder)[0] == 0


def test_a_batch_id_may_not_lead_out_of_the_project(folder):
    folder.write("pipeline.yaml", PIPELINE.replace("WHERE", "path: in.csv").replace("path: out.csv", "path: 'a/{batch_id}.csv'"))
    code, stderr = ran(folder, "--batch-id", "../../out")
    assert code == 4
    assert "output 'out': 'a/../../out.csv' leads out of the pipeline's folder" in stderr
    assert not (folder.path.parent / "out.csv").exists()
    assert ran(folder, "--batch-id", "b/out")[0] == 0
    assert (folder.path / "a/b/out.csv").exists()


PER_FILE = """\
pipeline: { name: per_file }
nodes:
  - { type: source, name: s, config: { name: s, type: csv, glob: in/*.csv, files: { on_no_match: skip }, schema: [{ name: id, type: int }] } }
  - { type: transform, name: large, input: s, config: { cxl: filter id > 1 } }
  - { type: output, name: out, input: large, config: { name: out, type: csv, path: "out/{source_file}.csv" } }
"""


def test_each_source_file_has_its_own_also_where_no_row_of_it_is_left(tmp_path: Path) -> None:
    """`{source_file}` writes one file per source file."""
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", PER_FILE)

    def outputs(**files: str | None) -> dict[str, str]:
        for name, text in files.items():
            folder.remove(f"in/{name}.csv") if text is None else folder.write(f"in/{name}.csv", text)
        folder.run()
        assert not folder.run().committed
        return {path.stem: path.read_text() for path in sorted((tmp_path / "out").iterdir())}

    assert outputs(a="id\n1\n2\n", b="id\n") == {"a": "id\n2\n", "b": "id\n"}
    assert outputs(a="id\n1\n", c="id\n1\n") == {"a": "id\n", "b": "id\n", "c": "id\n"}
    assert outputs(b=None, d="id\n") == {"a": "id\n", "c": "id\n", "d": "id\n"}
    assert outputs(c="id\n5\n", a=None) == {"c": "id\n5\n", "d": "id\n"}
    assert folder.violations() == []


def test_files_of_one_name_have_their_own_by_path(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", PER_FOLDER)
    for place, rows in (("in/a", "1"), ("in/x/a", "2"), ("in/x/b.c", "3")):
        folder.write(f"{place}.csv", f"id\n{rows}\n")
    folder.run()
    assert {path: folder.text(path) for path in ("out/in/a.csv", "out/in/x/a.csv", "out/in/x/b.c.csv", "stem-a.csv", "stem-b.c.csv")} == {
        "out/in/a.csv": "id\n1\n", "out/in/x/a.csv": "id\n2\n", "out/in/x/b.c.csv": "id\n3\n", "stem-a.csv": "id\n1\n2\n", "stem-b.c.csv": "id\n3\n",
    }  # fmt: skip
    folder.remove("in/x/a.csv")
    folder.run()
    assert not (tmp_path / "out/in/x/a.csv").exists()
    assert folder.text("stem-a.csv") == "id\n1\n"
    assert folder.violations() == []


PER_FOLDER = """\
pipeline: {name: folders}
nodes:
  - {type: source, name: s, config: {name: s, type: csv, glob: "in/**/*.csv", schema: [{name: id, type: int}]}}
  - {type: output, name: out, input: s, config: {name: out, type: csv, path: "out/{source_path}.csv"}}
  - {type: output, name: stems, input: s, config: {name: stems, type: csv, path: "stem-{source_file}.csv"}}
"""
CHANGES = "changelog: {path: 'PLACE/{epoch}.csv', form: retract, format: jsonl}"
CUT = [
    ("path: o/t.csv, split: {max_records: 2}", "cl"),
    ("path: 'o/{source_file}.csv'", "cl"),
    ("path: 'o/{source_file}.csv'", "o"),
    ("path: 'o/{source_file}.csv', split: {max_records: 2, naming: '{stem}{seq}.{ext}'}", "o"),
]


@pytest.mark.parametrize(("config", "place"), CUT)
def test_changes_of_an_epoch_stay_where_parts_of_the_data_go(config: str, place: str, tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", PIPELINE.replace("WHERE", "glob: 'in/*.csv'").replace("path: out.csv", f"{config}, {CHANGES.replace('PLACE', place)}"))
    folder.write("in/f.csv", "a,b\n")
    changes, data = [], []
    for epoch, rows in enumerate(("1,x\n2,y\n3,z\n", "1,x\n2,y\n", "1,v\n"), 1):
        folder.write("in/e.csv", f"a,b\n{rows}")
        folder.run()
        assert not folder.run().committed
        changes.append((tmp_path / place / f"{epoch}.csv").read_text())
        data.append(len([path for path in (tmp_path / "o").iterdir() if not path.stem.isdecimal()]))
        assert [(tmp_path / place / f"{one}.csv").read_text() for one in range(1, epoch + 1)] == changes
    assert data == ([2, 1, 1] if config.startswith("path: o/t") else [3, 2, 2] if "split" in config else [2, 2, 2])


def test_parts_that_are_named_anew_take_the_place_of_the_others(folder):
    """Own files are rewritten, parts too: an output that becomes one file leaves no parts beside it."""
    for split, names in (
        ("", ["out.csv"]),
        (", split: {max_records: 2}", ["out_0001.csv", "out_0002.csv"]),
        (", split: {max_records: 2, naming: '{stem}-{seq}.{ext}'}", ["out-1.csv", "out-2.csv"]),
        (", write_meta: true, changelog: {path: 'c/{epoch}.jsonl'}", ["out.csv", "out.csv.meta.json"]),
        (", split: {max_records: 2}, if_exists: unique_suffix", ["out_0001.csv", "out_0002.csv"]),
        (", if_exists: unique_suffix", ["out.csv"]),
    ):
        folder.write("pipeline.yaml", PIPELINE.replace("WHERE", "path: in.csv").replace("path: out.csv", f"path: o/out.csv{split}"))
        assert ran(folder)[0] == 0
        assert sorted(path.name for path in (folder.path / "o").iterdir() if path.name != "out.csv.meta.json" or "meta" in split) == names


def test_parts_that_a_run_wrote_elsewhere_are_left_alone(folder):
    """An output with a new path is written there in full; the old file is left alone."""
    folder.write("pipeline.yaml", SPLIT.replace("path: out.csv", "path: 'o/{batch_id}.csv'"))
    for batch, rows in (("r0", "1,x\n2,y\n3,z\n"), ("r1", "1,x\n2,v\n3,z\n"), ("r1", "1,x\n")):
        folder.write("in.csv", f"a,b\n{rows}")
        assert ran(folder, "--batch-id", batch, "--max-retract-share", "1")[0] == 0
    assert sorted(path.name for path in (folder.path / "o").iterdir()) == ["r0_0001.csv", "r0_0002.csv", "r1_0001.csv"]


def test_a_file_that_records_only_look_up_has_none_of_its_own(tmp_path: Path) -> None:
    lookup = "  - { type: source, name: t, config: { name: t, type: csv, path: t.csv, schema: [{ name: id, type: int }] } }\n"
    match = "{ where: a.id == b.id, match: first, on_miss: null_fields, propagate_ck: driver, cxl: emit id = a.id }"
    joined = f"  - {{ type: combine, name: large, input: {{ a: s, b: t }}, config: {match} }}\n"
    lines = PER_FILE.splitlines(keepends=True)
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", "".join([*lines[:3], lookup, joined, lines[4]]))
    folder.write("in/a.csv", "id\n1\n")
    folder.write("t.csv", "id\n1\n")
    folder.run()
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["a.csv"]


NAMED = """\
pipeline: { name: named }
nodes:
  - { type: source, name: s, config: { name: s, type: csv, glob: in/*.csv, files: { on_no_match: skip }, schema: [{ name: q, type: int }] } }
  - { type: transform, name: t, input: s, config: { cxl: emit r = $source.file.file_stem() } }
  - { type: aggregate, name: by_file, input: t, config: { group_by: [r], cxl: emit n = sum(q) } }
  - { type: output, name: out, input: by_file, config: { name: out, type: csv, path: out.csv } }
  - { type: output, name: each, input: s, config: { name: each, type: csv, path: "each/{source_file}.csv" } }
"""


@pytest.mark.parametrize("persist", ["all", "boundaries"])
def test_what_was_made_of_the_name_of_a_file_goes_with_it_and_comes_back(tmp_path: Path, persist: str) -> None:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", NAMED + f"changelog: {{ persist: {persist} }}\n")
    for name in ("a", "b"):
        folder.write(f"in/{name}.csv", "q\n3\n4\n")
    folder.run()
    folder.remove("in/a.csv")
    folder.run()
    assert folder.text("out.csv") == "r,n\nb,7\n"
    assert folder.violations() == []
    folder.load().revert(1, RunOptions(engine=EngineOptions("sail"), max_retract_share=1.0))
    assert folder.text("out.csv") == "r,n\na,7\nb,7\n"
    assert sorted(path.name for path in (tmp_path / "each").iterdir()) == ["a.csv", "b.csv"]
    (tmp_path / "in/b.csv").rename(tmp_path / "in/c.csv")
    folder.run()
    assert folder.text("out.csv") == "r,n\na,7\nc,7\n"
    assert folder.violations() == []


OF_RECORDS = """\
pipeline: { name: records }
nodes:
  - { type: source, name: s, config: { name: s, type: csv, glob: in/*.csv, schema: [{ name: q, type: int }] } }
  - type: transform
    name: t
    input: s
    config: { cxl: "emit folder = $pipeline.source_file.parent_name()\\nemit stem = $pipeline.source_file.file_stem()\\nemit row = $pipeline.source_row" }
  - { type: output, name: out, input: t, config: { name: out, type: csv, path: out.csv } }
"""


def test_the_pipeline_names_file_and_row_of_each_record(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", OF_RECORDS)
    folder.write("in/a.csv", "q\n3\n4\n")
    folder.write("in/b.csv", "q\n5\n")
    folder.run()
    assert folder.text("out.csv") == "q,folder,stem,row\n3,in,a,1\n4,in,a,2\n5,in,b,1\n"
    folder.write("in/a.csv", "q\n4\n")
    (tmp_path / "in/b.csv").rename(tmp_path / "in/c.csv")
    folder.run()
    assert folder.text("out.csv") == "q,folder,stem,row\n4,in,a,1\n5,in,c,1\n"
    assert folder.violations() == []


def test_a_declared_variable_goes_before_the_file_and_row_of_a_record(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    declared = "vars: { pipeline: { source_row: { type: int, default: 77 } } }"
    folder.write("pipeline.yaml", OF_RECORDS.replace("name: records", f"name: records, {declared}"))
    folder.write("in/a.csv", "q\n3\n")
    folder.run()
    assert folder.text("out.csv") == "q,folder,stem,row\n3,in,a,77\n"


COUNTED = """\
pipeline: { name: counted }
error_handling: { strategy: continue, dlq: { path: rejected.csv } }
nodes:
  - { type: source, name: s, config: { name: s, type: csv, path: s.csv, schema: [{ name: q, type: int }] } }
  - { type: source, name: t, config: { name: t, type: csv, path: t.csv, schema: [{ name: q, type: int }] } }
  - { type: output, name: out, input: s, config: { name: out, type: csv, path: out.csv, write_meta: true } }
  - { type: output, name: other, input: t, config: { name: other, type: csv, path: other.csv } }
"""


def test_a_sidecar_counts_what_stands_rejected_elsewhere(tmp_path: Path) -> None:
    """The sidecar has true counts."""
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", COUNTED)
    folder.write("s.csv", "q\n1\n")
    for rows, rejected in (("1\n", 0), ("1\nx\n", 1), ("x\ny\n", 2), ("1\n", 0)):
        folder.write("t.csv", f"q\n{rows}")
        folder.run()
        sidecar = json.loads(folder.text("out.csv.meta.json"))
        assert (sidecar["dlq_count"], sidecar["record_count"], sidecar["epoch"]) == (rejected, 1, 1)
        assert not folder.run().committed
    assert folder.violations() == []


BY_SOURCE_FILE = """\
pipeline: { name: apart }
error_handling: { strategy: continue, dlq: { path: rejected.csv } }
nodes:
  - { type: source, name: s, config: { name: s, type: csv, glob: in/*.csv, schema: [{ name: q, type: int }] } }
  - { type: output, name: out, input: s, config: { name: out, type: csv, path: "out/{source_file}.csv", write_meta: true SPLIT } }
"""


@pytest.mark.parametrize("split", ["", ", split: { max_records: 1, naming: '{stem}-{seq}.{ext}' }"])
def test_each_source_file_has_its_sidecar(split: str, tmp_path: Path) -> None:
    """Tokens in paths, and the sidecar."""
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", BY_SOURCE_FILE.replace("SPLIT", split))
    for changed, counts, rejected in (({"a": "1\n2\n", "b": "3\n"}, {"a": 2, "b": 1}, 0), ({"b": "3\n4\nx\n"}, {"a": 2, "b": 2}, 1), ({"a": None, "c": "y\n"}, {"b": 2, "c": 0}, 2)):
        for name, rows in changed.items():
            folder.remove(f"in/{name}.csv") if rows is None else folder.write(f"in/{name}.csv", f"q\n{rows}")
        folder.run()
        found = {path.name.removesuffix(".csv.meta.json"): json.loads(path.read_text()) for path in (tmp_path / "out").glob("*.meta.json")}
        assert {name: sidecar["record_count"] for name, sidecar in found.items()} == counts
        for name, sidecar in found.items():
            parts = [path for path in (tmp_path / "out").glob(f"{name}*.csv") if path.suffix == ".csv"]
            assert (Path(sidecar["resolved_path"]).name, sidecar["dlq_count"], sidecar["bytes_written"]) == (f"{name}.csv", rejected, sum(path.stat().st_size for path in parts))
    assert folder.violations() == []


LOGGED = PIPELINE.replace("path: out.csv}", 'path: out.csv, changelog: {path: "PATH"}}').replace("WHERE", "path: in.csv, merge: {strategy: snapshot, primary_key: [a]}")


def _grown(folder: Folder, path: str) -> None:
    """Three epochs, a record each."""
    folder.write("pipeline.yaml", LOGGED.replace("PATH", path))
    for count in (1, 2, 3):
        folder.write("in.csv", "a,b\n" + "".join(f"{number},x\n" for number in range(count)))
        folder.run()


def test_a_refresh_removes_the_changes_of_the_epochs_that_it_forgets(folder):
    """Else a reader of all files would apply these changes twice, and the next epochs would find them in their way."""
    _grown(folder, "log/o-{epoch}.jsonl")
    folder.write("log/kept.jsonl", "of somebody else")
    folder.run(full_refresh=True)
    assert sorted(path.name for path in (folder.path / "log").iterdir()) == ["kept.jsonl", "o-1.jsonl"]
    assert [json.loads(line)["data"]["a"] for line in folder.text("log/o-1.jsonl").splitlines()] == [0, 1, 2]
    folder.write("in.csv", "a,b\n0,x\n1,x\n2,x\n3,x\n")
    assert ran(folder)[0] == 0
    assert [json.loads(line)["data"]["a"] for line in folder.text("log/o-2.jsonl").splitlines()] == [3]


def test_a_refresh_replaces_files_of_its_own_alone(folder):
    _grown(folder, "log/o-{epoch}.jsonl")
    folder.write("pipeline.yaml", LOGGED.replace("PATH", "log/o-{epoch}.jsonl").replace("out.csv", "theirs.csv"))
    folder.write("theirs.csv", "of somebody else")
    code, stderr = ran(folder, "--full-refresh")
    assert (code, "theirs.csv exists and was not written by this pipeline" in stderr) == (4, True)
    assert folder.text("theirs.csv") == "of somebody else"


def test_a_refresh_leaves_changes_at_another_path_alone(folder):
    """As it does with the data of an output that is written elsewhere now."""
    _grown(folder, "log/o-{epoch}.jsonl")
    folder.write("pipeline.yaml", LOGGED.replace("PATH", "new/o-{epoch}.jsonl"))
    folder.run(full_refresh=True)
    assert [len(list((folder.path / name).iterdir())) for name in ("log", "new")] == [3, 1]


def test_a_refresh_that_died_before_it_removed_them_is_followed_up(folder):
    _grown(folder, "log/o-{epoch}.jsonl")

    def probe(moment: Moment) -> None:
        if moment.name == "remove:o-2.jsonl" and moment.side == "before":
            raise Died

    with pytest.raises(Died), durable.probing(probe):
        folder.run(full_refresh=True)
    folder.run(full_refresh=True)
    assert sorted(path.name for path in (folder.path / "log").iterdir()) == ["o-1.jsonl"]
