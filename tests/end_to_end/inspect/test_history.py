"""Pages of epochs and rows, read from Delta files, against the changelog that `errata log` gives."""

from __future__ import annotations

from collections import Counter, defaultdict
from decimal import Decimal
from pathlib import Path

import pytest

from errata.core.failures import Usage
from errata.core.options import EngineOptions
from errata.inspect import history as module
from errata.inspect.history import History
from errata.inspect.story import tree
from tests.support.audited import PIPELINE, with_history
from tests.support.pipelines import Folder

NODES = ("lines", "prices", "wanted", "priced", "totals", "running", "kinds", "costs", "runs")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return with_history(tmp_path_factory.mktemp("history"))


@pytest.fixture
def history(folder):
    return History(folder.load().snapshot())


def net(rows):
    """The changes of a changelog by epoch and key: cause, before, after."""
    found = defaultdict(lambda: ["", None, None])
    for row in rows:
        one = found[row["epoch"], row["key"]]
        one[0] = row["cause"]
        one[1 if row["op"] in ("-R", "-C") else 2] = row["data"]
    return {at: tuple(one) for at, one in found.items()}


def images(changes):
    return {(one.epoch, one.key): (one.cause, one.before, one.after) for one in changes}


@pytest.mark.parametrize("node", NODES)
def test_changes_of_epochs_are_the_changelog(folder, history, node):
    expected = net(folder.log(node))
    found = {}
    for epoch in (1, 2, 3):
        changes = [*history.changes(node, epoch, 0, 5), *history.changes(node, epoch, 5, 1000)]
        assert [one.key for one in changes] == sorted(one.key for one in changes)
        assert history.changed(node, epoch) == len(changes)
        found |= images(changes)
    assert found == expected
    assert "engine" not in history.reading.__dict__


@pytest.mark.parametrize("node", NODES)
def test_a_row_has_its_changes_in_order(folder, history, node):
    expected = net(folder.log(node))
    for key in {key for _, key in expected}:
        changes = history.row(node, bytes.fromhex(key))
        assert images(changes) == {at: one for at, one in expected.items() if at[1] == key}
        assert [one.epoch for one in changes] == sorted(one.epoch for one in changes)


@pytest.mark.parametrize("node", NODES)
def test_causes_are_counted(folder, history, node):
    expected = Counter((row["epoch"], row["cause"].split(":")[0]) for row in folder.log(node))
    found = {(epoch, cause): count for (_, epoch), kinds in history.causes([node], (1, 3)).items() for cause, count in kinds.items()}
    assert found == expected


@pytest.mark.parametrize(("node", "columns"), [("costs", ("cost", "n")), ("priced", ("cost",)), ("lines", ("qty",))])
def test_totals_before_and_after_are_those_of_the_live_rows(folder, history, node, columns):
    figures = {one.epoch: one for one in history.figures(node)}
    assert set(figures) == {row["epoch"] for row in folder.log(node)}
    for epoch, one in figures.items():
        for at, side in ((epoch - 1, one.before), (epoch, one.after)):
            rows = list(folder.load().show(node, at)) if at else []
            assert {name: side[name] for name in columns} == {name: sum(row[name] or 0 for row in rows) for name in columns}
        ops = Counter(row["op"] for row in folder.log(node) if row["epoch"] == epoch)
        assert (one.added, one.removed, one.corrected) == (ops["+A"], ops["-R"], ops["+C"])


def test_what_is_known_is_not_read_again(folder, history):
    causes, figures = history.causes(NODES, (1, 3)), history.figures("costs")
    again = History(folder.load().snapshot(), history.known)
    again.reading.table = None
    assert (again.causes(NODES, (1, 3)), again.figures("costs")) == (causes, figures)


def test_restless_rows_changed_in_most_epochs(folder, history):
    epochs = Counter((node, key) for node in NODES if node not in ("costs", "runs") for _, key in net(folder.log(node)))
    most = sorted((count for count in epochs.values() if count > 1), reverse=True)
    found = history.restless(5)
    assert [count for _, count, _ in found] == most[:5]
    assert all(epochs[node, change.key] == count for node, count, change in found)


