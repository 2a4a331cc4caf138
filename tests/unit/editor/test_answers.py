"""Hover, completion, definition and references at marked places of one pipeline."""

from __future__ import annotations

import pytest

from errata.editor.completion import complete
from errata.editor.hover import hover
from errata.editor.navigation import definitions, references
from errata.editor.outline import outline, outline_cxl
from tests.support.editing import SHOP, marked, opened

BODY = """\
composition:
  name: with_tax
  requires: [{ name: amount, type: float }]
  params: [{ name: rate, type: float }]
nodes:
  - type: transform
    name: taxed
    input: input
    config:
      cxl: |
        emit tax = amount * $vars.rate
"""
USING = """\
pipeline: { name: p }
nodes:
  - type: source
    name: orders
    config:
      name: orders
      type: csv
      path: o.csv
      schema: [{ name: amount, type: float }]
  - type: composition
    name: reduced
    use: with_tax.comp.yaml
    input: orders
    config: { rate: 0.05 }
  - { type: output, name: out, input: reduced, config: { type: csv, path: out.csv } }
"""


@pytest.mark.parametrize(
    ("at", "parts"),
    [
        ("em§it amount = gross", None),
        ("emit amou§nt = gross", ["amount: Nullable(Float)", "Made by `priced`", "From `orders.amount`"]),
        ("let gross = amo§unt", ["amount: Nullable(Float)", "Made by `orders`", "From `orders.amount`"]),
        ("let gro§ss", ["gross: Nullable(Float)"]),
        ("$vars.ra§te", ["$vars.rate", "Declared in pipeline.yaml:4"]),
        ("customer.tr§im()", ["trim() -> String", "Here: `Nullable(String)`"]),
        ("emit revenue = su§m(total)", ["sum(value: Numeric | Decimal)", "null where there is no value"]),
        ("sum(tot§al)", ["total: Nullable(Float)", "Made by `known`"]),
        ("order.custo§mer == who", ["customer: Nullable(String)", "Made by `orders`"]),
        ("emit tier = who.ti§er", ["tier: Nullable(String)", "From `customers.tier`"]),
        ("group_by: [ti§er]", ["tier: Nullable(String)", "Made by `known`", "From `customers.tier`"]),
        ("input: pri§ced", ["**priced** (transform)", "| label |"]),
        ("order: sized.la§rge", ["large"]),
        ("strat§egy: snapshot", ["What a file is", "One of `snapshot`", "Default"]),
        ("propagate_ck: dri§ver", ["Which correlation keys"]),
        ("type: c§sv\n      path: orders.csv", ["One of", "`parquet`"]),
        ("mapping: { turn§over", ["turnover"]),
    ],
)
def test_hover(tmp_path, at, parts):
    found = opened(marked(SHOP, at), tmp_path)
    said = hover(found.analysis, found.names, found.document, found.place)
    if parts is None:
        assert said is None
        return
    assert said is not None
    assert [part for part in parts if part not in said.text] == []


def test_hover_over_an_option_of_a_format(tmp_path):
    found = opened(marked(SHOP.replace("path: customers.csv", "path: customers.csv\n      options: { delimiter: ';' }"), "deli§miter"), tmp_path)
    said = hover(found.analysis, found.names, found.document, found.place)
    assert said is not None
    assert "delimiter" in said.text


# Completion -------------------------------------------------------------------------------------------------------------


def items(tmp_path, at: str, instead: str, text: str = SHOP) -> list[str]:
    """The labels offered where `instead`, with a mark, stands for `at`. What is known is of the text before."""
    before = opened(text, tmp_path)
    assert at in text
    changed = text.replace(at, instead, 1)
    place = changed.index("§")
    found = complete(before.analysis, before.file, changed.replace("§", ""), place)
    return [one.label for one in sorted(found.items, key=lambda one: (one.rank, one.label))]


