"""`errata verify` sees what was tampered with: flipped bytes, dropped log entries, edited, added, removed and reordered events."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from tests.support.audited import with_history
from tests.support.pipelines import Folder, command, limited

Tampering = Callable[[Path, random.Random], None]


def _choose(chance: random.Random, files: list[Path]) -> Path:
    return chance.choice(sorted(files))


def flip_a_data_byte(state: Path, chance: random.Random) -> None:
    _flip(_choose(chance, list(state.rglob("*.parquet"))), chance)


def flip_a_log_byte(state: Path, chance: random.Random) -> None:
    _flip(_choose(chance, list(state.rglob("_delta_log/*.json"))), chance)


def flip_a_byte_of_the_anchor(state: Path, chance: random.Random) -> None:
    _flip(state / "anchor.json", chance)


def _flip(file: Path, chance: random.Random) -> None:
    data = bytearray(file.read_bytes())
    data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    file.write_bytes(data)


def drop_a_log_entry(state: Path, chance: random.Random) -> None:
    _choose(chance, list(state.rglob("_delta_log/*.json"))).unlink()


def drop_a_data_file(state: Path, chance: random.Random) -> None:
    table = DeltaTable(str(_choose(chance, _tables(state))))
    _choose(chance, [Path(uri) for uri in table.file_uris()]).unlink()


def drop_a_run(state: Path, chance: random.Random) -> None:
    DeltaTable(str(state / "ledger")).delete(f"epoch = {chance.randint(1, 3)}")


def drop_the_last_run(state: Path, chance: random.Random) -> None:
    ledger = DeltaTable(str(state / "ledger"))
    newest = max((state / "ledger" / "_delta_log").glob("*.json"))
    added = set(ledger.file_uris()) - set(DeltaTable(str(state / "ledger"), version=ledger.version() - 1).file_uris())
    newest.unlink()
    for uri in added:
        Path(uri).unlink()


def edit_a_run(state: Path, chance: random.Random) -> None:
    DeltaTable(str(state / "ledger")).update(updates={"batch_id": "'another'"}, predicate=f"epoch = {chance.randint(1, 3)}")


def edit_events(state: Path, chance: random.Random) -> None:
    DeltaTable(str(_choose(chance, _changelogs(state)))).update(updates={"_cause": "'nothing'"}, predicate="_epoch = 1")


def remove_events(state: Path, chance: random.Random) -> None:
    DeltaTable(str(_choose(chance, _changelogs(state)))).delete("_epoch = 1")


def reorder_events(state: Path, chance: random.Random) -> None:
    DeltaTable(str(_choose(chance, _changelogs(state)))).update(updates={"_epoch": "4 - _epoch"})


def add_an_event(state: Path, chance: random.Random) -> None:
    table = DeltaTable(str(_choose(chance, _changelogs(state))))
    write_deltalake(table, pa.table(table.scan()).slice(0, 1), mode="append")


def _tables(state: Path) -> list[Path]:
    return [log.parent for log in state.rglob("_delta_log") if DeltaTable(str(log.parent)).file_uris()]


def _changelogs(state: Path) -> list[Path]:
    return [table for table in _tables(state) if table.parent.name == "changelog"]


KINDS: tuple[Tampering, ...] = (
    flip_a_data_byte, flip_a_data_byte, flip_a_data_byte, flip_a_log_byte, drop_a_log_entry, drop_a_data_file, drop_a_run, drop_the_last_run,
    edit_a_run, edit_events, remove_events, reorder_events, add_an_event, flip_a_byte_of_the_anchor,
)  # fmt: skip


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    folder = with_history(tmp_path_factory.mktemp("honest"))
    assert folder.violations() == []
    return folder


@pytest.mark.deep
def test_fifty_of_fifty_tamperings_are_found(honest: Folder, tmp_path: Path) -> None:
    unseen = []
    for seed in range(50):
        copy = Folder(tmp_path / str(seed))
        shutil.copytree(honest.path, copy.path)
        tamper = KINDS[seed % len(KINDS)]
        tamper(copy.path / ".errata" / "audited", random.Random(seed))
        if not copy.violations():
            unseen.append((seed, tamper.__name__))
    assert unseen == []


def test_the_command_names_table_and_file_and_ends_with_5(honest: Folder, tmp_path: Path) -> None:
    copy = Folder(tmp_path / "copy")
    shutil.copytree(honest.path, copy.path)
    file = min((copy.path / ".errata/audited/changelog/lines").glob("*.parquet"))
    file.write_bytes(file.read_bytes() + b"!")
    code, out, _ = command("verify", str(copy.path / "pipeline.yaml"), "--format", "jsonl")
    assert code == 5
    assert "changelog/lines" in out
    assert file.name in out


@pytest.fixture(params=[10_000, 0], ids=["on the driver", "by the engine"])
def _read(request: pytest.FixtureRequest) -> Iterator[None]:
    with limited(small_rows=request.param):
        yield


@pytest.mark.usefixtures("_read")
@pytest.mark.parametrize("words", ["show {} lines", "log {} lines", "diff {} lines --from 1 --to 3", "why {} lines line=l0"])
@pytest.mark.parametrize("size", [None, 40])
def test_a_lost_or_damaged_file_is_a_storage_error(honest: Folder, tmp_path: Path, words: str, size: int | None) -> None:
    copy = Folder(tmp_path / "copy")
    shutil.copytree(honest.path, copy.path)
    for file in (copy.path / ".errata/audited/changelog/lines").glob("*.parquet"):
        _ = file.unlink() if size is None else file.write_bytes(file.read_bytes()[:size])
    code, _, errors = command(*words.format(copy.path / "pipeline.yaml").split())
    assert (code, "changelog/lines" in errors) == (4, True)
