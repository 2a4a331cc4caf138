"""Results of single builtins as tables: `expression => text`."""

import pytest

from cxl import CxlFailure, Schema, compile_program
from cxl.commands.reference import shown
from cxl.functions import aggregate, regex, window
from cxl.functions.datetime import strftime, strptime
from cxl.runtime.context import eval_context
from cxl.runtime.interpret import run

TABLE = r"""
"  a\t".trim()                                          => a
"hello".substring(1, 3)                                 => ell
"hello".substring(9)                                    =>
"hello".left(-1)                                        => null
"hello".right(99)                                       => hello
"hello".right(0)                                        =>
"ab".pad_left(5, "xy")                                  => xxxab
"abc".pad_right(2, "x")                                 => abc
"ab".repeat(-1)                                         => null
"".split(",")                                           => [""]
"a".concat(null, "b")                                   => ab
"abc".matches("b")                                      => false
"abc".find("b")                                         => true
"abc".capture("(x)?b", 1)                               => null
"abc".capture("x*")                                     =>
"abc".capture("b", 3)                                   => null
"a\nb".matches("a.b")                                   => false
"x\n".find("x$")                                        => false
"/data/reports/sales.csv".file_stem()                   => sales
"archive.tar.gz".extension()                            => gz
".bashrc".extension()                                   => null
"foo.".extension()                                      =>
"a/b//".file_name()                                     => b
"a/..".file_name()                                      => null
"./a".parent()                                          => .
"/a".parent()                                           => /
"a//b/c.txt".parent()                                   => a//b
"sales.csv".parent_name()                               => null
(-5).abs()                                              => 5
3.2.ceil()                                              => 4
(-3.2).floor()                                          => -4
(-9223372036854775808.0).floor()                        => -9223372036854775808
(-9223372036854775808.0).to_int()                       => -9223372036854775808
9223372036854775808.0.try_int()                         => null
2.5.round()                                             => 3.0
(-2.5).round()                                          => -3.0
19.995.round_to(2)                                      => 20.0
1234.5678.round(-2)                                     => 1200.0
0.49999999999999994.round()                             => 0.0
5.round(2)                                              => 5.0
10.min(2.5)                                             => 2.5
(-5).clamp(0, 100)                                      => 0
"42".to_int()                                           => 42
3.9.to_int()                                            => 3
" 42".try_int()                                         => null
"4.2".try_int()                                         => null
"1e3".to_float()                                        => 1000.0
"1d".try_float()                                        => null
"٣".try_int()                                           => null
"on".try_bool()                                         => null
"YES".to_bool()                                         => true
true.to_int()                                           => 1
"2024-3-5".try_date()                                   => null
"2024-02-30".try_date()                                 => null
"15/03/2024".to_date("%d/%m/%Y")                        => 2024-03-15
"06-MAY-2024".to_date("%d-%b-%Y")                       => 2024-05-06
"2024-075".to_date("%Y-%j")                             => 2024-03-15
"2024-W11-5".to_date("%G-W%V-%u")                       => 2024-03-15
"Monday March 15 2024".try_date("%A %B %d %Y")          => null
"02:05 PM 2024-03-15".to_datetime("%I:%M %p %F")        => 2024-03-15T14:05:00
"2024-03-15 14:30:00".try_datetime()                    => null
"2024-03-15T14:30:00+05:30".to_datetime("%FT%T%z")      => 2024-03-15T14:30:00
"10/Oct/2000:13:55:36 -0700".to_date("%d/%b/%Y:%T %:z") => 2000-10-10
"2024-03-15T14:30:00".try_datetime("%FT%T%z")           => null
"2024-03-15%z".to_date("%F%%z")                         => 2024-03-15
"2024-03-15T14:30:00.25".to_datetime()                  => 2024-03-15T14:30:00.25
#2024-01-31#.add_months(1)                              => 2024-02-29
#2024-02-29#.add_years(1)                               => 2025-02-28
#9999-12-31#.add_days(1)                                => null
#2024-03-15#.diff_months(#2024-01-16#)                  => 1
#2024-01-16#.diff_months(#2024-03-15#)                  => -1
#2024-03-14#.diff_years(#2000-03-15#)                   => 23
#2024-03-15#.format_date("%H")                          => null
#2024-12-30#.format_date("%G-W%V")                      => 2025-W01
#2024-03-05#.format_date("%-d.%-m.%y %e|%j|%u")         => 5.3.24  5|065|2
1.0.to_string()                                         => 1
0.0000001.to_string()                                   => 0.0000001
null.type_of()                                          => Null
"".is_empty()                                           => true
null.catch(5)                                           => 5
"a,b".split(",").join("-")                              => a-b
"a,b".split(",").remove(7)                              => ["a","b"]
m.set("a.b.c", 7)                                       => {"x":{"y":1},"l":[1],"a":{"b":{"c":7}}}
m.set("x.y.z", 7)                                       => null
m.set("l[0]", 7)                                        => {"x":{"y":1},"l":[7]}
m.set("l[1]", 7)                                        => null
m.set("l.name", 7)                                      => null
m.set("x", null)                                        => {"x":null,"l":[1]}
m.set("l[x]", 7)                                        => null
m.merge(m.remove_field("l"))                            => {"x":{"y":1},"l":[1]}
m.keys()                                                => ["x","l"]
"""
SCHEMA = Schema.of({"m": "map"})
RECORD = {"m": {"x": {"y": 1}, "l": [1]}}


