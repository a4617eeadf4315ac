from __future__ import annotations

from typing import Any

import pytest

from stepladder.lint.compile import compile_workflow
from stepladder.schemas.finding import Severity
from stepladder.schemas.job import Failure
from stepladder.schemas.tool import Effect, Kit
from stepladder.workflows.machine import AskState, ToolState, WaitState, targets
from support.machines import KIT, codes_of, document, findings_of, loaded, machine_of, tool

ENDS = "\ndone: {end: succeeded}\nbroken: {end: failed}\n"
OPEN = "{properties: {action: {type: string}}, required: [action]}"
FREE = "{type: object, properties: {total: {type: integer}}, required: [total]}"


def words(*names: str, required: bool = True) -> str:
    need = ", required: [action]" if required else ""
    listed = ", ".join(names)
    return f"{{type: object, properties: {{action: {{enum: [{listed}]}}}}{need}, additionalProperties: false}}"


def codes(states: str, head: str = "", kit: Kit = KIT) -> list[tuple[str, str]]:
    return codes_of(document(states, head), kit)


@pytest.mark.parametrize(
    ("turn", "code", "where"),
    [
        (f"output: {words('go', 'stop')}, next: {{go: done}}", "word_without_edge", "/next"),
        *(
            (f"output: {FREE}, next: done, on_failure: {{{word}: done}}", "impossible_word", f"/on_failure/{word}")
            for word in ("tool_failed", "permission_denied", "rejected")
        ),
    ],
)
def test_edges_that_are_only_suspicious_are_warnings(turn: str, code: str, where: str) -> None:
    found = findings_of(document(f"one: {{ask: Hi, {turn}}}\ndone: {{end: succeeded}}"))
    assert (code, f"/states/one{where}", Severity.WARNING) in [(one.code, one.pointer, one.severity) for one in found]
    assert all(one.severity is Severity.WARNING for one in found)


# A turn's edges ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("output", "rest"),
    [
        (FREE, "next: done"),
        (FREE, "next: {always: done}"),
        (FREE, "next: {always: done, exhausted: done}, max_visits: 2"),
        (words("go", "stop"), "next: {go: one, stop: done}"),
        (words("go"), "next: {go: done, exhausted: done}, max_visits: 2"),
        (OPEN, "next: {whatever: done}"),
        ("{properties: {action: {const: go}}, required: [action]}", "next: {go: done}"),
        (f"{{anyOf: [{words('go')}, {words('stop')}]}}", "next: {go: done, stop: done}"),
        (f"{{oneOf: [{words('go')}, {words('stop')}]}}", "next: {go: done, stop: done}"),
        (f"{{$ref: '#/$defs/A', $defs: {{A: {words('go')}}}}}", "next: {go: done}"),
    ],
)
def test_edges_of_a_turn_match_its_actions(output: str, rest: str) -> None:
    assert codes(f"one: {{ask: Hi, output: {output}, {rest}}}\ndone: {{end: succeeded}}") == []


@pytest.mark.parametrize(
    ("output", "rest", "code", "where"),
    [
        (FREE, "next: {go: done}", "no_action", "/next"),
        (FREE, "next: {always: done, go: done}", "no_action", "/next"),
        (FREE, "next: {exhausted: done}, max_visits: 1", "no_edge", "/next"),
        (words("go"), "next: done", "unconditional", "/next"),
        (words("go"), "next: {always: done, go: done}", "unconditional", "/next"),
        (words("go"), "next: {go: done, 'to/p': done}", "impossible_word", "/next/to~1p"),
        (words("go", required=False), "next: {go: done}", "optional_action", "/output"),
        (
            "{type: object, properties: {n: {type: integer, minimum: 5, maximum: 2}}}",
            "next: done",
            "no_value",
            "/output/properties/n/minimum",
        ),
        (f"{{anyOf: [{words('go')}, {FREE}]}}", "next: {go: done}", "optional_action", "/output"),
        (words("go", "null"), "next: {go: done}", "optional_action", "/output"),
        (words("go"), "next: {go: done}, max_visits: 2", "no_edge", "/next"),
        (FREE, "next: done, max_visits: 2", "no_edge", "/next"),
        (words("go"), "next: {go: done, exhausted: done}", "impossible_word", "/next/exhausted"),
        (words("always"), "next: {always: done}", "unconditional", "/next"),
        (words("go", "exhausted"), "next: {go: done, exhausted: done}, max_visits: 1", "reserved_action", "/output"),
        (words("go", "timeout"), "next: {go: done, timeout: done}", "reserved_action", "/output"),
        (words("go"), "next: {go: nowhere}", "unknown_state", "/next/go"),
        (FREE, "next: nowhere", "unknown_state", "/next"),
        (words("go"), "next: {go: done}, on_failure: {loop: nowhere}", "unknown_state", "/on_failure/loop"),
        (words("go"), "next: {go: done, exhausted: nowhere}, max_visits: 1", "unknown_state", "/next/exhausted"),
    ],
)
def test_an_impossible_edge_is_an_error_at_its_place(output: str, rest: str, code: str, where: str) -> None:
    found = codes(f"one: {{ask: Hi, output: {output}, {rest}}}\ndone: {{end: succeeded}}")
    assert (code, f"/states/one{where}") in found
    assert len(found) == 1


