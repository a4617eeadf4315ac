from __future__ import annotations

import json
from typing import Any

from stepladder.lint.estimate import END, Estimate, answers_of, budget_findings, estimate
from stepladder.schemas.finding import Finding, Severity
from support.machines import document, machine_of

NOTE = (
    "{type: object, properties: {text: {type: string, maxLength: 40}}, required: [text], additionalProperties: false}"
)
FREE = "{type: object, properties: {text: {type: string}}, required: [text], additionalProperties: false}"


def machine(rest: str = "", output: str = NOTE, head: str = "") -> Any:
    return machine_of(
        document(f"note: {{ask: Hi, output: {output}, next: done{rest}}}\ndone: {{end: succeeded}}", head)
    )


def found(one: Any, tokens: int) -> list[Finding]:
    estimates = [Estimate("note", one.ask("note").max_completion_tokens, tokens)]
    return list(budget_findings(one.document, estimates))


def test_answers_are_valid_json_on_one_line() -> None:
    [answers] = answers_of(machine())
    assert answers.largest is not None
    assert answers.largest.startswith('{"text": "')
    assert len(json.loads(answers.largest)["text"]) == 40


def test_answers_may_choose_a_tool() -> None:
    [answers] = answers_of(
        machine_of(
            document("""
pick: {ask: Hi, tools: [look], output: {type: object, properties: {action: {enum: [stop]}}, required: [action]},
  next: {look: run, stop: done}}
run: {tool: {from: pick}, next: {ok: done}}
done: {end: succeeded}""")
        )
    )
    assert answers.largest is None, "the tool's own argument has no bound"
    assert ("/arguments/q", "it has no `maxLength`") in answers.endless


def test_twice_the_largest_is_suggested_with_its_end_token() -> None:
    [answers] = answers_of(machine())
    one = estimate(answers, {str(answers.largest): 15})
    assert (one.largest, one.suggested) == (15 + END, 2 * (15 + END))


def test_a_budget_below_the_largest_is_a_warning() -> None:
    one = machine(", max_completion_tokens: 16")
    assert found(one, 16) == []
    [short] = found(one, 17)
    assert (short.code, short.severity) == ("budget_too_small", Severity.WARNING)
    assert "may take 17 tokens, and is cut off after 16" in short.message
    assert "max_completion_tokens: 34" in short.remedy


def test_the_finding_points_to_the_budget() -> None:
    own = machine(", max_completion_tokens: 16")
    shared = machine(head="max_completion_tokens: 16")
    default = machine()
    places = [found(one, 9999)[0].pointer for one in (own, shared, default)]
    assert places == ["/states/note/max_completion_tokens", "/max_completion_tokens", "/states/note"]


def test_a_schema_without_a_limit_is_a_hint() -> None:
    one = machine(output=FREE)
    [answers] = answers_of(one)
    assert answers.largest is None
    unbounded = estimate(answers, {})
    assert (unbounded.largest, unbounded.suggested) == (None, None)
    [hint] = budget_findings(one.document, [unbounded])
    assert (hint.code, hint.severity) == ("budget_unbounded", Severity.HINT)
    assert "`/text` in it, it has no `maxLength`" in hint.message
