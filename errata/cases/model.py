"""Case files: `orders.test.yaml` has cases for `orders.yaml`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, ValidationError, model_validator

from errata.cases.table_files import TableFile
from errata.cases.tables import read_table
from errata.core.diagnostics import PipelineErrors, raise_errors
from errata.project.validation import model_problems
from errata.yaml import read_yaml
from operators.core.config import Strict

SUFFIX = ".test.yaml"


def _is_table(written: Any) -> Any:
    if not isinstance(written, TableFile):
        read_table(written)
    return written


Tabular = Annotated[str | list[dict[str, Any]] | TableFile, AfterValidator(_is_table)]


class Step(Strict):
    """A delivery, a run, and what it leads to."""

    given: dict[str, Tabular] = Field(default_factory=dict, description="Rows for sources by name, as a text table, a list of maps or a file; sources keep those of earlier steps.")
    files: dict[str, str | None] = Field(
        default_factory=dict, description="Files for the run: path below the pipeline's folder, and the file to copy, relative to the case file; null removes it."
    )
    texts: dict[str, str] = Field(default_factory=dict, description="Files for the run: path below the pipeline's folder, and the content.")
    full_refresh: bool = Field(default=False, description="Whether the run computes everything anew.")
    expect: dict[str, Tabular] = Field(default_factory=dict, description="The live rows of nodes after the run; only the columns of the table are compared.")
    changes: dict[str, Tabular] = Field(default_factory=dict, description="The op rows that the run brings to nodes; the column op has +A, -R, -C and +C.")
    dlq: Tabular | None = Field(default=None, description="The dead letters after the run: category, trigger, source, row and fields of the sources.")
    failing: dict[str, int] = Field(default_factory=dict, description="Failing rows by expectation, such as orders.range_amount.")
    exit_code: Literal[0, 1, 2, 3, 4, 6] | None = Field(default=None, description="The exit code of the run; by default 2 where dead letters are expected, else 0.")
    message: str | None = Field(default=None, description="A part of the message of a run that fails.")


class Case(Step):
    """A case: one step, or several in turn."""

    name: str = Field(description="What the case shows.")
    variables: dict[str, Any] = Field(default_factory=dict, description="Values of declared variables, such as pipeline.cutoff.")
    channel: str | None = Field(default=None, description="A channel, by path or name.")
    max_retract_share: Annotated[float, Field(ge=0, le=1)] = Field(default=1.0, description="The share of a source's rows that a run may retract; by default all of them.")
    steps: list[Step] = Field(default_factory=list, description="The steps; without them the keys of the case are the only one.")

    @model_validator(mode="after")
    def _is_one(self) -> Case:
        own = self.model_fields_set & Step.model_fields.keys()
        if self.steps and own:
            raise ValueError(f"a case with steps has '{min(own)}' in a step")
        return self

    def in_turn(self) -> list[Step]:
        """The steps."""
        return self.steps or [self]


class CaseFile(Strict):
    """Cases for a pipeline."""

    pipeline: str | None = Field(default=None, description="The pipeline file, relative to the case file; by default the one of its name: orders.yaml for orders.test.yaml.")
    cases: list[Case] = Field(min_length=1, description="The cases; each has a state of its own.")


def find_cases(place: Path) -> Iterator[Path]:
    """The case files at or below a place, in order. Hidden folders are passed over."""
    if place.is_file():
        yield place
        return
    for path in sorted(place.rglob(f"*{SUFFIX}")):
        if not any(part.startswith(".") for part in path.relative_to(place).parts):
            yield path


def read_cases(path: Path) -> CaseFile:
    """The cases of a file. Raises PipelineErrors with every problem of it."""
    document = read_yaml(path, env={})
    raise_errors(document.diagnostics)
    if isinstance(document.value, dict) and "nodes" in document.value and "cases" not in document.value:
        beside = f"{path.stem}{SUFFIX}"
        raise PipelineErrors([document.error(("nodes",), "CFG-001", f"{path.name} is a pipeline; its cases are in a file of their own", key=True, help=f"write them into {beside}, and run: errata test {beside}")])
    try:
        return CaseFile.model_validate(document.value)
    except ValidationError as error:
        raise PipelineErrors(model_problems(error, document, (), CaseFile)) from error


def pipeline_of(path: Path, cases: CaseFile) -> Path:
    """The pipeline file of a case file."""
    return path.parent / (cases.pipeline or f"{path.name.removesuffix(SUFFIX)}.yaml")