# A tool's and a wait's edges -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rest", "code", "where"),
    [
        ("next: {error: done}", "no_edge", "/next"),
        ("next: {ok: done, done: done}", "impossible_word", "/next/done"),
        ("next: {ok: done, timeout: done}", "impossible_word", "/next/timeout"),
        ("next: {ok: done}, max_visits: 1", "no_edge", "/next"),
        ("next: {ok: done, exhausted: done}", "impossible_word", "/next/exhausted"),
        ("next: {ok: done}, effect: idempotent", "effect_differs", "/effect"),
        ("next: {ok: nowhere}", "unknown_state", "/next/ok"),
    ],
)
def test_a_tool_ends_with_ok_or_error(rest: str, code: str, where: str) -> None:
    assert codes(f"one: {{tool: look, {rest}}}\ndone: {{end: succeeded}}") == [(code, f"/states/one{where}")]


@pytest.mark.parametrize(
    ("wait", "next_", "code", "where"),
    [
        ("timeout_s: 5", "{go: done}", "no_edge", "/next"),
        ("", "{go: done, timeout: done}", "impossible_word", "/next/timeout"),
        ("timeout_s: 5", "{timeout: done}", "no_edge", "/next"),
        ("", "{always: done}", "reserved_action", "/next/always"),
        ("", "{exhausted: done}", "reserved_action", "/next/exhausted"),
        (f"schema: {words('go')}", "{go: done, stop: done}", "impossible_word", "/next/stop"),
        (f"schema: {FREE}", "{go: done}", "impossible_word", "/next/go"),
    ],
)
def test_a_wait_ends_with_an_action_or_timeout(wait: str, next_: str, code: str, where: str) -> None:
    text = f"one: {{wait: {{signal: s, {wait}}}, next: {next_}}}\ndone: {{end: succeeded}}"
    assert codes(text) == [(code, f"/states/one{where}")]


@pytest.mark.parametrize(
    "start", ["tool: look, next: {ok: done}", "wait: {signal: s}, next: {go: done}", "end: failed"]
)
def test_any_kind_of_state_may_be_the_start(start: str) -> None:
    assert codes(f"one: {{{start}}}" + ("" if start.startswith("end") else "\ndone: {end: succeeded}")) == []


# Reaching and ending -------------------------------------------------------------------------------------------------


def test_every_state_is_reached_and_reaches_an_end() -> None:
    states = f"""
one: {{ask: Hi, output: {words("go", "stay")}, next: {{go: done, stay: two}}}}
two: {{ask: Hi, output: {FREE}, next: two}}
far: {{tool: look, next: {{ok: done}}}}
done: {{end: succeeded}}
"""
    assert codes(states) == [("unreachable_state", "/states/far"), ("no_end", "/states/two")]
    assert codes("one: {end: succeeded}", "start: nowhere") == [("unknown_state", "/start")]


def test_on_failure_and_exhausted_are_edges_as_well() -> None:
    states = f"""
one: {{ask: Hi, output: {FREE}, next: {{always: one, exhausted: two}}, max_visits: 3, on_failure: {{loop: three}}}}
two: {{end: succeeded}}
three: {{end: failed}}
"""
    assert codes(states) == []


