"""Damaged state: a run over it gives the right output or ends with a registered exit code, never a wrong output and never 70.

Each case damages one file of a state of four epochs, then runs: the same input again, or a changed one.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.pipelines import Folder, command

PIPELINE = """\
pipeline: { name: fuzzed }
error_handling: { strategy: continue, dlq: { path: out/rejected.csv } }
nodes:
  - { type: source, name: rows, config: { name: rows, type: csv, path: rows.csv, schema: [{ name: id, type: int }, { name: g, type: string }, { name: v, type: int }] } }
  - { type: aggregate, name: sums, input: rows, config: { group_by: [g], cxl: "emit total = sum(v)\\nemit n = count(*)" } }
  - { type: output, name: totals, input: sums, config: { name: totals, type: csv, path: out/totals.csv } }
"""
FINISHED, REGISTERED = {0, 2}, {4}
CASES = 300
SHARDS = 6


def rows(epoch: int) -> str:
    """Some records are rejected, and each tenth is another in every epoch."""
    values = {id: "none" if id % 20 == 1 else id * 7 % 50 + (epoch if id % 10 == 0 else 0) for id in range(epoch, 60 + epoch * 3)}
    return "id,g,v\n" + "".join(f"{id},{'abc'[id % 3]},{value}\n" for id, value in values.items())


def truncate(data: bytes, chance: random.Random) -> bytes:
    return data[: chance.randrange(len(data) + 1)]


def empty(data: bytes, chance: random.Random) -> bytes:
    return b""


def flip(data: bytes, chance: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(chance.choice((1, 1, 4)) if data else 0):
        changed[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def zero(data: bytes, chance: random.Random) -> bytes:
    start = chance.randrange(len(data) + 1)
    stretch = len(data[start : start + chance.randrange(1, 200)])
    return data[:start] + bytes(stretch) + data[start + stretch :]


DAMAGES: tuple[Callable[[bytes, random.Random], bytes] | None, ...] = (truncate, empty, flip, zero, None)
"""None removes the file."""


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    """Four epochs, and the outputs of a run from nothing over the input of the fifth."""
    place = tmp_path_factory.mktemp("fuzzed")
    folder, full = Folder(place / "honest"), Folder(place / "full")
    for one in (folder, full):
        one.write("pipeline.yaml", PIPELINE)
    for epoch in range(4):
        folder.write("rows.csv", rows(epoch))
        folder.run()
    full.write("rows.csv", rows(9))
    full.run()
    return folder


def outputs(folder: Folder) -> dict[str, str]:
    return {"totals": folder.text("out/totals.csv"), "rejected": str([(row["id"], row["v"]) for row in folder.rows("out/rejected.csv")])}


def damaged(honest: Folder, place: Path, chance: random.Random) -> str:
    """Copy the project and damage one file of its state: what was done."""
    shutil.copytree(honest.path, place)
    kinds: dict[str, list[Path]] = {}
    for file in sorted((place / ".errata").rglob("*")):
        if file.is_file():
            kinds.setdefault(f"{file.parent.relative_to(place)}{file.suffix}", []).append(file)
    file, damage = chance.choice(kinds[chance.choice(sorted(kinds))]), chance.choice(DAMAGES)
    if damage is None:
        file.unlink()
    else:
        file.write_bytes(damage(file.read_bytes(), chance))
    return f"{getattr(damage, '__name__', 'remove')} {file.relative_to(place)}"


@pytest.mark.parametrize("shard", range(SHARDS))
def test_a_damaged_state_gives_the_right_output_or_a_registered_exit(honest: Folder, tmp_path: Path, shard: int) -> None:
    before, after = outputs(honest), outputs(Folder(honest.path.parent / "full"))
    wrong = []
    for seed in range(shard, CASES, SHARDS):
        chance = random.Random(seed)
        folder = Folder(tmp_path / str(seed))
        what = damaged(honest, folder.path, chance)
        changes = chance.random() < 0.7
        if changes:
            folder.write("rows.csv", rows(9))
        code, _, stderr = command("run", str(folder.path / "pipeline.yaml"), "--engine", "sail", "--quiet")
        expected = after if changes and code in FINISHED else before
        if code not in FINISHED | REGISTERED or outputs(folder) != expected:
            wrong.append((seed, what, changes, code, stderr))
        shutil.rmtree(folder.path)
    assert wrong == []
