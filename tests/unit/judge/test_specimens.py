from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepladder.judge.expectations import Difference, differences, read_expect, told
from stepladder.judge.specimens import LARGEST_KEPT, Case, Specimens
from stepladder.schemas.answer import Lost, Received
from stepladder.schemas.job import JobStatus
from stepladder.schemas.outcomes import CAUSES, Outcome
from stepladder.schemas.specimen import Expect
from stepladder.schemas.tool import Kit
from stepladder.workflows.job import Job
from stepladder.workflows.names import names_of
from support.machines import JOB, NOW
from support.specimens import LINES

if TYPE_CHECKING:
    from stepladder.schemas.finding import Finding


def must_be_short(output: Any, **_: Any) -> str | None:
    return None if len(output["t"]) < 3 else "must be short"


KIT = Kit({}, {"short": must_be_short})


def line(**fields: Any) -> dict[str, Any]:
    body = {"choices": [{"message": {"content": '{"t": "abc"}'}, "finish_reason": "stop"}]}
    return {"id": "one", "schema": {"type": "object"}, "response": {"status": 200, "body": body}} | fields


def read(value: Any, kit: Kit = KIT) -> Case | tuple[Finding, ...]:
    return Specimens(kit).read(value if isinstance(value, bytes) else json.dumps(value).encode())


def case(value: Any, kit: Kit = KIT) -> Case:
    found = read(value, kit)
    assert isinstance(found, Case), found
    return found


def faults(value: Any) -> list[tuple[str, str]]:
    found = read(value)
    assert isinstance(found, tuple)
    return [(finding.pointer, f"{finding.message}; {finding.remedy}") for finding in found]


def test_missing_fields_have_the_defaults_of_a_document_and_a_new_job() -> None:
    found = case(line())
    rubric = found.criteria
    assert (rubric.max_completion_tokens, rubric.schema_known_bad, rubric.rules) == (512, False, ())
    assert found.names == names_of(Job(JOB, JOB, {}, NOW, status=JobStatus.RUNNING))
    nothing = {"rules": None, "max_completion_tokens": None, "schema_known_bad": None, "expect": None}
    assert case(line(**nothing)).criteria.max_completion_tokens == 512


def test_rules_read_the_names_that_the_line_gives() -> None:
    check = "output.t == turns.ask.t && output.t == input && last_tool.tool == 'look' && visits.ask[0] == 1"
    rule = {"id": "carried", "check": check, "reason": "must be carried"}
    names = {"turns": {"ask": {"t": "abc"}}, "last_tool": {"tool": "look"}, "visits": {"ask": [1]}}
    assert case(line(rules=[rule], input="abc", **names)).judge().ok
    broken = case(line(rules=[rule | {"check": "output.t == turns.ask.t"}])).judge()
    assert (broken.cause, broken.errors[0].reason) == ("carried", "could not be checked: turns.ask is not known")


def test_registered_rules_are_called_and_unknown_ones_are_findings() -> None:
    rules = [{"id": "brief", "call": "short", "pointer": "/t"}]
    verdict = told("one", case(line(rules=rules)).judge())
    assert verdict["errors"] == [{"pointer": "/t", "reason": "must be short", "source": "brief"}]
    [(where, said)] = faults(line(rules=[{"id": "brief", "call": "shord"}]))
    assert (where, "did you mean `short`?" in said) == ("/rules/0/call", True)


def test_a_rule_that_cannot_be_compiled_is_broken_by_every_answer_that_reaches_it() -> None:
    rules = [{"id": "sum", "check": "output.t = 1", "reason": "x"}, {"id": "brief", "call": "short"}]
    verdict = case(line(rules=rules)).judge()
    assert [(error.source, error.reason[:53]) for error in verdict.errors] == [
        ("sum", "could not be checked: this expression cannot be used:"),
        ("brief", "must be short"),
    ]
    unread = case(line(rules=rules, response={"transport": "timeout"})).judge()
    assert unread.cause == "timeout"


def test_a_body_is_its_exact_bytes_or_parsed_json() -> None:
    def body(value: Any, **more: Any) -> Any:
        return case(line(response={"status": 200, "body": value, "headers": {"a": "b"}, **more})).arrival

    assert body("dåta: \n") == Received(200, "dåta: \n".encode())
    assert body(None) == Received(200, b"null")
    assert body("\udcff\udc80") == Received(200, b"\xff\x80")
    assert body("\ud83d") == Received(200, b"\xed\xa0\xbd")
    assert body({"a": "\ud83d"}) == Received(200, b'{"a": "\\ud83d"}')
    assert body("", streamed=True) == Received(200, b"", streamed=True)
    lost = case(line(response={"transport": "disconnected", "status": 200, "body": "data"})).arrival
    assert isinstance(lost, Lost)
    assert (lost.cause, lost.status, lost.body) == ("disconnected", 200, b"data")


