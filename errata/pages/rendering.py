"""From views to HTML, by the templates of this folder."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from errata.core.failures import LibraryMissing
from errata.pages.palette import custom_properties
from errata.pages.values import short

if TYPE_CHECKING:
    import jinja2
    import markupsafe
else:
    from changelog.lazy_imports import Lazy

    jinja2 = Lazy("jinja2")
    markupsafe = Lazy("markupsafe")

FOLDER = Path(__file__).parent
EXTRA = "ui"


def require(*libraries: str, what: str) -> None:
    """Raise LibraryMissing where one of the libraries of the extra is not installed."""
    missing = next((name for name in libraries if find_spec(name) is None), None)
    if missing is not None:
        raise LibraryMissing.of_extra(what, missing, EXTRA)


@cache
def _environment() -> jinja2.Environment:
    loader = jinja2.FileSystemLoader(FOLDER / "templates")
    made = jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    made.filters["short"] = short
    return made


def render(template: str, **values: Any) -> str:
    """Return a template filled with values, each of them escaped."""
    return _environment().get_template(template).render(**values)


def macro(name: str, *values: Any) -> str:
    """Return what a macro of the templates makes of values."""
    return str(getattr(_environment().get_template("macros.html").module, name)(*values))


def trusted(text: str) -> markupsafe.Markup:
    """Return a text of our own as HTML that is not escaped."""
    return markupsafe.Markup(text)


def fragment(template: str, **values: Any) -> markupsafe.Markup:
    """Return a filled template as a part of another."""
    return trusted(render(template, **values))


def stylesheet() -> str:
    """Return the style of all pages."""
    return custom_properties() + (FOLDER / "static" / "pages.css").read_text(encoding="utf-8")