@pytest.mark.parametrize(
    ("at", "instead", "offered", "not_offered"),
    [
        ("emit amount = gross", "emit amount = §", ["id", "customer", "amount", "gross", "if"], ["label", "emit"]),
        ("emit amount = gross", "emit amount = gro§", ["gross"], []),
        ("emit amount = gross", "emit amount = customer.§", ["trim", "upper", "length"], ["round"]),
        ("emit amount = gross", "emit amount = gross.§", ["round"], ["trim", "upper"]),
        ("emit amount = gross", "emit amount = (gross + 1.0).§", ["round"], ["trim"]),
        ("emit amount = gross", "emit amount = customer.trim().§", ["upper"], ["round"]),
        ("emit amount = gross", "emit amount = $§", ["vars", "pipeline", "source"], ["id"]),
        ("emit amount = gross", "emit amount = $vars.§", ["rate"], ["id", "trim"]),
        ("emit amount = gross", "emit amount = $source.§", ["file", "row"], ["rate"]),
        ("emit amount = gross", "emit amount = 'a§", [], ["id"]),
        ("emit amount = gross", "# am§", [], ["amount"]),
        ("emit amount = gross", "§", ["emit", "let", "filter"], []),
        ("emit total = order.amount", "emit total = §", ["order", "who"], ["amount"]),
        ("emit total = order.amount", "emit total = who.§", ["customer", "tier"], ["amount", "trim"]),
        ("emit revenue = sum(total)", "emit revenue = §", ["sum", "count", "total", "tier"], ["amount"]),
        ("where: order.customer == who.customer", "where: order.§", ["id", "customer", "amount", "label"], ["tier"]),
        ("large: amount > 100.0", "large: §", ["amount", "label"], ["emit"]),
        ("group_by: [tier]", "group_by: [§]", ["id", "total", "tier"], ["amount"]),
        ("group_by: [tier]", "group_by: [tier, to§]", ["total"], []),
        ("group_by: [tier]", "group_by: [§", ["id", "total", "tier"], ["amount"]),
        ("input: { order: sized.large, who: customers }", "input: { order: sized.large, who: §", ["customers", "sized.large"], ["report"]),
        ("primary_key: [id]", "primary_key: [§]", ["id", "customer", "amount"], ["tier"]),
        ("strategy: snapshot", "strategy: §", ["snapshot", "append", "changelog"], []),
        ("input: known", "input: §", ["orders", "priced", "known", "sized.large", "sized.small"], ["report", "sized", "totals"]),
        ("who: customers }", "who: § }", ["customers", "sized.large"], []),
        ("type: aggregate", "type: §", ["aggregate", "route", "composition"], []),
        ("{ name: id, type: int }", "{ name: id, type: § }", ["int", "date_time"], []),
        ("{ name: id, type: int }", "{ name: id, § }", ["type", "source_name", "optional"], ["name"]),
        ("      default: small", "      default: small\n      m§", ["mode"], ["default", "conditions"]),
        ("    name: totals", "    name: totals\n    §", ["description"], ["name", "config", "input"]),
        ("pipeline:\n", "pipeline:\n  §\n", ["memory", "concurrency"], ["name", "vars"]),
        ("nodes:\n", "§\nnodes:\n", ["error_handling", "changelog"], ["pipeline"]),
        ("sort_order: [tier]", "sort_order: [§]", ["revenue", "tier"], []),
        ("      mapping:", "      include_header: §\n      mapping:", ["true", "false"], []),
    ],
)
def test_completion(tmp_path, at, instead, offered, not_offered):
    found = items(tmp_path, at, instead)
    assert [one for one in offered if one not in found] == []
    assert [one for one in not_offered if one in found] == []


def test_a_name_is_offered_once_and_only_where_a_program_can_name_it(tmp_path):
    text = SHOP.replace("{ name: customer, type: string }", "{ name: customer, type: string }\n        - { name: größe, type: string }", 1)
    found = items(tmp_path, "emit amount = gross", "emit id = id\n        emit amount = §", text)
    assert (found.count("id"), "größe" in found) == (1, False)


