"""Outputs in parts against a plain loop over the records; names of parts; oversize groups."""

import json
import re
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage import formats
from storage.formats import Column, OptionError, OutputError, WritePlan
from storage.formats.splitting import SplitPlan, split
from tests.support.examples import examples

COLUMNS = (Column("id", "int"), Column("grp", "string"))
WRITER = formats.writer("csv", {}, WritePlan(COLUMNS))
SCHEMA = pa.schema([("id", pa.int64()), ("grp", pa.string())])


def batch(rows):
    return pa.RecordBatch.from_pylist([{"id": i, "grp": g} for i, g in rows], SCHEMA)


def parts_of(plan, batches, writer=WRITER, warn=lambda _: None):
    files = {}
    for piece in split(plan, writer, batches, group=1 if plan.group_key else None, warn=warn):
        files[piece.seq] = files.get(piece.seq, b"") + piece.data
    assert list(files) == list(range(1, len(files) + 1))
    return [files[seq].decode() for seq in files]


def by_hand(plan, rows):
    """The rule of the documentation, a record at a time."""
    files, count, header = [["id,grp\n"]], 0, "id,grp\n"
    previous = object()
    for number, group in rows:
        full = (plan.max_records is not None and count >= plan.max_records) or (
            plan.max_bytes is not None and sum(map(len, files[-1])) >= plan.max_bytes
        )
        if count and full and (plan.group_key is None or group != previous):
            files.append([header] if plan.repeat_header else [])
            count = 0
        files[-1].append(f"{number},{group or ''}\n")
        count, previous = count + 1, group
    return ["".join(lines) for lines in files]


@given(
    groups=st.lists(st.sampled_from(["a", "b", None]), max_size=20),
    cuts=st.lists(st.integers(0, 20), max_size=3),
    plan=st.builds(
        SplitPlan,
        max_records=st.one_of(st.none(), st.integers(1, 5)),
        max_bytes=st.one_of(st.none(), st.integers(1, 40)),
        group_key=st.sampled_from([None, "grp"]),
        repeat_header=st.booleans(),
        oversize_group=st.just("allow"),
    ),
)
@examples(300)
def test_parts_are_those_of_a_plain_loop(groups, cuts, plan):
    rows = list(enumerate(groups))
    bounds = sorted({0, *(min(cut, len(rows)) for cut in cuts), len(rows)})
    batches = [batch(rows[start:end]) for start, end in pairwise(bounds)]
    assert parts_of(plan, batches) == by_hand(plan, rows)


FORMATS = [
    ("csv", {}, lambda part: part.splitlines()[-1].partition(",")[0]),
    ("json", {"format": "array"}, lambda part: str(json.loads(part)[0]["id"])),
    ("json", {"format": "ndjson"}, lambda part: str(json.loads(part)["id"])),
    ("xml", {}, lambda part: re.fullmatch(r"<\?xml .*\?>\s*<Root>\s*<Record>\s*<id>(.)</id>.*</Root>\s*", part, re.DOTALL)[1]),
]


@pytest.mark.parametrize(("type_", "options", "id_of"), FORMATS)
def test_a_header_that_is_no_row_of_names_belongs_to_each_part(type_, options, id_of):
    """`repeat_header` repeats the header row of CSV in each part."""
    writer = formats.writer(type_, options, WritePlan(COLUMNS))
    parts = parts_of(SplitPlan(max_records=1, repeat_header=False), [batch([(1, "a"), (2, "b"), (3, "b")])], writer)
    assert list(map(id_of, parts)) == ["1", "2", "3"]


def test_no_records_are_one_part_with_a_header():
    assert parts_of(SplitPlan(max_records=1), []) == ["id,grp\n"]


@pytest.mark.parametrize(
    ("naming", "name"),
    [
        ("{stem}_{seq:04}.{ext}", "result_0007.csv"),
        ("part-{seq:02}-of-{stem}.{ext}", "part-07-of-result.csv"),
        ("{seq}", "7"),
        ("x{seq:3}.csv", "x007.csv"),
    ],
)
def test_names(naming, name):
    assert SplitPlan(naming=naming).name("result.csv", 7) == name
    assert re.fullmatch(SplitPlan(naming=naming).pattern("result.csv"), name)
    assert not re.fullmatch(SplitPlan(naming=naming).pattern("results.tsv"), f"{name}.meta.json")


def test_a_name_without_extension():
    assert SplitPlan().name("result", 1) == "result_0001.dat"


@pytest.mark.parametrize("naming", ["{stem}.{ext}", "{seq}{what}", "a/{seq}"])
def test_namings_that_are_refused(naming):
    with pytest.raises(OptionError, match=r"split\.naming: "):
        SplitPlan(naming=naming)


def test_oversize_groups():
    rows = [batch([(1, "a"), (2, "a"), (3, "a"), (4, "b")])]
    warnings = []
    assert len(parts_of(SplitPlan(max_records=2, group_key="grp"), rows, warn=warnings.append)) == 2
    assert warnings == ["a group of 'grp' has more than the limit of one file (part 1)"]
    with pytest.raises(OutputError, match="a group of 'grp' has more than the limit"):
        parts_of(SplitPlan(max_records=2, group_key="grp", oversize_group="error"), rows)
    parts_of(SplitPlan(max_records=3, group_key="grp", oversize_group="error"), rows)
