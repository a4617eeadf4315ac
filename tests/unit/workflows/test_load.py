from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepladder.schemas.finding import Finding
from stepladder.schemas.source import Source
from stepladder.workflows.load import Loaded, load_document, placed
from support.machines import document, loaded

MANY = """\
nmae: bill
version: 1
start: one
limits: {max_turn: 3, loop: {repeat: 2}}
sampling: {temprature: 0}
states:
  one:
    ask: Hi
    outptu: {type: object}
    retry: {attempt: 3}
    rules: [{id: r, chekc: "true"}]
    next: [two]
  two:
    wiat: {signal: go}
    next: {go: three}
  three:
    tool: {form: one}
    next: {ok: Four}
  Four: {end: done}
  five: {ask: Hi, end: failed, next: one}
"""

FOUND = [
    (1, "missing_field", "", ""),
    (1, "unknown_field", "/nmae", "name"),
    (4, "unknown_field", "/limits/max_turn", "max_turns"),
    (4, "unknown_field", "/limits/loop/repeat", "repeats"),
    (5, "unknown_field", "/sampling/temprature", "temperature"),
    (9, "unknown_field", "/states/one/outptu", "output"),
    (10, "unknown_field", "/states/one/retry/attempt", "attempts"),
    (11, "unknown_field", "/states/one/rules/0/chekc", "check"),
    (12, "bad_value", "/states/one/next", ""),
    (14, "state_kind", "/states/two", "wait"),
    (17, "missing_field", "/states/three/tool", ""),
    (17, "unknown_field", "/states/three/tool/form", "from"),
    (18, "bad_name", "/states/three/next/ok", ""),
    (19, "bad_name", "/states/Four", ""),
    (19, "bad_value", "/states/Four/end", ""),
    (20, "state_kind", "/states/five", ""),
]
"""The line, the code, the pointer, and the name that was meant."""


def findings(text: str) -> tuple[Finding, ...]:
    found = load_document(text)
    assert not isinstance(found, Loaded), "the document was taken"
    return found


def only(text: str) -> Finding:
    (found,) = findings(text)
    return found


def test_every_mistake_is_found_at_once_with_its_line_and_remedy() -> None:
    assert [(f.line, f.code, f.pointer) for f in findings(MANY)] == [
        (line, code, where) for line, code, where, _ in FOUND
    ]
    for finding, (*_, meant) in zip(findings(MANY), FOUND, strict=True):
        assert finding.remedy
        assert f"`{meant}`" in finding.remedy or not meant


@pytest.mark.parametrize(
    ("states", "pointer", "fields"),
    [
        ("one: {end: failed, zzz: 1}", "/states/one/zzz", ("end", "result")),
        ("one: {wait: {signal: go, zzz: 1}, next: {go: one}}", "/states/one/wait/zzz", ("schema", "timeout_s")),
        ("one: {tool: {from: one, zzz: 1}, next: {ok: one}}", "/states/one/tool/zzz", ("from",)),
        ("one: {ask: Hi, <<: 1, next: one}", "/states/one/<<", ("on_failure",)),
    ],
)
def test_an_unknown_field_that_resembles_none_is_told_what_may_stand_there(
    states: str, pointer: str, fields: tuple[str, ...]
) -> None:
    found = only(document(states))
    assert (found.code, found.pointer) == ("unknown_field", pointer)
    assert all(field in found.remedy for field in fields)


@pytest.mark.parametrize(
    ("value", "shown"), [("1", "1 "), ("0", "0 "), ("true", "true "), ("1.5", "1.5 "), ("[a]", "a list "), ("{}", None)]
)
def test_a_value_is_shown_as_it_stands_in_the_document(value: str, shown: str | None) -> None:
    text = document(f"one: {{ask: Hi, output: {value}, next: one}}")
    if shown is None:
        loaded(text)
    else:
        assert only(text).message.startswith(shown)


def test_a_value_of_great_length_is_cut() -> None:
    assert len(only(document(f"one: {{end: {'x' * 1000}}}")).message) < 200


@pytest.mark.parametrize("text", ["[]", "just text", "3", "null"])
def test_a_document_is_a_map(text: str) -> None:
    assert only(text).code == "not_a_map"


@pytest.mark.parametrize(
    "head", ["name: Bad_Name", "name: ''", "version: 0", "version: '1'", "version: 1.5", "start: A"]
)
def test_a_head_that_cannot_be_used_is_refused(head: str) -> None:
    found = only(document("one: {end: failed}", head))
    assert found.pointer == "/" + head.split(":")[0]
    assert found.line is not None


def test_what_is_wrong_with_the_text_comes_before_what_is_wrong_with_the_shape() -> None:
    assert [f.code for f in findings("name: a\nname: b\nbogus: 1\n")] == ["duplicate_key"]


def test_yaml_and_json_keep_their_places() -> None:
    found = loaded(document("one: {end: succeeded}"))
    assert found.source.place("/states/one/end")[0] == 5


def test_findings_stand_in_the_order_of_the_text() -> None:
    source = Source(None, {"": (1, 1), "/b": (2, 1), "/a": (3, 1)})
    found = placed((Finding("x", "/a", ""), Finding("y", "/b/c", ""), Finding("z", "", "")), source)
    assert [(f.code, f.line) for f in found] == [("z", 1), ("y", 2), ("x", 3)]


WORDS = [
    *("name", "version", "start", "states", "limits", "loop", "ask", "tool", "from", "wait", "end", "next", "rules"),
    *("retry", "sampling", "output", "on_failure", "history", "one", "two", "<ask>", "<map>", "[key]"),
]


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=4),
        max_leaves=15,
    )
)
def test_any_plain_data_is_a_document_or_a_list_of_findings(value: object) -> None:
    found = load_document(json.dumps(value))
    assert isinstance(found, Loaded) or all(isinstance(finding, Finding) for finding in found)