# Names, templates, expressions, rules, tools -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "code", "where"),
    [
        ("ask: '{{ nobody }}'", "unknown_name", "/ask"),
        ("ask: '{{ turns.two }}'", "unknown_name", "/ask"),
        ("ask: '{{ tools.one }}'", "unknown_name", "/ask"),
        ("ask: '{{ signals.done }}'", "unknown_name", "/ask"),
        ("ask: '{{ visits.done }}'", "unknown_name", "/ask"),
        ("ask: '{{ output.total }}'", "unknown_name", "/ask"),
        ("ask: '{{ nobody | default(1) }}'", "unknown_name", "/ask"),
        ("ask: '{% if %}'", "bad_template", "/ask"),
        ("ask: Hi, rules: [{id: r, check: 'output.total ==', reason: x}]", "bad_expression", "/rules/0/check"),
        ("ask: Hi, rules: [{id: r, check: 'turns.two.x', reason: x}]", "unknown_name", "/rules/0/check"),
        ("ask: Hi, rules: [{id: r, call: ibam}]", "unknown_rule", "/rules/0/call"),
        ("ask: Hi, rules: [{id: r, call: iban}, {id: r, call: iban}]", "rule_twice", "/rules/1/id"),
        ("ask: Hi, tools: [loop]", "unknown_tool", "/tools/0"),
    ],
)
def test_an_unknown_name_is_an_error_at_its_place(field: str, code: str, where: str) -> None:
    states = f"one: {{{field}, output: {FREE}, next: done}}\ndone: {{end: succeeded}}"
    assert codes(states) == [(code, f"/states/one{where}")]


@pytest.mark.parametrize(
    "ask",
    [
        "{{ input.x }} {{ turns.one.total }} {{ visits.one | length }} {{ turns }}",
        "{{ tools.act }} {{ errors.act.kind }} {{ visits.act }} {{ last_tool.result }}",
        "{{ signals.pause.action }} {{ visits.pause }}",
        "{% for turn in visits.one %}{{ turn.total }}{% endfor %}",
    ],
)
def test_every_name_of_the_contract_is_known(ask: str) -> None:
    states = f"""
one: {{ask: "{ask}", output: {FREE}, next: act}}
act: {{tool: look, arguments: {{q: "turns.one.total"}}, next: {{ok: pause}}}}
pause: {{wait: {{signal: s, show: "tools.act"}}, next: {{go: done}}}}
done: {{end: succeeded, result: {{a: "signals.pause", b: "visits.one.size()"}}}}
"""
    assert codes(states) == []


@pytest.mark.parametrize(
    ("states", "where"),
    [
        ("one: {tool: look, arguments: {q: '1 +'}, next: {ok: done}}", "/states/one/arguments/q"),
        ("one: {tool: look, arguments: '1 +', next: {ok: done}}", "/states/one/arguments"),
        ("one: {wait: {signal: s, show: '1 +'}, next: {go: done}}", "/states/one/wait/show"),
        (
            "one: {tool: look, next: {ok: done, error: bad}}\nbad: {end: failed, result: {x: '1 +'}}",
            "/states/bad/result/x",
        ),
    ],
)
def test_a_bad_expression_is_found_in_any_field(states: str, where: str) -> None:
    assert codes(f"{states}\ndone: {{end: succeeded}}") == [("bad_expression", where)]


def test_the_system_prompt_may_read_only_the_input() -> None:
    assert codes("done: {end: succeeded}", "system: 'For {{ input.team }}.'") == []
    assert codes("done: {end: succeeded}", "system: '{{ turns.x }}'") == [("unknown_name", "/system")]


def test_a_bad_schema_is_an_error_at_its_keyword() -> None:
    turn = "one: {ask: Hi, output: {properties: {x: {minimum: low}}}, next: two}"
    wait = "two: {wait: {signal: s, schema: {pattern: '('}}, next: {go: done}}"
    assert set(codes(f"{turn}\n{wait}\ndone: {{end: succeeded}}", "input: {type: objekt}")) >= {
        ("bad_schema", "/input/type"),
        ("bad_schema", "/states/one/output/properties/x/minimum"),
        ("bad_schema", "/states/two/wait/schema/pattern"),
    }


def test_an_unknown_tool_has_a_remedy() -> None:
    near, far = (
        findings_of(document(f"one: {{tool: {name}, next: {{ok: done}}}}\ndone: {{end: succeeded}}"))[0]
        for name in ("looc", "zzz")
    )
    assert "`look`" in near.remedy
    assert "@stepladder.tool" in far.remedy


# The choice of a tool ------------------------------------------------------------------------------------------------

CHOICE = f"""
act: {{ask: Hi, output: {words("stop")}, tools: [look, save], next: {{look: call, save: call, stop: done}}}}
call: {{tool: {{from: act}}, next: {{ok: act, error: act}}}}
done: {{end: succeeded}}
"""


def test_a_choice_has_the_tools_names_and_arguments() -> None:
    machine = machine_of(document(CHOICE))
    act, call = machine.states["act"], machine.states["call"]
    assert isinstance(act, AskState)
    assert isinstance(call, ToolState)
    assert act.schema.violations({"action": "look", "arguments": {"q": "x"}}) == ()
    assert act.schema.violations({"action": "look", "arguments": {}})
    assert list(call.tools) == ["look", "save"]
    assert (call.chosen_by, call.arguments) == ("act", None)


