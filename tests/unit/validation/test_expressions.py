from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepladder.schemas.canonical import canonical
from stepladder.validation import jsonmath
from stepladder.validation.cel.parsing import MAX_SOURCE
from stepladder.validation.expressions import BadExpression, EvaluationFailure, Expression, compile_expression

if TYPE_CHECKING:
    from stepladder.schemas.jsontypes import Json

NAMES: dict[str, Any] = {
    "input": {"team": "search"},
    "turns": {"usage": {"team": "search", "hours": 12.0}},
    "visits": {"usage": [{"hours": 1}, {"hours": 2}]},
    "output": {"total": 36, "hours": 12, "lines": [3, 1, 2], "size": "big", "map": 4, "none": None, "a-b": 1},
}


def compiled(source: str) -> Expression:
    expression = compile_expression(source)
    assert isinstance(expression, Expression), expression
    return expression


def value(source: str, names: dict[str, Any] = NAMES) -> Json:
    result = compiled(source).evaluate(names)
    assert not isinstance(result, EvaluationFailure), result
    return result


def failure(source: str, names: dict[str, Any] = NAMES) -> EvaluationFailure:
    result = compiled(source).evaluate(names)
    assert isinstance(result, EvaluationFailure), result
    return result


def refusal(source: str) -> str:
    result = compile_expression(source)
    assert isinstance(result, BadExpression), result
    return result.reason


def same(left: Any, right: Any) -> bool:
    """Equal, and of one type all the way down."""
    return json.dumps(left) == json.dumps(right)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("36 == 36.0", True),
        ("output.total == output.hours * 3", True),
        ("turns.usage.hours == output.hours", True),
        ("2 + 0.5", 2.5),
        ("7 / 2", 3.5),
        ("7.0 / 2", 3.5),
        ("6 / 2", 3),
        ("-7 % 3", -1),
        ("7.0 % 4", 3),
        ("1 < 1.5 && 2.0 >= 2", True),
        ("[10, 20][1.0]", 20),
        ("true == 1", False),
        ("null == null", True),
        ("output.none == null", True),
        ("'1' == 1", False),
        ("[1, {'a': 2.0}] == [1.0, {'a': 2}]", True),
        ("[true] == [1]", False),
        ("1.0 in [1]", True),
        ("true in [1]", False),
        ("'a' in {'a': 1}", True),
        ("[2] in [[2.0]]", True),
        ("9007199254740993 + 1.0", 9007199254740994),
        ("9007199254740993 == 9007199254740992.0", False),
        ("99999999999999999999 * 10 == 999999999999999999990", True),
        ("-output.hours", -12),
        ("5 -1", 4),
        ("5 - -1", 6),
        ("--1", 1),
    ],
)
def test_numbers_are_json_numbers(source: str, expected: Any) -> None:
    assert same(value(source), expected)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("sum([1, 2.5])", 3.5),
        ("output.lines.sum()", 6),
        ("sum([])", 0),
        ("sum([0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1]) == 1", True),
        ("abs(-2)", 2),
        ("round(2.5)", 3),
        ("round(-2.5)", -3),
        ("round(2.675, 2)", 2.68),
        ("(1234).round(-2)", 1200),
        ("min(output.lines)", 1),
        ("output.lines.max()", 3),
        ("max(1, 2.5)", 2.5),
        ("size('né')", 2),
        ("output.lines.size()", 3),
        ("unique([1, 1.0])", False),
        ("unique([1, '1', true, null, [1]])", True),
        ("output.lines.filter(n, n > 1).map(n, n * 2)", [6, 4]),
        ("output.lines.map(n, n > 1, n * 2)", [6, 4]),
        ("output.lines.exists_one(n, n == 1)", True),
        ("{'b': 1, 'a': 2}.all(key, key < 'c')", True),
        ("date('2026-01-31') < timestamp('2026-01-31T00:00:01Z')", True),
        ("timestamp('2026-01-01T01:30:00+02:00')", "2025-12-31T23:30:00Z"),
        ("date('2026-01-31') + duration('36h')", "2026-02-01T12:00:00Z"),
        ("date('2026-01-31') - date('2026-01-30')", "86400s"),
        ("duration('-1m0.5s')", "-60.5s"),
        ("date('2026-07-01').getHours('Europe/Berlin')", 2),
        ("date('2026-07-01').getMonth()", 6),
        ("duration('1h30m').getMinutes()", 90),
        ("'IBAN-12'.matches('^[A-Z]+-[0-9]{2}$')", True),
        ("string(12.0) + string(true)", "12true"),
        ("int('12') + double('0.5')", 12.5),
        ("'a,b'.split(',').join('-')", "a-b"),
        ("' É x '.trim().lowerAscii()", "É x"),
        ("true ? 1 : 1 / 0", 1),
        ("'it\\'s \\u00e9\\n'", "it's é\n"),
        (r"r'\d'", r"\d"),
        ('"""a\n"b" """', 'a\n"b" '),
        ("output.size", "big"),
        ("output.map + 1", 5),
        ("output['a-b']", 1),
        (".output.total", 36),
        ("[1].map(output, output + 1)", [2]),
        ("[1, 2].map(n, [10].map(n, n))", [[10], [10]]),
        ("[1, 2].map(n, [10].map(m, m + n))", [[11], [12]]),
        ('"it\'s" // isn\'t\n == "it\'s"', True),
    ],
)
def test_functions_macros_and_literals(source: str, expected: Any) -> None:
    assert same(value(source), expected)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("has(turns.usage.team)", True),
        ("has(turns.bill.team)", False),
        ("has(nowhere.at.all)", False),
        ("has(output.none.x)", False),
        ("has(output.total.x)", False),
        ("has(visits.usage[1].hours)", True),
        ("has(visits.usage[2].hours)", False),
        ("output.lines.exists(n, has(n.x))", False),
    ],
)
def test_has_answers_at_every_depth(source: str, expected: bool) -> None:
    assert value(source) is expected


