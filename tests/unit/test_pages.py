"""Pages of the documentation: links lead somewhere, and docstrings name pages that exist."""

from __future__ import annotations

import re
import subprocess
import tomllib
from functools import cache
from pathlib import Path

import pytest

from errata.project.workspace import find_workspace

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"\]\(([^)\s#:]*)(?:#([^)\s]+))?\)")
PAGE = re.compile(r"\bdocs/[\w/-]+\.md\b")
PLACE = re.compile(r"`((?:cxl|changelog|storage|operators|errata|tests|benchmarks|deploy)/[\w./-]*\.\w+)`")
CODE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def tracked(*patterns: str) -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", *patterns], cwd=ROOT, capture_output=True, text=True, check=True)
    return sorted(path for name in listed.stdout.splitlines() if (path := ROOT / name).exists())


@cache
def anchors(page: Path) -> frozenset[str]:
    headings = re.findall(r"^#+ (.*)$", CODE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return frozenset(re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings)


@pytest.mark.parametrize("page", tracked("*.md"), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page):
    broken = []
    for path, anchor in LINK.findall(CODE.sub("", page.read_text(encoding="utf-8"))):
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            broken.append(f"{path}#{anchor}")
    assert broken == []


def test_pages_that_the_code_names_exist():
    modules = [path for path in tracked("*.py") if path != Path(__file__)]
    named = {(path.relative_to(ROOT).as_posix(), page) for path in modules for page in PAGE.findall(path.read_text(encoding="utf-8"))}
    assert {(path, page) for path, page in named if not (ROOT / page).exists()} == set()


@pytest.mark.parametrize("page", tracked("docs/*.md", "README.md"), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_files_that_pages_name_exist(page):
    named = set(PLACE.findall(CODE.sub("", page.read_text(encoding="utf-8"))))
    assert {name for name in named if not (ROOT / name).exists()} == set()


@pytest.mark.disk
def test_the_example_of_the_workspace_file_is_one(tmp_path):
    page = (ROOT / "docs" / "reference" / "environment.md").read_text(encoding="utf-8")
    text = re.findall(r"^```toml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)[-1].replace("/var/lib/errata/spill", tmp_path.as_posix())
    (tmp_path / "errata.toml").write_text(text, encoding="utf-8")
    assert find_workspace(tmp_path / "pipeline.yaml").settings.state.path == "state"


def test_the_page_of_installation_has_every_extra():
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    page = (ROOT / "docs" / "start" / "install.md").read_text(encoding="utf-8").split("## Extras")[1].split("\n## ")[0]
    assert sorted(set(declared) - {"bench", "dev"}) == sorted(re.findall(r"`(\w+)`", "".join(re.findall(r"^\| ([^|]*) \|", page, re.MULTILINE))))
