"""What trying every expression on samples finds, and, beside each, the nearest document in which nothing is found."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepladder.lint.check import check_document
from stepladder.lint.compile import compile_workflow
from stepladder.lint.trial import STEPS
from stepladder.schemas.finding import Finding, Severity
from stepladder.schemas.tool import Effect, Kit, Tool
from stepladder.validation.expressions import Expression, compile_expression
from support.machines import KIT, document, findings_of, loaded

if TYPE_CHECKING:
    from stepladder.schemas.jsontypes import JsonObject

CODES = ("rule_never_works", "rule_may_not_work", "expression_never_works", "expression_may_not_work", "too_early")
ENDS = "\ndone: {end: succeeded}\n"
BILL = """{type: object, additionalProperties: false, required: [action, hours, total, rows], properties: {
    action: {enum: [keep, change]}, hours: {type: integer, minimum: 0, maximum: 200},
    total: {type: number, minimum: 0, maximum: 1000}, note: {type: string, maxLength: 20},
    day: {type: string, format: date}, code: {type: [string, integer], maxLength: 5, minimum: 0, maximum: 9},
    rows: {type: array, maxItems: 3, items: {type: object, additionalProperties: false, required: [price], properties: {
        price: {type: number, minimum: 0, maximum: 9}, tag: {type: string, maxLength: 5}}}}}}"""
INPUT = "input: {type: object, properties: {team: {type: string}, budget: {type: integer}}, required: [team]}"


def tried(states: str, head: str = "", kit: Kit = KIT) -> list[Finding]:
    found = findings_of(document(states, head), kit)
    return [one for one in found if one.code in CODES or one.severity is Severity.ERROR]


def of_rules(*checks: str, output: str = BILL, head: str = INPUT) -> list[Finding]:
    rules = ", ".join(f"{{id: r{n}, check: {json.dumps(check)}, reason: so}}" for n, check in enumerate(checks))
    flat = " ".join(output.split())
    return tried(f"bill: {{ask: Hi, output: {flat}, rules: [{rules}], next: {{keep: done, change: done}}}}{ENDS}", head)


def codes(found: list[Finding]) -> list[tuple[str, str, str]]:
    return [(one.code, one.severity.value, one.pointer) for one in found]


NEVER = ("rule_never_works", "warning", "/states/bill/rules/0/check")
PERHAPS = ("rule_may_not_work", "warning", "/states/bill/rules/0/check")


@pytest.mark.parametrize(
    ("never", "works"),
    [
        ("output.action * 2 == 4", "output.hours * 2 == 4"),
        ("output.note + 1 == 'a'", "!has(output.note) || output.note + '1' == 'a'"),
        ("output.action > output.total", "output.hours > output.total"),
        ("output.hours", "output.hours == 36.0"),
        ("output.action == 'keep' ? 1 : 2", "output.action == 'keep' ? true : false"),
        ("size(output.hours) > 1", "size(output.action) > 1"),
        ("output.hours.all(h, h > 1)", "output.rows.all(row, row.price > 1)"),
        ("!output.hours", "!(output.hours == 3)"),
        ("date(output.hours) > date('2026-01-01')", "!has(output.day) || date(output.day) > date('2026-01-01')"),
        ("input.team > 3", "input.team > 'a'"),
    ],
)
def test_a_rule_that_no_answer_can_be_checked_by_is_said(never: str, works: str) -> None:
    head = INPUT[:-1] + ", additionalProperties: false}"
    assert codes(of_rules(never, head=head)) == [NEVER]
    assert codes(of_rules(works, head=head)) == []


@pytest.mark.parametrize(
    ("never", "works"),
    [
        ("output.totl > 0", "output.total > 0"),
        ("output.rows.price > 1", "output.rows.all(row, row.price > 1)"),
        ("input.teem == output.action", "input.team == output.action"),
    ],
)
def test_a_name_that_can_never_be_there_is_said_and_fails_closed(never: str, works: str) -> None:
    head = INPUT[:-1] + ", additionalProperties: false}"
    assert codes(of_rules(never, head=head)) == [NEVER]
    assert codes(of_rules(works, head=head)) == []


@pytest.mark.parametrize(
    ("perhaps", "works"),
    [
        ("output.note != ''", "has(output.note) ? output.note != '' : true"),
        ("output.note != ''", "!has(output.note) || output.note != ''"),
        ("output.note != '' || output.hours == 1", "output.hours == 1 || !has(output.note)"),
        ("date(output.day) > date('2026-01-01')", "!has(output.day) || date(output.day) > date('2026-01-01')"),
        ("output.rows.all(row, row.tag != '')", "output.rows.all(row, !has(row.tag) || row.tag != '')"),
        ("output.rows[0].price > 1", "size(output.rows) == 0 || output.rows[0].price > 1"),
        ("output.total / output.hours > 1", "output.hours == 0 || output.total / output.hours > 1"),
        ("max(output.rows.map(row, row.price)) > 1", "output.rows.exists(row, row.price > 1)"),
        ("!has(output.code) || output.code > 3", "!has(output.code) || output.code == 3"),
        ("sum(output.rows) > 1", "sum(output.rows.map(row, row.price)) > 1"),  # no rows have a sum
        ("input.budget > output.total", "!has(input.budget) || input.budget > output.total"),
        ("input.bugdet > output.total", "!has(input.bugdet) || input.bugdet > output.total"),
        ("date(output.action) > date('2026-01-01')", "output.action > '2026-01-01'"),
    ],
)
def test_a_rule_that_some_answers_cannot_be_checked_by_is_a_warning(perhaps: str, works: str) -> None:
    assert codes(of_rules(perhaps)) == [PERHAPS]
    assert codes(of_rules(works)) == []


@pytest.mark.parametrize(
    "check",
    [
        "output.total == output.hours * 3",  # 36, 36.0 and fractions mix, and the huge do not overflow
        "output.total == 1e9 + 0.5",  # holds for no sample, and need not
        "abs(output.total - sum(output.rows.map(row, row.price * output.hours))) < 0.005",
        "turns.bill.hours == 1 || tools.bill.x == 1",
    ],
)
def test_what_holds_for_no_sample_is_not_held_against_a_rule(check: str) -> None:
    wide = BILL.replace("minimum: 0, maximum: 200", "minimum: -1").replace("minimum: 0, maximum: 1000", "minimum: 0")
    found = of_rules(check, output=wide)
    assert [one.code for one in found if one.code not in ("too_early", "unknown_name")] == []


def test_the_message_says_what_went_wrong_on_which_sample_and_what_to_write() -> None:
    [never] = of_rules("output.totl > 0")
    assert "`output.totl` can never be there: the schema has no such member" in never.message
    assert 'output = {"action": "keep"' in never.message
    assert never.remedy == "did you mean `total`?"
    [perhaps] = of_rules("output.note != ''")
    assert "output.note is not defined" in perhaps.message
    assert "has(output.note) ? ... : true" in perhaps.remedy
    [kind] = of_rules("output.action * 2 == 4")
    assert "* cannot join a string and a number" in kind.message
    [value] = of_rules("output.hours")
    assert "it gives a number, not true or false" in value.message


def test_a_name_that_is_wrong_only_where_the_rule_gets_that_far_is_said_too() -> None:
    found = of_rules("output.action == 'keep' || output.totl > 1")
    assert codes(found) == [PERHAPS]
    assert of_rules("output.action == 'keep' || output.total > 1") == []


def test_a_rule_whose_trouble_another_rule_rules_out_is_left_alone() -> None:
    assert of_rules("output.total / output.hours > 1", "output.hours > 0") == []
    assert codes(of_rules("output.total / output.hours > 1", "output.hours < 200")) == [PERHAPS]


def test_a_schema_that_names_no_members_says_nothing_of_any() -> None:
    open_ = "{type: object, required: [action], properties: {action: {enum: [keep, change]}, facts: {type: object}}}"
    assert of_rules("!has(output.facts) || output.facts.anything > 3", output=open_) == []
    assert of_rules("input.anything == 3", output=open_, head="") == []
    assert codes(of_rules("output.fatcs == 3", output=open_)) == [PERHAPS]  # names some, and forbids none


KINDS: dict[str, list[Any]] = {
    "null": [None],
    "boolean": [True, False],
    "number": [0.5, 3, -2, 36.0],
    "string": ["", "a", "zz"],
    "array": [[], [1], ["a"]],
    "object": [{}, {"x": 1}],
}
OPERATIONS = [
    "output.a + output.b == output.b",
    "output.a < output.b",
    "output.a * output.b > 1",
    "output.a && output.b",
    "size(output.a) > size(output.b)",
    "output.a in output.b",
    "output.a == output.b",
    "output.a ? output.b : true",
    "has(output.a.x) ? output.a.x == output.b : output.b",
    "output.a.all(v, v == output.b)",
    "!output.a || output.b > 1",
]
kinds = st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=3, unique=True)


@settings(deadline=None, max_examples=60)
@given(kinds, kinds, st.sampled_from(OPERATIONS))
def test_what_is_found_agrees_with_every_pair_of_kinds(ones: list[str], others: list[str], check: str) -> None:
    """An error where no pair of values can be checked, a warning where some cannot, nothing where all can."""
    expression = compile_expression(check)
    assert isinstance(expression, Expression)
    values = [(a, b) for one in ones for a in KINDS[one] for other in others for b in KINDS[other]]
    works = [isinstance(expression.evaluate({"output": {"a": a, "b": b}}), bool) for a, b in values]
    members = {"a": {"type": ones}, "b": {"type": others}}
    output = json.dumps({"type": "object", "properties": members, "required": ["a", "b"]})
    rule = f"rules: [{{id: r, check: {json.dumps(check)}, reason: so}}]"
    found = [one.code for one in tried(f"bill: {{ask: Hi, output: {output}, {rule}, next: done}}{ENDS}")]
    if all(works):
        assert found == []
    elif any(works):
        assert found == ["rule_may_not_work"]
    else:
        assert found in (["rule_never_works"], ["rule_may_not_work"])  # an open object's members are not known
        assert found == ["rule_never_works"] or "has(" in check


def test_a_rule_of_an_untyped_value_is_not_condemned_for_the_kinds_it_cannot_take() -> None:
    untyped = "{type: object, required: [action, a, b], properties: {action: {enum: [keep, change]}, a: {}, b: {}}}"
    assert codes(of_rules("output.a + output.b == 3", output=untyped)) == [PERHAPS]


# Names of other states ----------------------------------------------------------------------------------------------

THINK = """{anyOf: [
    {type: object, additionalProperties: false, required: [action, query],
     properties: {action: {enum: [search]}, query: {type: string, maxLength: 9}}},
    {type: object, additionalProperties: false, required: [action, text],
     properties: {action: {enum: [answer]}, text: {type: string, maxLength: 9}}}]}"""


def looping(arguments: str, result: str, last: str = "'none'") -> list[Finding]:
    think = " ".join(THINK.split())
    return tried(f"""
