"""Errors of YAML texts: the code, and a place inside the file, for every text."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from errata.core.diagnostics import PipelineErrors
from errata.yaml import load_yaml, parse_yaml
from tests.support.examples import examples

WRONG = [
    ("a: 1\nb: 2\na: 3\n", "YAML-002", 3, 1),
    ("a: !foo 1", "YAML-003", 1, 4),
    ("a: !!int x", "YAML-003", 1, 4),
    ("a: !!python/object:os.system x", "YAML-003", 1, 4),
    ("a: [1", "YAML-001", 1, 6),
    ("a: b: c", "YAML-001", 1, 5),
    ("a:\n\tb: 1", "YAML-001", 2, 1),
    ("a: *x", "YAML-006", 1, 4),
    ("a: &x [*x]", "YAML-006", 1, 8),
    ("<<: 1", "YAML-009", 1, 1),
    ("- a\n---\n- b", "YAML-007", 2, 1),
    ("a: 123456789012345678901234", "YAML-011", 1, 4),
    ("[]: 1", "YAML-008", 1, 1),
    ("a: \x01", "YAML-005", 1, 4),
    ("[" * 100 + "]" * 100, "YAML-004", 1, 65),
    ("a: ${lower}", "ENV-002", 1, 4),
    ("a: x\nb: pre-${UNSET_NAME}", "ENV-001", 2, 8),
]


@pytest.mark.parametrize(("text", "code", "line", "column"), WRONG)
def test_finding(text: str, code: str, line: int, column: int) -> None:
    found = parse_yaml(text, file="f.yaml", env={}).diagnostics
    assert [(one.code, one.line, one.column) for one in found] == [(code, line, column)]


def test_independent_findings_come_together() -> None:
    found = parse_yaml("a: ${ONE}\na: !x 1\nb: ${TWO}", env={}).diagnostics
    assert [one.code for one in found] == ["ENV-001", "YAML-003", "YAML-002", "ENV-001"]


def test_a_second_key_points_to_the_first() -> None:
    label = parse_yaml("x: {key: 1, key: 2}").diagnostics[0].labels[0]
    assert (label.line, label.column, label.length) == (1, 5, 3)


def test_aliases_count_as_what_they_stand_for() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]" for level in range(1, 20)]
    started = time.process_time()
    found = parse_yaml("\n".join(lines)).diagnostics
    assert [one.code for one in found] == ["YAML-004"]
    assert time.process_time() - started < 1


def test_largest_file() -> None:
    assert parse_yaml("#" + "x" * 999_998).diagnostics == ()
    assert [one.code for one in parse_yaml("#" + "x" * 1_000_000).diagnostics] == ["YAML-004"]


def test_bytes_that_are_no_text() -> None:
    assert [one.code for one in parse_yaml(b"a: \xff").diagnostics] == ["YAML-005"]


def test_a_comment_may_name_what_is_not_set() -> None:
    assert parse_yaml("a: 1 # ${UNSET_NAME}", env={}).diagnostics == ()


def test_a_variable_is_one_value_and_never_structure() -> None:
    env = {"X": "a: b\nc: [d", "Q": '"', "N": "null", "E": ""}
    document = parse_yaml('x: ${X}\ny: "${Q}"\nn: ${N}\ne: ${E:-7}\n${N}: $$5', env=env)
    assert document.value == {"x": "a: b\nc: [d", "y": '"', "n": None, "e": 7, "null": "$5"}


def test_a_secret_is_not_shown() -> None:
    document = parse_yaml("auth: {token: 'Bearer ${secret:TOKEN}'}", env={"TOKEN": "s3cret"})
    assert document.value["auth"]["token"] == "Bearer s3cret"  # type: ignore[index]
    assert "s3cret" not in repr(document.value) + repr(document.shown_value()) + repr(document)
    assert document.shown_value() == {"auth": {"token": "Bearer ${secret:TOKEN}"}}
    assert document.secrets == {"s3cret"}


def test_a_file_that_is_not_there(tmp_path: object) -> None:
    with pytest.raises(PipelineErrors) as caught:
        load_yaml(f"{tmp_path}/none.yaml")
    assert caught.value.diagnostics[0].code == "FILE-001"


def test_a_folder_is_no_file(tmp_path: object) -> None:
    with pytest.raises(PipelineErrors, match="not a regular file"):
        load_yaml(f"{tmp_path}")


PIECES = st.sampled_from(["a", ":", " ", "\n", "  ", "- ", "{", "}", "[", "]", ",", "'", '"', "|", ">", "&a ", "*a", "!", "#", "?", "\t", "\r", "${X}", "${", "$$", "%", "\\", "\u2028", "\x85", "é", "\U0001f600", "---\n", "...", "0x1", "1e9", "\ue000", "<<", "~"])  # fmt: skip


@examples(400)
@given(st.lists(PIECES, max_size=40).map("".join) | st.text(max_size=60))
def test_no_text_crashes_and_every_finding_is_inside(text: str) -> None:
    document = parse_yaml(text, env={"X": "1"})
    for one in document.diagnostics:
        assert one.code
        if one.line:
            assert one.line <= document.source.line_count
            assert 1 <= one.column <= len(document.source.line_text(one.line)) + 1
    _visit(document.value, (), document)


def _visit(value: object, path: tuple[str | int, ...], document: object) -> None:
    span = document.span(path)  # type: ignore[attr-defined]
    assert 1 <= span.line <= document.source.line_count  # type: ignore[attr-defined]
    if isinstance(value, dict):
        for key, inner in value.items():
            _visit(inner, (*path, key), document)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            _visit(inner, (*path, index), document)
    elif isinstance(value, str):
        places = [document.origin(path).locate(index) for index in range(len(value) + 1)]  # type: ignore[attr-defined]
        assert places == sorted(places, key=lambda place: (place.line, place.column))
