"""Columns that are added to records on the way have names that no field of a record may have."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from operators.core.row_type import is_reserved


def names_in(path: Path) -> Iterator[str]:
    """The texts in a module that may be names of columns with an underscore in front, and keywords that are."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value.removesuffix(":")
        elif isinstance(node, ast.keyword):
            yield node.arg or ""


PLACES = (
    "operators/source", "changelog/spark_algebra.py", "changelog/compaction.py", "errata/state/suppressed_rows.py", "errata/execution/manual_corrections.py", "errata/inspect/verify.py",
    "errata/erasure/selection.py", "errata/erasure/remembered_events.py", "errata/rollback/groups.py", "errata/amend/dataset_export.py",
)  # fmt: skip
ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("place", PLACES)
def test_columns_on_the_way_are_reserved(place: str) -> None:
    modules = sorted((ROOT / place).rglob("*.py")) or [ROOT / place]
    names = {(path.name, name) for path in modules for name in names_in(path) if re.fullmatch(r"_+[a-z]\w*", name)}
    assert names
    assert {(path, name) for path, name in names if not is_reserved(name)} == set()