@pytest.mark.parametrize(
    ("old", "new", "code", "where"),
    [
        ("from: act", "from: done", "no_choice", "/states/call/tool"),
        ("from: act", "from: nowhere", "no_choice", "/states/call/tool"),
        ("from: act", "from: call", "no_choice", "/states/call/tool"),
        (words("stop"), words("stop", "look"), "action_twice", "/states/act/tools/0"),
        ("tools: [look, save]", "tools: [look, save, save]", "action_twice", "/states/act/tools/2"),
        (
            words("stop"),
            "{properties: {action: {type: string}}, required: [action]}",
            "open_action",
            "/states/act/output",
        ),
        (words("stop"), FREE, "optional_action", "/states/act/output"),
        (", save: call", ", save: call, other: call", "impossible_word", "/states/act/next/other"),
    ],
)
def test_an_impossible_choice_is_an_error(old: str, new: str, code: str, where: str) -> None:
    assert (code, where) in codes(CHOICE.replace(old, new))


def test_a_tools_schema_is_checked_where_a_turn_names_it() -> None:
    kit = Kit({"look": tool("look", parameters={"type": "objekt"}), "save": tool("save")})
    assert codes(CHOICE, kit=kit)[0] == ("bad_schema", "/states/act/tools")


# What cannot be undone -----------------------------------------------------------------------------------------------

PAYMENT = f"""
one: {{ask: Hi, output: {words("go")}, next: {{go: confirm}}}}
confirm:
  wait: {{signal: s, schema: {words("yes", "no_")}, timeout_s: 60}}
  next: {{yes: pay, no_: done, timeout: done}}
pay: {{tool: pay, arguments: {{sum: "1"}}, effect: irreversible, next: {{ok: done, error: confirm}}}}
done: {{end: succeeded}}
"""


def test_a_wait_freezes_the_irreversible_tool_behind_it() -> None:
    wait = machine_of(document(PAYMENT)).states["confirm"]
    assert isinstance(wait, WaitState)
    assert wait.freezes == ("pay",)


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ("go: confirm", "go: pay", "/states/one/next/go"),
        ("timeout: done", "timeout: pay", "/states/confirm/next/timeout"),
        ("error: confirm", "error: pay", "/states/pay/next/error"),
        ("{go: confirm}", "{go: confirm, exhausted: pay}, max_visits: 1", "/states/one/next/exhausted"),
        ("{go: confirm}", "{go: confirm}, on_failure: {loop: pay}", "/states/one/on_failure/loop"),
        (
            "ok: done, error: confirm",
            "ok: done, exhausted: pay}, max_visits: 1, next_: {",
            "/states/pay/next/exhausted",
        ),
    ],
)
def test_only_a_waits_own_action_leads_to_an_irreversible_tool(old: str, new: str, where: str) -> None:
    text = PAYMENT.replace(old, new).replace(", next_: {}", "")
    assert ("unconfirmed", where) in codes(text)
    assert ("unconfirmed", "/start") in codes(PAYMENT, "start: pay")


def test_one_irreversible_tool_in_a_choice_is_enough() -> None:
    """The state runs whichever tool the turn chose, so that one irreversible tool among them is enough."""
    found = codes(CHOICE.replace("[look, save]", "[look, save, pay]").replace("save: call", "save: call, pay: call"))
    assert found == [
        ("unconfirmed", "/states/act/next/look"),
        ("unconfirmed", "/states/act/next/save"),
        ("unconfirmed", "/states/act/next/pay"),
    ]


def test_a_chosen_irreversible_tool_may_follow_a_wait() -> None:
    states = f"""
act: {{ask: Hi, output: {words("stop")}, tools: [look, pay], next: {{look: call, pay: confirm, stop: done}}}}
call: {{tool: look, next: {{ok: act}}}}
confirm: {{wait: {{signal: s}}, next: {{yes: pay, not_now: act}}}}
pay: {{tool: {{from: act}}, next: {{ok: act, error: act}}}}
done: {{end: succeeded}}
"""
    assert codes(states) == []


# The whole -----------------------------------------------------------------------------------------------------------

TEN = """
one:
  ask: "{{ turns.nobody }} {% if %}"
  output: {type: object, properties: {action: {enum: [go, timeout]}}, required: [action]}
  rules: [{id: r, check: "1 +", reason: x}, {id: r, call: nobody}]
  next: {go: two, timeout: two, never: two}
two: {tool: nobody, arguments: {q: "turns.two"}, next: {done: done}}
three: {wait: {signal: s, schema: {type: objekt}, timeout_s: 5}, next: {go: pay}}
four: {ask: Hi, next: done}
pay: {tool: pay, effect: read, next: {ok: pay}}
done: {end: succeeded, result: "signals.one"}
"""


