"""`errata verify --recompute`: manual corrections and reverts are no violation; a wrongly derived row is one."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from hypothesis import given
from hypothesis import strategies as st

from errata.core.failures import Stopped, Usage
from errata.core.options import Correction, EngineOptions, RunOptions
from storage.delta.changelog_table import ChangelogTable
from storage.state.integrity import anchor_ledger, seal_tables
from storage.state.ledger import Ledger
from tests.invariants.sales import HEADER, KEYED, pipeline
from tests.support import rollback_model as rollback
from tests.support.examples import examples
from tests.support.pipelines import Folder

SAIL = RunOptions(engine=EngineOptions("sail"), max_retract_share=1.0)
Step = tuple[str, Any]


def recomputed(folder: Folder) -> dict[str, tuple[str, str]]:
    """Verdict and detail of the comparison with a batch run by node; nothing else may be wrong."""
    rows = list(folder.load().verify(recompute=True, engine=SAIL.engine))
    assert [row for row in rows if row["check"] != "recompute" and row["verdict"] != "ok"] == []
    return {row["node"]: (row["verdict"], row["detail"]) for row in rows if row["check"] == "recompute"}


def wrong(folder: Folder) -> list[str]:
    return [node for node, (verdict, _) in recomputed(folder).items() if verdict != "ok"]


def by_hand(folder: Folder, source: str, steps: list[Step]) -> None:
    """Corrections (key and new values, none to retract) and reverts; what cannot be done is left out."""
    for name, what in steps:
        try:
            if name == "revert":
                folder.load().revert(what, SAIL)
            else:
                folder.load().correct(Correction(source, {"id": name}, what, "by hand"), SAIL)
        except Usage:
            continue


reverts = st.tuples(st.just("revert"), st.integers(0, 4))


@st.composite
def edits_of_sales(draw: st.DrawFn) -> list[Step]:
    """Of records 1 to 4: parts 0 fail, region none is filtered."""
    values = st.fixed_dictionaries({}, optional={
        "region": st.sampled_from(["EU", "US", "none"]), "amount": st.sampled_from(["0.1", "50", "-1e16", ""]), "parts": st.sampled_from(["0", "3", ""]),
    })  # fmt: skip
    return draw(st.lists(st.one_of(reverts, st.tuples(st.sampled_from("1234"), values)), min_size=2, max_size=4))


@pytest.fixture(scope="module")
def sales(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    """Two epochs of four records; one fails."""
    folder = Folder(tmp_path_factory.mktemp("sales"))
    folder.write("pipeline.yaml", pipeline(KEYED))
    for amounts in ((1.0, 50.0, 0.1, None), (1e16, 50.0, 0.2, 7.0)):
        records = [{"id": at, "region": "EU" if at < 3 else "US", "amount": amount, "parts": at - 1} for at, amount in enumerate(amounts, 1)]
        folder.write_csv("data/a.csv", HEADER, records)
        folder.run()
    return folder


@pytest.fixture(scope="module")
def rolled_back(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    """Three groups of two records; one group is rolled back."""
    folder = Folder(tmp_path_factory.mktemp("rolled_back"))
    folder.write("pipeline.yaml", rollback.pipeline(keyed=True))
    records = [{"id": at, "sale": at % 3, "dept": "toys" if at < 4 else "maps", "qty": "bad" if at == 5 else "7", "k": 1} for at in range(1, 7)]
    folder.write_csv("data/shop-a.csv", rollback.HEADER, records)
    folder.run()
    return folder


def copied(folder: Folder, place: Path) -> Folder:
    shutil.copytree(folder.path, place)
    return Folder(place)


def holds_after(folder: Folder, source: str, steps: list[Step]) -> None:
    with tempfile.TemporaryDirectory() as place:
        copy = copied(folder, Path(place) / "copy")
        by_hand(copy, source, steps)
        assert wrong(copy) == []


@examples(16, 2)
@given(edits_of_sales())
def test_corrections_and_reverts_are_no_violation(sales: Folder, steps: list[Step]) -> None:
    holds_after(sales, "sales", steps)


edits_of_rolled_back = st.tuples(st.sampled_from("123456"), st.sampled_from([{"qty": "bad"}, {"qty": "12"}, {"sale": "2"}, {}]))


@examples(16, 2)
@given(st.lists(st.one_of(edits_of_rolled_back, reverts), min_size=2, max_size=3))
def test_what_is_rolled_back_is_settled_as_it_stands(rolled_back: Folder, steps: list[Step]) -> None:
    holds_after(rolled_back, "shop", steps)


def test_files_that_changed_since_the_last_run_are_not_read(sales: Folder, tmp_path: Path) -> None:
    copy = copied(sales, tmp_path / "copy")
    copy.write_csv("data/a.csv", HEADER, [])
    copy.write("data/b.csv", "no,such,columns\n")
    assert wrong(copy) == []


def test_rows_that_were_derived_wrongly_are_found(sales: Folder, tmp_path: Path) -> None:
    copy = copied(sales, tmp_path / "copy")
    commit_wrong(copy, "sums", {"total": "total + 1"}, "_epoch = 2 AND _op = 3")
    commit_wrong(copy, "priced", {"size": "'small'"}, "id = 2")
    assert copy.violations() == []
    found = {node: detail for node, (verdict, detail) in recomputed(copy).items() if verdict != "ok"}
    assert found == dict.fromkeys(("priced", "sums"), "1 rows differ from a batch run over the source rows that stand")


def commit_wrong(folder: Folder, node: str, updates: dict[str, str], predicate: str) -> None:
    """An epoch, sealed as any other, in which live rows of a node are not what its inputs say: a defect that no hash shows."""
    state, head = folder.load().state, folder.load().head()
    assert head is not None
    path = f"changelog/{node}"
    table = DeltaTable(state.table(path))
    table.update(updates=updates, predicate=predicate)
    tables = {**head.tables, path: DeltaTable(state.table(path)).version()}
    marks = {**head.marks, path: ChangelogTable(state.table(path)).mark()}
    entry = replace(head, epoch=head.epoch + 1, tables=tables, files=seal_tables(state, head.tables, tables), marks=marks)
    ledger = Ledger(state.ledger)
    anchor_ledger(state, ledger, ledger.append(entry, head), {path: ChangelogTable(state.table(path)).data_files()})


VOLATILE = """\
pipeline: { name: volatile }
nodes:
  - { type: source, name: words, config: { name: words, type: csv, path: words.csv, schema: [{ name: word, type: string }] } }
  - { type: transform, name: stamped, input: words, config: { cxl: "emit at = now" } }
  - { type: transform, name: plain, input: words, config: { cxl: "emit size = word.length()" } }
  - { type: output, name: out, input: stamped, config: { name: out, type: csv, path: out.csv } }
  - { type: output, name: sizes, input: plain, config: { name: sizes, type: csv, path: sizes.csv } }
