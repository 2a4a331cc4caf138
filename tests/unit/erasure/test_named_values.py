"""The values of `--key` are read as their columns are."""

from __future__ import annotations

from pathlib import Path

import pytest

from errata.erasure.named_values import NamedValues
from errata.erasure.values import Values
from tests.support.erasing import shop
from tests.support.pipelines import Folder

COLUMNS = (
    "{ name: day, type: date }, { name: at, type: date_time }, { name: active, type: bool }, { name: amount, type: float }, "
    '{ name: price, type: "decimal(10,2)" }, { name: more, type: any }, { name: note, type: string }'
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    folder = Folder(tmp_path_factory.mktemp("named"))
    shaped = "{ type: transform, name: shaped, input: orders, config: { cxl: emit active = note } }"
    folder.write("pipeline.yaml", shop(COLUMNS, "{ type: output, name: report, input: orders, config: { name: report, type: csv, path: report.csv } }").replace("name: shop }", 'name: shop, date_formats: ["%d.%m.%Y"] }'))
    folder.write("other.yaml", folder.text("pipeline.yaml") + f"  - {shaped}\n  - {{ type: output, name: more, input: shaped, config: {{ name: more, type: csv, path: more.csv }} }}\n")
    folder.write("in/orders.csv", "id,customer,day,at,active,amount,price,more,note\n")
    return folder


@pytest.mark.parametrize(
    ("name", "texts", "cell"),
    [
        ("id", ["12", "+12"], "12"), ("day", ["2026-03-01", "01.03.2026", "03/01/2026"], "2026-03-01"), ("amount", ["5.0", "5", "5.00", "0.5e1"], "5"),
        ("price", ["12.50", "12.5"], "12.5"), ("note", ["xy"], "xy"), ("unknown", ["xy"], "xy"),
        ("at", ["2026-03-01 12:30:00", "2026-03-01T12:30:00Z", "2026-03-01T14:30:00+02:00", "03/01/2026 12:30"], None),
    ],
)  # fmt: skip
def test_a_value_is_read_as_its_column_is(folder: Folder, name: str, texts: list[str], cell: str | None) -> None:
    found = [NamedValues.of(folder.load().loaded.plan, {name: text}).values for text in texts]
    assert all(one == found[0] for one in found)
    assert len(found[0]) == 1
    if cell is not None:
        assert found[0] == Values(cells={name: {cell}})


def test_texts_stay_texts_and_what_cannot_be_read_is_one_too(folder: Folder) -> None:
    found = NamedValues.of(folder.load().loaded.plan, {"customer": "annabella", "amount": "forty-two", "more": "anything"})
    assert (found.values, found.too_common) == (Values(texts={"annabella", "forty-two", "anything"}), ())


@pytest.mark.parametrize("text", ["true", "yes", "1", "false"])
def test_yes_and_no_are_not_looked_for(folder: Folder, text: str) -> None:
    found = NamedValues.of(folder.load().loaded.plan, {"active": text})
    assert (found.values, found.too_common) == (Values(), ("active",))


def test_a_column_with_several_types_is_read_as_each(folder: Folder, tmp_path: Path) -> None:
    other = Folder(tmp_path)
    other.write("pipeline.yaml", folder.text("other.yaml"))
    other.write("in/orders.csv", folder.text("in/orders.csv"))
    found = NamedValues.of(other.load().loaded.plan, {"active": "true"})
    assert (found.values, found.too_common) == (Values(cells={"active": {"true"}}), ())