def test_completion_while_another_place_is_broken(tmp_path):
    broken = SHOP.replace("    name: customers\n", "    name: customers\n  oh [no\n")
    before = opened(SHOP, tmp_path)
    changed = broken.replace("emit revenue = sum(total)", "emit revenue = sum(§)")
    place = changed.index("§")
    found = [one.label for one in complete(before.analysis, before.file, changed.replace("§", ""), place).items]
    assert {"total", "tier"} <= set(found)


def test_completion_in_a_node_that_was_never_checked(tmp_path):
    new = "  - type: transform\n    name: fresh\n    input: known\n    config:\n      cxl: |\n        emit x = §\n"
    assert {"id", "total", "tier"} <= set(items(tmp_path, "  - type: aggregate", f"{new}  - type: aggregate"))


def test_completion_of_parameters(tmp_path):
    found = opened(USING, tmp_path, with_tax__comp__yaml=BODY)
    text = USING.replace("config: { rate: 0.05 }", "config: { § }")
    place = text.index("§")
    assert [one.label for one in complete(found.analysis, found.file, text.replace("§", ""), place).items] == ["rate"]


def test_a_method_has_its_page(tmp_path):
    before = opened(SHOP, tmp_path)
    text = SHOP.replace("customer.trim()", "customer.§")
    place = text.index("§")
    found = {one.label: one for one in complete(before.analysis, before.file, text.replace("§", ""), place).items}
    assert "trim() -> String" in found["trim"].detail
    assert "```cxl" in found["trim"].text
    assert found["trim"].insert == "trim()"


# Definition and references ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("at", "lines"),
    [
        ("input: pri§ced", ["name: priced"]),
        ("order: sized.la§rge", ["conditions: { large: amount > 100.0 }"]),
        ("order: si§zed.large", ["name: sized"]),
        ("let gross = amo§unt", ["- name: amount"]),
        ("emit total = order.amo§unt", ["emit amount = gross"]),
        ("emit total = ord§er.amount", ["input: { order: sized.large, who: customers }"]),
        ("emit amount = gro§ss", ["let gross = amount * $vars.rate"]),
        ("$vars.ra§te", ["rate: { type: float, default: 1.5 }"]),
        ("sum(tot§al)", ["emit total = order.amount"]),
        ("sort_order: [ti§er]", ["emit tier = who.tier"]),
        ("mapping: { turnover: reve§nue }", ["emit revenue = sum(total)"]),
        ("field: lab§el", ["emit label = customer.trim()"]),
        ("strat§egy", []),
    ],
)
def test_definition(tmp_path, at, lines):
    found = opened(marked(SHOP, at), tmp_path)
    regions = definitions(found.analysis, found.names, found.document, found.file, found.place)
    assert [one.source.line_text(one.range.start.line + 1).strip() for one in regions] == lines


def test_definition_of_a_composition_and_its_parts(tmp_path):
    def target(at: str) -> list[tuple[str, int]]:
        found = opened(marked(USING, at), tmp_path, with_tax__comp__yaml=BODY)
        return [(one.file.rpartition("/")[2], one.range.start.line + 1) for one in definitions(found.analysis, found.names, found.document, found.file, found.place)]

    assert target("use: with_§tax.comp.yaml") == [("with_tax.comp.yaml", 1)]
    assert target("config: { ra§te: 0.05 }") == [("with_tax.comp.yaml", 4)]
    assert target("input: redu§ced") == [("pipeline.yaml", 11)]


def places(tmp_path, at: str, text: str = SHOP, **others: str) -> list[tuple[str, int]]:
    found = opened(marked(text, at), tmp_path, **others)
    regions = references(found.names, found.file, found.place)
    return [(one.file.rpartition("/")[2], one.range.start.line + 1) for one in regions]


