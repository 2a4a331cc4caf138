"""The completions of a shell: commands, names of nodes, epochs, codes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

from errata.cli import main
from errata.cli.group import errata
from errata.scaffold.example import make_project


@pytest.fixture(scope="module")
def shop(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("shop")
    list(make_project(folder))
    assert main(["run", str(folder / "pipeline.yaml"), "-q"]) == 2
    assert main(["correct", str(folder / "pipeline.yaml"), "orders", "--key", "order_id=1003", "--set", "amount=1", "--reason", "test", "-q"]) == 2
    return folder


def completed(words: str, incomplete: str = "") -> list[str]:
    return [item.value for item in ShellComplete(errata, {}, "errata", "_ERRATA_COMPLETE").get_completions(words.split(), incomplete)]


@pytest.mark.parametrize(("words", "incomplete", "found"), [
    ("", "re", ["report", "restate", "revert"]),
    ("log {0}/pipeline.yaml", "", ["orders", "valid", "totals", "report"]),
    ("show {0}/pipeline.yaml", "t", ["totals"]),
    ("why {0}/pipeline.yaml", "v", ["valid"]),
    ("correct {0}/pipeline.yaml", "", ["orders"]),
    ("show {0}/pipeline.yaml totals --at", "", ["2", "1"]),
    ("revert {0}/pipeline.yaml --to", "1", ["1"]),
    ("diff {0}/pipeline.yaml totals --from", "", ["2", "1"]),
    ("explain --code", "E21", ["E210", "E211", "E212", "E213", "E214", "E215", "E216", "E217", "E218", "E219"]),
    ("log {0}/none.yaml", "", []),
    ("show {0}/none.yaml totals --at", "", []),
])  # fmt: skip
def test_words_are_completed(shop, words, incomplete, found):
    assert completed(words.format(shop), incomplete) == found


def test_a_file_with_errors_still_completes(shop, tmp_path):
    path = tmp_path / "p.yaml"
    path.write_text("pipeline: {name: x}\nnodes:\n  - {type: sourc, name: a, config: {}}\n  - 5\n  - {name: [1]}\n")
    assert completed(f"log {path}") == ["a"]


def test_the_shell_asks_the_installed_command(shop):
    environment = {**os.environ, "_ERRATA_COMPLETE": "bash_complete", "COMP_WORDS": f"errata log {shop}/pipeline.yaml t", "COMP_CWORD": "3"}
    done = subprocess.run([sys.executable, "-m", "errata"], env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "plain,totals\n"
