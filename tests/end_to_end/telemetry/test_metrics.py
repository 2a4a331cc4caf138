"""The metrics file of a run: one for each run, whatever its end, with the documents' fields."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from cattrs.errors import ForbiddenExtraKeysError
from prometheus_client.parser import text_string_to_metric_families

from errata.core.failures import Failure, Stopped
from errata.core.options import Correction, EngineOptions, RunOptions
from errata.telemetry.openlineage import facet
from tests.support.openlineage_events import FACETS, read_event, read_facet
from tests.support.pipelines import Folder, command, standing_in

PIPELINE = """
pipeline: {name: counted, metrics: {spool_dir: spool}}
error_handling: {strategy: STRATEGY, dlq: {path: dlq.csv}}
nodes:
  - {type: source, name: s, config: {name: s, type: csv, glob: in/*.csv, schema: [{name: a, type: int}, {name: b, type: int}]}}
  - {type: transform, name: t, input: s, config: {cxl: "filter a > 0\\nemit c = a / b\\n"}}
  - {type: output, name: out, input: t, config: {name: out, type: csv, path: out.csv, if_exists: overwrite}}
"""
FIELDS = {
    "execution_id": str, "schema_version": int, "pipeline_name": str, "config_path": str, "hostname": str, "started_at": str, "finished_at": str,
    "duration_ms": int, "exit_code": int, "records_total": int, "records_ok": int, "records_dlq": int, "execution_mode": str,
    "peak_rss_bytes": int, "thread_count": int, "input_files": list, "output_files": list, "dlq_path": (str, type(None)), "error": (str, type(None)),
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    made = Folder(tmp_path)
    made.write("pipeline.yaml", PIPELINE.replace("STRATEGY", "continue"))
    made.write("in/a.csv", "a,b\n1,1\n2,0\n-1,1\n")
    made.write("in/b.csv", "a,b\n4,2\n")
    return made


def spooled(folder: Folder, name: str = "spool") -> list[dict[str, Any]]:
    files = sorted((folder.path / name).glob("*.json"), key=lambda file: file.stat().st_mtime_ns)
    found = [json.loads(file.read_text()) for file in files]
    assert [file.stem for file in files] == [one["execution_id"] for one in found]
    return found


def test_every_field_of_the_documents(folder):
    folder.run()
    (one,) = spooled(folder)
    assert {name: name for name, kind in FIELDS.items() if not isinstance(one.get(name, ...), kind)} == {}
    assert UUID(one["execution_id"]).version == 7
    assert (one["schema_version"], one["pipeline_name"], one["config_path"]) == (1, "counted", str(folder.path / "pipeline.yaml"))
    assert (one["records_total"], one["records_ok"], one["records_dlq"], one["exit_code"], one["error"]) == (4, 2, 1, 2, None)
    assert (one["input_files"], one["output_files"]) == (["in/a.csv", "in/b.csv"], ["out.csv"])
    assert (one["dlq_path"], one["execution_mode"], one["engine"]) == ("dlq.csv", "streaming", "sail")
    began, ended = (datetime.fromisoformat(one[name]) for name in ("started_at", "finished_at"))
    assert abs((ended - began).total_seconds() * 1000 - one["duration_ms"]) < 1_000  # two clocks, and whatever the machine does between them
    assert one["peak_rss_bytes"] > 10_000_000
    assert one["changes"]["s"] == {"+A": 4}


def test_counts_stand_for_the_state_and_changes_for_the_run(folder):
    folder.run()
    folder.write("in/a.csv", "a,b\n1,1\n2,2\n")
    folder.run()
    folder.run()
    _, second, third = spooled(folder)
    assert (second["records_total"], second["records_ok"], second["records_dlq"], second["exit_code"]) == (3, 3, 0, 0)
    assert (second["epoch"], second["committed"], second["dlq_path"]) == (2, True, None)
    assert (third["records_ok"], third["committed"], third["changes"]) == (3, False, {})


def test_a_failed_run_says_why_and_what_stands(folder):
    folder.run()
    folder.write("pipeline.yaml", PIPELINE.replace("STRATEGY", "fail_fast"))
    folder.write("in/c.csv", "a,b\n7,0\n")
    with pytest.raises(Failure) as failed:
        folder.run()
    first, one = spooled(folder)
    assert (one["exit_code"], one["error"], one["records_ok"], one["epoch"], one["committed"]) == (3, failed.value.message, first["records_ok"], 1, False)


@pytest.mark.parametrize("option", [True, False])
def test_a_run_that_a_threshold_ended_says_what_it_came_to(folder, option):
    """`records_total` counts records of all sources, `records_dlq` the dead letters."""
    share = "" if option else "type_error_threshold: 0.1, "
    folder.write("pipeline.yaml", PIPELINE.replace("STRATEGY", "continue").replace("{strategy", f"{{{share}strategy").replace("metrics: {", "metrics: {prometheus: told.prom, "))
    folder.write("in/c.csv", "a,b\n7,0\n")
    with pytest.raises(Failure):
        folder.load().run(RunOptions(engine=EngineOptions("sail"), error_threshold=1 if option else 0))
    (one,) = spooled(folder)
    assert (one["exit_code"], one["epoch"], one["committed"], one["changes"]) == (3, None, False, {})
    assert (one["records_total"], one["records_ok"], one["records_dlq"]) == (5, 2, 2)
    assert (one["input_files"], one["output_files"], one["dlq_path"]) == (["in/a.csv", "in/b.csv", "in/c.csv"], [], None)
    assert 'errata_records{pipeline="counted",state="dlq"} 2' in folder.text("told.prom")


@pytest.mark.parametrize("option", [True, False])
def test_a_threshold_counts_records_that_were_rejected_before(folder, option):
    """A run over unchanged input ends as a full run over it does."""
    folder.write("pipeline.yaml", PIPELINE.replace("STRATEGY", "continue"))
    folder.write("in/c.csv", "a,b\n7,0\n")
    assert folder.run(error_threshold=2).exit_code == 2
    if not option:
        folder.write("pipeline.yaml", PIPELINE.replace("STRATEGY", "continue").replace("{strategy", "{type_error_threshold: 0.1, strategy"))
    before, outputs = folder.state_files(), folder.text("out.csv")
    for refresh in (False, True):
        with pytest.raises(Stopped, match="2 records were rejected, more than the threshold of 1" if option else "2 of 5 records failed, more than the share 0.1"):
            folder.run(error_threshold=1 if option else 0, full_refresh=refresh)
        assert (folder.text("out.csv"), refresh or folder.state_files() == before) == (outputs, True)
    assert {(one["exit_code"], one["records_total"], one["records_ok"], one["records_dlq"]) for one in spooled(folder)} == {(2, 5, 2, 2), (3, 5, 2, 2)}


def test_a_secret_is_in_no_metrics(folder, monkeypatch):
    monkeypatch.setenv("SHOP_TOKEN", "t0psecret")
    folder.write("pipeline.yaml", PIPELINE.replace("STRATEGY", "continue").replace("in/*.csv", "${secret:SHOP_TOKEN}/*.csv").replace("spool_dir: spool", f"spool_dir: spool, {TOLD[10:-1]}"))
    with standing_in(folder.path):
        assert command("run", "pipeline.yaml")[0] == 4
    (file,) = (folder.path / "spool").glob("*.json")
    assert json.loads(file.read_text())["error"] == "source 's': ***/*.csv: no file matches"
    assert [event["inputs"][0]["name"] for event in events(folder)] == [str(folder.path / "***/*.csv")] * 2
    assert "t0psecret" not in "".join(file.read_text() for folder_ in ("spool", "told") for file in (folder.path / folder_).iterdir())


def test_a_batch_that_is_tried_again_has_a_file_of_its_own(folder):
    with standing_in(folder.path):
        codes = [command("run", "pipeline.yaml", "--batch-id", "night/1", "--threads", threads)[0] for threads in ("1", "2")]
    assert codes == [2, 2]
    names = ("night_1.json", "night_1-2.json")
    found = [json.loads(folder.text(f"spool/{name}")) for name in names]
    assert sorted(file.name for file in (folder.path / "spool").iterdir()) == sorted(names)
    assert [(one["execution_id"], one["batch_id"], one["committed"], one["thread_count"]) for one in found] == [("night/1", "night/1", True, 1), ("night/1", "night/1", False, 2)]


def test_the_threads_that_the_pipeline_asks_for(folder):
    folder.write("pipeline.yaml", PIPELINE.replace("STRATEGY", "continue").replace("{name: counted,", "{name: counted, concurrency: {threads: 3},"))
    folder.run()
    assert [one["thread_count"] for one in spooled(folder)] == [3]


def test_the_option_wins_over_the_variable_and_that_over_the_pipeline(folder, monkeypatch):
    monkeypatch.setenv("ERRATA_METRICS_SPOOL_DIR", str(folder.path / "by-variable"))
    with standing_in(folder.path):
        assert command("run", "pipeline.yaml")[0] == 2
        assert command("run", "pipeline.yaml", "--metrics-spool-dir", "by-option")[0] == 2
    assert [len(list((folder.path / name).glob("*.json"))) for name in ("by-variable", "by-option")] == [1, 1]
    assert not (folder.path / "spool").exists()


def test_a_folder_that_cannot_be_written_does_not_fail_the_run(folder):
    (folder.path / "spool").write_text("a file, no folder")
    with standing_in(folder.path):
        code, _, stderr = command("run", "pipeline.yaml")
    assert code == 2
    assert "no metrics were written" in stderr
    assert (folder.path / "out.csv").exists()


def test_what_is_spooled_is_collected(folder):
    folder.run()
    folder.run()
    names = [one["execution_id"] for one in spooled(folder)]
    folder.write("spool/broken.json", '{"execution_id": ')
    words = ("metrics", "collect", "--spool-dir", "spool", "--output-file", "spool/all.ndjson")
    warning = "warning: spool/broken.json is left where it is: it has no metrics of a run\n"
    with standing_in(folder.path):
        listed = "".join(f"  spool/{name}.json (counted)\n" for name in sorted(names))
        assert command(*words, "--dry-run") == (0, f"Would collect 2 files from spool\n{listed}", warning)
        assert not (folder.path / "spool/all.ndjson").exists()
        assert command(*words, "--delete-after-collect") == (0, "Collected 2 files into spool/all.ndjson\n", warning)
        assert command(*words) == (0, "Collected 0 files into spool/all.ndjson\n", warning)
    assert sorted(json.loads(line)["execution_id"] for line in folder.text("spool/all.ndjson").splitlines()) == sorted(names)
    assert sorted(file.name for file in (folder.path / "spool").iterdir()) == ["all.ndjson", "broken.json"]


# What retraction cost ---------------------------------------------------------------------------------------------------
RETRACTED = """
pipeline: {name: counted, metrics: {spool_dir: spool}}
error_handling: {strategy: continue}
nodes:
  - type: source
    name: s
    config: {name: s, type: csv, path: in.csv, correlation_key: sale, schema: [{name: sale, type: int}, {name: dept, type: string}, {name: n, type: int}]}
  - {type: aggregate, name: totals, input: s, config: {group_by: [dept], cxl: "emit total = sum(n)"}}
  - {type: transform, name: share, input: totals, config: {cxl: "emit share = 100 / total"}}
  - {type: output, name: out, input: share, config: {name: out, type: csv, path: out.csv}}
"""


def test_retraction_counters(tmp_path):
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", RETRACTED)
    folder.write("in.csv", "sale,dept,n\n1,a,5\n2,b,0\n2,c,1\n3,c,2\n")  # b fails behind the aggregate: sale 2 goes, c is 2
    folder.run()
    folder.write("in.csv", "sale,dept,n\n1,a,5\n2,b,4\n2,c,1\n3,c,2\n")  # b is whole, c is 3
    folder.run()
    first, second = (one["correlation"]["retract"] for one in spooled(folder))
    names = ("groups_recomputed", "subdag_replay_rows", "output_rows_retracted_total", "synthetic_ck_fanout_lookups_total", "synthetic_ck_fanout_rows_expanded_total")
    assert [first[name] for name in names] == [1, 4, 0, 1, 1]  # a and c through two nodes; one failed row with one record behind it
    assert [second[name] for name in names] == [1, 4, 1, 0, 0]  # c corrected, b new, through two nodes
    assert (first["partitions_recomputed"], first["degrade_fallback_count"], first["synthetic_ck_columns_emitted_total"]) == (0, 0, 1)


def test_a_retry_is_told_like_a_run(tmp_path):
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", RETRACTED)
    folder.write("in.csv", "sale,dept,n\n1,a,5\n2,b,0\n2,c,1\n3,c,2\n")
    folder.run()
    (group,) = folder.load().dlq_groups()
    result = folder.load().dlq_retry(group["group"], RunOptions(engine=EngineOptions("sail")))
    assert [one["execution_id"] for one in spooled(folder)][1:] == [result.execution_id]


WINDOWED = "  - {type: transform, name: w, input: totals, config: {cxl: emit t = $window.sum(total), analytic_window: {group_by: [BY]}}}\n"


@pytest.mark.parametrize(("by", "windows"), [("dept", 0), ("sale", 1)])
def test_windows_over_what_a_relaxed_aggregate_leaves_out_are_in_buffer_mode(by, windows, tmp_path):
    """A relaxed aggregate whose dropped key fields overlap the window's `group_by`."""
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", RETRACTED.replace("emit total", "emit sale = max(sale)\\nemit total") + WINDOWED.replace("BY", by))
    with standing_in(tmp_path):
        code, stdout, _ = command("explain", "pipeline.yaml")
    assert code == 0
    assert f"retraction enabled — 1 relaxed aggregates, {windows} buffer-mode windows, fanout policy: any." in stdout
    assert ("\nwindow w\n" in stdout) == bool(windows)


# Prometheus and OpenLineage ---------------------------------------------------------------------------------------------
TOLD = "metrics: {prometheus: told/errata.prom, openlineage: {path: told/lineage.jsonl, namespace: shop}}"
JOINED = """
pipeline: {name: joined, TOLD}
error_handling: {strategy: continue}
nodes:
  - {type: source, name: orders, config: {name: orders, type: csv, glob: in/*.csv, schema: [{name: id, type: int}, {name: product, type: string}, {name: n, type: int}]}}
  - {type: source, name: prices, config: {name: prices, type: csv, path: prices.csv, schema: [{name: code, type: string}, {name: price, type: float}]}}
  - type: combine
    name: priced
    input: {o: orders, p: prices}
    config: {where: "o.product == p.code", match: first, on_miss: null_fields, propagate_ck: driver, cxl: "emit region = o.product\\nemit value = o.n * p.price\\n"}
  - {type: transform, name: marked, input: priced, config: {cxl: "let twice = value * 2\\nemit share = if region == \\"x\\" then twice else 0.0\\n"}}
  - {type: aggregate, name: sums, input: marked, config: {group_by: [region], cxl: "emit total = sum(share)\\nemit rows = count(*)\\n"}}
  - {type: output, name: out, input: sums, config: {name: out, type: csv, path: out.csv, mapping: {sum: total}, if_exists: overwrite}}
""".replace("TOLD", TOLD)


@pytest.fixture
def joined(tmp_path: Path) -> Folder:
    made = Folder(tmp_path)
    made.write("pipeline.yaml", JOINED)
    made.write("in/a.csv", "id,product,n\n1,x,2\n2,y,3\n")
    made.write("prices.csv", "code,price\nx,1.5\ny,2\n")
    return made


def events(folder: Folder) -> list[dict[str, Any]]:
    return [json.loads(line) for line in folder.text("told/lineage.jsonl").splitlines()]


def check_event(event: dict[str, Any]) -> None:
    """Check an event by the standard's classes, and that its producer is Errata."""
    assert read_event(event).eventType is not None
    holders = [event["run"], event["job"], *event["inputs"], *event["outputs"]]
    facets = [facet for one in holders for kind in FACETS for facet in one.get(kind, {}).values()]
    assert all(one["producer"].startswith("urn:errata:") for one in [event, *({"producer": facet["_producer"]} for facet in facets)])


@pytest.mark.parametrize("spoiled", [{"fields": [{"nam": "a"}]}, {"fields": [{"name": 1}]}, {"field": []}, {"_schemaURL": "https://openlineage.io/1"}, {"_producer": None}])
def test_the_reader_of_events_takes_only_what_the_standard_allows(spoiled):
    schema = facet("schema", fields=[{"name": "a", "type": "int"}])
    read_facet("schema", schema["schema"])
    with pytest.raises((AssertionError, ForbiddenExtraKeysError)):
        read_facet("schema", schema["schema"] | spoiled)


def test_a_run_is_told_as_lineage_with_the_columns_behind_each_column(joined):
    joined.run()
    start, end = events(joined)
    for event in (start, end):
        check_event(event)
    assert [field["ordinal_position"] for field in end["outputs"][0]["facets"]["schema"]["fields"]] == [1, 2, 3]
    assert (start["eventType"], end["eventType"]) == ("START", "COMPLETE")
    assert start["run"]["runId"] == end["run"]["runId"]
    assert (start["job"]["namespace"], start["job"]["name"]) == ("shop", "joined")
    orders, prices = str(joined.path / "in/*.csv"), str(joined.path / "prices.csv")
    assert [one["name"] for one in end["inputs"]] == [orders, prices]
    (out,) = end["outputs"]
    assert out["outputFacets"]["outputStatistics"]["rowCount"] == 2
    lineage = {
        name: sorted((field["name"], field["field"]) for field in column["inputFields"])
        for name, column in out["facets"]["columnLineage"]["fields"].items()
    }
    assert lineage == {"region": [(orders, "product")], "sum": sorted([(orders, "product"), (orders, "n"), (prices, "price")])}


def test_corrections_are_a_facet_of_the_run(joined):
    joined.run()
    joined.write("in/a.csv", "id,product,n\n1,x,4\n2,y,3\n")
    result = joined.run()
    check_event(events(joined)[-1])
    corrections = events(joined)[-1]["run"]["facets"]["errata_corrections"]
    assert (corrections["epoch"], corrections["committed"], corrections["executionId"]) == (2, True, result.execution_id)
    assert corrections["nodes"]["sums"] == {"appended": 0, "retracted": 0, "corrected": 1}
    assert corrections["nodes"]["orders"] == {"appended": 1, "retracted": 1, "corrected": 0}


def test_a_run_that_fails_is_told_as_one(joined):
    joined.remove("prices.csv")
    with pytest.raises(Failure):
        joined.run()
    end = events(joined)[-1]
    check_event(end)
    assert end["eventType"] == "FAIL"
    assert "prices.csv" in end["run"]["facets"]["errorMessage"]["message"]


def test_the_last_run_as_prometheus_text(joined):
    joined.run()
    joined.write("in/a.csv", "id,product,n\n1,x,4\n2,y,z\n")
    joined.run()
    families = list(text_string_to_metric_families(joined.text("told/errata.prom")))
    assert {family.type for family in families} == {"gauge"}
    assert all(family.documentation for family in families)
    samples = {(sample.name, *sorted(sample.labels.items())): sample.value for family in families for sample in family.samples}
    pipeline = ("pipeline", "joined")
    assert samples["errata_run_exit_code", pipeline] == 2
    assert samples["errata_records", pipeline, ("state", "dlq")] == 1
    assert samples["errata_epoch", pipeline] == 2
    assert samples["errata_changes", ("node", "sums"), ("op", "+C"), pipeline] == 1


def test_changes_by_hand_are_told_like_runs(joined):
    joined.run()
    options, project = RunOptions(engine=EngineOptions("sail")), joined.load()
    typo = Correction("orders", {"id": "1"}, {"n": "4"}, "a typo")
    project.correct(typo, replace(options, dry_run=True))
    made = [project.correct(typo, options)[1], project.revert(1, options)]
    lineage = events(joined)[2:]
    for event in lineage:
        check_event(event)
    assert [event["eventType"] for event in lineage] == ["START", "COMPLETE"] * 2
    facets = [event["run"]["facets"]["errata_corrections"] for event in lineage[1::2]]
    assert [(facet["epoch"], facet["executionId"]) for facet in facets] == [(result.epoch, result.execution_id) for result in made]
    assert [facet["nodes"]["sums"]["corrected"] for facet in facets] == [1, 1]
    assert 'errata_epoch{pipeline="joined"} 3\n' in joined.text("told/errata.prom")


@pytest.mark.parametrize("path", ["/tmp/x", "../x", "~/x"])
@pytest.mark.parametrize(
    ("block", "key"), [("pipeline", "prometheus: PATH"), ("pipeline", "openlineage: {path: PATH}"), ("pipeline", "spool_dir: PATH"), ("dlq", "path: PATH")]
)
def test_what_a_pipeline_writes_stays_in_its_folder(tmp_path, block, key, path):
    folder, written = Folder(tmp_path), key.replace("PATH", path)
    metrics = f"metrics: {{{written}}}" if block == "pipeline" else "version: 1"
    dlq = f"error_handling: {{dlq: {{{written}}}}}" if block == "dlq" else ""
    folder.write("pipeline.yaml", f"pipeline: {{name: out, {metrics}}}\n{dlq}\nnodes: []\n")
    with standing_in(tmp_path):
        code, _, stderr = command("check", "pipeline.yaml")
    assert (code, path in stderr) == (1, True)
