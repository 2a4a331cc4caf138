"""Messages to an engine stay small, however large a delta or a difference is. A client refuses a message of more than 128 MB; here of more than 512 KB."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from storage.engines import connect, sail, stop_engines
from tests.end_to_end.inspect.test_recompute import commit_wrong, recomputed
from tests.support.pipelines import Folder

PIPELINE = """\
pipeline: { name: large }
nodes:
  - { type: source, name: rows, config: { name: rows, type: csv, path: rows.csv, merge: MERGE, schema: [{ name: id, type: int }, { name: g, type: int }, { name: word, type: string }] } }
  - { type: transform, name: loud, input: rows, config: { cxl: "emit word = word.upper()" } }
  - { type: aggregate, name: lists, input: loud, config: { group_by: [g], cxl: "emit words = collect(word)\\nemit n = count(*)" } }
  - { type: transform, name: places, input: loud, config: { analytic_window: { partition_by: [g], sort_by: [id] }, cxl: "emit place = $window.row_number()" } }
  - { type: output, name: out, input: places, config: { name: out, type: csv, path: out.csv } }
"""
KEYED = "{ strategy: snapshot, primary_key: [id] }"


@pytest.fixture(autouse=True)
def small_messages(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An engine whose client sends messages of at most 512 KB, and rows of more than 32 KB by way of a file."""
    stop_engines()
    monkeypatch.setattr(connect, "LARGE", (*connect.LARGE, ("grpc.max_send_message_length", 512 << 10)))
    monkeypatch.setattr(sail, "MESSAGE_BYTES", 32 << 10)
    yield
    stop_engines()


def lay_out(folder: Folder, number: int, word: str) -> None:
    folder.write_csv("rows.csv", ["id", "g", "word"], [{"id": id, "g": id % 50, "word": f"{word}{id}" * 20} for id in range(number)])


@pytest.mark.parametrize("number", [6_000, pytest.param(30_000, marks=pytest.mark.deep)])
@pytest.mark.parametrize("merge", [KEYED, pytest.param("{ strategy: snapshot }", marks=pytest.mark.deep)])
def test_a_large_difference_is_counted(tmp_path: Path, number: int, merge: str) -> None:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", PIPELINE.replace("MERGE", merge))
    lay_out(folder, number, "a")
    folder.run()
    lay_out(folder, number, "b")
    folder.run()
    assert [one for one in recomputed(folder).values() if one != ("ok", "")] == []
    commit_wrong(folder, "loud", {"word": "concat(word, 'x')"}, "_epoch = 2 AND _op IN (0, 3)")
    assert recomputed(folder)["loud"] == ("violation", f"{number} rows differ from a batch run over the source rows that stand")
