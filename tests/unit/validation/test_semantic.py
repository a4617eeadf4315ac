from __future__ import annotations

from typing import Any

import pytest

from stepladder.schemas.answer import Violation
from stepladder.validation.expressions import Expression, compile_expression
from stepladder.validation.semantic import Rule, RuleCall, broken

BILL: Any = {"hours": 12, "total": 40, "lines": [{"code": "A1"}]}
NAMES: dict[str, Any] = {
    "input": {"team": "search"},
    "turns": {"usage": {"team": "search"}},
    "tools": {"meter": {"hours": 12, "codes": ["A1", "A2"]}},
}


def check(source: str, id: str = "r", **more: Any) -> Rule:  # noqa: A002 - the word of the documents
    expression = compile_expression(source)
    assert isinstance(expression, Expression), expression
    return Rule(id, check=expression, **more)


def reasons(*rules: Rule, names: dict[str, Any] | None = None) -> list[str]:
    return [violation.reason for violation in broken(rules, BILL, NAMES if names is None else names)]


def test_rules_that_hold_break_nothing() -> None:
    assert (
        reasons(check("output.hours == tools.meter.hours"), check("output.lines.all(l, l.code in tools.meter.codes)"))
        == []
    )


def test_all_broken_rules_come_in_the_order_of_the_document() -> None:
    rules = [
        check("output.total == output.hours * 3", "z-sum", pointer="/total", reason="must be hours times 3"),
        check("true", "fine"),
        check("output.hours == 1", "a-hours", pointer="/hours", reason="must be one"),
        Rule("m-call", call=lambda output, **_: f"must not be {output['total']}", pointer="/total"),
    ]
    assert broken(rules, BILL, NAMES) == (
        Violation("/total", "must be hours times 3", "z-sum"),
        Violation("/hours", "must be one", "a-hours"),
        Violation("/total", "must not be 40", "m-call"),
    )


def test_a_check_that_cannot_be_evaluated_is_broken_and_names_what_was_missing() -> None:
    assert reasons(check("turns.review.ok"), names={**NAMES, "turns": {}}) == [
        "could not be checked: turns.review is not known"
    ]
    [reason] = reasons(check("output.hours / 0 == 1"))
    assert reason.startswith("could not be checked: ")


@pytest.mark.parametrize("source", ["output.hours", "'true'", "1", "[true]", "null"])
def test_a_check_that_gives_no_boolean_is_broken(source: str) -> None:
    [reason] = reasons(check(source, reason="never told"))
    assert reason.startswith("could not be checked: the rule gave")


def test_a_check_without_a_reason_tells_its_source() -> None:
    assert reasons(check("output.hours == 1")) == ["must satisfy output.hours == 1"]


def test_python_rules_get_the_contract_s_names() -> None:
    seen: dict[str, Any] = {}

    def rule(output: Any, *, input: Any, turns: Any, tools: Any) -> str | None:  # noqa: A002 - the contract's word
        seen.update(output=output, input=input, turns=turns, tools=tools)
        return None

    assert reasons(Rule("r", call=rule)) == []
    assert seen == {"output": BILL, **NAMES}
    assert reasons(Rule("r", call=rule), names={}) == []
    assert seen["turns"] == {}


def raises(*_: Any, **__: Any) -> str | None:
    raise KeyError("iban")


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (raises, "could not be checked: KeyError: 'iban'"),
        (lambda *_, **__: True, "could not be checked: the rule returned bool, not None or a text"),
        (lambda *_, **__: ["no"], "could not be checked: the rule returned list, not None or a text"),
        (lambda: None, "could not be checked: TypeError"),
        (lambda *_, **__: "", "must be so"),
    ],
)
def test_a_python_rule_that_fails_is_broken(call: RuleCall, reason: str) -> None:
    [told] = reasons(Rule("r", call=call, reason="must be so"))
    assert told.startswith(reason)


def test_what_a_rule_changes_reaches_nobody_else() -> None:
    def greedy(output: Any, *, turns: Any, tools: Any, **_: Any) -> str | None:
        output["lines"].clear()
        turns["usage"]["team"] = tools["meter"]["codes"].pop()
        return None

    def later(output: Any, *, turns: Any, tools: Any, **_: Any) -> str | None:
        return None if (output, turns, tools) == (BILL, NAMES["turns"], NAMES["tools"]) else "must be untouched"

    assert reasons(Rule("greedy", call=greedy), Rule("later", call=later)) == []
    assert BILL["lines"] == [{"code": "A1"}]


def test_a_rule_has_one_way_to_be_checked() -> None:
    with pytest.raises(ValueError, match="either a check or a call"):
        Rule("none")
    with pytest.raises(ValueError, match="either a check or a call"):
        Rule("both", check=check("true").check, call=raises)
