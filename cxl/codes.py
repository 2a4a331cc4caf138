"""The diagnostic codes of CXL: meaning, a program with the error, the corrected program (`errata explain --code`)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cxl.typed.modules import Modules
from cxl.typed.target import SystemTypes, Target
from cxl.types.types import STRING, Schema


@dataclass(frozen=True, slots=True)
class Code:
    """One code.

    Args:
        setting: What the example is compiled against, a key of `SETTINGS`.
        repaired_setting: The same for the corrected program, where it differs.
    """

    code: str
    title: str
    why: str
    wrong: str
    right: str
    setting: str = "row"
    repaired_setting: str = ""


_TOO_LARGE = "\n".join(["fn double(x) = x + x", *(f"fn d{number}(x) = {name}(x) + {name}(x)" for number, name in enumerate(["double", *(f"d{one}" for one in range(14))]))])
_FIELDS = Schema.of({"amount": "int", "price": "float", "name": "string", "ok": "bool", "day": "date", "items": "array", "info": "map"})
_MODULES = Modules.of({"rates": "fn net(x) = x * 2\nlet vat = 0.21", "loop": "fn f(x) = f(x)", "odd": "emit x = 1", "few": "fn f(x) = x"})
_ROWS: dict[str, Any] = {"schema": _FIELDS, "modules": _MODULES}
SETTINGS: Mapping[str, Target] = {
    "row": Target(**_ROWS),
    "aggregate": Target(**_ROWS, mode="aggregate", group_by=("name",)),
    "bad group": Target(**_ROWS, mode="aggregate", group_by=("nam",)),
    "window": Target(**_ROWS, window=True),
    "combine": Target(schema=_FIELDS, inputs={"orders": _FIELDS, "prices": Schema.of({"id": "int"})}),
    "document": Target(**_ROWS, system=SystemTypes(doc={"Head": {"batch_id": STRING}})),
    "body": Target(**_ROWS, system=SystemTypes(unexposed=frozenset({"pipeline.cutoff"}))),
}
"""The surroundings of the examples: fields amount, price, name, ok, day, items, info."""

CODES: tuple[Code, ...] = (
    # Syntax
    Code("CXL-P001", "a certain word or sign is missing", "The grammar requires the named word or sign here.", "emit x 5", "emit x = 5"),
    Code("CXL-P002", "a character that CXL does not know", "Outside of strings and comments only ASCII letters, digits and operators are allowed.", "emit x = amount @ 2", "emit x = amount * 2"),
    Code("CXL-P003", "a string is not closed", "A string ends on the line on which it begins, with the quote with which it began.", 'emit x = "abc', 'emit x = "abc"'),
    Code("CXL-P004", "a malformed number", "Numbers are digits, with digits on both sides of the point; they have no exponent, and no suffix but the d of a Decimal.", "emit x = 1e5", "emit x = 100000.0"),
    Code("CXL-P005", "a number that is too large", "Integers have 64 bits: the largest is 9223372036854775807. A Decimal has at most 38 digits, leading zeros apart.", "emit x = 9223372036854775808", "emit x = 9223372036854775807"),
    Code("CXL-P006", "not a date", "'#' and a digit begin a date, #YYYY-MM-DD#; a comment needs a blank before a digit.", "emit x = #2024-13-01#", "emit x = #2024-12-01#"),
    Code("CXL-P007", "an operator of another language", "Boolean operators are words: and, or, not.", "emit x = ok && ok", "emit x = ok and ok"),
    Code("CXL-P008", "nesting too deep", "Expressions nest 256 levels, emit each blocks 32. Name a part with let.", f"emit x = {'(' * 300}1{')' * 300}", "let x = 1\nemit y = x"),
    Code("CXL-P009", "a reserved word as a name", "Words such as filter, match and by cannot be names.", "emit filter = 1", "emit filtered = 1"),
    Code("CXL-P010", "an expression is missing", "A value is expected: a field, a literal, a call, a parenthesis.", "emit x = * 2", "emit x = amount * 2"),
    Code("CXL-P011", "a statement begins with its keyword", "let, emit, filter, distinct, trace or use; a bare expression is not a statement.", "emit a = 1\namount + 1", "emit a = 1\nemit b = amount + 1"),
    Code("CXL-P012", "a closure out of place", "Closures, it => ..., are arguments of filter, map, find, any and flat_map; their parameter is always it.", "let f = it => it * 2", "emit x = items.map(it => it * 2)"),
    Code("CXL-P013", "a module path that is none", "use takes names joined by points.", "use shared::dates", "use rates as r\nemit x = r::vat"),
    Code("CXL-P014", "emit cannot write there", "emit writes fields and $meta; variables are written by state nodes.", "emit $pipeline.x = 1", "emit meta x = 1"),
    Code("CXL-P015", "a key twice in a map", "Every key of a map stands in it once.", 'emit x = {name: name, "name": amount}', "emit x = {name: name, amount: amount}"),
    Code("CXL-P016", "a literal that is too long", "A string literal has at most 64 KB, more than a format, a pattern or a compared text needs.", f'emit x = name == "{"a" * 65_537}"', 'emit x = name == "aaa"'),
    # Names
    Code("CXL-R001", "an unknown field", "No field, let or emitted name of this name is visible here.", "emit x = amoutn", "emit x = amount"),
    Code("CXL-R002", "a name used before it is defined", "Statements run from top to bottom, so a name can be read only after its definition.", "emit x = rate\nlet rate = 2", "let rate = 2\nemit x = rate"),
    Code("CXL-R003", "'it' outside of a closure", "it is the element inside a closure or an emit each block that binds it.", "emit x = it", "emit x = items.map(it => it)"),
    Code("CXL-R004", "an unknown namespace", "There are $pipeline, $source, $record, $vars, $meta, $doc, $ck and $window.", "emit x = $engine.name", "emit x = $pipeline.name"),
    Code("CXL-R005", "a namespace used as it cannot be", "A namespace is read with the name of a member, without parentheses; $doc with a section and a field.", "emit x = $pipeline", "emit x = $pipeline.name"),
    Code("CXL-R006", "an unknown module", "The module's file is not below the rules folder, or the alias was not introduced by use.", "use shared.nothing\nemit x = 1", "use rates\nemit x = rates::vat"),
    Code("CXL-R007", "not what the module holds", "A module holds functions (called with parentheses) and constants (without), and no other statement.", "use rates as r\nemit x = r::nett(1)", "use rates as r\nemit x = r::net(1)"),
    Code("CXL-R008", "an unknown function", "Free functions are aggregates and functions of the program; all else are methods.", "emit x = upper(name)", "emit x = name.upper()"),
    Code("CXL-R009", "a definition that is double or depends on itself", "Functions and constants are defined once and are not recursive.", "fn f(x) = f(x)\nemit y = f(1)", "fn f(x) = x + 1\nemit y = f(1)"),
    Code("CXL-R010", "a field without its input", "In a combine every field is written with the qualifier of its input.", "emit x = amount", "emit x = orders.amount", "combine"),
    Code("CXL-R011", "a name that is emitted twice", "A field of emit INPUT.* cannot be emitted again: the column would have two values.", "emit orders.*\nemit amount = prices.id", "emit orders.*\nemit price_id = prices.id", "combine"),
    Code("CXL-R012", "emit INPUT.* out of place", "In the body of a combine, before emit each, emit INPUT.* emits all declared fields of an input.", "emit orders.*", "emit x = amount"),
    Code("E200", "an undeclared variable", "Variables are declared in pipeline.vars, or by the node that writes them.", "emit x = $vars.rate", "let rate = 2\nemit x = rate"),
    Code("E173", "a variable that the composition did not opt in to", "A body reads only the parent's variables that _compose.scoped_vars lists.", "emit x = $pipeline.cutoff", "emit x = $pipeline.name", "body"),
    # Types
    Code("CXL-T001", "an unknown method", "No builtin has this name; cxl fn lists them.", "emit x = name.uper()", "emit x = name.upper()"),
    Code("CXL-T002", "a method of another type", "The receiver's type is known and is not the one that the method works on.", "emit x = amount.upper()", "emit x = amount.to_string().upper()"),
    Code("CXL-T003", "a wrong number of arguments", "The signature says how many there are.", "emit x = name.left()", "emit x = name.left(2)"),
    Code("CXL-T004", "types that do not go together", "Operands must have one type. Int and Float go together, and null goes with any type.", "emit x = amount + name", "emit x = amount.to_string() + name"),
    Code("CXL-T005", "an argument of another type", "The argument's type is known and is not the one that the signature asks for.", 'emit x = name.left("2")', "emit x = name.left(2)"),
    Code("CXL-T006", "a condition that is not Bool", "filter, if, match without subject and closures that choose need true or false.", "filter amount", "filter amount > 0"),
    Code("CXL-T007", "match without '_'", "A match has an arm that catches the rest.", 'emit x = match name { "a" => 1 }', 'emit x = match name { "a" => 1, _ => 0 }'),
    Code("CXL-T008", "a regex that is not valid", "Patterns are string literals in RE2 syntax, checked when the program is compiled.", 'emit x = name.matches("[a-")', 'emit x = name.matches("[a-z]")'),
    Code("CXL-T009", "emit each over something else", "The source of emit each is an array, or a value whose type is not known.", "emit each x in name { emit y = x }", "emit each x in items { emit y = x }"),
    Code("CXL-T010", "a closure too few or too many", "filter, map, find, any and flat_map of arrays take a closure; other methods take none.", "emit x = items.map(1)", "emit x = items.map(it => 1)"),
    Code("CXL-T011", "a value without members", "Members and indices are read from maps and arrays.", "emit x = name.length", "emit x = name.length()"),
    Code("CXL-T012", "a Decimal and a Float", "A Decimal is exact and a Float is not, so neither becomes the other by itself: not in arithmetic, comparisons, branches, arguments or patterns.", "emit x = 19.99d * 1.21", "emit x = 19.99d * 1.21d"),
    Code("CXL-T013", "a scale that is missing or no literal from 0 to 38", "to_decimal and try_decimal take the digits behind the point as a literal, because the type of a Decimal is known before any record is read. Only an Int and a Decimal have a scale of their own.", "emit x = name.to_decimal()", "emit x = name.to_decimal(2)"),
    Code("CXL-T014", "a comprehension over something else than an array", "The source of a comprehension is an array, or a value whose type is not known.", "emit x = [i for i in name]", "emit x = [i for i in items]"),
    Code("CXL-T015", "a computed key that is no String", "The keys of a map are Strings. A computed one stands in brackets.", "emit x = {[amount]: name}", "emit x = {[amount.to_string()]: name}"),
    Code("CXL-T016", "a product of more than 38 digits behind the point", "A product has the digits behind the point of both factors. Round a factor first.", "emit x = amount.to_decimal(20) * 0.0000000000000000001d", "emit x = amount.to_decimal(20).round_to(4) * 0.0000000000000000001d"),
    Code("CXL-T017", "a program that is too large", "A program has at most 50,000 names, literals, operators and calls; the parts of a function count at each call.", _TOO_LARGE, "fn double(x) = x + x\nlet twice = double(amount)\nemit x = double(twice)"),
    # Aggregates
    Code("CXL-A001", "an aggregate function outside of an aggregate", "sum, count and similar functions work in the cxl of an aggregate node.", "emit x = sum(amount)", "emit x = amount"),
    Code("CXL-A002", "an aggregate function in a filter", "filter runs before the rows are grouped.", "filter sum(amount) > 1", "filter amount > 1\nemit x = sum(amount)", "aggregate"),
    Code("CXL-A003", "an aggregate function in let", "let is computed for each row, before grouping.", "let x = sum(amount)", "emit x = sum(amount)", "aggregate"),
    Code("CXL-A004", "an aggregate inside an aggregate", "The argument of an aggregate function is an expression of one row.", "emit x = sum(max(amount))", "emit x = max(amount)", "aggregate"),
    Code("CXL-A005", "a field of single rows beside aggregates", "Outside of aggregate functions only the fields of group_by have one value.", "emit x = amount", "emit x = max(amount)", "aggregate"),
    Code("CXL-A006", "a statement that an aggregate cannot have", "distinct, emit each and emit meta belong to transforms.", "emit x = count(*)\ndistinct", "emit x = count(*)", "aggregate"),
    Code("CXL-A007", "provenance of single rows beside aggregates", "$source, $record, $meta and $doc belong to single rows; $source.count alone is one number for all.", "emit x = $source.row", "emit x = max($source.row)", "aggregate"),
    Code("CXL-A008", "an unknown group_by field", "group_by lists fields of the input.", "emit x = count(*)", "emit x = count(*)", "bad group", "aggregate"),
    # Windows
    Code("CXL-W001", "no window here", "$window functions need analytic_window; $window.start and .end a time window.", "emit x = $window.sum(amount)", "emit x = amount"),
    Code("CXL-W002", "an unknown window function", "No window function has this name.", "emit x = $window.median(amount)", "emit x = $window.avg(amount)", "window"),
    Code("CXL-W003", "a row where a value is needed", "first, last, lag and lead return a row. Read a field of it.", "emit x = $window.lag(1)", "emit x = $window.lag(1).amount", "window"),
    Code("CXL-W004", "a window call inside a window call", "Compute the inner one in an earlier statement.", "emit x = $window.sum($window.sum(amount))", "emit x = $window.sum(amount)", "window"),
    # Warnings
    Code("CXL-L001", "an emit that reaches no record", "After an emit each block there is no record left. Put the emit before the block.", "emit each x in items { emit y = x }\nemit z = 1", "emit z = 1\nemit each x in items { emit y = x }"),
    Code("CXL-L002", "an arm that is never reached", "'_' catches everything: it is the last arm.", "emit x = match amount { _ => 1, 2 => 3 }", "emit x = match amount { 2 => 3, _ => 1 }"),
    Code("CXL-L003", "a document field that no source declares", "No envelope declares the section or the field, so it is null.", "emit x = $doc.Head.batch", "emit x = $doc.Head.batch_id", "document"),
)  # fmt: skip


def find(code: str) -> Code | None:
    """Return the entry of a code, None where there is none."""
    return next((one for one in CODES if one.code == code), None)


def page(entry: Code) -> str:
    """Return the page of a code: meaning, example, correction."""
    wrong = entry.wrong if len(entry.wrong) <= 120 else f"{entry.wrong[:60]} ... {entry.wrong[-40:]}"
    parts = [f"{entry.code}: {entry.title}", entry.why, f"For example\n\n{_indented(wrong)}", f"Instead\n\n{_indented(entry.right)}"]
    return "\n\n".join(parts) + "\n"


def _indented(program: str) -> str:
    return "\n".join(f"    {line}" for line in program.splitlines())
