"""The pages of `errata ui` over a project with three epochs."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from errata.core.options import EngineOptions
from tests.support.audited import PIPELINE, project, with_history
from tests.support.pipelines import Folder
from tests.support.shop import decide, shop
from tests.support.sites import Visit

ADDRESSES = ["/", "/calendar", "/output", "/output?name=runs", "/runs", "/letters", "/expectations", "/restless", "/next", "/node?name=lines", "/changes?node=totals&epoch=1", "/live?epoch=3"]

MOST_ALIKE = 6
"""The number of pages of one kind that are visited."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return with_history(tmp_path_factory.mktemp("ui"))


@pytest.fixture(scope="module")
def visit(folder):
    return Visit(folder)


@pytest.mark.parametrize("address", ADDRESSES)
def test_each_page_is_well_formed_and_has_no_script_of_its_own(visit, address):
    page = visit.page(address)
    assert [given for tag, given in page.tags if tag == "script"] in ([], [{"src": "/static/htmx.min.js", "defer": None}])
    assert [given for _, given in page.tags if any(name == "style" or name.startswith("on") for name in given)] == []
    assert [tag for tag, _ in page.tags if tag == "style"] == []


@pytest.mark.parametrize("address", [one for one in ADDRESSES if "/live" not in one])
def test_each_page_can_be_used_without_a_mouse_and_by_a_reader(visit, address):
    page = visit.page(address)
    names = [tag for tag, _ in page.tags]
    assert names.count("h1") == names.count("main") == 1
    assert dict(page.tags)["html"]["lang"] == "en"
    assert [given for tag, given in page.tags if tag == "th" and "scope" not in given] == []
    assert [given for tag, given in page.tags if tag == "svg" and not given.get("aria-label")] == []
    assert page.unnamed == []
    assert page.addresses.count("#content") == 1
    scrolling = [given for tag, given in page.tags if tag == "div" and given.get("class") == "scroll"]
    assert all(given.get("tabindex") == "0" and given.get("aria-label") for given in scrolling)


def test_every_link_of_every_page_leads_somewhere(visit):
    seen, wanted, kinds = set(), {"/"}, Counter()
    while wanted:
        address = wanted.pop()
        seen.add(address)
        kind = address.partition("?")[0], "why=" in address
        kinds[kind] += 1
        if kinds[kind] > MOST_ALIKE:
            continue
        if address.startswith("/static/"):
            assert visit.client.get(address).status_code == 200
            continue
        page = visit.page(address)
        found = {urlsplit(one)._replace(fragment="").geturl() for one in page.addresses if one.startswith("/")} - {"/node"}  # where the search goes
        assert not any("token" in one for one in found)
        wanted |= found - seen
    assert {"/", "/calendar", "/output", "/runs", "/letters", "/restless", "/next"} <= seen


def test_the_first_page_shows_each_node_with_its_rows_and_last_change(visit, folder):
    text = visit.page("/").text
    status = folder.load().status()
    for node in status["nodes"]:
        assert f"{node['type']}, {node['rows_live']:,} row" in text
    assert "last epoch 3" in text
    assert visit.page("/").addresses.count("/node?name=priced") == 3  # both drawings and the table


def test_the_menu_names_the_page(visit):
    for address, name in (("/", "Overview"), ("/calendar", "Epochs"), ("/next", "Next run")):
        current = [given["href"] for tag, given in visit.page(address).tags if tag == "a" and given.get("aria-current")]
        assert current == [address], name


def test_the_calendar_has_a_place_for_each_change(visit, folder):
    page = visit.page("/calendar")
    changed = {(row["epoch"], node) for node in folder.load().node_names for row in folder.log(node)}
    links = [one for one in page.addresses if one.startswith("/changes?")]
    assert len(links) == len(changed)
    titles = [given["title"] for tag, given in page.tags if tag == "a" and "title" in given]
    assert any("lines, epoch 2: -R" in title or "lines, epoch 2: -C" in title for title in titles)
    assert any(title.endswith("cause: correction") for title in titles)