think: {{ask: Hi, output: {think}, max_visits: 3, next: {{search: find, answer: done, exhausted: broken}}}}
find: {{tool: look, arguments: {{q: {json.dumps(arguments)}}}, next: {{ok: think}}}}
done: {{end: succeeded, result: {{text: {json.dumps(result)}}}}}
broken: {{end: failed, result: {{why: {json.dumps(last)}}}}}
""")


def test_only_what_an_edge_lets_through_is_seen_behind_it() -> None:
    assert looping("turns.think.query", "turns.think.text") == []
    # Three searches, and the fourth visit leaves by `exhausted` with nothing new: the last answer is a search.
    assert looping("turns.think.query", "turns.think.text", last="turns.think.query") == []


@pytest.mark.parametrize(
    ("arguments", "result", "last", "code", "where"),
    [
        ("turns.think.text", "'x'", "'x'", "expression_may_not_work", "/states/find/arguments/q"),
        ("turns.think.query", "turns.think.query", "'x'", "expression_may_not_work", "/states/done/result/text"),
        ("turns.think.query", "'x'", "turns.think.text", "expression_may_not_work", "/states/broken/result/why"),
        ("turns.think.qurey", "'x'", "'x'", "expression_never_works", "/states/find/arguments/q"),
        ("turns.think.query * 2", "'x'", "'x'", "expression_never_works", "/states/find/arguments/q"),
        ("'x'", "visits.think[0].txet", "'x'", "expression_may_not_work", "/states/done/result/text"),
    ],
)
def test_what_no_path_brings_is_told(arguments: str, result: str, last: str, code: str, where: str) -> None:
    assert [(one.code, one.pointer) for one in looping(arguments, result, last)] == [(code, where)]


def two_turns(second: str, rules_of_first: str = "", first: str = BILL) -> list[Finding]:
    flat = " ".join(first.split())
    small = "{type: object, properties: {ok: {type: boolean}}, required: [ok]}"
    return tried(f"""
