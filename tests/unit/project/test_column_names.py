"""Meanings of column names: identities and parts of dates are no amounts."""

import pytest

from errata.core.column_names import names_calendar, names_identity


@pytest.mark.parametrize("name", ["id", "ID", "order_id", "orderId", "customerNo", "Belegnr", "Kundennummer", "zip", "product_code", "productcode", "ref", "iban", "order_ids", "key", "id_type"])
def test_names_of_identities(name: str) -> None:
    assert names_identity(name)


@pytest.mark.parametrize("name", ["paid", "amount", "number_of_orders", "idle", "price", "bid", "qty", "total", "width", "n"])
def test_names_of_other_columns(name: str) -> None:
    assert not names_identity(name)


def test_parts_of_dates() -> None:
    assert all(map(names_calendar, ("year", "fiscal_year", "Month", "orderDay", "jahr", "version")))
    assert not any(map(names_calendar, ("days_open", "monthly_fee", "yearly", "day_rate", "conversion", "stage")))
