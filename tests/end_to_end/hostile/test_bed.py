"""The bed itself: it tells how a command ended, and ends one that takes too much."""

import pytest

from tests.end_to_end.hostile.bed import Overrun

PIPELINE = """\
pipeline: { name: small }
nodes:
  - type: source
    name: s
    config: { name: s, type: csv, path: in.csv, schema: [{ name: a, type: string }] }
  - type: output
    name: o
    input: s
    config: { name: o, type: csv, path: o.csv }
"""


def test_a_command_that_ends_well(bed):
    ended = bed.run({"pipeline.yaml": PIPELINE, "in.csv": "a\n1\n"})
    assert (ended.code, ended.err) == (0, "")
    assert (ended.folder / "o.csv").read_text() == "a\n1\n"
    assert ended.peak_mb > 0
    assert ended.seconds > 0


def test_each_limit_ends_a_command_and_the_next_one_runs(bed):
    large = {"pipeline.yaml": PIPELINE, "in.csv": "a\n" + f"{'x' * 100}\n" * 300_000}
    with pytest.raises(Overrun, match=r"MB of memory in .*"):
        bed.run(large, limit_mb=5)
    with pytest.raises(Overrun, match=r"more than 0\.01 s in"):
        bed.run(large, elapsed=0.01)
    assert bed.run({"pipeline.yaml": PIPELINE, "in.csv": "a\n1\n"}).code == 0


def test_a_process_of_its_own_that_a_signal_ends(bed):
    ended = bed.alone({}, ("--help",), ulimit="-t 0")
    assert ended.code < 0
    assert bed.alone({}, ("--version",)).code == 0
