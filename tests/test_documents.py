"""The documents show the program's real output."""

from __future__ import annotations

import re

import pytest

from tests.documents import ROOT, commands, documents, matches, perform, workplace
from tests.site import generated, neovim

CLAIM = re.compile(r"(?m)^\* ")


@pytest.mark.parametrize("document", documents(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_each_command_answers_as_shown(document, tmp_path):
    folder = workplace(tmp_path, document)
    for shown in commands(document.read_text(encoding="utf-8")):
        written = perform(shown, folder, anew=document == ROOT / "README.md")
        assert matches(shown.answer, written), f"{document.name}:{shown.line}: $ {shown.command}\n" + "\n".join(written)


def test_the_makefile_has_each_target_that_the_documents_name():
    named = {target for path in documents() for target in re.findall(r"`make (\w+)|^make (\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)}
    targets = set(re.findall(r"(?m)^(\w+):.*##", (ROOT / "Makefile").read_text(encoding="utf-8")))
    assert {one or other for one, other in named} - targets == set()


@pytest.mark.parametrize("document", documents(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_between_documents_lead_somewhere(document):
    links = re.findall(r"\]\((?!https?://|#)([^)#\s]+)", document.read_text(encoding="utf-8"))
    assert [link for link in links if not (document.parent / link).exists()] == []


def test_the_comparison_can_fail():
    assert matches(["a ... b", "...", "z"], ["a 1 b", "x", "y", "z"])
    assert not matches(["a"], ["b"])
    assert not matches(["a"], ["a", "b"])
    assert not matches(["a ... b"], ["a 1 c"])


def test_the_readme_makes_five_claims():
    assert len(CLAIM.findall((ROOT / "README.md").read_text(encoding="utf-8").split("## What holds")[1].split("\n## ")[0])) == 5


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "start").glob("*.md")), ids=lambda page: page.name)
def test_each_page_of_the_start_has_a_picture(page):
    assert re.search(r"!\[[^\]]+\]\(\.\./pictures/\w[\w-]*\.svg\)", page.read_text("utf-8"))


def test_every_picture_is_drawn_by_a_test():
    stale = [path.name for path, text in generated.drawn().items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    assert stale == [], "run: make docs"
    assert {path.name for path in (ROOT / "docs" / "pictures").iterdir()} == {path.name for path in (*generated.drawn(), neovim.PICTURE)}
