"""Columns that sources add to records on the way have names that no field of a record may have."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import operators.source
from operators.core.row_type import is_reserved


def names_in(path: Path) -> Iterator[str]:
    """The texts in a module that may be names of columns with an underscore in front, and keywords that are."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value.removesuffix(":")
        elif isinstance(node, ast.keyword):
            yield node.arg or ""


def test_columns_on_the_way_are_reserved() -> None:
    modules = sorted(Path(next(iter(operators.source.__path__))).rglob("*.py"))
    assert len(modules) > 30
    names = {(path.name, name) for path in modules for name in names_in(path) if re.fullmatch(r"_[a-z]\w*", name)}
    assert {(path, name) for path, name in names if not is_reserved(name)} == set()
