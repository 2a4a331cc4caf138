"""Texts with a mark where the editor's place is, and what is answered there."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from errata.editor.analysis import Analysis, analyse
from errata.editor.collect import names_of
from errata.editor.positions import Edit, applied
from errata.project.texts import Texts

if TYPE_CHECKING:
    from errata.editor.names import Names
    from errata.yaml import Document

MARK = "§"
SHOP = """\
pipeline:
  name: shop
  vars:
    rate: { type: float, default: 1.5 }
nodes:
  - type: source
    name: orders
    config:
      name: orders
      type: csv
      path: orders.csv
      merge: { strategy: snapshot, primary_key: [id] }
      schema:
        - { name: id, type: int }
        - { name: customer, type: string }
        - name: amount
          type: float
  - type: source
    name: customers
    config:
      name: customers
      type: csv
      path: customers.csv
      schema:
        - { name: customer, type: string }
        - { name: tier, type: string }
  - type: transform
    name: priced
    input: orders
    config:
      cxl: |
        # a comment: amount stays
        let gross = amount * $vars.rate
        emit amount = gross
        emit label = customer.trim()
      validations:
        - { field: label, check: not_null }
  - type: route
    name: sized
    input: priced
    config:
      conditions: { large: amount > 100.0 }
      default: small
  - type: combine
    name: known
    input: { order: sized.large, who: customers }
    config:
      where: order.customer == who.customer
      propagate_ck: driver
      cxl: |
        emit id = order.id
        emit total = order.amount
        emit tier = who.tier
  - type: aggregate
    name: totals
    input: known
    config:
      group_by: [tier]
      cxl: |
        emit revenue = sum(total)
  - type: output
    name: report
    input: totals
    config:
      type: csv
      path: out.csv
      mapping: { turnover: revenue }
      sort_order: [tier]
"""


@dataclass(frozen=True)
class Opened:
    """A file as an editor has it open, and the place of its mark."""

    file: str
    text: str
    place: int
    analysis: Analysis
    names: Names
    texts: Texts

    @property
    def document(self) -> Document:
        """The file."""
        assert self.analysis.document is not None
        return self.analysis.document


def opened(text: str, folder: Path, name: str = "pipeline.yaml", **others: str) -> Opened:
    """Return a marked text, checked. `others`: further files, by name with `__` for the point, that lie beside it."""
    for other, content in others.items():
        path = folder / other.replace("__", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    place = max(text.find(MARK), 0)
    text = text.replace(MARK, "", 1)
    file = str(folder / name)
    texts = Texts({file: text})
    analysis = analyse(file, texts, text)
    return Opened(file, text, place, analysis, names_of(analysis), texts)


def marked(text: str, at: str, before: str = "") -> str:
    """Return a text with the mark where it is in `at`, a piece of the text that holds one. `before`: a piece behind which to look."""
    start = text.index(at.replace(MARK, ""), text.index(before) if before else 0)
    place = start + at.index(MARK)
    return text[:place] + MARK + text[place:]


def after(edits: list[Edit], files: dict[str, str]) -> dict[str, str]:
    """Return the files, by path, with edits made."""
    return {file: applied(text, [edit for edit in edits if edit.region.file == file]) for file, text in files.items()}


def problems(analysis: Analysis) -> list[tuple[str, int]]:
    """Return the codes of an analysis with their lines."""
    return [(one.code, one.line) for one in analysis.diagnostics]
