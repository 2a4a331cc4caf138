"""Colours of pages: text and shapes stand out from what they lie on (WCAG AA), light and dark."""

from __future__ import annotations

import re

import pytest

from errata.pages.palette import CAUSES, DARK, GRAPHIC_PAIRS, LIGHT, TEXT_PAIRS, custom_properties
from errata.pages.rendering import FOLDER, stylesheet

THEMES = {"light": LIGHT, "dark": DARK}


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    bright, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


def test_contrast_is_computed_as_the_guidelines_say():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("theme", THEMES)
def test_text_can_be_read(theme):
    colours = THEMES[theme]
    assert {pair: round(found, 2) for pair in TEXT_PAIRS if (found := contrast(*(colours[name] for name in pair))) < 4.5} == {}


@pytest.mark.parametrize("theme", THEMES)
def test_shapes_can_be_seen(theme):
    colours = THEMES[theme]
    assert {pair: round(found, 2) for pair in GRAPHIC_PAIRS if (found := contrast(*(colours[name] for name in pair))) < 3} == {}


def test_both_themes_have_every_colour_that_the_style_uses():
    used = set(re.findall(r"var\(--([a-z-]+)\)", (FOLDER / "static" / "pages.css").read_text(encoding="utf-8")))
    assert used - set(LIGHT) == set()
    assert set(LIGHT) == set(DARK)
    assert {f"--{name}:" for name in LIGHT} <= set(custom_properties().split())


def test_every_cause_has_a_style_of_its_own():
    rules = dict(re.findall(r"\.([a-z]+) \{ background: var\(--([a-z]+)\)", stylesheet()))
    assert {cause: rules.get(cause) for cause in CAUSES} == {cause: cause for cause in CAUSES}
