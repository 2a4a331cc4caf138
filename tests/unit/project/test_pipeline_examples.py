"""The examples of codes that planning reports. In a small pipeline each causes its code, and no other, with its golden text.

An example is a whole text (no settings), nodes of the pipeline below (`pipeline` or `correlated`, optionally with `--var`), or another file.
The golden texts are in `golden/codes.txt`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from errata.api import pipeline
from errata.core.codes import Page, pages
from errata.core.diagnostics import Diagnostic, PipelineErrors
from errata.core.files import filesystem
from errata.rendering.diagnostics import one_as_text
from errata.yaml import parse_yaml

GOLDEN = Path(__file__).parent / "golden" / "codes.txt"
BEFORE = """\
pipeline:
  name: example
nodes:
  - type: source
    name: orders
    config:
      name: orders
      type: csv
      path: orders.csv
{correlated}      schema: [{{name: id, type: int}}, {{name: region, type: string}}, {{name: amount, type: float}}]
"""
AFTER = """\
  - type: output
    name: result
    input: orders
    config: {name: result, type: csv, path: result.csv}
"""
CHANNEL = "acme.channel.yaml"


@dataclass(frozen=True, slots=True)
class Case:
    """The pipeline that shows a code: nodes between those above (None: a text by itself), the files beside the pipeline, the words behind `pipeline`."""

    name: str
    nodes: str | None
    settings: str = "pipeline"
    files: Mapping[str, str] | None = None
    text: str = ""

    @property
    def code(self) -> str:
        return self.name.partition(" ")[0]

    def found(self, folder: Path) -> tuple[Diagnostic, ...]:
        """The diagnostics that are reported; the working directory is `folder`."""
        if self.nodes is None:
            return parse_yaml(self.text, file="example.yaml", env={}).diagnostics
        kind, *words = self.settings.split()
        (folder / "pipeline.yaml").write_text(BEFORE.format(correlated="      correlation_key: id\n" if kind == "correlated" else "") + self.nodes + AFTER)
        files = self.files or {}
        for name, text in files.items():
            (folder / name).write_text(text)
        variables = dict(word.split("=") for word in words if word != "--var")
        try:
            return tuple(pipeline.load("pipeline.yaml", channel=CHANNEL if CHANNEL in files else None, variables=variables).diagnostics)
        except PipelineErrors as errors:
            return errors.diagnostics


def cases_of(page: Page) -> Iterator[Case]:
    """Each text of a page, with the page's files beside it; where it has files alone, these beside the unchanged pipeline."""
    files = {one.settings: one.text for one in page.examples if "." in one.settings.split(" ")[0]}
    own = [one for one in page.examples if one.settings not in files and one.language == "yaml"]
    for number, one in enumerate(own, 1):
        name = page.code if number == 1 else f"{page.code} {number}"
        yield Case(name, one.text, one.settings, files) if one.settings else Case(name, None, text=one.text)
    if files and not own:
        yield Case(page.code, "", files=files)


UNSHOWN = (
    Case("E260", f"  - {{type: route, name: more, input: orders, config: {{conditions: {{{', '.join(f'b{at}: id == {at}' for at in range(256))}}}, default: rest}}}}\n"),
    Case("E273", f"  - {{type: merge, name: more, inputs: [{', '.join(['orders'] * 256)}]}}\n"),
    Case("YAML-005", None, text="name: \x01\n"),
)
"""The cases that are too long for a page, or cannot be printed on one."""
CASES = [*(case for page in pages().values() for case in cases_of(page)), *UNSHOWN]


def test_the_pipeline_around_the_examples_is_valid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert Case("", "").found(tmp_path) == Case("", "", "correlated").found(tmp_path) == ()


@pytest.mark.parametrize(("text", "code"), [(None, "FILE-001"), ("pipeline:\n\tname: x\n", "YAML-001"), ("- a\n", "YAML-010")])
def test_a_file_that_cannot_be_read_has_no_further_problems(text: str | None, code: str, tmp_path: Path) -> None:
    file = tmp_path / "pipeline.yaml"
    if text is not None:
        file.write_text(text)
    with pytest.raises(PipelineErrors) as caught:
        pipeline.load(file)
    assert [one.code for one in caught.value.diagnostics] == [code]