@pytest.mark.parametrize(
    ("source", "missing"),
    [
        ("turns.bill.total", "turns.bill"),
        ("turns.usage.total", "turns.usage.total"),
        ("nowhere", "nowhere"),
        ("visits.usage[2].hours", "visits.usage[2]"),
        ("output.total.x", "output.total.x"),
        ("1 + turns.bill.total", "turns.bill"),
        ("turns.bill.total == 1 || false", "turns.bill"),
        ("output.lines.all(n, n.x == 1)", None),
    ],
)
def test_a_failure_names_what_was_missing(source: str, missing: str | None) -> None:
    assert failure(source).missing == missing


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("nowhere || true", True),
        ("true || nowhere", True),
        ("nowhere && false", False),
        ("1 / 0 > 1 || 1 == 1", True),
        ("1 || true", True),
        ("[0, 1].exists(n, 1 / n == 1)", True),
        ("[0, 1].all(n, 1 / n == 2)", False),
    ],
)
def test_one_deciding_side_decides(source: str, expected: bool) -> None:
    assert value(source) is expected


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("output.total / 0", "division by zero (in `output.total / 0`)"),
        ("output.hours * 'a'", "* does not apply to a number and a string (in `output.hours * 'a'`)"),
        ("true + 1", "+ does not apply to a boolean and a number"),
        ("null < 1", "null and a number have no order"),
        ("1 < 2 < 3", "a boolean and a number have no order"),
        ("7.5 % 2", "% takes whole numbers"),
        ("1 ? 2 : 3", "? takes true or false, not a number"),
        ("1 && true", "&& takes true or false, not a number"),
        ("[1].filter(n, n)", "the condition of a macro is true or false"),
        ("{1: 2}", "the keys of a map are strings"),
        ("{'a': 1, 'a': 2}", "twice"),
        ("output.lines['x']", "a list is indexed by a whole number"),
        ("output.lines[-1]", "there is no output.lines[-1]"),
        ("max([])", "max of an empty list"),
        ("date('2026-02-30')", "out of range"),
        ("date('9999-12-31') + duration('48h')", "out of range"),
        ("'a'.matches(input.team + '(')", "not a valid RE2 pattern"),
        ("1e308 * 1e308", "308 digits"),
        ("1.5e308 * 10.5", "not a finite number"),
        ("sum(['a'])", "sum takes a list of numbers"),
    ],
)
def test_a_failure_says_what_and_where(source: str, said: str) -> None:
    assert said in failure(source).reason


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("", "empty"),
        ("1 +", "ends too early"),
        ("(1", "ends too early"),
        ("1 +\n  * 2", "line 2, column 3: '* 2'"),
        ("output.true", "cannot read true here"),
        ("f(1)", "there is no function f"),
        ("siz([1])", "did you mean size?"),
        ("size()", "size takes 1 values and is given 0"),
        ("[1].map(1, 2)", "map takes a variable"),
        ("has(output)", "has takes one member"),
        ("b'bytes'", "JSON has no bytes"),
        ("Message{field: 1}", "messages are not supported"),
        ('"a\\"', "a string is not closed; it opens at line 1, column 1"),
        ("'\\q'", "the escape \\q"),
        ("'\\ud800'", "not a character"),
        ("'a'.matches('(')", "not a valid RE2 pattern"),
        ("1 input", "`in` must stand alone"),
        ("1e999", "more than a double can hold"),
        ("[" * 65 + "]" * 65, "64 levels of nesting"),
        ("[" * 2000 + "]" * 2000, "64 levels of nesting"),
        ("a" + ".b().c" * 65, "a chain of more than 64 members"),
        ("1" * (MAX_SOURCE + 1), "4,097 characters"),
    ],
)
def test_a_refusal_says_what_and_where(source: str, said: str) -> None:
    assert said in refusal(source)


