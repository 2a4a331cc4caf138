"""Decimals in pipeline files: how columns and variables spell their digits, and numbers of YAML by the digits that are written."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from cxl.types.types import decimal_of
from errata.project.variables import precision_of, read_value
from errata.yaml.scalars import resolve
from operators.core.config import decimal_spelling
from operators.transform.checks import condition


@pytest.mark.parametrize(
    ("type_", "scale", "precision", "spelled"),
    [
        ("decimal", 2, None, "decimal(38,2)"), ("decimal", 0, 1, "decimal(1,0)"), ("decimal", 38, 38, "decimal(38,38)"), ("decimal(10, 2)", None, None, "decimal(10,2)"),
        ("nullable(decimal)", 6, 9, "nullable(decimal(9,6))"), ("nullable(decimal(5,5))", None, None, "nullable(decimal(5,5))"), ("int", None, None, "int"), ("datetime", None, None, "date_time"),
    ],
)  # fmt: skip
def test_spellings_of_one_type(type_: str, scale: Any, precision: Any, spelled: str) -> None:
    assert decimal_spelling(type_, scale, precision) == spelled


@pytest.mark.parametrize(
    ("type_", "scale", "precision", "words"),
    [
        ("decimal", None, None, "no scale"), ("decimal", None, 5, "no scale"), ("decimal", 39, None, "the scale 39"), ("decimal", 3, 2, "from 0 to 2"), ("decimal", -1, None, "the scale -1"),
        ("decimal", True, None, "the scale True"), ("decimal", 2.0, None, "the scale 2.0"), ("decimal", 2, 0, "the precision 0"), ("decimal", 2, "9", "the precision 9"), ("decimal(10)", None, None, "no scale"),
        ("decimal(2,3)", None, None, "cannot be"), ("decimal(39,2)", None, None, "cannot be"), ("decimal(10,2)", 2, None, "beside"), ("int", 2, None, "beside"), ("nullable(string)", None, 3, "precision beside"),
    ],
)  # fmt: skip
def test_digits_that_are_missing_or_cannot_be(type_: str, scale: Any, precision: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        decimal_spelling(type_, scale, precision)


@pytest.mark.parametrize(
    ("written", "expected"),
    [('"19.99"', "19.99"), ("5", "5.00"), ("12345678901234567.89", "12345678901234567.89"), ("1.5", "1.50"), ("0.1", "0.10"), ("1e2", "100.00")],
)
def test_defaults_are_read_by_their_digits(written: str, expected: str) -> None:
    value = written.strip('"') if written.startswith('"') else resolve(written)
    assert read_value(value, decimal_of(2)) == Decimal(expected)


@pytest.mark.parametrize("value", ["1.005", 1.005, True, "", "x", 1000, "1e3"])
def test_defaults_that_do_not_fit(value: Any) -> None:
    with pytest.raises(ValueError, match="is no"):
        read_value(value, decimal_of(2), precision_of("decimal(5,2)"))


def test_checks_compare_decimals_by_digits() -> None:
    assert condition("range", "p", {"min": -0.5, "max": 10}, exact=True) == "p >= -0.5d and p <= 10"
    assert condition("one_of", "p", {"values": [1.25, 1e-7, 3]}, exact=True) == "p == 1.25d or p == 0.0000001d or p == 3"
    assert condition("min", "p", {"value": 1.5}) == "p >= 1.5"
