"""The files that a source finds, and the paths that are refused."""

import os
import sys
from datetime import UTC, datetime, timedelta

import pytest

from storage.files.discovery import FileQuery, PathRefused, content_hash, discover, size_bound, time_bound
from storage.formats import InputError

FILES = {"b.csv": 3, "a.csv": 1, "c.txt": 5, "in/a.csv": 7, "in/x/d.csv": 2, ".hidden.csv": 1}


@pytest.fixture
def folder(tmp_path):
    for number, (name, size) in enumerate(FILES.items()):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * size)
        os.utime(path, (1_700_000_000 + 100 * number,) * 2)
    return tmp_path


def names(folder, **query):
    return [file.name for file in discover(FileQuery(**query), folder)]


FOUND = [
    ({"path": "b.csv"}, ["b.csv"]),
    ({"paths": ("b.csv", "a.csv")}, ["b.csv", "a.csv"]),
    ({"paths": ("b.csv", "a.csv"), "sort_by": "name"}, ["a.csv", "b.csv"]),
    ({"glob": "*.csv"}, [".hidden.csv", "a.csv", "b.csv"]),
    ({"glob": "./in/*.csv"}, ["in/a.csv"]),
    ({"glob": "in//*.csv"}, ["in/a.csv"]),
    ({"glob": ".//in//x/./*.csv"}, ["in/x/d.csv"]),
    ({"glob": "*.csv", "exclude": (*(f"*{number}*y*" for number in range(6000)), "b*")}, [".hidden.csv", "a.csv"]),
    ({"glob": "*.csv", "exclude": ("b*" + "?" * 3000, "?.csv")}, [".hidden.csv"]),
    ({"glob": "**/*.csv"}, [".hidden.csv", "a.csv", "b.csv", "in/a.csv", "in/x/d.csv"]),
    ({"glob": "in/**"}, ["in/a.csv", "in/x/d.csv"]),
    ({"glob": "[!b].csv"}, ["a.csv"]),
    ({"glob": "?.[a-ct]*"}, ["a.csv", "b.csv", "c.txt"]),
    ({"glob": "*.csv", "exclude": ("a.*", ".*")}, ["b.csv"]),
    ({"glob": "**/*", "exclude": ("in/**",)}, [".hidden.csv", "a.csv", "b.csv", "c.txt"]),
    ({"regex": r"in/.*[ad]\.csv$"}, ["in/a.csv", "in/x/d.csv"]),
    ({"regex": r"[ad]\.csv$", "recursive": False}, ["a.csv"]),
    ({"glob": "*.csv", "sort_by": "modified"}, ["b.csv", "a.csv", ".hidden.csv"]),
    ({"glob": "?.csv", "sort_by": "name", "sort_order": "desc"}, ["b.csv", "a.csv"]),
    ({"glob": "**/*", "take_first": 2}, [".hidden.csv", "a.csv"]),
    ({"glob": "**/*", "take_last": 2}, ["in/a.csv", "in/x/d.csv"]),
    ({"glob": "**/*", "min_size": 3, "max_size": "5B"}, ["b.csv", "c.txt"]),
    ({"glob": "**/*", "modified_after": "2023-11-14T22:20:00Z"}, [".hidden.csv", "in/x/d.csv"]),
    ({"glob": "**/*", "modified_before": "2023-11-14T22:15:00Z"}, ["b.csv"]),
    ({"glob": "*.none", "on_no_match": "skip"}, []),
]  # fmt: skip


@pytest.mark.parametrize(("query", "expected"), FOUND)
def test_found(folder, query, expected):
    assert names(folder, **query) == expected


@pytest.mark.parametrize("pattern", ["{0}/in/*.csv", "{0}//in/*.csv", "/{0}/in//*.csv", "{0}/./in/*.csv"])
def test_absolute_globs_name_files_as_relative_ones_do(folder, pattern):
    found = discover(FileQuery(glob=pattern.format(folder)), folder, allow_absolute=True)
    assert [(file.name, file.path) for file in found] == [("in/a.csv", folder / "in/a.csv")]


@pytest.mark.skipif(sys.platform == "darwin", reason="the file system has UTF-8 names only")
@pytest.mark.parametrize("query", [{"glob": "*.csv"}, {"regex": r"csv$", "recursive": False}])
def test_a_name_that_is_not_utf8_is_refused_and_can_be_left_out(folder, query):
    (folder / os.fsdecode(b"d\xff.csv")).touch()
    with pytest.raises(InputError, match=r"^d\\udcff\.csv: the file's name is not UTF-8: rename it, or leave it out by `exclude`, with `\?` for each such byte$"):
        names(folder, **query)
    assert names(folder, **query, exclude=("d?.csv",)) == [".hidden.csv", "a.csv", "b.csv"]
    assert names(folder, glob="a*") == ["a.csv"]