def test_an_output_shows_totals_before_and_after(visit, folder):
    text = visit.page("/output", name="costs").text
    for epoch in (2, 3):
        before, after = (sum(row["cost"] for row in folder.load().show("costs", at)) for at in (epoch - 1, epoch))
        assert f"{before:,} {after:,}" in text


def test_a_row_tells_its_story_and_where_it_comes_from(visit, folder):
    [row] = [one for one in folder.log("costs") if one["epoch"] == 3 and one["op"] == "+C"][:1]
    page = visit.page("/row", node="costs", key=row["key"])
    assert "Look for the records behind it" in page.text
    [shared] = [given["value"] for tag, given in page.tags if tag == "input" and given.get("aria-label") == "Address of this page"]
    assert shared == f"http://127.0.0.1:8765/row?node=costs&key={row['key']}"
    assert f"errata why pipeline.yaml costs label={row['data']['label']}" in page.text
    full = visit.page("/row", node="costs", key=row["key"], why="yes")
    for source in {one["source"] for one in folder.load().why("costs", {"label": row["data"]["label"]})}:
        assert f"{source}.csv:" in full.text
    assert "Correct this record" not in full.text


def test_a_row_that_is_gone_says_so(visit, folder):
    keys = {row["key"] for row in folder.log("lines") if row["op"] == "-R"}
    assert "This row is gone" in visit.page("/row", node="lines", key=keys.pop()).text


def test_a_live_row_is_found_by_a_value(visit, folder):
    [row] = list(folder.load().show("costs"))[:1]
    page = visit.page("/node", name="costs", field="label", value=row["label"])
    assert [one for one in page.addresses if one.startswith("/row?node=costs")]
    assert "No live row has this value" in visit.page("/node", name="costs", field="label", value="nobody").text
    assert "has no field" in visit.page("/node", 404, name="costs", field="nothing", value="1").text


@pytest.mark.parametrize(
    ("address", "status"),
    [
        ("/nothing", 404),
        ("/node", 404),
        ("/node?name=nobody", 404),
        ("/output?name=nobody", 404),
        ("/changes?node=lines&epoch=99", 404),
        ("/changes?node=nobody&epoch=1", 404),
        ("/changes?node=lines", 404),
        ("/changes?node=lines&epoch=0", 404),
        ("/changes?node=lines&epoch=x", 404),
        ("/changes?node=lines&epoch=-1", 404),
        ("/changes?node=lines&epoch=1.5", 404),
        ("/row?node=lines&key=zz", 404),
        ("/row?node=lines&key=00", 404),
        ("/row?node=lines&key=" + "ff" * 4000, 404),
        ("/job?number=1", 404),
        ("/static/secret.txt", 404),
        ("/static/..%2Fpages.css", 404),
        ("/calendar?part=99999999999&nodes=-1", 200),
        ("/runs?part=%F0%9F%92%A9", 200),
        ("/output?name=%3Cscript%3E", 404),
    ],
)
def test_addresses_that_lead_nowhere_say_so(visit, address, status):
    answer = visit.client.get(address)
    assert answer.status_code == status
    assert "<script>" not in answer.text


def test_a_browser_that_asks_for_an_icon_gets_none(visit):
    assert visit.client.get("/favicon.ico").status_code == 204


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
@pytest.mark.parametrize("address", ["/", "/actions/retry", "/actions/correct", "/runs"])
def test_a_server_without_write_takes_nothing(visit, method, address):
    assert visit.client.request(method, address, data={"form_token": visit.access.form_token}).status_code in (404, 405)


def test_errors_of_the_file_keep_their_lines_and_types_are_those_of_a_schema(tmp_path: Path) -> None:
    folder = with_history(tmp_path)
    visit = Visit(folder)
    assert "line string sku string qty int twice int so_far int" in visit.page("/node", name="running").text
    folder.write("pipeline.yaml", PIPELINE.replace("filter qty > 0", "filter qty > nothing"))
    for address in ("/next", "/runs"):
        text = visit.client.get(address).text
        assert "The pipeline file has errors." in text
        assert "\\n" not in text
        assert "-->" in text.replace("&gt;", ">")


