"""examples/cookbook: every recipe writes what its folder expects, and a second run has nothing to do."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.pipelines import Folder

COOKBOOK = Path(__file__).parents[3] / "examples" / "cookbook"
RECIPES = sorted(path.parent.name for path in COOKBOOK.glob("*/pipeline.yaml"))


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_writes_what_it_promises(tmp_path, recipe):
    folder = Folder(tmp_path / recipe)
    shutil.copytree(COOKBOOK / recipe, folder.path, ignore=shutil.ignore_patterns(".errata", "output"))
    assert folder.run().exit_code == 0
    written = {path.name: path.read_text() for path in (folder.path / "output").iterdir()}
    assert written == {path.name: path.read_text() for path in (folder.path / "expected").iterdir()}
    assert not folder.run().committed


def test_the_page_names_every_recipe():
    page = (COOKBOOK / "README.md").read_text()
    assert [name for name in RECIPES if f"`{name}`" not in page] == []
    assert len(RECIPES) == 12
