"""Corrections and retries from pages: as the commands make them, and only from a page of the server."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.pages import Page
from tests.support.pipelines import Folder
from tests.support.sites import Visit

EXAMPLE = Path(__file__).parents[3] / "examples" / "rollback"


@pytest.fixture
def folder(tmp_path):
    shutil.copytree(EXAMPLE, tmp_path, dirs_exist_ok=True, ignore=shutil.ignore_patterns("out", ".errata"))
    made = Folder(tmp_path)
    made.run()
    shutil.copytree(EXAMPLE / "later", tmp_path / "data", dirs_exist_ok=True)
    made.run()
    return made


@pytest.fixture
def visit(folder):
    return Visit(folder, writes=True)


def forms(page, action):
    """The fields of the forms of a page that go to an address."""
    found, fields = [], None
    for tag, given in page.tags:
        if tag == "form":
            fields = {} if given.get("action") == action else None
            found += [fields] if fields is not None else []
        elif tag == "input" and fields is not None and given.get("type") != "checkbox":
            fields[given["name"]] = given.get("value") or ""
    return found


def trigger(visit, words):
    """The page of a trigger."""
    page = visit.page("/letters")
    for address in (one for one in page.addresses if one.startswith("/letters?trigger=")):
        found = visit.page(address)
        if words in found.text:
            return found
    raise AssertionError(page.text)


def test_rejected_records_are_shown_by_trigger_with_their_source_record(visit):
    text = visit.page("/letters").text
    for words in ("cannot convert 'one' to Int", "cannot convert '?' to Int", "a department cannot sell less than nothing"):
        assert words in text
    page = trigger(visit, "cannot convert '?' to Int")
    assert "data/day-2.csv:3" in page.text
    assert "product ball" in page.text
    assert "rolled back with them 1" in page.text
    assert page.unnamed == []


def test_a_correction_is_shown_first_and_then_made(visit, folder):
    [form] = [one for one in forms(trigger(visit, "cannot convert '?' to Int"), "/actions/correct") if one["was.product"] == "ball"]
    form |= {"set.pieces": "2", "reason": "a typing error"}
    token = form.pop("form_token")
    shown = visit.job(visit.send("/actions/correct", token=token, **form, dry_run="yes")).text
    assert "This is what the correction would change" in shown
    assert "Nothing was changed" in shown
    assert folder.load().head_epoch() == 2
    made = visit.job(visit.send("/actions/correct", token=token, **form)).text
    assert "epoch 3 is committed" in made
    [run] = [one for one in folder.load().runs() if one["epoch"] == 3]
    assert run["reason"] == "a typing error"
    assert "cannot convert '?' to Int" not in visit.page("/letters").text
    assert ("S3", "ball", "20") in {(row["sale"], row["product"], row["amount"]) for row in folder.rows("out/shipped.csv")}
    assert folder.violations() == []


KEYED = """
pipeline: { name: notes }
error_handling: { strategy: continue, dlq: { path: out/rejected.csv } }
nodes:
  - type: source
    name: notes
    config: { name: notes, type: csv, path: notes.csv, merge: { strategy: snapshot, primary_key: [id] }, schema: [{ name: id, type: int }, { name: note, type: string }, { name: qty, type: string }] }
  - { type: transform, name: counted, input: notes, config: { cxl: "emit qty = qty.to_int()" } }
  - { type: output, name: out, input: counted, config: { name: out, type: csv, path: out/notes.csv } }
