"""`errata report`: one page that needs nothing but itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from errata.core.failures import LibraryMissing
from errata.pages import rendering
from tests.support.audited import project, with_history
from tests.support.pages import Page


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> str:
    return with_history(tmp_path_factory.mktemp("report")).load().report()


def test_the_page_is_well_formed_and_asks_for_nothing(text: str) -> None:
    page = Page.of(text)
    assert page.open == []
    assert page.addresses == []
    assert "<script" not in text
    assert "url(http" not in text


def test_the_page_shows_nodes_epochs_runs_and_corrections(text: str) -> None:
    assert "audited: epoch 3" in text
    assert text.count('class="box ') == 2 * 9  # for wide and for narrow pages
    for heading in ("State", "Corrections of costs", "Corrections of runs", "Epochs", "Runs", "Rejected records: 0", "Rows that changed most", "Next run"):
        assert f"<h2>{heading}</h2>" in text
    assert "Nothing is rejected." in text
    assert "Total of cost" in text


def test_status_says_when_a_node_changed_last(tmp_path: Path) -> None:
    folder = with_history(tmp_path)
    last_epochs = {node["name"]: node["last_epoch"] for node in folder.load().status()["nodes"]}
    assert last_epochs == {name: max(row["epoch"] for row in folder.log(name)) for name in folder.load().node_names}


def test_a_pipeline_that_never_ran_has_a_page_too(tmp_path: Path) -> None:
    text = project(tmp_path).load().report()
    assert "audited: never run" in text
    assert "makes the first epoch" in text
    assert Page.of(text).open == []


def test_a_plan_in_a_notebook_is_a_table(tmp_path: Path) -> None:
    html = project(tmp_path).load().plan._repr_html_()
    assert "<tr><td>priced</td><td>combine</td><td>wanted, prices</td></tr>" in html
    assert Page.of(html).open == []


def test_a_missing_library_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rendering, "find_spec", lambda name: None)
    with pytest.raises(LibraryMissing, match="errata report needs the library jinja2") as stopped:
        project(tmp_path).load().report()
    assert stopped.value.help == "pip install 'errata[ui]'"
    assert stopped.value.exit_code == 1