def test_identities_and_years_are_no_figures(tmp_path: Path) -> None:
    text = PIPELINE.replace("emit twice = qty * 2", "emit twice = qty * 2\n        emit year = 2026\n        emit customer_id = 12345")
    text += "  - type: output\n    name: all\n    input: wanted\n    config: { name: all, type: csv, path: all.csv }\n"
    folder = with_history(tmp_path, pipeline=text)
    visit = Visit(folder)
    text = visit.page("/output", name="all").text
    assert "Total of qty" in text
    assert "Total of twice" in text
    assert "Total of year" not in text
    assert "Total of customer_id" not in text
    changed = visit.page("/changes", node="all", epoch=1).text
    assert "2026 12345" in changed


def test_expectations_show_their_failing_rows(tmp_path: Path) -> None:
    text = PIPELINE.replace("    input: wanted\n    config:\n      cxl: |\n        distinct by sku", '    input: wanted\n    expect: [{name: small, check: "qty < 41", severity: warn}]\n    config:\n      cxl: |\n        distinct by sku')
    folder = with_history(tmp_path, pipeline=text)
    visit = Visit(folder)
    [row] = folder.load().expectations()
    page = visit.page("/expectations")
    assert f"{row['expectation']} {row['failing']}" in page.text
    assert row["expected"] in page.text
    assert row["expectation"] in folder.load().report()
    assert "expects nothing" in Visit(with_history(tmp_path / "other")).page("/expectations").text


@pytest.mark.parametrize(
    ("handling", "reason"),
    [("strategy: fail_fast", "2 records were rejected by earlier runs and would end a full run: 2 as type_coercion_failure"), ("strategy: continue, type_error_threshold: 0.4", "2 of 4 records failed, more than the share 0.4 of type_error_threshold")],
)
def test_the_next_run_says_why_it_would_stop(tmp_path: Path, handling: str, reason: str) -> None:
    """In the report too, above what it would do with each node."""
    folder = shop(tmp_path)
    folder.run()
    assert "The next run would do nothing" in Visit(folder).page("/next").text
    folder.write("pipeline.yaml", folder.text("pipeline.yaml").replace("strategy: continue", handling))
    shown = Visit(folder).page("/next").text
    assert f"The next run would stop: {reason}" in shown
    assert "orders source skip" in shown
    assert "would do nothing" not in shown
    assert f"The next run would stop: {reason}" in folder.load().report()
    decide(folder, "waive")
    assert "The next run would do nothing" in Visit(folder).page("/next").text


def test_pages_of_a_pipeline_that_never_ran_say_what_to_do(tmp_path):
    folder = project(tmp_path)
    visit = Visit(folder)
    assert "makes the first epoch" in visit.page("/").text
    assert "becomes a column here" in visit.page("/calendar").text
    assert "makes the first epoch" in visit.page("/runs").text
    assert "Nothing is rejected" in visit.page("/letters").text
    assert "everything" in visit.page("/next").text or "source" in visit.page("/next").text
    assert "no run yet" in visit.page("/output", 404).text
    folder.run()
    assert "last epoch 1" in visit.page("/").text


def test_a_new_epoch_and_an_edit_show_without_a_restart(tmp_path: Path) -> None:
    folder = with_history(tmp_path)
    visit = Visit(folder)
    assert "epoch 3" in visit.page("/").text
    folder.write_csv("lines.csv", ("line", "sku", "qty"), [{"line": "n1", "sku": "a", "qty": 5}])
    assert "files: 1 changed" in visit.page("/next").text
    folder.run()
    assert "epoch 4 is there" in visit.page("/live", epoch=3).text
    assert "last epoch 4" in visit.page("/").text
    folder.write("pipeline.yaml", PIPELINE.replace("filter qty > 0", "filter nothing > 0"))
    broken = visit.page("/").text
    assert "The pipeline file has errors" in broken
    assert "nothing" in broken
    assert "last epoch 4" in broken
    assert "the pipeline file has errors" in visit.page("/next").text
    assert "Nothing is rejected" in visit.page("/letters").text
    folder.write("pipeline.yaml", PIPELINE)
    assert "has errors" not in visit.page("/").text


