"""Every code has a page; test_pipeline_examples.py shows that the example on the page causes it."""

import re
from pathlib import Path

from errata.core.codes import page, pages, registered

ROOT = Path(__file__).parents[3]
CODE = re.compile(r"\"(CXL-[A-Z][0-9]{3}|[EW][0-9]{3}[a-z]?|E15Y|(?:YAML|ENV|CFG|FILE|TOML)-[0-9]{3})\"")


def _used() -> set[str]:
    files = (file for part in ("cxl", "operators", "errata", "storage") for file in (ROOT / part).rglob("*.py"))
    return {code for file in files for code in CODE.findall(file.read_text(encoding="utf-8"))}


def test_every_code_that_the_program_uses_has_a_page() -> None:
    assert _used() <= set(registered())


def test_a_page_says_what_it_means() -> None:
    for one in pages().values():
        assert one.text.startswith(f"# {one.code}: {one.title}")
        assert len(one.text.splitlines()) >= 3


def test_codes_are_found_in_any_case_of_letters() -> None:
    assert page("e107") == page("E107")
    assert page("E9999") is None
