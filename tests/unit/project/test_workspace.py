"""The workspace file: found above the pipeline, and read strictly."""

from pathlib import Path

import pytest

from errata.core.diagnostics import PipelineErrors
from errata.project.workspace import find_workspace


def _codes(folder: Path, text: str) -> list[tuple[str, int, int]]:
    (folder / "errata.toml").write_text(text)
    with pytest.raises(PipelineErrors) as caught:
        find_workspace(folder / "p.yaml")
    return [(one.code, one.line, one.column) for one in caught.value.diagnostics]


@pytest.mark.parametrize("name", ["errata.toml", "clinker.toml"])
def test_the_nearest_folder_above(name: str, tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    (tmp_path / name).write_text('[state]\npath = "s3://bucket/state"\n[other]\nx = 1\n')
    found = find_workspace(inner / "p.yaml")
    assert (found.folder, found.file, found.settings.state.path) == (tmp_path, tmp_path / name, "s3://bucket/state")
    (inner / "clinker.toml").write_text("")
    assert find_workspace(inner / "p.yaml").folder == inner


def test_without_a_file_the_pipeline_s_own_folder(tmp_path: Path) -> None:
    found = find_workspace(tmp_path / "p.yaml")
    assert (found.folder, found.file) == (tmp_path, None)


@pytest.mark.disk
def test_sizes_are_decimal(tmp_path: Path) -> None:
    (tmp_path / "errata.toml").write_text('[storage.spill]\ndir = "."\ndisk_cap_bytes = "10GB"\n')
    assert find_workspace(tmp_path / "p.yaml").settings.storage.spill.disk_cap_bytes == 10_000_000_000


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("[state\n", [("TOML-001", 1, 7)]),
        ("[storage.spil]\n", [("CFG-001", 1, 10)]),
        ('[storage.spill]\ndisk_cap_bytes = "50XB"\n', [("CFG-004", 2, 18)]),
        ('[storage.spill]\ncompress = "yes"\n', [("CFG-004", 2, 12)]),
        ('[storage.spill]\ndir = "no-such-folder"\n', [("FILE-001", 2, 7)]),
        ('[storage.spill]\ndir = "."\n[storage.staging]\nenabled = true\ndir = "."\n', [("E334", 5, 7)]),
        ("[storage.staging]\nenabled = true\n", [("E332", 1, 10)]),
    ],
)
@pytest.mark.disk
def test_findings(text: str, found: list[tuple[str, int, int]], tmp_path: Path) -> None:
    assert _codes(tmp_path, text) == found


@pytest.mark.parametrize(("kind", "spill"), [("tmpfs", "E330"), ("nfs4", "E331"), ("ext4", None)])
def test_volumes_on_which_nothing_may_be_spilled_or_staged(kind: str, spill: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(f"/dev/sda1 / ext4 rw 0 0\nserver:/share {tmp_path} {kind} rw 0 0\n")
    monkeypatch.setattr("errata.core.files._MOUNTS", mounts)
    (tmp_path / "spill").mkdir()
    (tmp_path / "staging").mkdir()
    text = '[storage.spill]\ndir = "spill"\n[storage.staging]\nenabled = true\ndir = "staging"\n'
    expected = [(spill, 2, 7)] if spill else []
    expected += [("E332", 5, 7)] if kind == "nfs4" else []
    if expected:
        assert _codes(tmp_path, text) == expected
    else:
        (tmp_path / "errata.toml").write_text(text)
        assert find_workspace(tmp_path / "p.yaml").settings.storage.staging.enabled