@pytest.mark.parametrize(
    ("value", "where", "says"),
    [
        (b"garbage", "", "this is not JSON: Expecting value (character 1); write {"),
        (b'{"id": 1', "", "this is not JSON: Expecting ',' delimiter (character 9)"),
        (b"\xff", "", "this is not UTF-8 text: byte 1; save the file as UTF-8"),
        (b"[1]", "", "this is JSON, and a list; write one object per line"),
        (b"null", "", "this is JSON, and not an object"),
        (b'{"id": 1, "\\u0069d": 2}', "", '"id" occurs twice'),
        (b'{"id": NaN}', "", "NaN is not JSON"),
        (b'{"id": 1e999}', "", "1e999 cannot be stored"),
        (b'{"id": ' + b"9" * 5000 + b"}", "", "(5000 characters) cannot be stored"),
        (b"[" * 100_000, "", "this is nested too deep; give the body as a string"),
        ({}, "", "the field `id` is missing"),
        (line(id=1.5), "/id", "an id is a text or a whole number"),
        (line(rule=[]), "", "there is no field `rule` here; did you mean `rules`?"),
        (line(expected={}), "", "did you mean `expect`?"),
        (line(max_completion_tokens="9"), "/max_completion_tokens", "'9' is not valid here"),
        (line(response={"status": 200}), "/response", 'a response is {"status": 200, "body": ...}, or {"transport"'),
        (line(response={"status": "200", "body": ""}), "/response/status", "'200' is not valid here"),
        (line(response={"transport": "tiemout"}), "/response", "`tiemout` is not a cause of `transport`; causes are"),
        (line(response={"transport": "budget"}), "/response", "`budget` is not a cause of `transport`"),
        (line(rules=[{"id": "a", "check": "true"}]), "/rules/0", "a rule with `check` needs a `reason`"),
        (line(rules=[{"id": "a", "chek": "true"}]), "/rules/0/chek", "did you mean `check`?"),
        (line(rules=[{"id": "a", "call": "short"}] * 2), "/rules/1/id", "the rule id `a` occurs twice"),
    ],
)  # fmt: skip
def test_a_line_that_cannot_be_used_is_told_where_and_why(value: Any, where: str, says: str) -> None:
    found = faults(value)
    assert [place for place, said in found if says in said] == [where], found


def test_every_cause_of_transport_can_be_told() -> None:
    for cause in CAUSES[Outcome.TRANSPORT]:
        verdict = case(line(response={"transport": cause.value})).judge()
        assert (verdict.outcome, verdict.cause) == (Outcome.TRANSPORT, cause)


BAD_SCHEMAS: list[Any] = [
    {"pattern": "(["},
    {"$ref": "https://example.com/other.json"},
    {"$ref": "#/$defs/none"},
    {"$ref": "#"},
    {"type": "text"},
    {"$schema": "https://example.com/our-own-draft"},
    {"items": [{}]},
    7,
]


@pytest.mark.parametrize("schema", BAD_SCHEMAS, ids=str)
def test_a_schema_that_cannot_be_used_is_never_blamed_on_the_model(schema: Any) -> None:
    choice = {"message": {"content": "{}"}, "finish_reason": "stop"}
    cut, fenced = {"finish_reason": "length"}, {"message": {"content": "```json"}}
    for change in ({}, cut, fenced, {"message": {"content": None}}, {"message": {"content": None, "refusal": "No"}}):
        found = read(line(schema=schema, response={"status": 200, "body": {"choices": [choice | change]}}))
        assert isinstance(found, tuple), found
        assert {finding.pointer.split("/")[1] for finding in found} == {"schema"}


def test_an_engines_refusal_is_judged_whatever_the_schema() -> None:
    bad = BAD_SCHEMAS[0]
    refused = {"status": 400, "body": {"error": {"message": "Failed to transform json schema into a grammar"}}}
    assert case(line(schema=bad, response=refused)).judge().outcome is Outcome.SCHEMA_REJECTED
    assert case(line(schema=bad, response={"transport": "timeout"})).judge().outcome is Outcome.TRANSPORT


@pytest.mark.parametrize("draft", ["draft-04", "draft-06", "draft-07", "draft/2019-09", "draft/2020-12"])
def test_an_answer_is_judged_by_the_draft_that_its_schema_names(draft: str) -> None:
    schema = {"$schema": f"http://json-schema.org/{draft}/schema#", "properties": {"t": {"enum": ["abc"]}}}
    assert case(line(schema=schema)).judge().outcome is Outcome.VALID
    schema["properties"] = {"t": {"type": "integer"}}
    assert case(line(schema=schema)).judge().cause == "type"


