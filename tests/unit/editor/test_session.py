"""The checks that are due after a change, the published diagnostics, and the check that says most of a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from errata.editor.session import Session
from tests.support.editing import SHOP
from tests.unit.editor.test_answers import BODY, USING


@pytest.fixture
def folder(tmp_path) -> Path:
    (tmp_path / "pipeline.yaml").write_text(USING, encoding="utf-8")
    (tmp_path / "with_tax.comp.yaml").write_text(BODY, encoding="utf-8")
    return tmp_path


def settle(session: Session) -> dict[str, list[str]]:
    """Check what is due, and return what is published."""
    for file in session.due():
        session.check(file)
    return {file.rpartition("/")[2]: [one.code for one in found] for file, found in session.to_publish()}


def test_only_what_changed_is_published_again(tmp_path):
    session, file = Session((tmp_path,)), str(tmp_path / "a.yaml")
    session.put(file, SHOP)
    assert settle(session) == {"a.yaml": []}
    assert session.due() == ()
    assert settle(session) == {}
    session.put(file, SHOP.replace("input: priced", "input: prised"))
    assert settle(session) == {"a.yaml": ["E004"]}
    session.put(file, SHOP)
    assert settle(session) == {"a.yaml": []}


def test_a_pipeline_is_checked_again_when_its_composition_changes(folder):
    session = Session((folder,))
    pipeline, body = str(folder / "pipeline.yaml"), str(folder / "with_tax.comp.yaml")
    session.put(pipeline, USING)
    session.put(body, BODY)
    assert settle(session) == {"pipeline.yaml": [], "with_tax.comp.yaml": []}
    session.put(body, BODY.replace("amount *", "amount.trim() *"))
    assert set(session.due()) == {pipeline, body}
    assert settle(session) == {"with_tax.comp.yaml": ["CXL-T002"]}
    session.close(body)  # the file on the disk is sound
    assert settle(session) == {"with_tax.comp.yaml": []}


def test_a_composition_that_is_open_alone_is_checked_by_its_pipeline(folder):
    session = Session((folder,))
    pipeline, body = str(folder / "pipeline.yaml"), str(folder / "with_tax.comp.yaml")
    session.put(body, BODY)
    assert settle(session) == {"with_tax.comp.yaml": []}
    assert session.owner(body) == pipeline
    assert session.view(body).analysis.file == pipeline
    session.close(body)
    assert session.due() == ()


def test_a_composition_that_nobody_uses_is_checked_by_itself(tmp_path):
    session, body = Session((tmp_path,)), str(tmp_path / "lonely.comp.yaml")
    session.put(body, BODY.replace("amount *", "amount.trim() *"))
    assert settle(session) == {"lonely.comp.yaml": ["CXL-T002"]}
    assert session.owner(body) == body


def test_a_file_that_changes_while_it_is_checked_stays_due(tmp_path):
    session, file = Session((tmp_path,)), str(tmp_path / "a.yaml")
    session.put(file, SHOP)
    texts = session.snapshot()
    found = session.check(file)
    session.put(file, SHOP + "\n")
    session.take(found, texts.unsaved)
    assert session.due() == (file,)


def test_what_was_last_known_survives_a_broken_text(tmp_path):
    session, file = Session((tmp_path,)), str(tmp_path / "a.yaml")
    session.put(file, SHOP)
    settle(session)
    session.put(file, SHOP + "  broken: [\n")
    settle(session)
    last = session.last(file)
    assert last is not None
    assert last.columns("known") != {}


def test_a_file_outside_of_the_workspace_looks_beside_itself(folder):
    session = Session((folder / "elsewhere",))
    assert list(session.users(str(folder / "with_tax.comp.yaml"))) == [str(folder / "pipeline.yaml")]


def test_hidden_folders_are_not_looked_through(folder):
    hidden = folder / ".errata"
    hidden.mkdir()
    (hidden / "old.yaml").write_text(USING, encoding="utf-8")
    assert list(Session((folder,)).users(str(folder / "with_tax.comp.yaml"))) == [str(folder / "pipeline.yaml")]


def test_an_answer_at_once_does_not_look_through_the_workspace(folder, monkeypatch):
    session, body, looked = Session((folder,)), str(folder / "with_tax.comp.yaml"), []
    users = Session.users
    monkeypatch.setattr(Session, "users", lambda self, file: looked.append(file) or users(self, file))
    session.put(body, BODY)
    assert (session.last(body), session.current(body), looked) == (None, None, [])
    settle(session)
    assert looked == [body]
    last = session.last(body)
    assert last is not None
    assert last.file == str(folder / "pipeline.yaml")
    assert session.current(body) is last
    session.changed_on_disk([])
    assert (session.last(body), session.current(body), looked) == (last, last, [body])


def test_what_was_looked_for_while_files_changed_is_looked_for_again(tmp_path, monkeypatch):
    session, body, looked = Session((tmp_path,)), str(tmp_path / "lonely.comp.yaml"), []

    def users(self, file):
        looked.append(file)
        if len(looked) == 1:
            self.changed_on_disk([])
        return iter(())

    monkeypatch.setattr(Session, "users", users)
    session.put(body, BODY)
    assert [session.owner(body) for _ in range(3)] == [body] * 3
    assert looked == [body] * 2


@pytest.mark.parametrize("inside", [True, False])
def test_one_large_folder_is_not_looked_through_whole(folder, monkeypatch, inside):
    monkeypatch.setattr("errata.editor.session.MOST_FILES", 3)
    for number in range(6):
        (folder / f"a{number}.yaml").write_text(USING, encoding="utf-8")
    session = Session((folder if inside else folder / "elsewhere",))
    assert list(session.users(str(folder / "with_tax.comp.yaml"))) == [str(folder / f"a{number}.yaml") for number in range(3)]
