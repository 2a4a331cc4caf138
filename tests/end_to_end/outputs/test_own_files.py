"""The files that a run may not write to: foreign files without --force, and the pipeline's own files ever (E349)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from errata.core.diagnostics import PipelineErrors
from errata.core.failures import StorageFailed
from errata.plan.source_inputs import discovered
from tests.support.pipelines import Folder, command

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from errata.plan.plan import Node, Plan
    from storage.files.discovery import FileStat

PIPELINE = """\
pipeline: {{ name: p{settings} }}
error_handling: {{ strategy: continue, dlq: {{ path: {dlq} }} }}
nodes:
  - {{ type: source, name: s, config: {{ name: s, type: csv, glob: data/*.csv, schema: [{{ name: id, type: int }}, {{ name: n, type: int }}] }} }}
  - {{ type: transform, name: t, input: s, config: {{ cxl: "use shared\\nemit id = id\\nemit q = shared::half(n)" }} }}
  - {{ type: output, name: o, input: t, config: {{ name: o, type: csv, {output} }} }}
"""
INPUT = "id,n\n1,2\n2,x\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    monkeypatch.chdir(tmp_path)
    one = Folder(tmp_path)
    one.write("data/f.csv", INPUT)
    one.write("rules/shared.cxl", "fn half(n) = n / 2\n")
    one.write("errata.toml", "")
    one.write("precious.txt", "mine")
    (tmp_path / ".git").mkdir()
    return one


def laid(folder: Folder, output: str = "path: o.csv", dlq: str = "rejected.csv", settings: str = "") -> None:
    folder.write("pipeline.yaml", PIPELINE.format(output=output, dlq=dlq, settings=settings))


@pytest.mark.parametrize("name", ["precious.txt", "notes/precious.csv"])
def test_the_dead_letter_queue_replaces_no_foreign_file(folder: Folder, name: str) -> None:
    folder.write(name, "mine")
    laid(folder, dlq=name)
    with pytest.raises(StorageFailed, match=rf"the dead letter queue: .*{name} exists and was not written by this pipeline"):
        folder.run()
    assert folder.text(name) == "mine"
    assert folder.run(force=True).rejected == 1
    folder.write("data/f.csv", INPUT + "3,y\n")
    assert folder.run().rejected == 2  # its own file by now
    assert folder.text(name).count("\n") == 3


def test_a_sidecar_replaces_no_foreign_file(folder: Folder) -> None:
    folder.write("o.csv.meta.json", "mine")
    laid(folder, "path: o.csv, write_meta: true")
    with pytest.raises(StorageFailed, match=r"o\.csv\.meta\.json exists and was not written by this pipeline"):
        folder.run()
    assert folder.text("o.csv.meta.json") == "mine"


@pytest.mark.parametrize(
    ("place", "fault"),
    [
        ("data/f.csv", "is read by source 's'"),
        ("pipeline.yaml", "is the pipeline's own file"),
        ("errata.toml", "is the workspace's own file"),
        ("rules/shared.cxl", "is a module that the pipeline uses"),
        (".errata/p/anchor.json", "lies in the state of pipelines, '.errata'"),
        (".ERRATA/p/anchor.json", "lies in the state of pipelines, '.errata'"),
        (".git/config", "lies in a Git repository, '.git'"),
        ("hard.csv", "is read by source 's'"),
        ("soft.yaml", "is the pipeline's own file"),
        ("stored/config", "lies in a Git repository, '.git'"),
    ],
)
@pytest.mark.parametrize("by", ["output", "changelog", "dlq", "prometheus"])
def test_nothing_is_written_over_what_a_pipeline_is_made_of(folder: Folder, place: str, fault: str, by: str) -> None:
    (folder.path / "hard.csv").hardlink_to(folder.path / "data/f.csv")
    (folder.path / "soft.yaml").symlink_to("pipeline.yaml")
    (folder.path / "stored").symlink_to(".git")
    given = {
        "output": {"output": f"path: {place}, if_exists: overwrite"},
        "changelog": {"output": f"path: o.csv, changelog: {{ path: {place} }}"},
        "dlq": {"dlq": place},
        "prometheus": {"settings": f", metrics: {{ prometheus: {place} }}"},
    }[by]
    laid(folder, **given)
    with pytest.raises(PipelineErrors) as caught:
        folder.load().check()
    assert [(one.code, one.message) for one in caught.value.diagnostics] == [("E349", f"'{place}' {fault}")]


@pytest.mark.parametrize(("read", "written"), [("t", "t"), ("t", "link"), ("s3://b/t", "s3://b/t/")])
def test_no_output_is_the_table_that_a_source_reads(folder: Folder, read: str, written: str) -> None:
    (folder.path / "t").mkdir()
    (folder.path / "link").symlink_to("t")
    source = f"{{ type: source, name: s, config: {{ name: s, type: delta, path: '{read}', schema: [{{ name: id, type: int }}] }} }}"
    folder.write("pipeline.yaml", f"""\
pipeline: {{ name: p }}
nodes:
  - {source}
  - {{ type: output, name: o, input: s, config: {{ name: o, type: delta, path: '{written}' }} }}
""")
    with pytest.raises(PipelineErrors) as caught:
        folder.load()
    assert [(one.code, one.message) for one in caught.value.diagnostics] == [("E349", f"'{written}' is read by source 's'")]


def test_a_state_elsewhere_is_as_safe(folder: Folder, tmp_path: Path) -> None:
    folder.write("errata.toml", '[state]\npath = "kept"\n')
    laid(folder, "path: kept/p/o.csv")
    with pytest.raises(PipelineErrors, match="lies in the pipeline's state"):
        folder.load()
    laid(folder, "path: kept/o.csv")
    assert folder.run().rejected == 1


def test_a_path_that_the_rows_or_the_run_make_is_refused_by_the_run(folder: Folder) -> None:
    laid(folder, 'path: "data/{source_file}.csv", if_exists: overwrite')
    with pytest.raises(StorageFailed, match=r"output 'o': 'data/f.csv' is read by source 's'"):
        folder.run(force=True)
    assert folder.text("data/f.csv") == INPUT
    laid(folder, 'path: ".git/{batch_id}.csv"')
    with pytest.raises(PipelineErrors, match="E349"):
        folder.load()
    laid(folder, 'path: "{batch_id}.yaml", if_exists: overwrite')
    with pytest.raises(PipelineErrors, match="is the pipeline's own file"):
        folder.run(batch_id="pipeline", force=True)
    assert folder.text("pipeline.yaml").startswith("pipeline:")


@pytest.mark.parametrize(
    ("known", "select", "output", "fed"),
    [
        ("a.csv", "glob: in/*.csv", "path: o.csv, changelog: { path: 'in/c{epoch:3}.csv', format: csv }", "in/c001.csv"),
        ("42.csv", "glob: 'in/[0-9][0-9].csv'", "path: o.csv, changelog: { path: 'in/{epoch:2}.csv', format: csv }", "in/01.csv"),
        ("a.csv", "glob: in/*.csv", "path: 'in/o-{batch_id}.csv'", "in/o-b.csv"),
        ("a.csv", "glob: in/*.csv", "path: 'in/o-{batch_id::.csv}'", "in/o-b.csv"),
        ("a.csv", "glob: in/*.csv", "path: 'in/{channel}/o-{batch_id}.csv'", "in/o-b.csv"),
        ("a.csv", "glob: in/*.csv", "path: 'lnk/o-{batch_id}.csv'", "lnk/o-b.csv"),
        ("a.csv", "glob: lnk/*.csv", "path: 'in/o-{batch_id}.csv'", "in/o-b.csv"),
        ("a.csv", "glob: in/*.csv", "path: 'in/o-{batch_id}', split: { max_records: 1, naming: '{stem}-{seq:04}.csv' }", "in/o-b-0001.csv"),
        ("a.csv", "glob: in/*.csv", "path: 'in/{source_file}-{batch_id}.csv'", "in/a-b.csv"),
        ("a.json", "glob: 'in/**/*.json'", "path: 'in/o-{batch_id}', write_meta: true", "in/o-b.meta.json"),
        ("a.csv", "regex: '^in/.*csv$'", "path: 'in/./sub/o-{batch_id}.csv'", "in/sub/o-b.csv"),
        ("a.csv", "glob: in/*.csv", "path: 'out/o-{batch_id}.csv', changelog: { path: 'in/sub/c{epoch}.csv' }", None),
        ("a.csv", "glob: in/*.csv, exclude: 'in/o-*'", "path: 'in/o-{batch_id}.csv'", None),
        ("a.csv", "glob: in/*.csv, exclude: 'in/out-*'", "path: 'in/{batch_id:out-:}.csv'", None),
        ("a.csv", "glob: 'in/?.csv'", "path: 'in/{timestamp}.csv'", None),
        ("42.csv", "glob: 'in/[0-9]*.csv'", "path: 'in/{batch_id}.csv'", None),
        ("orders-7.csv", "regex: '^in/orders-[0-9]+[.]csv$'", "path: 'in/orders-{execution_id}.csv'", None),
        ("a.csv", "regex: '^in/a.csv$'", "path: 'in/o-{batch_id}.csv'", None),
        ("a.csv", "glob: in/*.csv, max_size: 1MB", "path: 'in/o-{batch_id}.csv'", None),
        ("a.csv", "glob: in/*.csv", "type: delta, path: 'in/t-{batch_id}'", None),
    ],
)
def test_no_source_reads_what_earlier_runs_wrote(tmp_path: Path, known: str, select: str, output: str, fed: str | None) -> None:
    """Each run writes another path there, so no later run finds its own file in the way."""
    folder = Folder(tmp_path)
    folder.write(f"in/{known}", "id\n1\n")
    (tmp_path / "lnk").symlink_to("in")
    folder.write("pipeline.yaml", f"""\
pipeline: {{ name: p }}
nodes:
  - {{ type: source, name: s, config: {{ name: s, type: csv, {select}, schema: [{{ name: id, type: int }}] }} }}
  - {{ type: output, name: o, input: s, config: {{ name: o, {'' if 'type:' in output else 'type: csv, '}{output} }} }}
""")
    code, _, stderr = command("run", str(tmp_path / "pipeline.yaml"), "--batch-id", "b")
    if fed is None:
        assert code == 0
        return
    assert (code in (1, 4), f"'{fed}' is read by source 's'" in stderr) == (True, True)
    assert [path.name for path in (tmp_path / "in").iterdir()] == [known]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["check"], 1), (["plan"], 1), (["run"], 1), (["run", "--ephemeral"], 1), (["run", "--dry-run"], 1),
        (["correct", "s", "--key", "id=1", "--set", "n=4", "--reason", "r"], 1), (["status"], 0), (["log", "o"], 0),
    ],
)  # fmt: skip
def test_only_commands_that_write_and_check_look_for_inputs(folder: Folder, words: list[str], code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    laid(folder)
    assert folder.run().rejected == 1
    laid(folder, "path: data/f.csv, if_exists: overwrite", settings=", metrics: { prometheus: data/f.csv }")
    if code == 0:
        for name in ("discovered", "reach_of"):
            monkeypatch.setattr(f"errata.plan.own_files.{name}", lambda node, plan: pytest.fail("the input files are looked up"))
    ended, _, stderr = command(words[0], "pipeline.yaml", *words[1:])
    assert ended == code, stderr
    assert ("error[E349]: 'data/f.csv' is read by source 's'" in stderr) == bool(code)
    assert folder.text("data/f.csv") == INPUT


@pytest.mark.parametrize(("link", "to", "place"), [("alias.csv", "data/f.csv", "alias.csv"), ("data/g.csv", "../kept.csv", "kept.csv"), ("there", "data", "there/f.csv")])
def test_links_hide_no_input(folder: Folder, link: str, to: str, place: str) -> None:
    folder.write("kept.csv", INPUT)
    (folder.path / link).symlink_to(to)
    laid(folder, f"path: {place}, if_exists: overwrite")
    with pytest.raises(PipelineErrors, match=f"'{place}' is read by source 's'"):
        folder.load().check()


def test_inputs_are_looked_up_once_and_only_where_a_target_may_be_one(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    laid(folder)
    assert folder.run().rejected == 1
    looked = list[str]()

    def counted(node: Node, plan: Plan) -> Sequence[FileStat]:
        looked.append(node.name)
        return discovered(node, plan)

    monkeypatch.setattr("errata.plan.own_files.discovered", counted)
    folder.write("data/f.csv", INPUT + "3,y\n")
    assert folder.run().rejected == 2
    assert looked == []
    for name in ("o.csv", "rejected.csv"):
        (folder.path / f"{name}.copy").hardlink_to(folder.path / name)
    folder.write("data/f.csv", INPUT + "3,y\n4,z\n")
    assert folder.run().rejected == 3
    assert looked == ["s"]
