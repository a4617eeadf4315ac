from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from stepladder.schemas.document import (
    Ask,
    Call,
    Chosen,
    End,
    Limits,
    Loop,
    Retry,
    RuleSpec,
    Sampling,
    State,
    Wait,
    WaitSpec,
    Workflow,
)
from stepladder.schemas.job import Failure
from stepladder.schemas.source import Source, read
from stepladder.schemas.tool import Effect

YAML = """
name: all-kinds
version: 2
start: choose
sampling: {temperature: 0}
limits: {deadline_s: 600, loop: {repeats: 3}}
states:
  choose:
    ask: Choose.
    output: {type: object, properties: {action: {enum: [stop, 'no']}}, required: [action]}
    tools: [look]
    rules: [{id: r, check: "output.action != 'no'", reason: must be yes}]
    retry: {attempts: 2}
    history: 3
    next: {stop: done, 'no': done, look: call, exhausted: done}
    max_visits: 4
    on_failure: {attempts_exhausted: done}
  call: {tool: {from: choose}, next: {ok: pause, error: done}}
  pause: {wait: {signal: go, schema: {type: object}, timeout_s: 60}, next: {go: save, timeout: done}}
  save: {tool: save, arguments: {q: input.q}, effect: idempotent, next: {ok: done}}
  done: {end: succeeded, result: turns.choose}
"""

PYTHON = Workflow(
    name="all-kinds",
    version=2,
    start="choose",
    sampling=Sampling(temperature=0.0),
    limits=Limits(deadline_s=600.0, loop=Loop(repeats=3)),
    states={
        "choose": Ask(
            ask="Choose.",
            output={"type": "object", "properties": {"action": {"enum": ["stop", "no"]}}, "required": ["action"]},
            tools=["look"],
            rules=[RuleSpec(id="r", check="output.action != 'no'", reason="must be yes")],
            retry=Retry(attempts=2),
            history=3,
            next={"stop": "done", "no": "done", "look": "call", "exhausted": "done"},
            max_visits=4,
            on_failure={Failure.ATTEMPTS_EXHAUSTED: "done"},
        ),
        "call": Call(tool=Chosen(from_="choose"), next={"ok": "pause", "error": "done"}),
        "pause": Wait(
            wait=WaitSpec(signal="go", schema_={"type": "object"}, timeout_s=60.0),
            next={"go": "save", "timeout": "done"},
        ),
        "save": Call(tool="save", arguments={"q": "input.q"}, effect=Effect.IDEMPOTENT, next={"ok": "done"}),
        "done": End(end="succeeded", result="turns.choose"),
    },
)


def of(text: str) -> Workflow:
    source = read(text)
    assert isinstance(source, Source), source
    return Workflow.model_validate(source.value)


def small(state: str = "{end: succeeded}", head: str = "") -> Workflow:
    return of(f"name: small\nversion: 1\nstart: one\n{head}\nstates: {{one: {state}, two: {{end: failed}}}}\n")


def test_yaml_json_and_python_give_one_definition_and_one_hash() -> None:
    from_yaml = of(YAML)
    from_json = of(json.dumps(from_yaml.definition(), indent=2))
    assert from_yaml.definition() == from_json.definition() == PYTHON.definition()
    assert from_yaml.hash() == from_json.hash() == PYTHON.hash()


def test_a_definition_is_a_document_again() -> None:
    assert Workflow.model_validate(json.loads(json.dumps(PYTHON.definition()))) == of(YAML)


@pytest.mark.parametrize(
    ("state", "head"),
    [
        ("{end: succeeded, result: null}", ""),
        ("{end: succeeded}", "limits: {}"),
        ("{end: succeeded}", "limits: {max_turns: 50, loop: {repeats: 2, stale: 5}}"),
        ("{end: succeeded}", "limits: {token_budget: null}\ndescription: ''\nsystem: null"),
        ("{end: succeeded}", "input: {type: object}"),
    ],
)
def test_what_repeats_a_default_is_no_other_definition(state: str, head: str) -> None:
    assert small(state, head).definition() == small().definition()
    assert small(state, head).hash() == small().hash()


def test_defaults_of_a_turn_are_left_out() -> None:
    spelled = "{ask: Hi, output: {}, next: two, history: all, loop: 'on', tools: [], rules: [], on_failure: {}}"
    assert small(spelled).definition()["states"]["one"] == {"ask": "Hi", "output": {}, "next": "two"}


@pytest.mark.parametrize(
    ("state", "head"),
    [
        ("{end: failed}", ""),
        ("{end: succeeded, result: '1'}", ""),
        ("{end: succeeded}", "limits: {max_turns: 0}"),
        ("{end: succeeded}", "limits: {token_budget: 0}"),
        ("{end: succeeded}", "limits: {loop: 'off'}"),
        ("{end: succeeded}", "system: ''"),
        ("{end: succeeded}", "retry: {}"),
    ],
)
def test_a_change_of_meaning_changes_the_hash(state: str, head: str) -> None:
    assert small(state, head).hash() != small().hash()


def test_a_number_has_one_meaning_however_it_is_written() -> None:
    assert small(head="limits: {deadline_s: 600}").hash() == small(head="limits: {deadline_s: 6.0e2}").hash()


class Bill(BaseModel):
    hours: int
    total: int


def test_a_pydantic_model_stands_for_its_json_schema() -> None:
    turn: Any = {"ask": "Bill.", "output": Bill, "next": "done"}
    by_model = Ask.model_validate(turn)
    assert by_model.output == Bill.model_json_schema()
    as_text = Ask.model_validate(turn | {"output": Bill.model_json_schema()})
    assert as_text == by_model
    wait = WaitSpec.model_validate({"signal": "paid", "schema": Bill})
    assert wait.schema_ == Bill.model_json_schema()


def test_a_document_does_not_change_once_it_is_built() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        setattr(PYTHON, "name", "other")  # noqa: B010 - the type checker knows as well that it is frozen


@pytest.mark.parametrize(
    "rule", [{"id": "r"}, {"id": "r", "check": "true", "call": "iban"}, {"id": "r", "check": "true"}]
)
def test_a_rule_goes_one_way_and_gives_its_reason(rule: dict[str, str]) -> None:
    with pytest.raises(ValidationError, match="rule"):
        RuleSpec.model_validate(rule)


@pytest.mark.parametrize("state", [{}, {"ask": "x", "tool": "y"}, {"wait": {}, "end": "failed"}, "end", None, ["end"]])
def test_a_state_is_of_exactly_one_kind(state: object) -> None:
    with pytest.raises(ValidationError):
        Workflow.model_validate({"name": "a", "version": 1, "start": "one", "states": {"one": state}})


def test_the_order_of_an_outputs_fields_is_part_of_the_definition() -> None:
    def hash_of(*names: str) -> str:
        output = {"type": "object", "properties": {name: {"type": "integer"} for name in names}}
        states: dict[str, State] = {"only": Ask(ask="?", output=output, next="done"), "done": End(end="succeeded")}
        return Workflow(name="w", version=1, start="only", states=states).hash()

    assert hash_of("reason", "answer") != hash_of("answer", "reason")
    assert hash_of("reason", "answer") == hash_of("reason", "answer")
