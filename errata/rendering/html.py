"""Rows and pages as HTML."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from html import escape
from typing import Any

from errata.rendering.rows import json_text

STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #8882; --add: #2f9e5b; --take: #d1495b; --from: #e9b949; --to: #3b7dd8 }
body { font: 14px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 76rem; padding: 0 1rem }
h1 { font-size: 1.5rem } h2 { font-size: 1.1rem; margin-top: 2rem } .scroll { overflow-x: auto }
table { border-collapse: collapse } th, td { text-align: left; padding: .2rem .7rem .2rem 0; border-bottom: 1px solid var(--line); vertical-align: top }
td.number { text-align: right; font-variant-numeric: tabular-nums } code { font-size: .92em }
svg text { fill: currentColor; font: 12px system-ui, sans-serif } svg .name { font-weight: 600 } svg .caption { opacity: .75 }
svg g rect { fill: var(--soft); stroke: var(--line) } svg .edge { fill: none; stroke: currentColor; opacity: .45 }
.add { fill: var(--add); color: var(--add) } .take { fill: var(--take); color: var(--take) }
.from { fill: var(--from); color: var(--from) } .to { fill: var(--to); color: var(--to) }
"""


def page(title: str, sections: Iterable[tuple[str, str]]) -> str:
    """Return a whole page: a title, then the heading and the content, as HTML, of each section."""
    body = "\n".join(f'<h2>{escape(heading)}</h2>\n<div class="scroll">{content}</div>' for heading, content in sections)
    head = f'<meta charset="utf-8">\n<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>{escape(title)}</title>\n<style>{STYLE}</style>'
    return f'<!doctype html>\n<html lang="en">\n<head>\n{head}\n</head>\n<body>\n<h1>{escape(title)}</h1>\n{body}\n</body>\n</html>\n'


def table(rows: Sequence[Mapping[str, Any]], empty: str = "none") -> str:
    """Return rows as a table; a sentence where there are none."""
    if not rows:
        return f"<p>{escape(empty)}</p>"
    names = list(dict.fromkeys(name for row in rows for name in row))
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    return f"<table>\n<tr>{head}</tr>\n{''.join(_lines(rows, names))}</table>"


def _lines(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> Iterator[str]:
    for row in rows:
        yield f"<tr>{''.join(_cell(row.get(name)) for name in names)}</tr>\n"


def _cell(value: Any) -> str:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return f'<td class="number">{value:,}</td>'
    if isinstance(value, (Mapping, list, tuple)):
        return f"<td><code>{escape(json_text(value))}</code></td>"
    if isinstance(value, datetime):
        return f"<td>{value:%Y-%m-%d %H:%M:%S}</td>"
    return f"<td>{'' if value is None else escape(str(value))}</td>"
