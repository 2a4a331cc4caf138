"""The storage section of `explain`: the figures match the files, and hints are called hints."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import pytest

from tests.support.pipelines import Folder, command, standing_in

PIPELINE = """
pipeline: {name: grouped}
nodes:
  - {type: source, name: s, config: {name: s, type: csv, glob: in/*.csv, schema: [{name: a, type: int}, {name: b, type: int}]}}
  - {type: transform, name: t, input: s, config: {cxl: "emit c = a\\n"}}
  - {type: aggregate, name: g, input: t, config: {group_by: [a], cxl: "emit n = count(*)\\n"}}
  - {type: output, name: out, input: g, config: {name: out, type: csv, path: out.csv}}
"""
REST = """  - type: source
    name: api
    config: {name: api, type: json, transport: {kind: rest, url: "https://a.invalid/x", max_pages: 1}, schema: [{name: a, type: int}, {name: b, type: int}]}
  - {type: aggregate, name: h, input: api, config: {group_by: [a], cxl: "emit n = count(*)\\n"}}
  - {type: output, name: more, input: h, config: {name: more, type: csv, path: more.csv}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    made = Folder(tmp_path)
    made.write("pipeline.yaml", PIPELINE)
    made.write("in/a.csv", "a,b\n" + "1,2\n" * 500)
    made.write("in/b.csv", "a,b\n1,2\n")
    (tmp_path / "spilled").mkdir()
    return made


def explained(folder: Folder) -> tuple[dict[str, Any], str]:
    with standing_in(folder.path):
        code, stdout, _ = command("explain", "pipeline.yaml", "--format", "json")
        assert code == 0
        return json.loads(stdout)["storage_summary"], command("explain", "pipeline.yaml")[1]


def test_without_settings_the_engine_decides(folder):
    summary, text = explained(folder)
    assert summary["spill_root"] == {"path": gettempdir(), "source": "OS temp dir (default)"}
    assert summary["estimated_spill"] == {
        "per_stage": [{"node_name": "g", "display_name": "[aggregate] g", "estimate_bytes": 2004 + 8}],
        "total_known_bytes": 2012,
        "any_unknown": False,
    }
    assert "cap_headroom" not in summary
    assert f"Spill root: {gettempdir()} [OS temp dir (default)]\nSpill disk cap: unlimited (default)\nSpill compression: Auto [storage.spill.compress]\n" in text
    assert "[aggregate] g → 2K" in text
    assert "every source reads in place" in text


@pytest.mark.disk
def test_settings_of_the_workspace_are_shown_and_hints_are_called_so(folder):
    folder.write("errata.toml", '[storage.spill]\ndir = "spilled"\ndisk_cap_bytes = "2KB"\ncompress = "off"\n')
    summary, text = explained(folder)
    assert summary["spill_root"] == {"path": str(folder.path / "spilled"), "source": "storage.spill.dir"}
    assert summary["spill_disk_cap_bytes"] == 2000
    assert summary["spill_compression"]["mode"] == "off"
    assert summary["cap_headroom"] == {
        "headroom_bytes": -12, "estimated_bytes": 2012, "cap_bytes": 2000, "pct_of_cap": pytest.approx(100.6), "over_threshold": True,
    }  # fmt: skip
    assert "Cap headroom: -12 bytes free (2012 estimated of 2000 cap, 101%)" in text
    assert f"Spill root: {folder.path / 'spilled'} [storage.spill.dir]\n" in text
    assert "Spill disk cap: 2000 bytes [storage.spill.disk_cap_bytes]\n  a hint, which the engine does not take\n" in text
    assert "Spill compression: Off [storage.spill.compress]\n  accepted, without effect" in text


def test_what_is_not_known_is_not_called_nothing(folder):
    folder.write("pipeline.yaml", PIPELINE + REST)
    summary, text = explained(folder)
    assert [stage["estimate_bytes"] for stage in summary["estimated_spill"]["per_stage"]] == [2012, None]
    assert summary["estimated_spill"]["any_unknown"]
    assert "[aggregate] h → unknown" in text


@pytest.mark.disk
def test_the_spill_folder_reaches_the_engine(folder, monkeypatch):
    folder.write("errata.toml", '[storage.spill]\ndir = "spilled"\n')
    chosen: list[Any] = []

    def engine(choice: Any) -> Any:
        chosen.append(choice)
        raise KeyboardInterrupt

    monkeypatch.setattr("storage.engines.engine", engine)
    with pytest.raises(KeyboardInterrupt):
        folder.run()
    assert [choice.spill for choice in chosen] == [folder.path / "spilled"]


@pytest.mark.parametrize(("limit", "given"), [('"4G"', 4 << 30), ('"256M"', 1 << 30), ("null", None)])
def test_the_memory_limit_reaches_the_engine(limit, given, folder, monkeypatch):
    folder.write("pipeline.yaml", PIPELINE.replace("{name: grouped}", f"{{name: grouped, memory: {{limit: {limit}}}}}"))
    chosen: list[Any] = []

    def engine(choice: Any) -> Any:
        chosen.append(choice)
        raise KeyboardInterrupt

    monkeypatch.setattr("storage.engines.engine", engine)
    with pytest.raises(KeyboardInterrupt):
        folder.run()
    assert [choice.memory for choice in chosen] == [given]


def test_a_memory_limit_that_is_no_size_is_refused(folder):
    folder.write("pipeline.yaml", PIPELINE.replace("{name: grouped}", "{name: grouped, memory: {limit: lots}}"))
    with standing_in(folder.path):
        code, _, stderr = command("check", "pipeline.yaml")
    assert code == 1
    assert "'lots' is not a size such as 512M or 2G" in stderr


def test_a_pipeline_that_only_streams_spills_nothing(folder):
    folder.write("pipeline.yaml", PIPELINE.replace("aggregate, name: g, input: t, config: {group_by: [a], ", "transform, name: g, input: t, config: {").replace("count(*)", "a"))
    summary, text = explained(folder)
    assert summary["estimated_spill"]["per_stage"] == []
    assert "Estimated Spill Volume" not in text
