from __future__ import annotations

from typing import Any

import pytest

from stepladder.lint.actions import Actions, actions_of, with_tools
from stepladder.workflows.describe import followed, referenced
from support.machines import QUERY, tool
from support.schemas import compiled


def says(*words: object, required: bool = True) -> dict[str, Any]:
    """A schema of an object whose action is one of these words."""
    schema: dict[str, Any] = {"type": "object", "properties": {"action": {"enum": list(words)}}}
    return schema | ({"required": ["action"]} if required else {})


CONST = {"properties": {"action": {"const": "a"}}, "required": ["action"]}
FREE = {"properties": {"action": {"type": "string"}}, "required": ["action"]}
BARE = {"type": "object", "properties": {"total": {"type": "integer"}}}
REFERENCED = {"$ref": "#/$defs/A", "$defs": {"A": says("a", "b")}}
WORD_REFERENCED = {
    "properties": {"action": {"$ref": "#/$defs/Word"}},
    "required": ["action"],
    "$defs": {"Word": {"$ref": "#/$defs/Other"}, "Other": {"enum": ["a"]}},
}
OUTSIDE_AND_BRANCHES = says("a", "b") | {"anyOf": [{"required": ["x"]}, {"required": ["y"]}]}
NARROWED = {"properties": {"action": {"type": "string"}}, "required": ["action"], "oneOf": [says("a"), says("b")]}
RECURSIVE = {"anyOf": [says("a"), {"$ref": "#"}]}


@pytest.mark.parametrize(
    ("schema", "actions"),
    [
        ({}, Actions()),
        (True, Actions()),
        (BARE, Actions()),
        (says("a", "b"), Actions(("a", "b"), absent=False)),
        (says("a", required=False), Actions(("a",), absent=True)),
        (CONST, Actions(("a",), absent=False)),
        (FREE, Actions(open=True, absent=False)),
        ({"anyOf": [says("a"), says("b", "a")]}, Actions(("a", "b"), absent=False)),
        ({"oneOf": [says("a"), says("b")]}, Actions(("a", "b"), absent=False)),
        ({"anyOf": [says("a"), BARE]}, Actions(("a",), absent=True)),
        ({"anyOf": [says("a"), FREE]}, Actions(("a",), open=True, absent=False)),
        ({"allOf": [says("a", "b"), says("b", "c")]}, Actions(("b",), absent=False)),
        ({"allOf": [says("a", required=False), {"required": ["action"]}]}, Actions(("a",), absent=False)),
        ({"allOf": [FREE, says("a")]}, Actions(("a",), absent=False)),
        (REFERENCED, Actions(("a", "b"), absent=False)),
        (WORD_REFERENCED, Actions(("a",), absent=False)),
        (OUTSIDE_AND_BRANCHES, Actions(("a", "b"), absent=False)),
        (NARROWED, Actions(("a", "b"), absent=False)),
        (RECURSIVE, Actions(("a",), absent=True)),
    ],
)
def test_the_actions_of_an_output_are_read_from_its_schema(schema: Any, actions: Actions) -> None:
    assert actions_of(schema) == actions


@pytest.mark.parametrize("schema", [says(1, 2), {"properties": {"action": {"const": True}}, "required": ["action"]}])
def test_an_action_that_is_no_text_is_none(schema: Any) -> None:
    assert actions_of(schema).none
    assert actions_of(schema).absent


def test_words_beside_what_is_no_text_stay() -> None:
    assert actions_of(says("a", None)) == Actions(("a",), absent=True)


def test_a_reference_named_many_times_over_is_read_once() -> None:
    definitions: dict[str, Any] = {
        f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}, {"$ref": f"#/$defs/d{n + 1}"}]} for n in range(60)
    }
    definitions["d60"] = says("a")
    assert actions_of({"$ref": "#/$defs/d0", "$defs": definitions}) == Actions(("a",), absent=False)


def test_references_without_end_are_left_unread() -> None:
    definitions: dict[str, Any] = {f"d{n}": {"$ref": f"#/$defs/d{n + 1}"} for n in range(3000)}
    assert actions_of({"$ref": "#/$defs/d0", "$defs": definitions}).none


def test_a_union_may_name_many_references() -> None:
    definitions = {f"d{n}": says(f"w{n}") for n in range(500)}
    found = actions_of({"anyOf": [{"$ref": f"#/$defs/{name}"} for name in definitions], "$defs": definitions})
    assert len(found.words) == 500
    assert not found.absent


@pytest.mark.parametrize(
    ("reference", "target"),
    [
        ("#", {"a/b": {"c~d": [1, 2]}}),
        ("#/a~1b/c~0d/1", 2),
        ("#/a~1b/c~0d/2", None),
        ("#/a~1b/c~0d/-1", None),
        ("#/x", None),
        ("http://x/#/a~1b", None),
    ],
)
def test_a_local_reference_is_a_pointer(reference: str, target: Any) -> None:
    assert referenced(reference, {"a/b": {"c~d": [1, 2]}}) == target


def test_what_stands_beside_a_reference_holds_as_well() -> None:
    root = {"$defs": {"A": {"type": "string", "description": "of the type"}}}
    beside = {"$ref": "#/$defs/A", "description": "of the field"}
    assert followed(beside, root) == {"type": "string", "description": "of the field"}


def test_references_in_a_circle_end() -> None:
    root = {"$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}}}
    assert "$ref" in followed({"$ref": "#/$defs/A"}, root)


LOOK = tool("look", parameters=QUERY, description="Looks something up.")
SAVE = tool("save")


@pytest.mark.parametrize(
    "output",
    [
        None,
        says("stop"),
        {"anyOf": [says("stop"), says("wait")]},
        {"oneOf": [says("stop"), says("wait")]},
        {"$ref": "#/$defs/A", "$defs": {"A": says("stop")}},
        {"anyOf": [{"$ref": "#/$defs/A"}], "$defs": {"A": says("stop")}},
    ],
)
def test_a_turn_says_its_own_words_or_calls_a_tool_with_fitting_arguments(output: Any) -> None:
    schema = compiled(with_tools(output, [LOOK, SAVE]))
    words = {"look", "save"} | set(actions_of(output or {}).words)
    assert set(actions_of(schema.schema).words) == words
    assert not actions_of(schema.schema).absent
    assert schema.violations({"action": "look", "arguments": {"q": "x"}}) == ()
    assert schema.violations({"action": "save", "arguments": {"any": 1}}) == ()
    assert bool(schema.violations({"action": "stop"})) is (output is None)
    assert schema.violations({"action": "look"})
    assert schema.violations({"action": "look", "arguments": {"q": 1}})
    assert schema.violations({"action": "other", "arguments": {}})
    assert schema.violations({"action": "look", "arguments": {"q": "x"}, "more": 1})


def test_one_tool_alone_needs_no_branches() -> None:
    assert with_tools(None, [LOOK]) == {
        "type": "object",
        "properties": {"action": {"enum": ["look"], "description": "Looks something up."}, "arguments": QUERY},
        "required": ["action", "arguments"],
        "additionalProperties": False,
    }
