"""After an erasure every node has the live rows of a full run over inputs without the records, whatever their history was, and no byte of them is left."""

from __future__ import annotations

import random
import tempfile
from contextlib import nullcontext
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from errata.core.failures import Usage
from errata.core.options import EngineOptions, Erasure, RunOptions
from tests.support.erasing import KEYED, PLACED, holding, lay, project
from tests.support.examples import examples
from tests.support.pipelines import command

PEOPLE = ("annabella", "benjamin", "caroline", "dorothea")
REGIONS = ("north", "south", "west")


@pytest.mark.deep
@examples(8)
@given(seed=st.integers(0, 10**6), merge=st.sampled_from([KEYED, PLACED]), epochs=st.integers(1, 4))
def test_an_erasure_leaves_what_a_run_without_the_records_makes(seed: int, merge: str, epochs: int) -> None:
    chance = random.Random(seed)
    deliveries: list[list[tuple[object, ...]]] = []
    with tempfile.TemporaryDirectory() as place:
        folder, other = project(Path(place) / "one", merge), project(Path(place) / "other", merge)
        for _ in range(epochs):
            orders, people = rows(chance)
            lay(folder, orders, people)
            folder.run()
            deliveries += [orders, people]
        was = sorted(str(row) for row in folder.load().show("history_out") if row["customer"] != "annabella")
        hers = {row[0] for delivery in deliveries for row in delivery if row[1] == "annabella"} if merge == KEYED else set()  # a record is meant with all that it ever was
        orders, people = [row for row in orders if row[1] != "annabella" and row[0] not in hers], [row for row in people if row[0] != "annabella"]
        lay(folder, orders, people)
        delivered = any("annabella" in row for delivery in deliveries for row in delivery)
        with nullcontext() if delivered else pytest.raises(Usage):
            folder.load().erase(Erasure("asked", "the office", {"customer": "annabella"}), RunOptions(engine=EngineOptions("sail")))
        lay(other, orders, people)
        other.run()
        for name in folder.load().node_names:
            if name != "history_out":
                assert list(folder.load().show(name)) == list(other.load().show(name)), name
        assert sorted(map(str, folder.load().show("history_out"))) == was  # nobody else's version changes, and none of hers stays
        assert holding(folder.path, ["annabella", "ANNABELLA", "annabella@example.org"]) == []
        assert command("verify", str(folder.path / "pipeline.yaml"), "--recompute")[0] == 0
        folder.run()
        assert command("verify", str(folder.path / "pipeline.yaml"))[0] == 0


def rows(chance: random.Random) -> tuple[list[tuple[object, ...]], list[tuple[object, ...]]]:
    """Orders and people of one delivery."""
    ids = sorted(chance.sample(range(1, 12), chance.randint(1, 9)))
    orders = [(number, chance.choice(PEOPLE), f"b{chance.randint(1, 5)}", chance.choice(REGIONS), chance.randint(1, 400) / 4, chance.choice("123x")) for number in ids]
    people = [(name, f"{name}@example.org", chance.choice(("Kleinstadt", "Grossdorf"))) for name in PEOPLE if chance.random() < 0.8]
    return orders, people
