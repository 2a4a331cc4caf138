"""States of before have BLAKE3 hashes of files: runs go on with them."""

from __future__ import annotations

import os

import pytest
from blake3 import blake3

from tests.support.pipelines import Folder

PIPELINE = """\
pipeline: {{ name: p }}
nodes:
  - type: source
    name: s
    config:
      name: s
      type: csv
      glob: in/*.csv
      merge: {{ strategy: {strategy}, primary_key: [id] }}
      schema: [{{ name: id, type: int }}, {{ name: v, type: int }}]
  - {{ type: output, name: o, input: s, config: {{ name: o, type: csv, path: out.csv, sort_order: [id] }} }}
"""
FIRST, GROWN, REWRITTEN = "id,v\n1,10\n2,20\n", "id,v\n1,10\n2,20\n3,30\n", "id,v\n1,11\n2,20\n"
AFTER = {
    "snapshot": ({"1": "10", "2": "20", "3": "30", "4": "99"}, {"1": "11", "2": "20", "4": "99"}),
    "upsert": ({"1": "10", "2": "99", "3": "30"}, {"1": "11", "2": "20"}),
    "ledger": ({"1": "10", "2": "20", "3": "30"}, {"1": "10", "2": "20"}),
}
"""The rows after the first file has grown, and after it was rewritten instead. The second file repeats key 2, that of a snapshot has a key of its own."""


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path)


@pytest.fixture(params=AFTER)
def strategy(request, folder, monkeypatch):
    """A state whose ledger has the hashes of before."""
    folder.write("pipeline.yaml", PIPELINE.format(strategy=request.param))
    folder.write("in/a.csv", FIRST)
    folder.write("in/b.csv", f"id,v\n{4 if request.param == 'snapshot' else 2},99\n")
    with monkeypatch.context() as patch:
        patch.setattr("errata.state.source_files.salted_hash", lambda path, _like="", length=None: blake3(path.read_bytes()[:length]).hexdigest())
        folder.run()
    return request.param


def test_a_touched_file_is_no_change(folder, strategy):
    os.utime(folder.path / "in/a.csv", (1, 1))
    before = folder.text("out.csv")
    assert not folder.run().committed
    assert folder.text("out.csv") == before


@pytest.mark.parametrize("change", [GROWN, REWRITTEN], ids=["grown", "rewritten"])
def test_a_changed_file_is_told_from_a_grown_one(folder, strategy, change):
    folder.write("in/a.csv", change)
    folder.run()
    rows = {row["id"]: row["v"] for row in folder.rows("out.csv")}
    assert rows == AFTER[strategy][change == REWRITTEN]