@pytest.mark.parametrize("line", TABLE.strip().splitlines())
def test_a_builtin_answers(line: str) -> None:
    text, _, expected = line.partition("=>")
    (record,) = run(compile_program(f"emit x = {text.strip()}", SCHEMA), RECORD, eval_context())
    assert shown(record["x"]) == expected.removeprefix(" ")


FAILURES = """
"abc".to_int()                        => cannot convert 'abc' to Int
"x".to_date()                         => cannot convert 'x' to Date
"x".repeat(20000000)                  => exceeds the limit
"x".pad_left(20000000)                => exceeds the limit
#2024-03-15#.format_date("%Q")        => unknown specifier '%Q'
99999999999999999999.0.floor()        => overflow
9223372036854775808.0.ceil()          => overflow
(0 - 9223372036854775807 - 1).abs()   => overflow
"""


@pytest.mark.parametrize("line", FAILURES.strip().splitlines())
def test_a_builtin_fails(line: str) -> None:
    text, _, message = line.partition("=>")
    program = compile_program(f"emit x = {text.strip()}", SCHEMA)
    with pytest.raises(CxlFailure, match=message.strip()):
        run(program, RECORD, eval_context())


# Regular expressions that every engine reads alike -----------------------------------------------------------------------
@pytest.mark.parametrize("pattern", [r"\bfoo", r"(a|b)*", r"(a+)+$", r"(a*)*", r"(?s)a.b", r"[[:alpha:]]", r"\pL", r"(?P<n>a)", r"a**", r"(?i)É", r"[a[b]"])
def test_a_pattern_that_engines_read_differently_stays_with_re2(pattern: str) -> None:
    assert regex.portable(pattern) is None


PORTABLE = [(r"^\d{3}-\d{4}$", r"\A[0-9]{3}\x{2D}[0-9]{4}\z"), ("a.b", r"a[^\x{A}]b"), (r"[^\d]+?", "[^0-9]+?"), ("(?i)abc", "(?iu)abc"), (r"\.\t", r"\x{2E}\x{9}")]


@pytest.mark.parametrize(("pattern", "text"), PORTABLE)
def test_a_portable_pattern_names_its_classes_and_anchors(pattern: str, text: str) -> None:
    found = regex.portable(pattern)
    assert found is not None
    assert found.text == text


@pytest.mark.parametrize(
    ("pattern", "certain", "nonempty"),
    [("(a)b", {1}, {1}), ("(a*)b", {1}, set()), ("(a)?b", set(), {1}), ("(a)|(b)", set(), {1, 2}), ("((a)|b)c", {1}, {1, 2}), ("(|a)", {1}, set()), ("(a{0,2})", {1}, set())],
)
def test_which_groups_take_part_is_known(pattern: str, certain: set[int], nonempty: set[int]) -> None:
    found = regex.portable(pattern)
    assert found is not None
    assert (set(found.certain), set(found.nonempty)) == (certain, nonempty)


# Formats, aggregates, windows -------------------------------------------------------------------------------------------
def test_a_format_with_an_unknown_specifier_is_named() -> None:
    assert strftime.check("%Y-%m-%d %-d") is None
    assert "%Q" in (strftime.check("%Y %Q") or "")
    assert strptime.parse_date("2024", "%Q") is None


@pytest.mark.parametrize(
    ("values", "total"),
    [([1, 2, 3], 6), ([1, None, 3], 4), ([], None), ([None], None), ([2, 0.5], 2.5), ([1e16, 1.0, -1e16], 1.0), ([0.1] * 10, 1.0), ([2**63 - 1, 1, -1], 2**63 - 1)],
)
def test_a_sum_is_exact(values: list, total: object) -> None:
    assert aggregate.total(values) == total


def test_a_sum_beyond_64_bits_and_a_text_in_a_sum_are_failures() -> None:
    with pytest.raises(CxlFailure, match="overflow") as overflow:
        aggregate.total([2**63 - 1, 1])
    assert overflow.value.category == "aggregate_finalize"
    with pytest.raises(CxlFailure, match="expected a number") as mismatch:
        aggregate.total(["5", 1])
    assert mismatch.value.category == "aggregate_type_error"


def test_means() -> None:
    assert aggregate.mean([2, None, 6]) == 4.0
    assert aggregate.mean([]) is None
    assert aggregate.weighted_mean([2, 4, None], [3, 1, 5]) == 2.5
    assert aggregate.weighted_mean([5], [0]) is None


def test_windows_are_three_valued() -> None:
    assert [window.any_true(v) for v in ([], [True, None], [False, None], [False])] == [False, True, None, False]
    assert [window.all_true(v) for v in ([], [True, None], [False, None], [True])] == [True, None, False, True]
