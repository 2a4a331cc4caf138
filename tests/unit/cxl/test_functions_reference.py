"""The function reference is generated from the registry, and every example holds on both backends."""

from pathlib import Path

import pytest

from cxl import CxlFailure, compile_program
from cxl.commands.reference import SAMPLE, SAMPLE_SCHEMA, markdown, shown
from cxl.functions.registry import all_builtins
from cxl.runtime.cases import Case, interpret_cases
from cxl.runtime.context import eval_context
from cxl.spark.cases import evaluate_cases

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "cxl" / "functions.md"
EXAMPLES = [(entry.name, text, expected) for entry in all_builtins() for text, expected in entry.examples]


def cases() -> list[Case]:
    return [Case(compile_program(f"emit x = {text}", SAMPLE_SCHEMA), [SAMPLE]) for _, text, _ in EXAMPLES]


def outcomes(answers: list) -> list[tuple[str, str]]:
    return [
        (text, str(answer) if isinstance(answer, CxlFailure) else shown(answer[0]["x"]))
        for (_, text, _), (answer,) in zip(EXAMPLES, answers, strict=True)
    ]


EXPECTED = [(text, expected) for _, text, expected in EXAMPLES]


def test_every_example_holds_in_the_interpreter() -> None:
    assert outcomes(interpret_cases(cases(), eval_context())) == EXPECTED


def test_every_example_holds_as_a_column() -> None:
    assert outcomes(evaluate_cases(cases(), "sail")) == EXPECTED


def test_the_page_is_what_the_registry_says() -> None:
    assert PAGE.read_text(encoding="utf-8") == markdown(), "run: python -m tests.documents --write docs/reference/cxl/functions.md"


@pytest.mark.parametrize("entry", [entry for entry in all_builtins() if entry.kind == "method"], ids=lambda entry: f"{entry.name}-{entry.category}")
def test_every_method_is_documented_with_an_example(entry) -> None:
    assert entry.doc.endswith(".")
    assert entry.examples
    assert entry.section