@pytest.mark.disk
@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_example(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if case.code == "E330" and filesystem(Path("/dev/shm")) != "memory":
        pytest.skip("the system has no such folder in memory")
    monkeypatch.chdir(tmp_path)
    found = [one for one in case.found(tmp_path) if one.is_error or one.code == case.code]
    assert {one.code for one in found} == {case.code}
    assert shown(found, tmp_path) == goldens()[case.name]


def shown(found: Sequence[Diagnostic], folder: Path) -> str:
    return "\n\n".join(map(one_as_text, found)).replace(f"{folder}/", "") + "\n"


def goldens() -> dict[str, str]:
    parts = (part.split("\n", 1) for part in GOLDEN.read_text("utf-8").split("=== ")[1:])
    return {name: text.rstrip("\n") + "\n" for name, text in parts}


def test_no_golden_is_left_over() -> None:
    assert list(goldens()) == [case.name for case in CASES]


def test_every_code_of_a_plan_has_an_example() -> None:
    shown = {case.code for case in CASES}
    assert {code for code in pages() if not code.startswith("CXL") and code not in shown} == set(ELSEWHERE)


ELSEWHERE = {
    "E224": "a run's: tests/unit/formats/test_csv_reader.py",
    "E238": "a run's: tests/unit/formats/test_missing_columns.py",
    "E239": "a run's: tests/unit/formats/test_missing_columns.py",
    "E228": "a run's: tests/unit/formats/test_limits.py",
    "E229": "a run's: tests/unit/formats/test_limits.py",
    "E233": "a run's: tests/unit/formats/test_limits.py",
    "E234": "a run's: tests/unit/formats/test_limits.py",
    "E235": "a run's: tests/unit/formats/test_limits.py",
    "E236": "a run's: tests/unit/formats/test_limits.py",
    "E237": "a run's: tests/unit/formats/test_limits.py",
    "E641": "a run's: tests/end_to_end/stores/test_store_faults.py",
    "E642": "a run's: tests/end_to_end/stores/test_object_states.py",
    "W460": "a run's: tests/end_to_end/sources/test_corrections.py",
    "W480": "a run's: tests/end_to_end/nodes/test_corrections.py",
    "E490": "a key of the top level: tests/end_to_end/telemetry/test_notifications.py",
    "W490": "a run's: tests/end_to_end/telemetry/test_notifications.py",
    "W461": "a run's: tests/end_to_end/sources/test_scoped_snapshots.py",
    "E310": "a run's: tests/end_to_end/run/test_limits.py",
    "E320": "a run's: tests/end_to_end/run/test_limits.py",
    "E321": "a run's: tests/end_to_end/run/test_limits.py",
    "E608": "a run's: tests/end_to_end/sources/test_databases.py",
    "E610": "a run's: tests/end_to_end/outputs/test_database_tables.py",
    "E611": "a run's: tests/end_to_end/outputs/test_database_tables.py",
    "E613": "a run's: tests/end_to_end/outputs/test_database_tables.py",
    "E614": "a run's: tests/end_to_end/outputs/test_database_tables.py",
    "E616": "a run's: tests/end_to_end/outputs/test_postgresql_tables.py",
    "E620": "a run's: tests/unit/formats/test_xlsx.py",
    "E621": "a run's: tests/unit/formats/test_xlsx.py",
    "E623": "a run's: tests/unit/formats/test_xlsx.py",
    "E660": "a run's: tests/end_to_end/sources/test_datasets.py",
    "E661": "a run's: tests/end_to_end/sources/test_datasets.py",
    "E662": "an export's: tests/end_to_end/outputs/test_odf_export.py",
    "E663": "an export's: tests/end_to_end/outputs/test_odf_export.py",
    "E665": "a run's: tests/end_to_end/sources/test_datasets.py",
    "E630": "a run's: tests/unit/formats/test_avro.py",
    "W620": "a run's: tests/end_to_end/sources/test_workbooks.py",
    "W610": "a run's: tests/end_to_end/outputs/test_database_tables.py",
    "E331": "needs a network share: tests/unit/project/test_workspace.py",
    "E333": "a run's: tests/end_to_end/sources/test_staging.py",
    "E335": "a run's: tests/unit/storage/test_staging.py",
    "E336": "a run's: tests/end_to_end/sources/test_staging.py",
    "E337": "a run's: tests/end_to_end/sources/test_staging.py",
    "W330": "a run's: tests/end_to_end/sources/test_staging.py",
    "W331": "a run's: tests/end_to_end/sources/test_staging.py",
}
"""Codes without an example on their page, and where they are tested."""