first: {{ask: Hi, output: {flat}, rules: [{rules_of_first}], next: {{keep: second, change: done}}}}
second: {{ask: Hi, output: {small}, rules: [{{id: r, check: {json.dumps(second)}, reason: so}}], next: done}}
done: {{end: succeeded, result: "turns.first.total"}}
""")


def test_a_rule_across_turns_is_tried_on_both() -> None:
    assert two_turns("output.ok == (turns.first.total > 3)") == []
    assert [one.code for one in two_turns("output.ok == (turns.first.action > 3)")] == ["rule_never_works"]
    assert [one.code for one in two_turns("turns.first.note != ''")] == ["rule_may_not_work"]


def test_what_the_earlier_turns_own_rules_made_sure_of_is_taken_for_sure() -> None:
    kept = "{id: noted, check: \"output.action != 'keep' || has(output.note)\", reason: so}"
    assert two_turns("turns.first.note != ''", rules_of_first=kept) == []


def test_what_has_not_happened_on_any_path_is_told() -> None:
    [found] = tried("""
first: {ask: Hi, output: {type: object, properties: {a: {type: integer}}, required: [a]}, next: second,
  rules: [{id: r, check: "output.a == turns.second.b", reason: so}]}
second: {ask: Hi, output: {type: object, properties: {b: {type: integer}}, required: [b]}, next: done,
  rules: [{id: r, check: "output.b == turns.first.a", reason: so},
          {id: s, check: "!has(turns.second) || turns.second.b == 1", reason: so}]}
