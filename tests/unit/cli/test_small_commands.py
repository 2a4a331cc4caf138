"""Commands that need no pipeline: init, schema, doctor, metrics collect, explain --code; and files replaced in one step."""

import csv
import io
import itertools
import json
import shlex
from pathlib import Path

import click
import pytest

from errata.cli.console import changed_outputs, summary
from errata.cli.group import errata
from errata.core.codes import registered
from errata.core.events import OutputChange, RunResult
from errata.core.files import replace_file
from errata.yaml import load_yaml


def test_init_makes_a_project_and_never_overwrites_one(call, tmp_path: Path) -> None:
    assert call("init demo")[0] == 0
    assert load_yaml(tmp_path / "demo/pipeline.yaml").value["pipeline"] == {"name": "orders_by_region"}  # type: ignore[index]
    (tmp_path / "demo/data/orders.csv").write_text("mine")
    code, _, errors = call("init demo")
    assert code == 4
    assert "demo/pipeline.yaml exists" in errors
    assert (tmp_path / "demo/data/orders.csv").read_text() == "mine"
    assert call("init demo --force")[0] == 0
    assert (tmp_path / "demo/data/orders.csv").read_text().startswith("order_id")


def test_explain_code(call) -> None:
    code, output, _ = call("explain --code e154")
    assert code == 0
    assert output.startswith("# E154: ")


def test_an_unknown_code_enumerates_all(call) -> None:
    code, _, errors = call("explain --code E0")
    assert code == 64
    assert all(one in errors for one in registered())


def test_doctor_names_what_it_looked_at(call) -> None:
    rows = list(csv.DictReader(io.StringIO(call("doctor --format csv")[1])))
    assert {"python", "java", "engine", "pyspark"} <= {row["what"] for row in rows}
    assert all(row["repair"] for row in rows if row["verdict"] != "ok")


@pytest.mark.parametrize("engine", ["spark", "sail"])
def test_doctor_says_which_engine_is_asked_for(call, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def choice(words: str) -> str:
        return next(row["found"] for row in csv.DictReader(io.StringIO(call(f"doctor --format csv{words}")[1])) if row["what"] == "engine")

    assert choice(f" --engine {engine}") == f"{engine}, as --engine or ERRATA_ENGINE says"
    monkeypatch.setenv("ERRATA_ENGINE", engine)
    assert choice("") == choice(f" --engine {engine}")
    assert choice(" --engine auto").startswith("auto means ")


def _spool(folder: Path) -> None:
    folder.mkdir()
    (folder / "b.json").write_text(json.dumps({"execution_id": "2", "pipeline_name": "p"}))
    (folder / "a.json").write_text(json.dumps({"execution_id": "1", "pipeline_name": "q"}))
    (folder / "broken.json").write_text("{")
    (folder / "other.json").write_text("[]")


def test_metrics_collect(call, tmp_path: Path) -> None:
    _spool(tmp_path / "spool")
    words = "metrics collect --spool-dir spool --output-file out/all.ndjson"
    assert call(f"{words} --dry-run")[1] == "Would collect 2 files from spool\n  spool/a.json (q)\n  spool/b.json (p)\n"
    assert not (tmp_path / "out").exists()
    assert call(words)[1] == "Collected 2 files into out/all.ndjson\n"
    assert call(f"{words} --delete-after-collect")[0] == 0
    lines = (tmp_path / "out/all.ndjson").read_text().splitlines()
    assert [json.loads(line)["execution_id"] for line in lines] == ["1", "2", "1", "2"]
    assert sorted(path.name for path in (tmp_path / "spool").iterdir()) == ["broken.json", "other.json"]


def test_a_spool_that_is_not_there(call) -> None:
    assert call("metrics collect --spool-dir none --output-file x")[0] == 4


def test_a_file_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    replace_file(tmp_path / "a/b.txt", "one\n")
    with pytest.raises(UnicodeEncodeError):
        replace_file(tmp_path / "a/b.txt", "\ud800")
    assert [(path.name, path.read_text()) for path in (tmp_path / "a").iterdir()] == [("b.txt", "one\n")]


def test_the_outputs_that_a_run_changed_are_told_in_rows() -> None:
    changes = [OutputChange("revenue", 0, 1, 2, 1_000_000), OutputChange("list", 5, 0, 0, None), OutputChange("more", 1_200, 0, 0, 1), OutputChange("one", 0, 0, 1, 1, 1)]
    assert list(changed_outputs(changes)) == [
        "revenue: 2 corrected, 1 gone; 3 of 1,000,000 delivered rows differ",
        "list: 5 new",
        "more: 1,200 new; none of 1 delivered row differs",
        "one: 1 corrected (1 booked); 1 of 1 delivered row differs",
    ]
    assert list(changed_outputs(changes * 6))[-1] == "and 4 outputs more"


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (RunResult(exit_code=0, epoch=2, committed=True, seconds=1.0), "Epoch 2: no row changed (1.0 s)"),
        (RunResult(exit_code=2, epoch=2, committed=False, rejected=3, seconds=1.0), "Nothing changed, epoch 2; 3 rejected (1.0 s)"),
        (RunResult(exit_code=0, epoch=2, committed=True, counts={"a": {"+A": 1000}, "b": {"+A": 1, "-R": 2}}), "Epoch 2: +A 1,001, -R 2 (0.0 s)"),
    ],
)
def test_a_run_is_told_in_one_line(result: RunResult, message: str) -> None:
    """An epoch that only rejects, nodes or files made is reported as one."""
    assert summary(result) == message


COMMANDS = [(f"errata {name}", command) for name in errata.list_commands(click.Context(errata)) if (command := errata.get_command(click.Context(errata), name)) is not None]
COMMANDS = [(name, one) for name, one in COMMANDS if not isinstance(one, click.Group)] + [(f"{name} {word}", inner) for name, one in COMMANDS if isinstance(one, click.Group) for word, inner in one.commands.items()]


@pytest.mark.parametrize(("name", "command"), COMMANDS, ids=[name for name, _ in COMMANDS])
def test_help_has_two_examples_and_shared_options_last(call, name: str, command: click.Command) -> None:
    code, output, _ = call(f"{name.removeprefix('errata ')} --help")
    assert code == 0
    examples = [line.split() for line in output.splitlines() if line.startswith(f"    {name} ") or line == f"    {name}"]
    assert len(examples) >= 2
    for words in examples:
        alone = list(itertools.takewhile(lambda word: word not in ("|", ">"), words[len(name.split()) :]))
        command.make_context(name, shlex.split(" ".join(alone)), resilient_parsing=False).close()
    headings = [line for line in output.splitlines() if line.startswith("Options") and line.endswith(":")]
    assert headings[-1] == "Options of all commands:"
    assert headings == sorted(headings, key=["Options:", "Options of pipelines:", "Options of engines:", "Options of all commands:"].index)
    assert output.rstrip().splitlines()[-1].split()[:2] == ["-h,", "--help"]
