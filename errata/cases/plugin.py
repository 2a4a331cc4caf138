r"""The plugin for pytest: the fixture `pipeline_case` runs a pipeline in steps and compares what they lead to.

    def test_revenue(pipeline_case):
        case = pipeline_case("pipeline.yaml")
        case.step({"orders": "id | amount\n1 | 40"}, expect={"revenue": "total\n40"})
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from errata.cases import case_run, model
    from errata.cases.case_run import CaseRun
    from errata.cases.tables import Row

    Written = str | Sequence[Row] | Mapping[str, str]
    from errata.core.events import RunResult
    from errata.core.options import EngineKind
else:
    from changelog.lazy_imports import Lazy

    model = Lazy("errata.cases.model")
    case_run = Lazy("errata.cases.case_run")


class PipelineCase:
    """A pipeline with a state and a folder of its own."""

    def __init__(self, run: CaseRun) -> None:
        self._run = run

    @property
    def folder(self) -> Path:
        """Where relative paths of the pipeline begin: outputs are below it."""
        return self._run.folder

    def step(
        self, given: Mapping[str, Written] | None = None, *, files: Mapping[str, str | None] | None = None, texts: Mapping[str, str] | None = None,
        expect: Mapping[str, Written] | None = None, changes: Mapping[str, Written] | None = None, dlq: Written | None = None,
        failing: Mapping[str, int] | None = None, exit_code: int | None = None, message: str | None = None, full_refresh: bool = False,
    ) -> RunResult | None:  # fmt: skip
        """Run the pipeline, and compare. The arguments are the keys of a step of a case file.

        Returns:
            What the run did; None where it failed as expected.

        Raises:
            AssertionError: Something differs; the message shows what.
        """
        __tracebackhide__ = True
        step = model.Step.model_validate({
            "given": dict(given or {}), "files": dict(files or {}), "texts": dict(texts or {}), "expect": dict(expect or {}), "changes": dict(changes or {}), "dlq": dlq,
            "failing": dict(failing or {}), "exit_code": exit_code, "message": message, "full_refresh": full_refresh,
        })  # fmt: skip
        found = list(self._run.run(step))
        if found:
            pytest.fail("\n".join(found), pytrace=False)
        return self._run.result


@pytest.fixture
def pipeline_case(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., PipelineCase]:
    """A function that begins a case: `pipeline_case("pipeline.yaml", variables=…, channel=…, engine="sail")`. The path is relative to the test's file."""
    begun = iter(range(1, 1 << 30))

    def begin(
        pipeline: str | Path, *, variables: Mapping[str, Any] | None = None, channel: str | Path | None = None, engine: EngineKind = "sail", max_retract_share: float = 1.0
    ) -> PipelineCase:
        beside = Path(str(request.path)).parent
        folder = tmp_path / f"case-{next(begun)}"
        folder.mkdir()
        return PipelineCase(case_run.CaseRun(beside / pipeline, folder, beside, {"variables": variables, "channel": channel}, engine, max_retract_share))

    return begin
