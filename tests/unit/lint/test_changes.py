"""Changes to a document by paths."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepladder.lint.changes import recompiled, steps_of
from support.machines import KIT, document, loaded

TEXT = document("""
ask_one:
  ask: "One?"
  output: {type: object, properties: {n: {type: integer}}, required: [n], additionalProperties: false}
  rules:
    - {id: small, check: "output.n < 10", pointer: /n, reason: must be small}
    - {id: large, check: "output.n > 1", pointer: /n, reason: must be large}
  next: done
done: {end: succeeded}
""")
DEFINITION = loaded(TEXT).document.definition()


def changed(changes: Any) -> Any:
    compiled = recompiled(DEFINITION, changes, KIT)
    assert compiled.machine is not None, compiled.findings
    return compiled.machine.document.definition()


@pytest.mark.parametrize(
    ("path", "steps"),
    [
        ("states.one.ask", ["states", "one", "ask"]),
        (r"states.one.output.properties.a\.b.type", ["states", "one", "output", "properties", "a.b", "type"]),
        ("/states/one/output/properties/a~1b", ["states", "one", "output", "properties", "a/b"]),
    ],
)
def test_a_path_has_dots_or_is_a_json_pointer(path: str, steps: list[str]) -> None:
    assert steps_of(path) == steps


def test_values_are_set_in_maps_and_lists() -> None:
    found = changed({"states.ask_one.rules.0.check": "output.n < 5", "sampling.seed": 3, "limits.max_turns": 2})
    assert found["states"]["ask_one"]["rules"][0]["check"] == "output.n < 5"
    assert (found["sampling"], found["limits"]) == ({"seed": 3}, {"max_turns": 2})


def test_null_removes_and_the_index_after_the_last_appends() -> None:
    found = changed({"states.ask_one.rules.0": None})
    assert [rule["id"] for rule in found["states"]["ask_one"]["rules"]] == ["large"]
    third = {"id": "even", "check": "output.n % 2 == 0", "reason": "must be even"}
    found = changed({"states.ask_one.rules.2": third})
    assert [rule["id"] for rule in found["states"]["ask_one"]["rules"]] == ["small", "large", "even"]
    assert "rules" not in changed({"states.ask_one.rules": None})["states"]["ask_one"]


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("states.ask_on.ask", "did you mean `ask_one`"),
        ("states.ask_one.rules.2.check", "2 items"),
        ("states.ask_one.rules.first.check", "counted from 0"),
        ("states.ask_one.ask.text", "no field `text`"),
        ("name", "cannot be changed"),
        ("version", "cannot be changed"),
        ("states..ask", "names no place"),
        ("", "names no place"),
    ],
)
def test_a_bad_path_has_a_reason(path: str, words: str) -> None:
    compiled = recompiled(DEFINITION, {path: "x"}, KIT)
    assert compiled.machine is None
    assert words in str(compiled.errors[0])


def test_a_changed_document_is_checked() -> None:
    compiled = recompiled(DEFINITION, {"states.ask_one.next": "nowhere", "sampling.heat": 1}, KIT)
    assert compiled.machine is None
    assert "heat" in str(compiled.errors[0])


@given(st.dictionaries(st.text(max_size=30), st.none() | st.integers() | st.text(max_size=5), max_size=4))
def test_the_definition_itself_is_never_changed(changes: dict[str, Any]) -> None:
    before = copy.deepcopy(DEFINITION)
    recompiled(DEFINITION, changes, KIT)
    assert before == DEFINITION
