"""Errors of configuration models: at the right key and in plain words."""

from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from errata.core.diagnostics import Diagnostic
from errata.project.validation import model_problems
from errata.yaml import parse_yaml


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Split(Strict):
    max_records: int = Field(ge=1)
    naming: str = "x"


class Circle(Strict):
    kind: Literal["circle"]
    size: int


class Square(Strict):
    kind: Literal["square"]
    width: int


class Model(Strict):
    name: str
    strategy: Literal["fail_fast", "continue"] = "continue"
    split: Split | None = None
    parts: list[Split] = []
    shape: Annotated[Circle | Square, Field(discriminator="kind")] | None = None
    merge: Literal["append", "snapshot"] | Split = "append"
    group_by: list[str] = []
    notes: dict[str, Any] | None = Field(None, alias="_notes")

    @field_validator("name")
    @classmethod
    def _good(cls, value: str) -> str:
        if value == "bad":
            raise ValueError("Names must be good")
        return value


def _problems(text: str) -> tuple[Diagnostic, ...]:
    document = parse_yaml(f"c: {text}", file="f.yaml")
    try:
        Model.model_validate(document.value["c"])
    except ValidationError as error:
        return model_problems(error, document, ("c",), Model, node="n")
    return ()


CASES = [
    ("{}", "CFG-002", "missing key 'name' in 'c'", 1, ""),
    ("{name: 1}", "CFG-003", "'name' must be text, not the number 1", 11, ""),
    ("{name: bad}", "CFG-004", "'name': names must be good", 11, ""),
    ("{nam: x}", "CFG-001", "unknown key 'nam'", 5, "did you mean 'name'?"),
    (
        "{name: x, strategy: contine}",
        "CFG-004",
        "'strategy' must be 'fail_fast' or 'continue', not the text 'contine'",
        24,
        "did you mean 'continue'?",
    ),
    ("{name: x, strategy: 4}", "CFG-003", "'strategy' must be 'fail_fast' or 'continue', not the number 4", 24, ""),
    ("{name: x, split: {max_record: 4}}", "CFG-001", "unknown key 'max_record'", 22, "did you mean 'max_records'?"),
    ("{name: x, split: {max_records: 0}}", "CFG-004", "'max_records' must be at least 1, not the number 0", 35, ""),
    ("{name: x, split: 7}", "CFG-003", "'split' must be a map, not the number 7", 21, ""),
    ("{name: x, parts: [{max_records: 1}, {max_records: x}]}", "CFG-003", "'max_records' must be a whole number, not the text 'x'", 54, ""),
    ("{name: x, shape: {kind: cube}}", "CFG-004", "'kind' must be 'circle' or 'square', not the text 'cube'", 28, ""),
    ("{name: x, shape: {size: 1}}", "CFG-002", "missing key 'kind' in 'shape'", 14, "it is 'circle' or 'square'"),
    (
        "{name: x, merge: appnd}",
        "CFG-004",
        "'merge' must be 'append', 'snapshot' or a map, not the text 'appnd'",
        21,
        "did you mean 'append'?",
    ),
    ("{name: x, merge: {max_recods: 1}}", "CFG-001", "unknown key 'max_recods'", 22, "did you mean 'max_records'?"),
    ("{name: x, group_by: a}", "CFG-003", "'group_by' must be a list, not the text 'a'", 24, ""),
    ("{name: x, group_by: [a, ~]}", "CFG-003", "'group_by' (item 2) must be text, not empty", 28, ""),
    ("[1]", "CFG-003", "'c' must be a map, not a list", 4, ""),
    ("{name: x, __notes: 2}", "CFG-001", "unknown key '__notes'", 14, "did you mean '_notes'?"),
]


@pytest.mark.parametrize(("text", "code", "message", "column", "hint"), CASES)
def test_problem(text: str, code: str, message: str, column: int, hint: str) -> None:
    found = _problems(text)
    assert [(one.code, one.message, one.column, one.help, one.node) for one in found] == [(code, message, column, hint, "n")]


def test_independent_problems_come_together() -> None:
    found = _problems("{name: 1, strategy: x, other_words: 2, parts: [{naming: 5}]}")
    assert sorted(one.code for one in found) == ["CFG-001", "CFG-002", "CFG-003", "CFG-003", "CFG-004"]


KEYS = st.sampled_from(["name", "strategy", "split", "parts", "shape", "kind", "merge", "group_by", "_notes", "max_records", "other"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["x", "append", "circle"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=8,
)


@given(st.dictionaries(KEYS, VALUES, max_size=6))
def test_any_value_has_problems_with_places_inside_the_file(value: dict[str, Any]) -> None:
    import json

    document = parse_yaml(json.dumps({"c": value}), file="f.yaml")
    for one in _problems(json.dumps(value)):
        assert one.line == 1
        assert 1 <= one.column <= len(document.source.line_text(1)) + 1
        assert one.message
