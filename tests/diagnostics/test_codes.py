"""Every code has a page, and the example on the page causes it."""

import re
from pathlib import Path

import pytest

from errata.codes import Example, page, pages, registered
from errata.yaml import parse_yaml

ROOT = Path(__file__).parents[2]
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


def _examples(language: str, settings: str | None = None) -> list[tuple[str, Example]]:
    found = [(code, one) for code, entry in pages().items() for one in entry.examples if one.language == language]
    return [(code, one) for code, one in found if settings is None or one.settings == settings]


@pytest.mark.parametrize(("code", "example"), _examples("yaml", ""), ids=lambda value: value if isinstance(value, str) else "")
def test_file_example(code: str, example: Example) -> None:
    found = {one.code for one in parse_yaml(example.text, env={}).diagnostics}
    assert found == {code} or code == "YAML-010"
