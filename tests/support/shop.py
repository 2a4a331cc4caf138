"""A shop whose orders fail: B where it is read, C behind its source; and decisions about them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from errata.core.options import LetterChoice, LetterDecision
from tests.support.pipelines import Folder

PIPELINE = """\
pipeline: { name: shop }
error_handling: { strategy: continue, dlq: { path: out/rejected.csv }HANDLING }
nodes:
  - type: source
    name: orders
    config:
      name: orders
      type: csv
      glob: in/*.csv
      MERGE
      schema: [{ name: id, type: string }, { name: price, type: float }, { name: pieces, type: string }]
  - { type: transform, name: valued, input: orders, config: { cxl: "emit value = price * pieces.to_int()" } }
  - { type: output, name: report, input: valued, config: { name: report, type: csv, path: out/report.csv, CLOSED } }
"""
HEADER = "id,price,pieces\n"


def shop(path: Path, *, handling: str = "", merge: str = "", closed: str = "") -> Folder:
    """The shop's folder before its first run, with what is put into the blanks of its pipeline."""
    folder = Folder(path)
    folder.write("pipeline.yaml", PIPELINE.replace("HANDLING", handling).replace("MERGE", merge).replace("CLOSED", closed))
    folder.write("in/a.csv", HEADER + "A,1.5,2\nB,x,1\nC,3,one\nD,4,1\n")
    return folder


def decide(folder: Folder, action: Any, *names: str, reason: str = "a test order", assignee: str = "", **chosen: Any) -> int:
    """Decide about the letters that are chosen by name or otherwise; returns the exit code."""
    choice, decision = LetterChoice(tuple(names), **chosen), LetterDecision(action, reason, "ben", assignee)
    return folder.load().dlq_decide(choice, decision).exit_code