USING = """
pipeline: { name: p }
nodes:
  - { type: source, name: orders, config: { name: orders, type: csv, path: orders.csv, schema: [{ name: amount, type: float }] } }
  - { type: composition, name: reduced, use: with_tax.comp.yaml, input: orders, config: { rate: 0.05 } }
  - { type: output, name: out, input: reduced, config: { name: out, type: csv, path: out.csv } }
"""
BODY = """
composition: { name: with_tax, requires: [{ name: amount, type: float }], params: [{ name: rate, type: float }] }
nodes:
  - { type: transform, name: taxed, input: input, config: { cxl: "emit tax = amount * $vars.rate" } }
"""


def test_a_composition_that_was_wrong_at_the_start_is_read_again(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", USING)
    folder.write("with_tax.comp.yaml", BODY)
    folder.write("orders.csv", "amount\n1\n")
    folder.run()
    folder.write("with_tax.comp.yaml", BODY.replace("amount *", "amount.trim() *"))
    visit = Visit(folder)
    assert "The pipeline file has errors" in visit.page("/").text
    folder.write("with_tax.comp.yaml", BODY)
    assert "has errors" not in visit.page("/").text


def test_a_folded_state_shows_what_is_left(tmp_path: Path) -> None:
    folder = with_history(tmp_path)
    visit = Visit(folder)
    last = visit.page("/output", name="costs").text
    assert visit.page("/calendar").addresses
    list(folder.load().compact(3, EngineOptions("sail")))
    folded = visit.page("/output", name="costs").text
    assert "was folded into it" in folded
    total = sum(row["cost"] for row in folder.load().show("costs"))
    assert f"{total:,}" in last
    assert f"{total:,}" in folded
    for address in ("/", "/calendar", "/runs", "/restless", "/node?name=costs"):
        visit.page(address)
    assert "folded into a base" in visit.page("/changes", 404, node="costs", epoch=1).text


def test_an_epoch_of_very_many_rows_shows_some(visit, monkeypatch):
    monkeypatch.setattr("errata.inspect.history.MOST_ROWS", 3)
    text = visit.page("/changes", node="lines", epoch=1, part=2).text
    assert "12 rows changed" in text
    assert "These are some of them" in text


def test_a_state_that_is_gone_is_a_problem_and_no_crash(tmp_path: Path) -> None:
    folder = with_history(tmp_path)
    visit = Visit(folder)
    visit.page("/")
    for file in (tmp_path / ".errata/audited/changelog/costs").glob("*.parquet"):
        file.unlink()
    assert "This page cannot be shown" in visit.page("/output", 503, name="costs").text
    visit.page("/")


HOSTILE = """\
pipeline:
  name: hostile
nodes:
  - type: source
    name: notes
    config:
      name: notes
      type: json
      path: notes.json
      merge: {strategy: snapshot, primary_key: [id]}
      schema:
        - { name: id, type: string }
        - { name: "<i>text</i>", type: string }
  - type: output
    name: kept
    input: notes
    config: { name: kept, type: csv, path: kept.csv }
"""


def test_hostile_values_are_cut_and_escaped(tmp_path: Path) -> None:
    import json

    from tests.support.pipelines import Folder

    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", HOSTILE)
    values = ["<script>alert(1)</script>", "x" * 3_000_000, "\x1b[31m\u202e", "'\"><img src=x onerror=alert(1)>"]
    folder.write("notes.json", "\n".join(json.dumps({"id": f"<b>{at}", "<i>text</i>": value}) for at, value in enumerate(values)))
    folder.run()
    visit = Visit(folder)
    answer = visit.client.get("/changes", params={"node": "kept", "epoch": 1})
    assert len(answer.text) < 20_000
    for sign in ("<script>alert", "<img", "<i>", "<b>", "\x1b", "\u202e"):
        assert sign not in answer.text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in answer.text
    key = next(row["key"] for row in folder.log("kept"))
    assert "<b>" not in visit.client.get("/row", params={"node": "kept", "key": key, "why": "yes"}).text
    assert "<script>alert" not in folder.load().report()
