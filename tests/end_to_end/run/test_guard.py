"""The guard against emptied and truncated sources."""

from __future__ import annotations

from pathlib import Path

import pytest

from errata.core.failures import Stopped
from tests.support.pipelines import Folder

PIPELINE = """\
pipeline: { name: guarded }
error_handling: { strategy: continue }
nodes:
  - { type: source, name: rows, config: { name: rows, type: csv, path: rows.csv, MERGE schema: [{ name: id, type: int }, { name: v, type: int }] } }
  - { type: output, name: out, input: rows, config: { name: out, type: csv, path: out.csv } }
"""
FOUR = "1,1\n2,2\n3,3\n4,4\n"
REJECTS = "5,x\n6,x\n7,x\n8,x\n"


@pytest.fixture(params=["", "merge: { primary_key: [id] },"])
def folder(tmp_path: Path, request: pytest.FixtureRequest) -> Folder:
    made = Folder(tmp_path, options={"max_retract_share": None})
    made.write("pipeline.yaml", PIPELINE.replace("MERGE", request.param))
    return made


@pytest.mark.parametrize(
    ("before", "after", "message", "given"),
    [
        (FOUR, "1,1\n2,2\n", None, {}),  # half, and no more than half
        (FOUR, "1,1\n", "would lose 3 of its 4 rows, more than 50%", {}),
        (FOUR, "", "would lose 4 of its 4 rows, more than 50%", {}),
        (FOUR, "", None, {"max_retract_share": 1.0}),
        (FOUR, "1,1\n2,2\n3,3\n", "would lose 1 of its 4 rows, more than 20%", {"max_retract_share": 0.2}),
        (FOUR + REJECTS, "1,1\n" + REJECTS, "would lose 3 of its 4 rows, more than 50%", {}),  # what is rejected does not live
        (FOUR + "5,5\n", "9,9\n", "would lose 4 of its 5 rows, more than 50%", {}),  # one is replaced by another
        (FOUR + REJECTS, FOUR, None, {}),
        (FOUR, "4,4\n3,3\n2,2\n1,1\n", None, {}),  # what comes back in another place is not lost
        (FOUR, "1,9\n2,9\n3,9\n4,9\n", None, {}),  # nor what is corrected
    ],
)
def test_a_source_that_would_lose_most_of_its_rows_ends_the_run(folder: Folder, before: str, after: str, message: str | None, given: dict[str, float]) -> None:
    folder.write("rows.csv", "id,v\n" + before)
    folder.run()
    kept = folder.text("out.csv")
    folder.write("rows.csv", "id,v\n" + after)
    if message is None:
        assert folder.run(**given).exit_code in (0, 2)
        return
    with pytest.raises(Stopped, match=f"^source 'rows' {message}$"):
        folder.run(**given)
    assert (folder.text("out.csv"), folder.load().head_epoch()) == (kept, 1)


@pytest.mark.parametrize(
    ("after", "warned"),
    [
        ("1,1\n", ["source 'rows': b.csv has 1 record, and had 4: if it was delivered in part, deliver it again"]),
        ("", ["source 'rows': b.csv has no records, and had 4: if it was delivered in part, deliver it again"]),
        ("1,1\n2,2\n", []),  # half
        ("4,4\n9,9\n8,8\n7,7\n", []),
        (None, []),  # a file that went away was taken away
    ],
)
def test_a_file_among_several_that_loses_most_of_its_records_is_warned_of(folder: Folder, after: str | None, warned: list[str]) -> None:
    folder.write("pipeline.yaml", (folder.path / "pipeline.yaml").read_text().replace("path: rows.csv", 'glob: "?.csv"'))
    for name, first in (("a", 10), ("b", 0), ("c", 20)):
        folder.write(f"{name}.csv", "id,v\n" + "".join(f"{first + number},{number}\n" for number in range(1, 5)))
    folder.run()
    if after is None:
        (folder.path / "b.csv").unlink()
    else:
        folder.write("b.csv", "id,v\n" + after)
    said = []
    assert folder.run(listener=lambda event: said.append(event.action) if event.kind == "warning" else None).exit_code == 0
    assert said == warned
