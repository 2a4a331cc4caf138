"""Folders of a process: for spilled data and for temporary files, locked and removed at its end; folders of killed processes are removed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from storage import process_folders

THREADS = 16
HOLDER = """
import sys, time
from pathlib import Path
from storage.process_folders import spill_folder, temporary_folder
root = Path(sys.argv[1])
print(spill_folder(root) if sys.argv[2] == 'spill' else temporary_folder('objects', str(root)).parent, flush=True)
time.sleep(600)
"""


@pytest.fixture(autouse=True)
def no_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_folders, "GRACE_SECONDS", 0.0)
    monkeypatch.setattr(process_folders, "_held", {})


def test_a_process_has_one_folder_which_is_gone_at_its_end(tmp_path: Path) -> None:
    folder = process_folders.spill_folder(tmp_path)
    assert folder.parent == tmp_path
    assert process_folders.spill_folder(tmp_path) == folder
    (folder / "spilled").write_text("x")
    process_folders.remove_spilled()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", ["spill", "files"])
def test_the_folder_of_a_killed_process_is_removed_and_that_of_a_living_one_is_not(tmp_path: Path, kind: str) -> None:
    holders = [subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path), kind], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    try:
        folders = [Path(holder.stdout.readline().strip()) for holder in holders]  # type: ignore[union-attr]  # it is a pipe
        (folders[0] / "left").write_text("x")
        os.kill(holders[0].pid, signal.SIGKILL)
        holders[0].wait()
        process_folders.purge(tmp_path, process_folders.SPILLED)
        process_folders.purge(tmp_path)
        assert list(tmp_path.iterdir()) == [folders[1]]
        own = process_folders.spill_folder(tmp_path) if kind == "spill" else process_folders.temporary_folder("objects", str(tmp_path)).parent
        assert sorted(tmp_path.iterdir()) == sorted([folders[1], own])
    finally:
        for holder in holders:
            holder.kill()
            holder.communicate()
        process_folders.remove_spilled()


def test_the_folder_of_a_living_process_stays_when_a_cleaner_removes_old_files(tmp_path: Path) -> None:
    folder = process_folders.files_folder(str(tmp_path))
    try:
        (folder / "old").write_text("x")
        for file in folder.iterdir():
            file.unlink()
        process_folders.purge(tmp_path)
        assert folder.is_dir()
    finally:
        process_folders._remove(process_folders.TEMPORARY)


def test_threads_share_one_folder(tmp_path: Path) -> None:
    together = Barrier(THREADS)

    def folder(_: int) -> Path:
        together.wait()
        return process_folders.spill_folder(tmp_path)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(THREADS) as pool:
            found = set(pool.map(folder, range(THREADS)))
        assert sorted(found) == sorted(tmp_path.iterdir())
        assert len(found) == 1
    finally:
        sys.setswitchinterval(before)
        process_folders.remove_spilled()


def test_a_folder_that_somebody_removed_is_made_anew(tmp_path: Path) -> None:
    first = process_folders.spill_folder(tmp_path)
    first.rmdir()
    second = process_folders.spill_folder(tmp_path)
    assert second != first
    process_folders.remove_spilled()
    assert not list(tmp_path.iterdir())


def test_temporary_files_outlive_engines_and_go_with_the_process(tmp_path: Path) -> None:
    text = "import sys; from storage.process_folders import *; print(temporary_folder('a', sys.argv[1]), temporary_folder('b', sys.argv[1])); remove_spilled(); print(temporary_folder('c', sys.argv[1]))"
    done = subprocess.run([sys.executable, "-c", text, str(tmp_path)], capture_output=True, text=True, check=True)
    assert len({Path(name).parent for name in done.stdout.split()}) == 1
    assert not list(tmp_path.iterdir())


def test_nothing_else_is_touched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "errata-spill-file").write_text("x")
    elsewhere = tmp_path / "mine" / "kept"
    elsewhere.mkdir()
    (tmp_path / "errata-spill-link").symlink_to(elsewhere)
    (tmp_path / "errata-spill-old").mkdir()
    young = tmp_path / "errata-spill-young"
    young.mkdir()
    monkeypatch.setattr(process_folders, "GRACE_SECONDS", 1000.0)
    os.utime(tmp_path / "errata-spill-old", (time.time() - 5000,) * 2)
    process_folders.purge(tmp_path, process_folders.SPILLED)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["errata-spill-file", "errata-spill-link", "errata-spill-young", "mine"]
    assert elsewhere.is_dir()


def test_a_folder_that_is_gone_is_no_error(tmp_path: Path) -> None:
    process_folders.purge(tmp_path / "nowhere")
