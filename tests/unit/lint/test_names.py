"""Names that templates and expressions read, checked against the schemas and edges of the document."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from stepladder.lint.check import check_document
from stepladder.lint.compile import compile_workflow
from stepladder.schemas.finding import Finding, Severity
from stepladder.schemas.tool import Effect, Kit, Tool
from support.machines import KIT, document, findings_of, loaded

if TYPE_CHECKING:
    from stepladder.schemas.jsontypes import JsonObject

ENDS = "\ndone: {end: succeeded}\n"
BILL = """{type: object, additionalProperties: false, required: [action, total], properties: {
    action: {enum: [keep, change]}, total: {type: number, minimum: 0, maximum: 1000}, note: {type: string},
    rows: {type: array, maxItems: 3, items: {type: object}}}}"""
CLOSED = "input: {type: object, properties: {team: {type: string}}, required: [team], additionalProperties: false}"
OPEN = CLOSED.replace(", additionalProperties: false", "")


def found(states: str, head: str = "", kit: Kit = KIT) -> list[Finding]:
    codes = ("unknown_name", "too_early")
    every = findings_of(document(states, head), kit)
    return [one for one in every if one.code in codes or one.severity is Severity.ERROR]


def of_rule(check: str, head: str = CLOSED, question: str = "Hi") -> list[Finding]:
    rule = f"{{id: r, check: {json.dumps(check)}, reason: so}}"
    turn = f"{{ask: {json.dumps(question)}, output: {' '.join(BILL.split())}, rules: [{rule}], next: "
    return found(f"bill: {turn}{{keep: done, change: done}}}}{ENDS}", head)


@pytest.mark.parametrize(
    ("wrong", "right", "remedy"),
    [
        ("output.totl > 0", "output.total > 0", "did you mean `total`?"),
        ("output.rows.price > 1", "output.rows.all(row, row.price > 1)", "fix the name, or the schema"),
        ("input.teem == output.action", "input.team == output.action", "did you mean `team`?"),
        ("output.xyz == 1", "has(output.note)", "its members are action, total, note, rows"),
    ],
)
def test_an_impossible_member_is_an_error(wrong: str, right: str, remedy: str) -> None:
    [finding] = of_rule(wrong)
    assert (finding.code, finding.severity) == ("unknown_name", Severity.ERROR)
    assert finding.pointer == "/states/bill/rules/0/check"
    assert "the schema has no such member" in finding.message
    assert finding.remedy == remedy
    assert of_rule(right) == []


def test_a_template_is_checked_too() -> None:
    found = of_rule("true", question="For {{ input.tem }} and {{ input.team }}")
    assert [(one.pointer, one.remedy) for one in found] == [("/states/bill/ask", "did you mean `team`?")]


def test_a_name_like_one_of_an_open_schema_is_a_warning() -> None:
    [finding] = of_rule("input.tema == 'a'", OPEN)
    assert (finding.severity, finding.remedy) == (Severity.WARNING, "did you mean `team`?")
    assert of_rule("input.budget == 1", OPEN) == []
    assert of_rule("input.anything == 1", "input: {type: object}") == []


HOURS: JsonObject = {"type": "object", "properties": {"hours": {"type": "integer"}}, "required": ["hours"]}


@pytest.mark.parametrize(
    ("returns", "severity"),
    [
        ({**HOURS, "additionalProperties": False}, [Severity.ERROR]),
        (HOURS, [Severity.WARNING]),
        ({"type": "object"}, []),
        ({}, []),
    ],
)
def test_a_tools_result_is_known_by_its_annotation(returns: JsonObject, severity: list[Severity]) -> None:
    usage = Tool("usage", Effect.READ, {"type": "object"}, dict, returns=returns)
    states = "run: {tool: usage, arguments: {}, next: {ok: done}}\ndone: {end: succeeded, result: tools.run.huors}"
    assert [one.severity for one in found(states, kit=Kit({"usage": usage}, {}))] == severity


def test_a_signals_payload_is_known_by_its_schema() -> None:
    states = """
ask: {wait: {signal: s, timeout_s: 9, schema: {type: object, required: [action], additionalProperties: false,
    properties: {action: {enum: [yes_]}, by: {type: string}}}}, next: {yes_: done, timeout: broken}}
done: {end: succeeded, result: {by: signals.ask.RESULT}}
broken: {end: failed}
"""
    assert found(states.replace("RESULT", "by")) == []
    assert [one.pointer for one in found(states.replace("RESULT", "bye"))] == ["/states/done/result/by"]


def test_a_result_without_a_path_is_a_warning() -> None:
    one, two = (f"{{type: object, properties: {{{name}: {{type: integer}}}}, required: [{name}]}}" for name in "ab")
    [finding] = found(f"""
first: {{ask: Hi, output: {one}, next: second, rules: [{{id: r, check: "output.a == turns.second.b", reason: so}}]}}
second: {{ask: Hi, output: {two}, next: done, rules: [{{id: r, check: "output.b == turns.first.a", reason: so}}]}}
done: {{end: succeeded}}
""")
    assert (finding.code, finding.severity) == ("too_early", Severity.WARNING)
    assert finding.pointer == "/states/first/rules/0/check"
    assert "no path leads from `second` here" in finding.message


def test_an_error_leaves_no_result() -> None:
    states = """
run: {tool: look, arguments: {q: "'a'"}, next: {ok: done, error: broken}}
done: {end: succeeded, result: ROOT.run}
broken: {end: failed, result: OTHER.run}
"""
    assert found(states.replace("ROOT", "tools").replace("OTHER", "errors")) == []
    wrong = found(states.replace("ROOT", "errors").replace("OTHER", "tools"))
    assert [(one.code, one.pointer) for one in wrong] == [
        ("too_early", "/states/done/result"),
        ("too_early", "/states/broken/result"),
    ]


def test_an_element_may_read_the_one_before() -> None:
    head = "input: {type: object, properties: {items: {type: array, items: {type: string}}}, required: [items]}"
    states = """
lines: {ask: Hi, each: {over: input.items, at_most: 9}, next: done,
  rules: [{id: r, check: "!has(turns.lines) || size(lists.lines) < 3 || turns.lines.price < output.price", reason: so}],
  output: {type: object, additionalProperties: false, required: [price], properties: {price: {type: number}}}}
done: {end: succeeded, result: lists.lines}
"""
    assert found(states, head) == []


def test_registered_documents_and_unreadable_states_are_skipped() -> None:
    bill = f"bill: {{ask: Hi, output: {' '.join(BILL.split())}, next: {{keep: done, change: done}}}}"
    text = document(f"{bill}\ndone: {{end: succeeded, result: turns.bill.totl}}")
    assert "unknown_name" in {one.code for one in compile_workflow(loaded(text).document, KIT).findings}
    assert compile_workflow(loaded(text).document, KIT, audit=None).findings == ()
    broken = document("one: {ask: Hi, output: {}, next: two}\ntwo: {asks: Hi, next: three}\nthree: {end: succeeded}")
    assert "too_early" not in {one.code for one in check_document(broken, KIT).findings}