done: {end: succeeded}
""")
    assert (found.code, found.pointer) == ("too_early", "/states/first/rules/0/check")
    assert "no path leads from `second` here" in found.message


def test_a_signal_and_an_error_are_tried_as_they_come() -> None:
    states = """
ask: {wait: {signal: s, timeout_s: 9, schema: {type: object, required: [action], additionalProperties: false,
    properties: {action: {enum: [yes_, no_]}, by: {type: string}}}, show: {a: "'x'"}},
  next: {yes_: find, no_: done, timeout: find}}
find: {tool: look, arguments: {q: "signals.ask.action"}, next: {ok: done, error: broken}}
done: {end: succeeded, result: {by: "signals.ask.RESULT"}}
broken: {end: failed, result: {why: "errors.find.message"}}
"""
    assert tried(states.replace("RESULT", "action")) == []
    by = tried(states.replace("RESULT", "by"))
    assert [(one.code, one.pointer) for one in by] == [("expression_may_not_work", "/states/done/result/by")]
    bye = tried(states.replace("RESULT", "bye"))
    assert [(one.code, one.pointer) for one in bye] == [("expression_never_works", "/states/done/result/by")]


LINES = """
lines: {ask: Hi, each: {over: input.items, at_most: 9}, next: sum, rules: [{id: r, check: CHECK, reason: so}],
  output: {type: object, additionalProperties: false, required: [price], properties: {
    price: {type: number, minimum: 0, maximum: 9}, note: {type: string, maxLength: 5}}}}
sum: {ask: Hi, next: done, rules: [{id: r, check: AFTER, reason: so}],
  output: {type: object, additionalProperties: false, required: [sum], properties: {sum: {type: number}}}}
done: {end: succeeded}
"""


@pytest.mark.parametrize(
    ("check", "after", "code"),
    [
        ("output.price > 0", "output.sum == sum(lists.lines.map(one, one.price))", None),
        ("!has(turns.lines) || turns.lines.price < output.price", "true", None),  # behind one element comes the next
        ("size(lists.lines) < 3 && each.index >= 0", "size(lists.lines) > 0 && turns.lines.price > 1", None),
        ("output.prise > 0", "true", "rule_never_works"),
        ("true", "output.sum == sum(lists.lines.map(one, one.note))", "rule_may_not_work"),
        ("true", "lists.lines[0].price > 1", "rule_may_not_work"),  # a list of nothing is a list
        ("true", "lists.lines > 3", "rule_never_works"),
    ],
)
def test_the_elements_of_a_list_are_tried_as_what_was_gathered(check: str, after: str, code: str | None) -> None:
    states = LINES.replace("CHECK", json.dumps(check)).replace("AFTER", json.dumps(after))
    head = "input: {type: object, properties: {items: {type: array, items: {type: string}}}, required: [items]}"
    assert [one.code for one in tried(states, head)] == ([] if code is None else [code])


def test_what_ends_a_list_is_what_is_seen_behind_it() -> None:
    item, stop = "{enum: [item]}", "{enum: [stop]}"
    branch = (
        "{{type: object, additionalProperties: false, required: [action, {0}], properties: {{action: {1}, {0}: {2}}}}}"
    )
    text = "{type: string, maxLength: 5}"
    output = f"{{anyOf: [{branch.format('name', item, text)}, {branch.format('why', stop, text)}]}}"
    states = f"""