"""


def as_a_browser(fields):
    """The fields of a form as a browser sends them: one line of typed text, and hidden lines as CR LF."""
    return {name: "".join(text.splitlines()) if name.startswith("set.") else "\r\n".join(text.splitlines()) for name, text in fields.items()}


def test_a_correction_leaves_a_value_of_several_lines_as_it_was(tmp_path):
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", KEYED)
    folder.write("notes.csv", 'id,note,qty\n1,"first\nsecond",?\n2,plain,4\n')
    folder.run()
    visit = Visit(folder, writes=True)
    [form] = forms(trigger(visit, "cannot convert '?' to Int"), "/actions/correct")
    sent = as_a_browser(form) | {"set.qty": "3", "reason": "counted again"}
    assert "is committed" in visit.job(visit.send("/actions/correct", token=sent.pop("form_token"), **sent)).text
    assert [(row["id"], row["note"], row["qty"]) for row in folder.rows("out/notes.csv")] == [("1", "first\nsecond", "3"), ("2", "plain", "4")]


def test_a_group_is_tried_again(visit, folder):
    shutil.copytree(EXAMPLE / "repaired", folder.path / "data", dirs_exist_ok=True)
    page = trigger(visit, "cannot convert 'one' to Int")
    [form, *_] = forms(page, "/actions/retry")
    text = visit.job(visit.send("/actions/retry", token=form["form_token"], group=form["group"])).text
    assert "epoch 3 is committed" in text
    assert "cannot convert 'one' to Int" not in visit.page("/letters").text


def test_entries_are_waived_and_assigned(visit, folder):
    page = trigger(visit, "cannot convert 'one' to Int")
    [every, first, *_] = forms(page, "/actions/decide")
    assert "epoch 3 is committed" in visit.job(visit.send("/actions/decide", token=first["form_token"], id=first["id"], action="assign", to="ana")).text
    assert "assigned to ana" in trigger(visit, "cannot convert 'one' to Int").text
    sent = {"token": every["form_token"], "trigger": every["trigger"], "reason": "a test sale"}
    assert "epoch 4 is committed" in visit.job(visit.send("/actions/decide", action="waive", **sent)).text
    assert "a test sale" in trigger(visit, "cannot convert 'one' to Int").text
    waived = folder.load().status()["waived"]
    assert f"{waived} of them waived" in visit.page("/letters").text
    assert "epoch 5 is committed" in visit.job(visit.send("/actions/decide", action="unwaive", **sent)).text
    assert "waived" not in folder.load().status()
    assert visit.send("/actions/decide", action="waive", id=first["id"]).status_code == 400
    assert visit.send("/actions/decide", action="burn", id=first["id"], reason="r").status_code == 400
    assert visit.send("/actions/decide", action="waive", trigger="none", reason="r").status_code == 400


def test_a_change_that_cannot_be_made_says_why(visit, folder):
    text = visit.job(visit.send("/actions/retry", group="nobody")).text
    assert "no group 'nobody' is suppressed" in text
    text = visit.job(visit.send("/actions/correct", source="lines", reason="r", **{"key.sale": "nobody", "was.price": "1", "set.price": "2"})).text
    assert "no record of 'lines' has sale=nobody" in text
    assert folder.load().head_epoch() == 2


@pytest.mark.parametrize(
    "fields",
    [{}, {"source": "lines"}, {"source": "lines", "reason": " ", "retract": "yes"}, {"source": "lines", "reason": "r", "was.a": "1", "set.a": "1"}],
)
def test_a_form_that_lacks_something_is_refused(visit, fields):
    assert visit.send("/actions/correct", **fields).status_code == 400


def test_a_server_that_takes_changes_does_not_say_that_it_only_shows(visit):
    answer = visit.client.get("/actions/retry")
    assert answer.status_code == 405
    assert "takes no such request" in answer.text
    assert "only shows" not in answer.text


def test_only_a_form_of_a_page_changes_anything(visit, folder):
    for answer in (
        visit.send("/actions/retry", token="", group="S2"),
        visit.send("/actions/retry", token="0" * 64, group="S2"),
        visit.client.post("/actions/retry", json={"form_token": visit.access.form_token, "group": "S2"}),
        visit.client.post("/actions/retry", content=b"form_token=" + visit.access.form_token.encode() + b"&group=S2", headers={"content-type": "text/plain"}),
        visit.client.post("/actions/retry", data={"form_token": visit.access.form_token, "group": "S2"}, headers={"origin": "http://evil.example"}),
        visit.client.get("/actions/retry", params={"form_token": visit.access.form_token, "group": "S2"}),
        visit.send("/actions/retry", group="S" * 2_000_000),
        visit.send("/actions/retry", **{f"f{at}": "" for at in range(6_000)}),
    ):
        assert answer.status_code in (400, 403, 405)
    assert not visit.jobs.running
    assert folder.load().head_epoch() == 2


def test_a_file_with_errors_still_counts_the_rejected_records(folder):
    visit = Visit(folder)
    rejected = folder.load().status()["rejected"]
    folder.write("pipeline.yaml", folder.text("pipeline.yaml").replace("amount / lines", "amount / nothing"))
    assert f"{rejected} entries are rejected" in visit.page("/letters").text


def test_a_page_that_only_shows_has_no_forms_that_change(folder):
    page = trigger(Visit(folder), "cannot convert '?' to Int")
    assert [given for tag, given in page.tags if tag == "form" and given.get("method") == "post"] == []
    assert "errata ui --write" in page.text


def test_a_page_that_needs_the_engine_says_that_it_is_taken(visit, monkeypatch):
    monkeypatch.setattr("errata.ui.reader.PATIENCE", 0.05)
    with visit.reader.work:
        answer = visit.client.get("/letters")
        assert answer.status_code == 503
        assert "a change is being computed" in Page.of(answer.text).text
        assert visit.client.get("/").status_code == 200