def test_an_epoch_of_very_many_rows_shows_the_first(folder, history, monkeypatch):
    monkeypatch.setattr(module, "MOST_ROWS", 3)
    found = history.changes("lines", 1, 0, 4)
    assert len(found) == 4
    assert {(one.epoch, one.key) for one in found} <= set(net(folder.log("lines")))
    assert history.causes(["lines"], (1, 1)) == {}


@pytest.mark.parametrize("ask", [lambda one: one.changes("nothing", 1), lambda one: one.changes("lines", 9), lambda one: one.row("nothing", b"")])
def test_what_is_not_there_is_a_wrong_use(history, ask):
    with pytest.raises(Usage):
        ask(history)


def test_the_tree_leads_to_the_records_that_why_names(folder, history):
    for row in folder.load().show("costs"):
        expected = {(one["source"], one["file"], one["row"]) for one in folder.load().why("costs", {"label": row["label"]})}
        [key] = {one["key"] for one in folder.log("costs") if one["data"]["label"] == row["label"]}
        found = tree(history.reading, "costs", bytes.fromhex(key), most=1000)
        assert found.rows[0][1] == row
        assert {(one["source"], one["file"], one["row"]) for one in records(found)} == expected


def records(behind):
    yield from behind.records
    for one in behind.inputs:
        yield from records(one)


def test_a_node_without_a_table_is_derived(tmp_path: Path) -> None:
    folder = with_history(tmp_path, pipeline=PIPELINE.replace("nodes:", "changelog: {persist: boundaries}\nnodes:", 1))
    history = History(folder.load().snapshot())
    assert not history.stored("wanted")
    expected = net(folder.log("wanted"))
    assert images(one for epoch in (1, 2, 3) for one in history.changes("wanted", epoch, 0, 1000)) == expected
    key = next(key for _, key in expected)
    assert images(history.row("wanted", bytes.fromhex(key))) == {at: one for at, one in expected.items() if at[1] == key}


def test_a_folded_history_begins_at_its_base(tmp_path: Path) -> None:
    folder = with_history(tmp_path)
    before = {one.epoch: one for one in History(folder.load().snapshot()).figures("costs")}
    list(folder.load().compact(3, EngineOptions("sail")))
    history = History(folder.load().snapshot())
    assert history.base > 1
    assert history.figures("costs")[-1].after == before[3].after
    assert [run.epoch for run in history.runs()] == [1, 2, 3]


NUMBERS = """\
pipeline:
  name: numbers
nodes:
  - type: source
    name: paid
    config:
      name: paid
      type: csv
      path: paid.csv
      merge: {strategy: snapshot, primary_key: [id]}
      schema:
        - { name: id, type: string }
        - { name: whole, type: int }
        - { name: exact, type: "decimal(30,2)" }
        - { name: rough, type: float }
  - type: output
    name: kept
    input: paid
    config: { name: kept, type: csv, path: kept.csv }
"""


def test_totals_are_exact_and_do_not_overflow(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", NUMBERS)
    columns = ("id", "whole", "exact", "rough")
    large, many = 2**63 - 1, "9" * 28 + ".99"
    rows = [{"id": f"r{at:02}", "whole": large, "exact": many, "rough": 0.1} for at in range(20)]
    folder.write_csv("paid.csv", columns, [*rows, {"id": "empty", "whole": None, "exact": None, "rough": None}])
    folder.run()
    folder.write_csv("paid.csv", columns, [{**rows[0], "exact": "0.01", "whole": -5}, *rows[2:]])
    folder.run()
    history = History(folder.load().snapshot())
    first, second = history.figures("kept")
    assert first.before == {"whole": 0, "exact": 0, "rough": 0}
    assert first.after["whole"] == 20 * large
    assert first.after["exact"] == Decimal("199999999999999999999999999999.80")
    assert first.after["rough"] == pytest.approx(2)
    assert (second.added, second.removed, second.corrected) == (0, 2, 1)
    assert second.after["whole"] == 18 * large - 5
    assert second.after["exact"] == Decimal("179999999999999999999999999999.83")
    assert second.after["rough"] == pytest.approx(1.9)
    assert second.before == first.after