def test_repeated_schemas_and_rules_are_compiled_once_unless_huge() -> None:
    def compiled(**fields: Any) -> list[int]:
        reader = Specimens(KIT)
        cases = [reader.read(json.dumps(line(id=n, **fields)).encode()) for n in range(3)]
        assert all(isinstance(one, Case) for one in cases)
        rubrics = [one.criteria for one in cases if isinstance(one, Case)]
        return [len({id(rubric.schema) for rubric in rubrics}), len({id(rubric.rules) for rubric in rubrics})]

    rules = [{"id": f"r{n}", "check": "true", "reason": "x" * 1000} for n in range(100)]
    assert compiled(schema={"maximum": 1}, rules=rules[:1]) == [1, 1]
    assert compiled(schema={"const": "x" * LARGEST_KEPT}) == [3, 1]
    long = [rule | {"check": "'" + "x" * (LARGEST_KEPT // 50) + "' != ''"} for rule in rules]
    assert compiled(rules=long) == [1, 3]


def expecting(expect: Any, **fields: Any) -> list[Difference]:
    found = case(line(expect=expect, **fields))
    expected = read_expect(found.expect)
    assert isinstance(expected, Expect), expected
    return list(differences(expected, told(found.id, found.judge())))


def test_only_what_is_expected_is_compared_and_numbers_as_json_has_them() -> None:
    body = '{"choices": [{"message": {"content": "{\\"n\\": 36}"}, "finish_reason": "stop"}]}'
    answer = {"response": {"status": 200, "body": body}}
    assert expecting({"output": {"n": 36.0}}, **answer) == []
    assert expecting({"output": {"n": True}}, **answer) == [Difference("output", {"n": True}, {"n": 36})]
    assert expecting({"outcome": "valid", "cause": None, "pointer": None, "errors": []}, **answer) == []
    assert expecting({"outcome": "empty", "rungs": {"schema": "failed"}}, **answer) == [
        Difference("outcome", "empty", "valid"),
        Difference("rungs.schema", "failed", "passed"),
    ]
    assert expecting({"rungs": ["passed", "passed", "passed", "not_reached"]}, **answer) == [
        Difference("rungs.semantic", "not_reached", "passed")
    ]


def test_errors_are_compared_one_by_one_by_as_much_as_is_expected_of_them() -> None:
    rules = [{"id": "brief", "call": "short", "pointer": "/t"}, {"id": "no", "check": "false", "reason": "never"}]
    assert expecting({"errors": [{"source": "brief"}, {"reason": "never"}], "pointer": "/t"}, rules=rules) == []
    [short] = expecting({"errors": [{"source": "brief"}]}, rules=rules)
    [other] = expecting({"errors": [{"source": "brief"}, {"reason": "ever"}]}, rules=rules)
    assert (short.field, other.field) == ("errors", "errors")
    assert expecting({"pointer": "/s"}, rules=rules) == [Difference("pointer", "/s", "/t")]


@pytest.mark.parametrize(
    ("value", "where"),
    [
        ({"outcome": "good"}, "/expect/outcome"),
        ({"caus": "budget"}, "/expect/caus"),
        ({"rungs": {"parse": "fell"}}, "/expect/rungs/parse"),
        ({"rungs": ["passed"]}, "/expect/rungs"),
        ({"id": "one"}, "/expect"),
        ([], "/expect"),
    ],
)
def test_an_expectation_that_says_nothing_or_nonsense_is_a_fault(value: Any, where: str) -> None:
    found = read_expect(value)
    assert isinstance(found, tuple)
    assert [finding.pointer for finding in found] == [where]


def test_a_verdict_as_it_is_told_is_an_expectation_of_itself() -> None:
    for text in LINES:
        found = case(text)
        verdict = told(found.id, found.judge())
        expected = read_expect(json.loads(json.dumps(verdict)))
        assert isinstance(expected, Expect), expected
        assert differences(expected, verdict) == ()


FIELDS = ("id", "schema", "rules", "response", "status", "body", "transport", "expect", "check", "reason", "input")
any_json: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=4),
    max_leaves=20,
)
READER = Specimens(KIT)


@given(st.binary(max_size=60) | any_json.map(lambda value: json.dumps(value).encode()))
def test_whatever_stands_on_a_line_nothing_is_raised(text: bytes) -> None:
    READER.read(text)


@given(st.sampled_from(FIELDS), any_json)
def test_whatever_stands_in_a_field_there_is_a_verdict_or_a_finding(name: str, value: Any) -> None:
    found = READER.read(json.dumps(line(**{name: value})).encode())
    if isinstance(found, Case):
        json.dumps(told(found.id, found.judge()))
    else:
        assert all(finding.message for finding in found)
