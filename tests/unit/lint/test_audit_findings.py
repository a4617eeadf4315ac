"""The audit of a document: each schema at its place, by who writes its values."""

from __future__ import annotations

from typing import Any

from stepladder.lint.backends.engines import Backend, Engine
from stepladder.lint.check import check_document
from stepladder.lint.compile import Compiled, compile_workflow
from stepladder.lint.schemas import Audit
from stepladder.schemas.finding import Severity
from stepladder.schemas.tool import Effect, Kit, Tool
from support.machines import document, loaded

UNIQUE = "{type: array, items: {enum: [a, b]}, maxItems: 2, uniqueItems: true}"
DONE = "\ndone: {end: succeeded}"


def turn(schema: str, more: str = "") -> str:
    output = f"{{type: object, properties: {{x: {schema}}}, additionalProperties: false}}"
    return f"one: {{ask: Hi, output: {output}, {more}next: done}}{DONE}"


def checked(states: str, head: str = "", audit: Audit | None = None) -> Compiled:
    return compile_workflow(loaded(document(states, head)).document, Kit({}, {}), audit or Audit())


def codes(compiled: Compiled) -> list[tuple[str, str, Severity]]:
    return [(finding.code, finding.pointer, finding.severity) for finding in compiled.findings]


def test_a_finding_has_its_place_and_line_in_the_document() -> None:
    text = document(turn("{type: string, maxlenght: 3}"))
    found = {(finding.code, finding.pointer): finding for finding in check_document(text, Kit({}, {})).findings}
    assert set(found) == {
        ("no_max_length", "/states/one/output/properties/x"),
        ("unknown_keyword", "/states/one/output/properties/x/maxlenght"),
    }
    assert {finding.line for finding in found.values()} == {5}


def test_not_enforced_is_an_error_only_under_a_decoder() -> None:
    where = "/states/one/output/properties/x/uniqueItems"
    assert checked(turn(UNIQUE)).machine is None
    assert codes(checked(turn(UNIQUE))) == [("not_enforced", where, Severity.ERROR)]
    for compiled in (checked(turn(UNIQUE, "decoding: prompt, ")), checked(turn(UNIQUE), "decoding: prompt")):
        assert compiled.machine is not None
        assert codes(compiled) == [("not_enforced", where, Severity.WARNING)]
    assert checked(turn(UNIQUE, "decoding: strict, "), "decoding: prompt").machine is None


def test_input_and_signals_need_no_bounds() -> None:
    signal = "{type: object, properties: {action: {enum: [go]}, by: {type: string, maxLenght: 9}}}"
    states = f"one: {{wait: {{signal: s, schema: {signal}}}, next: {{go: done}}}}{DONE}"
    compiled = checked(states, "input: {type: object, properties: {q: {type: string, pattern: x}}}")
    assert codes(compiled) == [
        ("unknown_keyword", "/states/one/wait/schema/properties/by/maxLenght", Severity.WARNING),
    ]


def test_arguments_of_a_chosen_tool_are_audited_where_it_is_named() -> None:
    parameters: dict[str, Any] = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}
    kit = Kit({"look": Tool("look", Effect.READ, parameters | {"additionalProperties": False}, dict)}, {})
    run = "call: {tool: {from: act}, next: {ok: done}}"
    text = document(f"act: {{ask: Hi, tools: [look], next: {{look: call}}}}\n{run}{DONE}")
    [finding] = compile_workflow(loaded(text).document, kit).findings
    assert (finding.code, finding.pointer) == ("no_max_length", "/states/act/tools/0")
    assert "`look`, /properties/q" in finding.message
    assert "signature" in finding.remedy
    called = document(f"call: {{tool: look, arguments: {{q: \"'a'\"}}, next: {{ok: done}}}}{DONE}")
    assert compile_workflow(loaded(called).document, kit).findings == ()


def test_hints_and_findings_on_an_engine_are_optional() -> None:
    states = turn("{type: integer, minimum: 0, maximum: 9, multipleOf: 3}").replace(
        "additional", "required: [x], additional"
    )
    assert codes(checked(states)) == []
    assert [code for code, *_ in codes(checked(states, audit=Audit(hints=True)))] == ["no_unknown"]
    xgrammar = Audit(Engine(Backend.XGRAMMAR, (0, 32, 0)))
    assert [code for code, *_ in codes(checked(states, audit=xgrammar))] == ["engine_refuses"]
    assert codes(checked(states, "decoding: prompt", xgrammar)) == []
