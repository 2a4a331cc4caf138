"""Man pages are made from the commands, so that none lacks one."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from errata.cli.group import errata
from tests.site.man_pages import escaped, pages

PAGES = pages()
MACROS = {".TH", ".SH", ".PP", ".TP", ".B", ".nf", ".fi"}


def test_each_command_has_a_page() -> None:
    names = {f"errata-{name}.1" for name in errata.list_commands(None)}  # type: ignore[arg-type]  # it asks nothing of the context
    assert names | {"errata.1", "cxl.1", "cxl-eval.1", "errata-metrics-collect.1"} <= set(PAGES)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_its_sections_and_no_other_macros(name: str) -> None:
    lines = PAGES[name].splitlines()
    assert lines[0].startswith(f'.TH "{escaped(name.removesuffix(".1").upper())}" 1')
    heads = [line for line in lines if line.startswith(".SH")]
    assert heads[:3] == [".SH NAME", ".SH SYNOPSIS", ".SH DESCRIPTION"]
    assert heads[-1] == ".SH SEE ALSO"
    assert {line.split()[0] for line in lines if line.startswith((".", "'"))} <= MACROS
    assert not re.search(r"\\(?![e&-])", PAGES[name])
    assert lines.count(".nf") == lines.count(".fi")
    assert "" not in lines[:3]


def test_the_page_of_a_command() -> None:
    page = PAGES["errata-show.1"]
    assert "errata\\-show \\- Show the live rows of a node\n" in page
    assert "  errata show pipeline.yaml totals \\-\\-at 3 \\-\\-format csv\n" in page
    assert page.index(".SH OPTIONS\n") < page.index(".B \\-\\-at EPOCH\nThe rows of this epoch.") < page.index(".SH OPTIONS OF PIPELINES") < page.index(".SH OPTIONS OF ALL COMMANDS")
    assert ".B 2\nFinished, with records in the dead letter queue.\n" in page
    assert "errata\\-log(1)" in page


def test_pages_need_no_more_libraries_than_the_environment_of_make_wheel_has() -> None:
    root = Path(__file__).parents[3]
    (names,) = re.findall(r"awk '/\^\(([a-z|]+)\)==/", (root / "Makefile").read_text(encoding="utf-8"))
    program = (
        "import sys; from tests.site.man_pages import pages; pages();"
        "print(*{name.split('.')[0] for name, one in sys.modules.items() if 'site-packages' in (getattr(one, '__file__', None) or '')})"
    )
    loaded = set(subprocess.run([sys.executable, "-c", program], cwd=root, capture_output=True, text=True, check=True).stdout.split())
    bare = set(subprocess.run([sys.executable, "-c", program.replace("pages();", "").replace("from tests.site.man_pages import pages; ", "")], cwd=root, capture_output=True, text=True, check=True).stdout.split())
    assert loaded - bare == set(names.split("|"))