gather: {{ask: Hi, each: {{until: stop, at_most: 9}}, output: {output}, max_visits: 1,
  next: {{stop: done, exhausted: broken}}}}
done: {{end: succeeded, result: {{why: turns.gather.why, names: "lists.gather.map(one, one.name)"}}}}
broken: {{end: failed, result: turns.gather.LAST}}
"""
    assert tried(states.replace("LAST", "name")) == []
    assert [one.code for one in tried(states.replace("LAST", "why"))] == ["expression_may_not_work"]


# Tools ----------------------------------------------------------------------------------------------------------------

HOURS: JsonObject = {"type": "object", "properties": {"hours": {"type": "integer"}}, "required": ["hours"]}


def of_tool(check: str, returns: JsonObject) -> list[Finding]:
    usage = Tool("usage", Effect.READ, {"type": "object"}, dict, returns=returns)
    return tried(
        f"""
run: {{tool: usage, arguments: {{}}, next: {{ok: bill}}}}
bill: {{ask: Hi, output: {" ".join(BILL.split())}, rules: [{{id: r, check: {json.dumps(check)}, reason: so}}],
  next: {{keep: done, change: done}}}}
done: {{end: succeeded}}
""",
        kit=Kit({"usage": usage}, {}),
    )


def test_a_tools_result_is_known_by_what_the_tool_says_of_it() -> None:
    assert of_tool("output.hours == tools.run.hours", HOURS) == []
    assert codes(of_tool("output.action == tools.run.hours + 'h'", HOURS)) == [NEVER]
    closed = {**HOURS, "additionalProperties": False}
    assert codes(of_tool("output.hours == tools.run.huors", closed)) == [NEVER]
    assert codes(of_tool("output.hours == tools.run.huors", HOURS)) == [PERHAPS]


@pytest.mark.parametrize("returns", [{}, {"type": "object"}, {"type": "object", "additionalProperties": {}}])
def test_of_a_result_that_nothing_is_said_of_nothing_is_known(returns: JsonObject) -> None:
    assert of_tool("output.hours == tools.run.whatever * 2 && tools.run > 3", returns) == []
    # What stands before it in the rule is judged all the same.
    assert codes(of_tool("output.action * 2 == tools.run.hours", returns)) == [NEVER]


# The document as a whole ----------------------------------------------------------------------------------------------


def test_what_was_registered_already_is_not_tried_again() -> None:
    text = document(
        f"""bill: {{ask: Hi, output: {" ".join(BILL.split())}, next: {{keep: done, change: done}},
  rules: [{{id: r, check: "output.action > 0", reason: so}}]}}
done: {{end: succeeded}}"""
    )
    assert compile_workflow(loaded(text).document, KIT).findings != ()
    assert compile_workflow(loaded(text).document, KIT, audit=None).findings == ()


def test_where_a_state_cannot_be_read_nothing_is_said_of_paths() -> None:
    text = document("""
one: {ask: Hi, output: {type: object, properties: {a: {type: integer}}, required: [a]}, next: two}
two: {asks: Hi, next: three}
three: {end: succeeded, result: "turns.one.a"}
""")
    assert {finding.code for finding in check_document(text, KIT).errors} <= {"state_kind", "unknown_field"}


def test_what_costs_too_much_is_left_untried() -> None:
    # Without the shared count of steps this takes minutes, so that coming back at all is the test.
    heavy = "output.rows.all(a, output.rows.all(b, output.rows.all(c, output.rows.all(d, a == b || c == d))))"
    rows = "{type: array, minItems: 30, maxItems: 40, items: {type: integer, minimum: 0, maximum: 9}}"
    output = f"{{type: object, properties: {{rows: {rows}}}, required: [rows]}}"
    rules = ", ".join(f'{{id: r{n}, check: "{heavy}", reason: so}}' for n in range(100))
    states = "\n".join(
        f"s{n}: {{ask: Hi, output: {output}, rules: [{rules}], next: s{n + 1}}}"
        if n < 2
        else f"s{n}: {{end: succeeded}}"
        for n in range(3)
    )
    assert tried(states) == []
    assert STEPS < 1_000_000
