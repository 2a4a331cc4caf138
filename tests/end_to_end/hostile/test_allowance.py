"""Processes that may have little: a run ends before native code does."""

import pytest

from errata.cli.console import Console
from errata.cli.exit_report import ended as ending
from tests.end_to_end.hostile.test_bed import PIPELINE

FILES = {"pipeline.yaml": PIPELINE, "in.csv": "a\n1\n"}


@pytest.mark.parametrize(
    ("ulimit", "message"),
    [
        ("-n 12", "12 open files (`ulimit -n`), and it needs 256"),
        ("-n 24", "24 open files (`ulimit -n`), and it needs 256"),
        ("-v 200000", "195 MB of memory (`ulimit -v`), and it needs 1,024 MB for tables"),
        ("-v 600000", "585 MB of memory (`ulimit -v`), and it needs 1,024 MB for tables"),
        ("-v 1500000", "1,464 MB of memory (`ulimit -v`), and it needs "),
        ("-d 1500000", "1,464 MB of memory (`ulimit -d`), and it needs "),
    ],
)
def test_too_little_is_told_before_it_is_felt(bed, ulimit, message):
    ended = bed.alone(FILES, ulimit=ulimit)
    assert (ended.code, message.removeprefix("has ").removeprefix("") in ended.err) == (4, True), ended.err
    assert not (ended.folder / "o.csv").exists()


def test_a_check_needs_little(bed):
    assert bed.alone(FILES, ("check", "pipeline.yaml"), ulimit="-v 200000").code == 0
    assert bed.alone(FILES, ("check", "pipeline.yaml"), ulimit="-n 16").code == 0


def test_more_open_files_are_taken_where_they_may_be_had(bed):
    assert bed.alone(FILES, ulimit="-S -n 24").code == 0


def test_memory_that_runs_out_is_no_defect(capsys):
    assert ending(MemoryError(), Console()) == 4
    assert "this process has no memory left" in capsys.readouterr().err
