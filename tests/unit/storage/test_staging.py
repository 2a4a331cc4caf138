"""Copies of source files: what is copied, verified, reused, removed and purged."""

import fcntl
import json
import os
import stat
import time

import pytest
from blake3 import blake3

from storage import durable
from storage.files.staging import GRACE_SECONDS, Staging, StagingError, StagingSettings, purge


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "share" / "a.csv"
    path.parent.mkdir()
    path.write_bytes(b"a,b\n1,2\n" * 300_000)
    return path


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "staging"
    made.mkdir()
    return made


def staging(folder, **settings):
    return Staging(StagingSettings(folder, **settings))


def left(folder):
    return sorted(path.suffix for path in folder.iterdir())


def test_a_copy_has_the_bytes_a_manifest_and_no_reader_but_its_owner(source, folder):
    one = staging(folder)
    copy = one.local(source)
    assert one.local(source) == copy
    assert copy.read_bytes() == source.read_bytes()
    names = one.settings.names(source)
    manifest = json.loads(names.manifest.read_text())
    assert (manifest["path"], manifest["size"], manifest["mtime_ns"]) == (str(source), source.stat().st_size, source.stat().st_mtime_ns)
    assert manifest["blake3"] == blake3(source.read_bytes()).hexdigest()
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}


@pytest.mark.parametrize(
    ("cleanup", "clean", "remains"),
    [
        ("on_success", True, [".lock"]),
        ("on_success", False, [".json", ".lock", ".staged"]),
        ("always", False, [".lock"]),
        ("never", True, [".json", ".lock", ".staged"]),
    ],
)
def test_what_remains_of_a_run(source, folder, cleanup, clean, remains):
    one = staging(folder, cleanup=cleanup)
    one.local(source)
    one.release(clean=clean)
    assert left(folder) == remains


def second(source, folder, on_existing):
    first = staging(folder, cleanup="never")
    first.local(source)
    first.release(clean=True)
    again = staging(folder, on_existing=on_existing, cleanup="never")
    again.local(source)
    return again.copied


def test_a_copy_is_made_anew_by_default(source, folder):
    assert second(source, folder, "overwrite") == source.stat().st_size


def test_a_fresh_copy_is_reused(source, folder):
    assert second(source, folder, "reuse") == 0


def test_a_copy_of_a_file_that_was_rewritten_is_not_reused(source, folder):
    first = staging(folder, cleanup="never")
    first.local(source)
    first.release(clean=True)
    source.write_bytes(b"a,b\n3,4\n")
    assert staging(folder, on_existing="reuse").local(source).read_bytes() == b"a,b\n3,4\n"


def test_an_existing_copy_can_be_an_error(source, folder):
    with pytest.raises(StagingError, match=r"^E337: a staged copy of .*a\.csv already exists"):
        second(source, folder, "error")


def test_the_cap_counts_all_copies_of_a_run(source, folder):
    other = source.with_name("b.csv")
    other.write_bytes(b"x" * 100)
    one = staging(folder, cap=source.stat().st_size + 99)
    one.local(source)
    with pytest.raises(StagingError, match=r"^E336: "):
        one.local(other)


def test_a_copy_that_is_not_the_source_is_refused_and_removed(source, folder):
    def spoil(moment):
        if moment.name.startswith("rename:") and moment.name.endswith(".staged") and moment.side == "after":
            source.write_bytes(b"something else")

    with durable.probing(spoil), pytest.raises(StagingError, match=r"^E335: "):
        staging(folder).local(source)
    assert left(folder) == [".lock"]


def test_without_verification_the_copy_is_trusted(source, folder):
    def spoil(moment):
        if moment.name.startswith("rename:") and moment.name.endswith(".staged") and moment.side == "after":
            source.write_bytes(b"something else")

    with durable.probing(spoil):
        assert staging(folder, verify=False).local(source).stat().st_size == 2_400_000


def test_what_the_system_says_is_no_code_of_ours(source, folder):
    source.unlink()
    with pytest.raises(StagingError, match=r"cannot stage .*: No such file") as caught:
        staging(folder).local(source)
    assert caught.value.code == ""


# Purge ------------------------------------------------------------------------------------------------------------------
def aged(path, seconds=GRACE_SECONDS + 1):
    then = time.time() - seconds
    os.utime(path, (then, then))
    return path


def orphans(folder):
    for name in ("a.1f.partial", "b.staged", "c.manifest.json", "d.lock"):
        (folder / name).write_bytes(b"")
        aged(folder / name)


def test_what_a_killed_run_left_is_purged_once_its_time_has_passed(source, folder):
    kept = staging(folder, cleanup="never")
    kept.local(source)
    kept.release(clean=True)
    pair = left(folder)
    orphans(folder)
    (folder / "e.1f.partial").write_bytes(b"")
    (folder / "notes.txt").write_bytes(b"")
    purge(folder)
    assert sorted(path.suffix for path in folder.iterdir() if path.suffix != ".lock") == sorted([*(one for one in pair if one != ".lock"), ".partial", ".txt"])
    for lock in folder.glob("*.lock"):
        aged(lock)
    purge(folder)
    assert {path.name.partition(".")[0] for path in folder.glob("*.lock")} == {kept.settings.names(source).copy.stem}


def test_nothing_is_purged_that_a_living_run_holds(folder):
    orphans(folder)
    handles = [os.open(folder / f"{name}.lock", os.O_RDWR | os.O_CREAT) for name in "abcd"]
    for handle in handles:
        fcntl.flock(handle, fcntl.LOCK_SH)
    purge(folder)
    assert {"a.1f.partial", "b.staged", "c.manifest.json"} <= {path.name for path in folder.iterdir()}
    for handle in handles:
        os.close(handle)


def test_a_copy_that_is_read_by_another_run_is_left_to_it(source, folder):
    one, two = staging(folder, on_existing="reuse"), staging(folder, on_existing="reuse")
    copy = one.local(source)
    assert two.local(source) == copy
    one.release(clean=True)
    assert copy.exists()
    two.release(clean=True)
    assert not copy.exists()


def test_a_folder_that_is_not_there_has_nothing_to_purge(tmp_path):
    purge(tmp_path / "none")