def lines_with(text: str, *parts: str) -> list[tuple[str, int]]:
    """The lines of a text with one of some parts, as places of the pipeline."""
    return [("pipeline.yaml", number) for number, line in enumerate(text.splitlines(), 1) if any(part in line for part in parts)]


def test_references_of_a_node(tmp_path):
    assert places(tmp_path, "name: pri§ced") == lines_with(SHOP, "name: priced", "input: priced")


def test_references_of_a_column_follow_it_through_nodes_and_stop_where_it_is_made_anew(tmp_path):
    expected = lines_with(SHOP, "- name: amount", "let gross = amount", "emit amount = gross", "large: amount", "order.amount")
    assert places(tmp_path, "- name: amo§unt") == expected
    assert places(tmp_path, "large: amo§unt") == expected
    assert places(tmp_path, "emit to§tal") == lines_with(SHOP, "emit total", "sum(total)")


def test_references_in_a_composition(tmp_path):
    found = places(tmp_path, "{ name: amo§unt", USING, with_tax__comp__yaml=BODY)
    assert found == [("pipeline.yaml", 9), ("with_tax.comp.yaml", 3), ("with_tax.comp.yaml", 11)]


def test_expectations_name_columns(tmp_path):
    text = SHOP.replace("    input: orders\n    config:\n", "    input: orders\n    expect:\n      - { not_null: [label], severity: reject }\n      - { check: 'amount > 0.0' }\n    config:\n")
    assert places(tmp_path, "emit lab§el", text) == lines_with(text, "not_null: [label]", "emit label", "field: label")
    assert len(places(tmp_path, "- name: amo§unt", text)) == len(places(tmp_path, "- name: amo§unt")) + 1
    assert {"amount", "label"} <= set(items(tmp_path, "not_null: [label]", "not_null: [§]", text))
    assert {"amount", "label"} <= set(items(tmp_path, "check: 'amount > 0.0'", "check: '§'", text))


def test_a_comment_and_a_string_are_no_places(tmp_path):
    assert places(tmp_path, "# a comment: amo§unt") == []


# Outline ----------------------------------------------------------------------------------------------------------------


def test_outline(tmp_path):
    found = {one.name: one for one in outline(opened(SHOP, tmp_path).document)}
    assert list(found) == ["rate", "orders", "customers", "priced", "sized", "known", "totals", "report"]
    assert [(one.name, one.kind, one.detail) for one in found["orders"].children] == [("id", "column", "int"), ("customer", "column", "string"), ("amount", "column", "float")]
    assert [(one.name, one.kind) for one in found["priced"].children] == [("gross", "let"), ("amount", "emit"), ("label", "emit")]
    assert [one.name for one in found["sized"].children] == ["large"]
    for one in found.values():
        assert one.region.start <= one.name_region.start <= one.name_region.end <= one.region.end
        assert one.name_region.text == one.name


def test_outline_of_a_module():
    assert [(one.name, one.kind) for one in outline_cxl("let rate = 2\nfn twice(x) = x * rate\n", "m.cxl")] == [("rate", "let"), ("twice", "function")]


# Files and modules ------------------------------------------------------------------------------------------------------


def test_definition_of_a_module_and_its_functions(tmp_path):
    (tmp_path / "rules" / "shared").mkdir(parents=True)
    (tmp_path / "rules" / "shared" / "money.cxl").write_text("let rate = 1.2\nfn gross(x) = x * rate\n", encoding="utf-8")
    text = SHOP.replace("        emit label = customer.trim()\n", "        use shared.money as m\n        emit label = m::gross(amount)\n")

    def target(at: str) -> list[tuple[str, int]]:
        found = opened(marked(text, at), tmp_path)
        assert [one for one in found.analysis.diagnostics if one.is_error] == []
        return [(one.file.rpartition("/")[2], one.range.start.line + 1) for one in definitions(found.analysis, found.names, found.document, found.file, found.place)]

    assert target("use shared.mon§ey") == [("money.cxl", 1)]
    assert target("m::gro§ss(amount)") == [("money.cxl", 2)]


