"""The extension for VS Code: what its manifest names is there or is made by packing, and its grammars know the keys with CXL."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cxl.commands.grammar import EDITOR
from errata.editor.programs import CXL_KEYS

FOLDER = Path(__file__).parents[3] / "integrations" / "vscode"
MANIFEST = json.loads((FOLDER / "package.json").read_text(encoding="utf-8"))
INJECTED = json.loads((FOLDER / "syntaxes" / "cxl-in-yaml.tmLanguage.json").read_text(encoding="utf-8"))
MADE = {"schemas/pipeline.schema.json", "syntaxes/cxl.tmLanguage.json", "LICENSE"}
"""The files that `prepare.js` puts there."""


def named_files() -> set[str]:
    contributes = MANIFEST["contributes"]
    paths = [MANIFEST["main"], *(one["configuration"] for one in contributes["languages"]), *(one["path"] for one in contributes["grammars"])]
    return {path.removeprefix("./") for path in [*paths, *(one["url"] for one in contributes["yamlValidation"])]}


def test_every_file_of_the_manifest_is_there_or_made():
    prepared = (FOLDER / "prepare.js").read_text(encoding="utf-8")
    assert all(Path(name).name in prepared for name in MADE)
    assert {name for name in named_files() - MADE if not (FOLDER / name).is_file()} == set()


def test_the_files_are_packed():
    kept = [line[1:] for line in (FOLDER / ".vscodeignore").read_text(encoding="utf-8").splitlines() if line.startswith("!")]
    assert [name for name in named_files() | MADE if not any(Path(name).match(pattern) for pattern in kept)] == []


def test_it_starts_for_the_files_that_it_knows():
    assert MANIFEST["activationEvents"] == ["onLanguage:yaml", "onLanguage:cxl"]
    assert MANIFEST["contributes"]["languages"][0]["extensions"] == [".cxl"]
    assert MANIFEST["contributes"]["configuration"]["properties"]["errata.command"]["default"] == ["errata", "lsp"]


def test_the_grammars_fit_each_other():
    own, injected = MANIFEST["contributes"]["grammars"]
    assert json.loads(EDITOR.read_text(encoding="utf-8"))["scopeName"] == own["scopeName"] == "source.cxl"
    assert INJECTED["scopeName"] == injected["scopeName"]
    assert injected["injectTo"] == ["source.yaml"]
    assert {"include": "source.cxl"} in INJECTED["repository"]["block"]["patterns"]


def test_programs_in_blocks_are_coloured():
    begin = re.compile(INJECTED["repository"]["block"]["begin"])
    keys = {path[-1] for paths in CXL_KEYS.values() for path in paths} - {"*", "op"}
    assert [key for key in sorted(keys) if not begin.match(f"      {key}: |")] == []
    assert not begin.match("      description: |")
    inside = re.compile(INJECTED["repository"]["block"]["while"].replace("\\1", "      "))
    assert inside.match("        emit a = 1")
    assert inside.match("")
    assert not inside.match("      log: []")


def test_the_lock_names_no_host():
    assert "resolved" not in (FOLDER / "package-lock.json").read_text(encoding="utf-8")
    assert not (FOLDER / "package-lock.json").read_text(encoding="utf-8").count("registry.")


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
@pytest.mark.parametrize("name", ["extension.js", "prepare.js"])
def test_the_scripts_can_be_read(name):
    checked = subprocess.run(["node", "--check", FOLDER / name], capture_output=True, text=True, check=False, timeout=60)
    assert checked.returncode == 0, checked.stderr


def test_editors_may_ask_for_standard_input_and_output():
    served = subprocess.run([sys.executable, "-m", "errata", "lsp", "--stdio"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=60)
    assert served.returncode == 0, served.stderr
