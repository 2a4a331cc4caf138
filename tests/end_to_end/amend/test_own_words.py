"""The words that a state has by itself: no member of its files is missing, and an error loses values alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pyarrow.parquet as pq

from errata.core.options import EngineOptions, Erasure, RunOptions
from errata.erasure.own_words import own_words
from errata.erasure.values import ERASED, Values
from tests.support.erasing import KEYED, lay, project
from tests.support.pipelines import Folder


def test_members_of_files_of_the_state_are_own_words(tmp_path: Path) -> None:
    folder = project(tmp_path, KEYED)
    people = [("annabella", "anna@example.org", "bern"), ("benjamin", "ben@example.org", "chur")]
    orders = [(1, "annabella", "b1", "north", 120, "1"), (2, "benjamin", "b1", "north", 71, "x"), (3, "caroline", "b2", "south", 15, "3")]
    lay(folder, orders, people)
    folder.run()
    lay(folder, orders[1:], people[1:])
    folder.load().erase(Erasure("request 17", "the office", {"customer": "annabella"}), RunOptions(engine=EngineOptions("sail")))
    folder.run()
    words = own_words(folder.load().plan)
    assert {*_members(folder)} - words == set()


def _members(folder: Folder) -> Iterator[str]:
    """The members of all JSON in files of the state that are no names of files."""
    state = folder.path / ".errata/shop"
    for file in (*state.rglob("*.json"), *state.glob("ledger/*.parquet")):
        texts = file.read_text().splitlines() if file.suffix == ".json" else [text for column in pq.read_table(file).columns for text in column.to_pylist() if isinstance(text, str) and text[:1] == "{"]
        for text in texts:
            yield from (name for name in _names(orjson.loads(text)) if name.isidentifier() and len(name) > 3)


def _names(document: Any) -> Iterator[str]:
    if isinstance(document, dict):
        yield from document
    for inner in document.values() if isinstance(document, dict) else document if isinstance(document, list) else ():
        yield from _names(inner)


def test_only_the_quoting_members_of_an_error_lose_values() -> None:
    values = Values(texts={"detail", "unknown", "annabella"})
    error = {"category": "unknown_operation", "detail": "code is 'annabella'", "fields": {"detail": "an unknown one", "id": None}, "raw": "1,annabella", "stage": "unknown"}
    blanked = {**error, "detail": f"code is '{ERASED}'", "fields": {"detail": f"an {ERASED} one", "id": None}, "raw": f"1,{ERASED}"}
    assert orjson.loads(values.blanked_error(orjson.dumps(error).decode())) == blanked