def test_a_long_sum_and_many_brackets_are_not_deep() -> None:
    assert value("1" + "+1" * 2000) == 2001
    assert value("(" * 2000 + "1" + ")" * 2000) == 1
    assert value("!" * 4000 + "true") is True


def test_a_string_left_open_after_many_escapes_is_refused_at_once() -> None:
    # celpy's own pattern takes twice as long for each of these escapes.
    for quote in ('"', "'", '"""', "r'"):
        assert "not closed" in refusal(quote + r"\n" * 1000)
        assert "not closed" in refusal(quote + r"\\" * 1000 + "\\")


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("output.total == output.hours * 3", {("output", "total"), ("output", "hours")}),
        ("turns.usage.team == input.team", {("turns", "usage", "team"), ("input", "team")}),
        ("has(turns.usage.team)", {("turns", "usage", "team")}),
        ("visits.usage[input.at].hours", {("visits", "usage"), ("input", "at")}),
        ("output['total']", {("output",)}),
        ("output.lines.size()", {("output", "lines")}),
        ("output.lines.map(n, n.q * input.p)", {("output", "lines"), ("input", "p")}),
        ("output.lines.map(input, input.q) == input.q", {("output", "lines"), ("input", "q")}),
        ("[1].map(input, .input.q)", {("input", "q")}),
        ("size([1])", set()),
    ],
)
def test_names_are_the_paths_read_from_the_roots(source: str, names: set[tuple[str, ...]]) -> None:
    assert compiled(source).names == names


@pytest.mark.parametrize(
    "source",
    [
        "l.map(a, l.map(b, a * b))",
        "l.all(a, l.all(b, l.all(c, true)))",
        "false || l.all(a, l.all(b, true))",
        "l.all(a, l == l)",
        "[1]" + ".map(a, [a, a])" * 40,
        "[1]" + ".map(a, [a, a])" * 30 + "==[1]" + ".map(a, [a, a])" * 30,
        "s.matches('(((a?b?){10}){10}){10}c')",
        "l.map(a, string(a)).map(p, s.matches(p))",
    ],
)
def test_no_expression_goes_on_for_ever(source: str) -> None:
    assert "100,000 steps" in failure(source, {"l": list(range(1000)), "s": "a" * 100_000}).reason


@pytest.mark.parametrize("source", ["['x']" + ".map(a, a + a)" * 40, "[7]" + ".map(a, a * a)" * 40])
def test_no_value_grows_without_bound(source: str) -> None:
    assert "more than" in failure(source).reason


def test_values_that_are_nested_too_deeply_fail() -> None:
    deep: Any = []
    for _ in range(5000):
        deep = [deep]
    for source in ("a", "a == b", "unique([a, b])"):
        assert isinstance(compiled(source).evaluate({"a": deep, "b": [[deep]]}), EvaluationFailure)


def test_a_result_shares_nothing_with_the_document() -> None:
    names = {"input": {"list": [1]}}
    assert value("input", names) == names["input"]
    result = value("input.list", names)
    assert result is not names["input"]["list"]


def test_threads_share_the_grammar_and_the_expressions() -> None:
    sources = [f"output.total == {number} + {36 - number}" for number in range(64)]
    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(value, sources * 4))


