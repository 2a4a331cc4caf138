"""Pages that are made from the program are what it says today."""

from __future__ import annotations

import pytest
import yaml

from errata.core import codes
from tests.site import codes_pages, commands_page, generated, key_examples
from tests.site.pages import ROOT


@pytest.mark.parametrize("path", generated.pages(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_the_page_is_what_the_program_says(path):
    written = path.read_text(encoding="utf-8") if path.exists() else ""
    assert written == generated.pages()[path], f"run: python -m tests.documents --write {path.relative_to(ROOT)}"


def test_no_page_is_left_of_diagnostics_that_are_no_more():
    assert set(codes_pages.FOLDER.iterdir()) == {path for path, _ in codes_pages.pages()}


def test_every_code_has_an_address():
    assert [code for code in codes.registered() if codes_pages.address(code) is None] == []
    assert codes_pages.address("E999") is None


def test_every_command_and_every_option_is_on_the_page():
    page = commands_page.markdown()
    for group, name in ((commands_page.errata, "errata"), (commands_page.cxl, "cxl")):
        for whole, command in commands_page.commands(group, name):
            assert f"# `{whole}`\n" in page
            assert [option.name for option in commands_page.options(command) for word in option.opts if f"`{word}`" not in page] == []


def test_examples_of_keys_are_short_yaml_of_the_key_itself():
    found = key_examples.examples()
    assert len(found) > 120
    assert [(place, text) for (_, place, name), text in found.items() if list(yaml.safe_load(f"{{{text}}}")) != [name] or len(text) > key_examples.LONGEST] == []


def test_examples_are_found_at_their_places():
    value = {"merge": {"primary_key": ["id"]}, "vars": {"rate": {"type": "int"}}, "schema": [{"name": "id"}]}
    assert {(place, name) for place, name, _ in key_examples.keys(value, "config")} == {
        ("config", "merge"), ("config", "vars"), ("config", "schema"), ("config.merge", "primary_key"), ("config.*", "primary_key"), ("config.vars", "rate"),
        ("config.*", "rate"), ("config.vars.rate", "type"), ("config.vars.*", "type"), ("config.*.rate", "type"), ("config.*.*", "type"), ("config.schema[]", "name"), ("config.*[]", "name"),
    }  # fmt: skip