def test_a_composition_is_shown_with_the_columns_of_its_first_port(tmp_path):
    (tmp_path / "with_tax.comp.yaml").write_text(BODY, encoding="utf-8")
    for at in ("input: redu§ced", "name: redu§ced"):
        found = opened(marked(USING, at), tmp_path)
        said = hover(found.analysis, found.names, found.document, found.place)
        assert said is not None
        assert said.text.startswith("**reduced** (composition)")
        assert "| amount | " in said.text
        assert "| tax | " in said.text


def test_compositions_below_the_folder_are_offered(tmp_path):
    (tmp_path / "parts").mkdir()
    for name in ("with_tax.comp.yaml", "parts/more.comp.yaml", "pipeline.test.yaml"):
        (tmp_path / name).write_text(BODY, encoding="utf-8")
    text = USING.partition("with_tax.comp.yaml")[0]
    found = opened(USING, tmp_path)
    assert [one.label for one in complete(found.analysis, found.file, text, len(text)).items] == ["parts/more.comp.yaml", "with_tax.comp.yaml"]


@pytest.mark.parametrize("heading", ["[connections.shop]", '[ connections . "shop" ]'])
def test_definition_of_a_connection(heading, tmp_path):
    (tmp_path / "errata.toml").write_text(f'[connections.other]\nurl = "sqlite:o.db"\n{heading}\nurl = "sqlite:shop.db"\n', encoding="utf-8")
    source = "{ type: source, name: rows, config: { name: rows, type: sql, connection: shop, table: t, schema: [{ name: id, type: int }] } }"
    found = opened(marked(f"pipeline: {{ name: p }}\nnodes:\n  - {source}\n", "connection: sh§op"), tmp_path)
    [region] = definitions(found.analysis, found.names, found.document, found.file, found.place)
    assert (region.file, region.range.start.line, region.text) == (str(tmp_path / "errata.toml"), 2, heading)


def test_definition_of_a_layout_file(tmp_path):
    (tmp_path / "layout.yaml").write_text("fields: [{ name: customer, start: 0, width: 5 }, { name: tier, start: 5, width: 5 }]\n", encoding="utf-8")
    text = SHOP.replace("      type: csv\n      path: customers.csv\n", "      type: fixed_width\n      path: customers.txt\n      format_schema: layout.yaml\n")
    found = opened(marked(text, "format_schema: lay§out.yaml"), tmp_path)
    assert [one.file for one in definitions(found.analysis, found.names, found.document, found.file, found.place)] == [str(tmp_path / "layout.yaml")]


def test_definitions_from_a_channel(tmp_path):
    (tmp_path / "pipeline.yaml").write_text(SHOP, encoding="utf-8")
    (tmp_path / "channels").mkdir()
    text = "channel: { name: acme, target: pipeline.yaml }\nvars: { static: { rate: { type: float, default: 2.0 } }, source: { orders: {} } }\n"

    def target(at: str) -> list[tuple[str, int]]:
        found = opened(marked(text, at), tmp_path / "channels", "acme.channel.yaml")
        return [(one.file.rpartition("/")[2], one.range.start.line + 1) for one in definitions(found.analysis, found.names, found.document, found.file, found.place)]

    assert target("target: pipe§line.yaml") == [("pipeline.yaml", 1)]
    assert target("ra§te: { type") == [("pipeline.yaml", 4)]
    assert target("source: { ord§ers") == [("pipeline.yaml", 7)]
    found = opened(marked(text, "ta§rget"), tmp_path / "channels", "acme.channel.yaml")
    said = hover(found.analysis, found.names, found.document, found.place)
    assert said is not None
    assert "path of the pipeline" in said.text
    place = text.index("name: acme") + len("name: acme, ")
    before = text[:place] + "d"
    rest = f", {text[place:]}"
    assert [one.label for one in complete(found.analysis, found.file, before + rest, len(before)).items] == ["description"]