REFUSED = [
    ({"path": "../x.csv"}, "path '../x.csv' has a '..' step"),
    ({"glob": "in/../*.csv"}, "path 'in/../*.csv' has a '..' step"),
    ({"paths": ("a.csv", "/etc/passwd")}, "path '/etc/passwd' is absolute"),
    ({"regex": "^/etc/.*"}, "path '^/etc/.*' is absolute"),
    ({"path": "~/x"}, "path '~/x' starts with '~'"),
    ({"path": "a\0b"}, "holds a NUL"),
    ({"regex": "(a"}, "regex '(a' cannot be read: missing ): (a"),
    ({"regex": r"(a)\1"}, "cannot be read"),
    ({"glob": "[z-a].csv"}, "glob '[z-a].csv' cannot be read: in a class such as [a-c]"),
    ({"glob": "*", "take_first": 1, "take_last": 1}, "take_first and take_last exclude each other"),
    ({"glob": "*", "min_size": "3 miles"}, "'3 miles' is no size"),
    ({"glob": "*", "modified_after": "yesterday"}, "'yesterday' is no time"),
]


@pytest.mark.parametrize(("query", "message"), REFUSED)
def test_refused(folder, query, message):
    with pytest.raises(PathRefused) as caught:
        discover(FileQuery(**query), folder)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"path": "none.csv"}, "none.csv: file not found"),
        ({"path": "in"}, "in: not a regular file"),
        ({"glob": "*.none"}, "*.none: no file matches"),
        ({"paths": ("a.csv", "no.csv")}, "no.csv: file not found"),
    ],
)
def test_missing_files_are_input_errors(folder, query, message):
    with pytest.raises(InputError) as caught:
        discover(FileQuery(**query), folder)
    assert str(caught.value) == message


def test_links_may_not_lead_out(folder, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside") / "secret.csv"
    outside.write_text("x")
    (folder / "link.csv").symlink_to(outside)
    (folder / "inner.csv").symlink_to(folder / "a.csv")
    (folder / "dangling.csv").symlink_to(folder / "gone.csv")
    (folder / "out").symlink_to(outside.parent)
    assert names(folder, path="inner.csv") == ["inner.csv"]
    assert names(folder, glob="d*.csv", on_no_match="skip") == []
    for query in ({"path": "link.csv"}, {"glob": "l*.csv"}, {"path": "out/secret.csv"}, {"glob": "out/*.csv"}):
        with pytest.raises(PathRefused, match="is a link that leads out"):
            names(folder, **query)
    assert names(folder, glob="[il]*.csv", exclude=("link.csv",)) == ["inner.csv"]


def test_a_link_to_itself_is_no_file(folder):
    (folder / "loop.csv").symlink_to(folder / "loop.csv")
    assert names(folder, glob="l*.csv", on_no_match="skip") == []


def test_a_file_named_twice_is_read_once(folder):
    assert names(folder, paths=("b.csv", "a.csv", "./b.csv")) == ["b.csv", "a.csv"]


def test_bounds_beyond_all_times_and_sizes(folder):
    os.utime(folder / "a.csv", ns=(0, (1 << 62)))  # the year 2116
    for age in ("800000d", "99999999999999999999d"):
        assert names(folder, glob="[ab].csv", modified_after=age) == ["a.csv", "b.csv"]
        assert names(folder, glob="[ab].csv", modified_before=age, on_no_match="skip") == []
    assert names(folder, glob="[ab].csv", max_size="9" * 400) == ["a.csv", "b.csv"]


def test_times_are_compared_exactly(folder):
    os.utime(folder / "a.csv", ns=(0, 1_700_000_000_000_000_999))
    os.utime(folder / "b.csv", ns=(0, 1_700_000_000_000_001_000))
    assert names(folder, glob="[ab].csv", modified_after="2023-11-14T22:13:20.000001+00:00") == ["b.csv"]


def test_absolute_paths_by_permission(folder):
    (file,) = discover(FileQuery(path=str(folder / "a.csv")), folder / "in", allow_absolute=True)
    assert (file.path, file.size) == (folder / "a.csv", 1)
    found = discover(FileQuery(glob=f"{folder}/[ab].csv"), folder / "in", allow_absolute=True)
    assert [file.path for file in found] == [folder / "a.csv", folder / "b.csv"]


def test_devices_are_not_read(folder):
    os.mkfifo(folder / "pipe.csv")
    assert names(folder, glob="p*", on_no_match="skip") == []


def test_sizes_and_times():
    now = datetime(2024, 1, 2, tzinfo=UTC)
    assert [size_bound(text) for text in (None, 5, "7B", "10KB", "1.5MB", "1GB", "12")] == [None, 5, 7, 10_000, 1_500_000, 10**9, 12]
    assert time_bound("36h", now) == now - timedelta(hours=36)
    assert time_bound("2024-01-01T02:00:00+02:00", now) == now - timedelta(days=1)
    assert time_bound("2024-01-01", now) == now - timedelta(days=1)


def test_content_hash(folder):
    from blake3 import blake3

    assert content_hash(folder / "c.txt") == blake3(b"xxxxx").hexdigest()