"""


def test_what_may_differ_from_run_to_run_is_not_compared(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", VOLATILE)
    folder.write("words.csv", "word\none\n")
    folder.run()
    clock = ("ok", "not compared: stamped reads what is another in every run")
    same = ("ok", "")
    assert recomputed(folder) == {"words": same, "stamped": clock, "out": clock, "plain": same, "sizes": same}
    folder.write("pipeline.yaml", VOLATILE.replace("word.length()", "word.length() + 1"))
    edited = ("ok", "not compared: plain changed since epoch 1")
    assert recomputed(folder) == {"words": same, "stamped": clock, "out": clock, "plain": edited, "sizes": edited}


def test_nothing_is_wrong_after_runs_that_were_taken_back(tmp_path: Path) -> None:
    """As a scheduler does that tries again and again: each attempt leaves versions of tables after the committed one."""
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", RETRIED)
    for number, text in enumerate(("1,2\n", "1,2\n2,4\n", "1,2\n2,4\n3,0\n")):
        folder.write("o.csv", f"id,v\n{text}")
        if number < 2:
            folder.run()
    for _ in range(6):
        with pytest.raises(Stopped):
            folder.run()
    assert folder.violations() == []
    assert wrong(folder) == []


RETRIED = """\
pipeline: { name: retried }
nodes:
  - { type: source, name: o, config: { name: o, type: csv, path: o.csv, schema: [{ name: id, type: int }, { name: v, type: int }] } }
  - { type: transform, name: t, input: o, config: { cxl: emit n = 12 / v } }
  - { type: output, name: out, input: t, config: { name: out, type: csv, path: out.csv } }
"""
