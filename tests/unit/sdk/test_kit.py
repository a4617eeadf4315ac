"""The decorators ``tool`` and ``rule``."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field, ValidationError

import stepladder
from stepladder.schemas.errors import BadInputError
from stepladder.schemas.tool import Effect, Tool
from stepladder.sdk import kit


@pytest.fixture(autouse=True)
def nothing_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kit, "_tools", {})
    monkeypatch.setattr(kit, "_rules", {})


def registered(function: Any, **options: Any) -> Tool:
    stepladder.tool("t", **{"effect": "read"} | options)(function)
    return kit.registered().tools["t"]


def parameters(function: Any) -> Any:
    return registered(function).parameters


class Plan(StrEnum):
    BASIC = "basic"
    LARGE = "large"


class Money(BaseModel):
    """An amount."""

    amount: int = Field(ge=0)
    currency: Literal["EUR", "USD"] = "EUR"


@dataclass
class Address:
    city: str
    owed: Money


class Tree(BaseModel):
    children: list[Tree] = []


def test_a_signature_becomes_one_closed_object() -> None:
    def pay(team: str, hours: int = 3, *, tags: list[str] | None = None) -> None: ...

    assert parameters(pay) == {
        "type": "object",
        "properties": {
            "team": {"type": "string"},
            "hours": {"type": "integer", "default": 3},
            "tags": {"anyOf": [{"items": {"type": "string"}, "type": "array"}, {"type": "null"}], "default": None},
        },
        "required": ["team"],
        "additionalProperties": False,
    }


def test_user_types_are_inlined_without_references() -> None:
    def pay(plan: Plan, to: Address, on: date, share: Annotated[float, Field(gt=0, le=1)]) -> None: ...

    schema = parameters(pay)
    assert "$ref" not in str(schema)
    assert "$defs" not in schema
    properties = schema["properties"]
    assert properties["plan"] == {"type": "string", "enum": ["basic", "large"]}
    assert properties["on"] == {"type": "string", "format": "date"}
    assert properties["share"] == {"type": "number", "exclusiveMinimum": 0, "maximum": 1}
    owed = properties["to"]["properties"]["owed"]
    assert owed["properties"]["amount"] == {"type": "integer", "minimum": 0}
    assert owed["description"] == "An amount."


def test_arguments_are_converted_and_the_function_is_unchanged() -> None:
    def pay(plan: Plan, on: date) -> tuple[Plan, int]:
        return plan, on.year

    tool = registered(pay)
    assert tool.function(plan="basic", on="2026-03-01") == (Plan.BASIC, 2026)
    with pytest.raises(ValidationError):
        tool.function(plan="huge", on="2026-03-01")
    assert pay(Plan.LARGE, date(2025, 1, 1)) == (Plan.LARGE, 2025)


def test_an_argument_may_have_any_python_name() -> None:
    def odd(_x: int, model_config: str, schema: str, json: bool, title: str, copy: int = 1) -> list[Any]:
        return [_x, model_config, schema, json, title, copy]

    tool = registered(odd)
    schema: Any = tool.parameters
    names = ["_x", "model_config", "schema", "json", "title", "copy"]
    assert list(schema["properties"]) == names
    assert tool.function(_x=1, model_config="m", schema="s", json=True, title="t") == [1, "m", "s", True, "t", 1]


def test_the_idempotency_key_is_not_a_model_argument() -> None:
    def pay(amount: int, idempotency_key: str) -> str:
        return f"{amount} {idempotency_key}"

    tool = registered(pay, effect="idempotent")
    assert tool.takes_key
    assert tool.parameters["properties"] == {"amount": {"type": "integer"}}


def test_decorator_options_and_docstring_are_kept() -> None:
    def pay() -> None:
        """Pays.

        At once.
        """

    tool = registered(pay, effect="irreversible", permissions=["money:out"])
    assert (tool.effect, tool.permissions) == (Effect.IRREVERSIBLE, ("money:out",))
    assert tool.description == "Pays.\n\nAt once."
    assert tool.parameters == {"type": "object", "properties": {}, "additionalProperties": False}


def returns(function: Any) -> Any:
    stepladder.tool(function.__name__, effect="read")(function)
    return kit.registered().tools[function.__name__].returns


def test_a_return_annotation_becomes_a_schema() -> None:
    def nothing_said(): ...  # type: ignore[no-untyped-def]  # as people write it

    def anything() -> Any: ...

    def some_object() -> dict:  # type: ignore[type-arg]  # as people write it
        return {}

    def hours() -> dict[str, int]:
        return {}

    def none() -> None: ...

    async def pair() -> tuple[str, int]:
        return "", 0

    def lock() -> asyncio.Lock:
        return asyncio.Lock()

    assert [returns(one) for one in (nothing_said, anything, lock)] == [{}, {}, {}]
    assert returns(some_object)["type"] == "object"
    assert returns(hours) == {"type": "object", "additionalProperties": {"type": "integer"}}
    assert returns(none) == {"type": "null"}
    assert [item["type"] for item in returns(pair)["prefixItems"]] == ["string", "integer"]


def test_a_returned_model_is_described_as_it_is_written() -> None:
    def pay() -> Money:
        return Money(amount=0)

    def grow() -> Tree:
        return Tree()

    schema = returns(pay)
    assert schema["required"] == ["amount"]
    assert schema["properties"]["amount"]["minimum"] == 0
    assert "Tree" in returns(grow)["$defs"], "a result may hold itself"


def test_a_timeout_is_in_seconds_and_may_be_0() -> None:
    assert registered(lambda: None).timeout_s is None
    for seconds in (0, 2.5):
        stepladder.tool(f"for {seconds}", effect="read", timeout_s=seconds)(lambda: None)
        assert kit.registered().tools[f"for {seconds}"].timeout_s == seconds
    for wrong in (-1, float("nan"), float("inf")):
        with pytest.raises(BadInputError, match="timeout_s"):
            stepladder.tool("t2", effect="read", timeout_s=wrong)


def test_an_unknown_effect_is_refused_at_once() -> None:
    with pytest.raises(BadInputError, match="'write'") as refused:
        stepladder.tool("t", effect="write")
    assert "irreversible" in refused.value.remedy


def test_a_name_belongs_to_one_function() -> None:
    def first() -> None: ...

    def second() -> None: ...

    registered(first)
    registered(first)  # a module that is imported again
    with pytest.raises(BadInputError, match="registered twice") as refused:
        registered(second)
    assert "first" in str(refused.value)
    assert "second" in str(refused.value)

    stepladder.rule("r")(first)
    stepladder.rule("r")(first)
    with pytest.raises(BadInputError, match="rule 'r' is registered twice"):
        stepladder.rule("r")(second)


def grows(tree: Tree) -> None: ...


def takes_anything(*values: int) -> None: ...


def takes_all(**values: int) -> None: ...


def takes_by_place(value: int, /) -> None: ...


def takes_a_lock(value: asyncio.Lock) -> None: ...


def takes_nan(value: float = float("nan")) -> None: ...


def takes_the_unknown(value: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821 -- on purpose


@pytest.mark.parametrize(
    ("function", "word"),
    [
        (grows, "Tree is recursive"),
        (takes_anything, r"\*values"),
        (takes_all, r"\*\*values"),
        (takes_by_place, "value"),
        (takes_a_lock, "no JSON Schema"),
        (takes_nan, "no JSON Schema"),
        (takes_the_unknown, "Nowhere"),
    ],
)
def test_a_signature_without_a_schema_is_refused(function: Any, word: str) -> None:
    with pytest.raises(BadInputError, match=word) as refused:
        registered(function)
    assert "'t'" in str(refused.value)
    assert refused.value.remedy
    assert kit.registered().tools == {}


def test_a_kit_does_not_change_with_later_registrations() -> None:
    before = kit.registered()
    registered(lambda: None)
    assert before.tools == {}