def test_all_errors_of_a_document_are_reported() -> None:
    assert compile_workflow(loaded(document(TEN)).document, KIT).machine is None
    found = {code: {where for other, where in codes(TEN) if other == code} for code, _ in codes(TEN)}
    assert found == {
        "bad_template": {"/states/one/ask"},
        "reserved_action": {"/states/one/output"},
        "bad_expression": {"/states/one/rules/0/check"},
        "rule_twice": {"/states/one/rules/1/id"},
        "unknown_rule": {"/states/one/rules/1/call"},
        "impossible_word": {"/states/one/next/never", "/states/two/next/done"},
        "unknown_tool": {"/states/two/tool"},
        "unknown_name": {"/states/two/arguments/q", "/states/done/result"},
        "no_edge": {"/states/two/next", "/states/three/next"},
        "bad_schema": {"/states/three/wait/schema/type"},
        "effect_differs": {"/states/pay/effect"},
        "unconfirmed": {"/states/pay/next/ok"},
        "no_output": {"/states/four"},
        "unreachable_state": {"/states/four", "/states/three", "/states/pay"},
        "no_end": {"/states/three", "/states/pay"},
    }


def test_a_states_engine_settings_win_over_the_workflows() -> None:
    head = """
model: big
decoding: prompt
sampling: {temperature: 0, seed: 7}
max_completion_tokens: 64
retry: {attempts: 5}
"""
    states = f"""
one:
  {{ask: Hi, output: {FREE}, next: two, sampling: {{temperature: 1}}, decoding: strict, stream: false,
    retry: {{transport: 0}}}}
two: {{ask: Hi, output: {FREE}, next: done, history: none, model: small}}
done: {{end: succeeded}}
"""
    machine = machine_of(document(states, head))
    one, two = machine.ask("one"), machine.ask("two")
    assert (one.model, one.strict, one.stream, one.max_completion_tokens) == ("big", True, False, 64)
    assert (two.model, two.strict, two.stream, two.history) == ("small", False, True, 0)
    assert one.sampling == {"temperature": 1, "seed": 7}
    assert (one.attempts, one.transport) == (3, 0)  # a retry of its own replaces the workflow's as a whole
    assert (two.attempts, two.transport) == (5, None)


def test_defaults() -> None:
    machine = machine_of(document(f"one: {{ask: Hi, output: {FREE}, next: done}}\ndone: {{end: succeeded}}"))
    one = machine.ask("one")
    assert (one.attempts, one.transport, one.max_completion_tokens, one.history) == (3, None, 512, "all")
    assert (one.strict, one.stream, one.loop, one.max_visits) == (True, True, True, None)
    assert (machine.max_turns, machine.token_budget, machine.deadline_s) == (50, None, None)
    assert machine.loop is not None
    assert (machine.loop.repeats, machine.loop.stale) == (2, 5)
    turn: Any = machine.document.states["one"]
    assert one.schema.schema is turn.output  # the one schema of prompt, decoder and validator
    assert machine.hash == machine.document.hash()
    assert machine_of(document("done: {end: succeeded}", "limits: {loop: 'off'}")).loop is None


def test_a_compiled_state_has_the_documents_edges() -> None:
    states = f"""
one: {{ask: Hi, output: {words("go")}, next: {{go: two, exhausted: done}}, max_visits: 2, on_failure: {{loop: done}}}}
two: {{ask: Hi, output: {FREE}, next: {{always: done, exhausted: one}}, max_visits: 2}}
done: {{end: succeeded}}
"""
    machine = machine_of(document(states))
    assert targets(machine.states["one"]) == [("go", "two"), ("exhausted", "done"), ("loop", "done")]
    assert targets(machine.states["two"]) == [("always", "done"), ("exhausted", "one")]
    assert machine.ask("one").on_failure == {Failure.LOOP: "done"}


def test_a_machine_gives_only_its_own_turns() -> None:
    machine = machine_of(document("done: {end: succeeded}"))
    with pytest.raises(TypeError, match="done"):
        machine.ask("done")
    with pytest.raises(KeyError):
        machine.ask("nobody")


def test_a_tool_without_arguments_gets_an_empty_map() -> None:
    machine = machine_of(document("one: {tool: look, next: {ok: done}}\ndone: {end: succeeded}"))
    state = machine.states["one"]
    assert isinstance(state, ToolState)
    assert (state.arguments, state.irreversible) == ({}, False)
    assert KIT.tools["pay"].effect is Effect.IRREVERSIBLE
