"""Chapter 7. Each guard ends a job by a word of its own, and says which state, which action and which rule it was."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from stepladder import Failure, tool
from stepladder.testing import Actor, Answer, ScriptedEngine, run


@tool("fundamentals.broken", effect="read")
def broken() -> dict[str, int]:
    raise RuntimeError("the shelf fell down")


@tool("fundamentals.refund", effect="read", permissions=["refund:pay"])
def refund() -> dict[str, int]:
    return {"cents": 36}


NUMBER = "{type: object, properties: {n: {type: integer, minimum: 0, maximum: 9}}, required: [n]}"
CHOICE = "{type: object, properties: {action: {enum: [go, stop]}}, required: [action]}"
ASK = f"count: {{ask: How many?, output: {NUMBER}, next: done}}"
CIRCLE = f"decide: {{ask: And now?, output: {CHOICE}, next: {{go: decide, stop: done}}}}"


@dataclass(frozen=True)
class Guard:
    """One way to fail: the states, what the engine answers, and what the message must name."""

    states: str
    answers: tuple[Any, ...] = ()
    says: tuple[str, ...] = ()
    head: str = ""
    principal: Actor = field(default_factory=lambda: Actor("ci"))


GUARDS = {
    Failure.ATTEMPTS_EXHAUSTED: Guard(
        ASK.replace(
            "next", 'rules: [{id: is-odd, check: "output.n == 7", pointer: /n, reason: must be seven}], next', 1
        ),
        ({"n": 1}, {"n": 2}, {"n": 3}),
        ("state count", "3 of 3 attempts", "is-odd", "/n must be seven"),
    ),
    Failure.TOKEN_BUDGET: Guard(
        CIRCLE, (Answer('{"action": "go"}', completion_tokens=50),), ("state decide", "of 40 tokens are spent"),
        "limits: {token_budget: 40}",
    ),
    Failure.DEADLINE: Guard(ASK, (), ("state count", "deadline"), "limits: {deadline_s: 0}"),
    Failure.MAX_TURNS: Guard(
        CIRCLE, ({"action": "go"},), ("state decide", "turn 2", "limits.max_turns is 1"), "limits: {max_turns: 1}"
    ),
    Failure.TRANSITION_DENIED: Guard(
        CIRCLE.replace("go: decide, ", ""), ({"action": "go"},), ("state decide", "the action 'go'", "edges are stop")
    ),
    Failure.LOOP: Guard(
        CIRCLE, ({"action": "go"},) * 5, ("state decide", "turns", "same output", "limits.loop is {repeats: 2"),
    ),
    Failure.SCHEMA_REJECTED: Guard(
        ASK, (Answer("The provided JSON schema contains features not supported by xgrammar.", status=400),),
        ("state count", "features not supported by xgrammar"),
    ),
    Failure.REQUEST_REJECTED: Guard(
        ASK, (Answer("This model's maximum context length is 64 tokens.", status=400),),
        ("state count", "maximum context length"),
    ),
    Failure.REFUSED: Guard(ASK, (Answer(None, refusal="I would rather not"),), ("state count", "I would rather not")),
    Failure.PERMISSION_DENIED: Guard(
        "pay: {tool: fundamentals.refund, next: {ok: done}}", (),
        ("state pay", "the tool fundamentals.refund", "the permission refund:pay", "ci"),
        principal=Actor("ci", frozenset({"refund:read"})),
    ),
    Failure.TOOL_FAILED: Guard(
        "look: {tool: fundamentals.broken, next: {ok: done}}", (),
        ("state look", "tool fundamentals.broken", "RuntimeError: the shelf fell down", "no edge `error`"),
    ),
    Failure.EXPRESSION_ERROR: Guard(
        "look: {tool: fundamentals.broken, arguments: {n: input.n / 0}, next: {ok: done}}", (),
        ("the arguments of state look", "zero"),
    ),
    Failure.REJECTED: Guard(
        CIRCLE.replace("go: decide, stop: done", "go: done, stop: left") + "\n  left: {end: failed}",
        ({"action": "stop"},),
        ("state left", "state decide led", "`stop`"),
    ),
}  # fmt: skip


def test_no_word_is_missing_here() -> None:
    assert set(GUARDS) == set(Failure)


@pytest.mark.parametrize("failure", Failure)
async def test_the_word_and_what_its_message_names(failure: Failure, database_url: str) -> None:
    guard = GUARDS[failure]
    start = guard.states.split(":")[0]
    head = f"name: guarded\nversion: 1\nstart: {start}\n{guard.head}\nstates:\n"
    document = f"{head}  {guard.states}\n  done: {{end: succeeded}}\n"
    with ScriptedEngine(guard.answers) as engine:
        ran = await run(document, {"n": 1}, engine_url=engine.url, database_url=database_url, principal=guard.principal)
    print(f"{failure}: {ran.job.failure_detail}")
    assert ran.job.failure is failure
    for words in guard.says:
        assert words in str(ran.job.failure_detail)
