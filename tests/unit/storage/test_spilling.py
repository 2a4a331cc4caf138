"""Spill folders: each process has its own, locked and removed at its end; folders of killed processes are removed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from storage.engines import spill

HOLDER = """
import sys, time
from pathlib import Path
from storage.engines.spill import own_folder
print(own_folder(Path(sys.argv[1])), flush=True)
time.sleep(600)
"""


@pytest.fixture(autouse=True)
def no_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spill, "GRACE_SECONDS", 0.0)
    monkeypatch.setattr(spill, "_held", {})


def test_a_process_has_one_folder_which_is_gone_at_its_end(tmp_path: Path) -> None:
    folder = spill.own_folder(tmp_path)
    assert folder.parent == tmp_path
    assert spill.own_folder(tmp_path) == folder
    (folder / "spilled").write_text("x")
    spill.remove_folders()
    assert not list(tmp_path.iterdir())


def test_the_folder_of_a_killed_process_is_removed_and_that_of_a_living_one_is_not(tmp_path: Path) -> None:
    holders = [subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    try:
        folders = [Path(holder.stdout.readline().strip()) for holder in holders]  # type: ignore[union-attr]  # it is a pipe
        (folders[0] / "spilled").write_text("x")
        os.kill(holders[0].pid, signal.SIGKILL)
        holders[0].wait()
        own = spill.own_folder(tmp_path)
        assert sorted(tmp_path.iterdir()) == sorted([folders[1], own])
    finally:
        for holder in holders:
            holder.kill()
            holder.communicate()
        spill.remove_folders()


def test_nothing_else_is_touched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "errata-spill-file").write_text("x")
    elsewhere = tmp_path / "mine" / "kept"
    elsewhere.mkdir()
    (tmp_path / "errata-spill-link").symlink_to(elsewhere)
    (tmp_path / "errata-spill-old").mkdir()
    young = tmp_path / "errata-spill-young"
    young.mkdir()
    monkeypatch.setattr(spill, "GRACE_SECONDS", 1000.0)
    os.utime(tmp_path / "errata-spill-old", (time.time() - 5000,) * 2)
    spill.purge(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["errata-spill-file", "errata-spill-link", "errata-spill-young", "mine"]
    assert elsewhere.is_dir()


def test_a_folder_that_is_gone_is_no_error(tmp_path: Path) -> None:
    spill.purge(tmp_path / "nowhere")
