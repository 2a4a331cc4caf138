"""Deliveries that correct others, against a plain Python model: random files in any order, cut into runs at will."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests.support import corrections
from tests.support.corrections import COLUMNS, SOURCES, Files, deliveries
from tests.support.examples import examples
from tests.support.pipelines import Folder, command


def deliver(folder: Folder, files: Files) -> None:
    for source in SOURCES:
        for name, records in files.items():
            folder.write_csv(f"{source}/{name}.csv", COLUMNS, records)


def rejects(folder: Folder) -> dict[str, set[tuple[str, int, str]]]:
    found: dict[str, set[tuple[str, int, str]]] = {source: set() for source in SOURCES}
    if (folder.path / "out/rejected.csv").exists():
        for row in folder.rows("out/rejected.csv"):
            path = Path(row["_cxl_dlq_source_file"])
            found[path.parent.name].add((path.stem, int(row["_cxl_dlq_source_row"]), row["_cxl_dlq_error_category"]))
    return found


def check(folder: Folder, files: Files) -> None:
    wrong = rejects(folder)
    for source in SOURCES:
        told, found = corrections.replayed(source, files), folder.rows(f"out/{source}.csv")
        assert found == corrections.shown(told.live), f"{source}: {found} is not {corrections.shown(told.live)}"
        assert wrong[source] == told.rejects, f"{source}: {wrong[source]} is not {told.rejects}"


def verify(folder: Folder) -> None:
    code, out, _ = command("verify", str(folder.path / "pipeline.yaml"), "--quiet")
    assert code == 0, out


@examples(60, 2)
@given(deliveries(), st.booleans())
def test_what_is_live_depends_on_what_was_delivered_alone(history: list[Files], leave: bool):
    with tempfile.TemporaryDirectory() as place:
        folder, files = Folder(Path(place)), Files()
        folder.write("pipeline.yaml", corrections.pipeline())
        for some in history:
            files |= some
            deliver(folder, some)
            folder.run()
            check(folder, files)
            assert not folder.run().committed
            for source, name in () if leave else ((source, name) for source in SOURCES for name in some):
                folder.remove(f"{source}/{name}.csv")
        verify(folder)
        if leave:
            folder.run(full_refresh=True)
            check(folder, files)