def test_importing_is_silent_and_leaves_the_grammar_for_later() -> None:
    code = "import sys, stepladder.validation.expressions as it; assert 'celpy' not in sys.modules"
    code += "; it.compile_expression('1')"
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
documents = st.recursive(
    scalars | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
WORDS = r"""
a a.b a[0] a.c.size() .b 1 2.5 -3 0 'x' "é" true null [ ] { } ( ) , : ? . + - * / % == != < >= && || ! in // .map(x, x
has( size( sum( round( string( timestamp( date('2026-01-31') duration('1h') .filter(x, .all(x, matches( 'open
"""
words = st.sampled_from([*WORDS.split(), "\n"])


@given(st.text(max_size=60), documents)
def test_any_text_is_an_expression_or_a_refusal(source: str, document: Any) -> None:
    expression = compile_expression(source)
    if isinstance(expression, Expression):
        expression.evaluate({"a": document})
    else:
        assert expression.reason


@given(st.lists(words, max_size=12).map(" ".join), documents)
def test_anything_like_an_expression_has_a_value_or_a_failure(source: str, document: Any) -> None:
    expression = compile_expression(source)
    if isinstance(expression, Expression):
        result = expression.evaluate({"a": document})
        assert isinstance(result, EvaluationFailure) or json.dumps(result, allow_nan=False)


@given(st.from_regex(r"\A[a-c](\.[a-c]|\[[01]\])* (==|\+|<|in|\*|%|-|/) [a-c](\.[a-c])*\Z"), documents, documents)
def test_operators_take_any_two_values(source: str, left: Any, right: Any) -> None:
    result = compiled(source).evaluate({"a": left, "b": right, "c": [left, right]})
    assert isinstance(result, EvaluationFailure) or json.dumps(result, allow_nan=False)


numbers = st.integers(-(10**40), 10**40) | st.floats(-1e12, 1e12) | st.integers(-100, 100).map(float)


def rounded_once(exact: Fraction, *operands: int | float) -> int | float:
    """Of whole numbers the whole result as it is, anything else as the nearest double."""
    whole = all(Fraction(operand).denominator == 1 for operand in operands)
    return exact.numerator if whole and exact.denominator == 1 else float(exact)


@given(numbers, numbers, st.sampled_from("+-*/"))
def test_arithmetic_is_exact_and_rounds_once(left: int | float, right: int | float, operator: str) -> None:
    a, b = Fraction(left), Fraction(right)
    result = compiled(f"a {operator} b").evaluate({"a": left, "b": right})
    try:
        exact = {"+": a.__add__, "-": a.__sub__, "*": a.__mul__, "/": a.__truediv__}[operator](b)
        expected = rounded_once(exact, left, right)
    except (ZeroDivisionError, OverflowError):
        assert isinstance(result, EvaluationFailure)
    else:
        assert result == expected


@given(st.lists(numbers))
def test_a_sum_is_exact_and_rounds_once(values: list[int | float]) -> None:
    assert compiled("sum(a)").evaluate({"a": values}) == rounded_once(sum(map(Fraction, values), Fraction()), *values)


@given(numbers, numbers)
def test_order_is_that_of_the_exact_values(left: int | float, right: int | float) -> None:
    names = {"a": left, "b": right}
    assert value("a < b", names) is (Fraction(left) < Fraction(right))
    assert value("a == b", names) is (Fraction(left) == Fraction(right))


canonicals = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from([-0.0, 1.0, 2.0, 0.5, 1e20])
    | st.sampled_from("ab"),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=4,
)


@given(canonicals, canonicals)
def test_equality_is_that_of_the_canonical_spelling(left: Any, right: Any) -> None:
    expected = canonical(left) == canonical(right)
    assert value("a == b", {"a": left, "b": right}) is expected
    assert value("a in [b]", {"a": left, "b": right}) is expected
    assert value("unique([a, b])", {"a": left, "b": right}) is not expected


@given(st.decimals(-(10**6), 10**6, places=3), st.integers(0, 2))
def test_rounding_is_half_away_from_zero_on_the_digits_shown(number: Any, digits: int) -> None:
    shifted = abs(Fraction(number)) * 10**digits
    nearest = (shifted + Fraction(1, 2)).__floor__()
    expected = Fraction(nearest, 10**digits) * (-1 if number < 0 else 1)
    assert jsonmath.rounded(float(number), digits) == float(expected)
