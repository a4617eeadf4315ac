from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepladder.schemas.answer import Violation
from stepladder.schemas.outcomes import Cause, Outcome
from stepladder.workflows.job import Attempt, Message
from stepladder.workflows.request import body_of, history_range, messages_of
from stepladder.workflows.transition import Ask
from support.machines import document, machine_of, play, the

if TYPE_CHECKING:
    from stepladder.workflows.transition import Transition
    from support.machines import Play

TALK = """
one:
  {ask: 'Question {{ visits.one | default([]) | length }}', output: {type: object}, next: one, on_failure: {loop: done}}
done: {end: succeeded}
"""


def talk(head: str = "system: 'Be brief, {{ input.name }}.'", state: str = "") -> Play:
    states = TALK.replace("next: one", f"next: one{state}")
    return play(document(states, head), value={"name": "Ada"})


def body(game: Play, step: Transition) -> dict[str, Any]:
    ask = the(Ask, step)
    return body_of(game.machine.ask(ask.turn.state), "model", game.job.transcript, ask.turn, ask.attempt)


def contents(game: Play, step: Transition) -> list[str]:
    return [message["content"] for message in body(game, step)["messages"]]


def told(game: Play, turns: int) -> Transition:
    """Answers some turns, each differently, and gives the step that asks the next."""
    step = game.claim()
    for number in range(turns):
        step = game.says({"n": number})
    return step


def test_a_request_is_system_then_transcript_then_one_user_message() -> None:
    game = talk()
    step = told(game, 2)
    assert [message["role"] for message in body(game, step)["messages"]] == [
        *("system", "user", "assistant", "user", "assistant", "user")
    ]
    system, first, answer, *_, last = contents(game, step)
    assert system == "Be brief, Ada."
    assert first.startswith("Question 0")
    assert answer == '{"n": 0}'
    assert last.startswith("Question 2")
    assert last.endswith(game.machine.ask("one").description)


def test_a_retry_extends_the_last_message_and_changes_no_byte_before_it() -> None:
    game = talk()
    before = body(game, told(game, 3))
    errors = (Violation("/n", "must be 7", "rule"),)
    again = body(game, game.fails(Outcome.SEMANTIC, "rule", content=b"{}", errors=errors))
    twice = body(game, game.fails(Outcome.PARSE_FAILURE, Cause.SYNTAX, content=b"nonsense"))
    for later in (again, twice):
        *head, last = later["messages"]
        *old_head, old_last = before["messages"]
        assert json.dumps(head).encode() == json.dumps(old_head).encode()
        assert last["content"].encode().startswith(old_last["content"].encode())
        assert {k: v for k, v in later.items() if k != "messages"} == {
            k: v for k, v in before.items() if k != "messages"
        }
    assert "/n: must be 7" in again["messages"][-1]["content"]
    assert "/n: must be 7" not in twice["messages"][-1]["content"], "earlier errors do not pile up"
    assert "nonsense" not in json.dumps(twice), "the answer that failed is not shown to the model"


def test_a_larger_budget_and_a_lost_request_change_no_message() -> None:
    game = talk()
    first = body(game, game.claim())
    cut = body(game, game.fails(Outcome.TRUNCATION, Cause.BUDGET))
    game.fails(Outcome.TRANSPORT, Cause.CONNECT)
    lost = body(game, game.claim(after=60))
    assert json.dumps(cut["messages"]) == json.dumps(lost["messages"]) == json.dumps(first["messages"])
    assert (first["max_completion_tokens"], cut["max_completion_tokens"], lost["max_completion_tokens"]) == (
        512,
        1024,
        1024,
    )


def test_an_accepted_turn_stands_in_the_transcript_without_its_notes() -> None:
    game = talk()
    first = contents(game, game.claim())[-1]
    game.fails(Outcome.SEMANTIC, "rule", content=b"{}", errors=(Violation("/n", "must be 7", "rule"),))
    assert contents(game, game.says({"n": 7}))[1:3] == [first, '{"n": 7}']


@pytest.mark.parametrize(
    ("state", "shown"),
    [
        ("", [0, 1, 2, 3]),
        (", history: all", [0, 1, 2, 3]),
        (", history: none", []),
        (", history: 0", []),
        (", history: 1", [3]),
        (", history: 3", [1, 2, 3]),
        (", history: 99", [0, 1, 2, 3]),
    ],
)
@pytest.mark.parametrize("head", ["", "system: Be brief."])
def test_history_shows_the_last_turns_and_always_the_system_prompt(head: str, state: str, shown: list[int]) -> None:
    game = talk(head, state)
    said = contents(game, told(game, 4))
    before = ["Be brief."] if head else []
    assert said[: len(before)] == before
    assert [text.split("\n")[0] for text in said[len(before) :]] == [
        *(text for number in shown for text in (f"Question {number}", f'{{"n": {number}}}')),
        "Question 4",
    ]


def test_a_failed_turn_is_not_in_the_transcript() -> None:
    states = """
one: {ask: First, output: {type: object}, retry: {attempts: 1}, next: done, on_failure: {attempts_exhausted: two}}
two: {ask: Second, output: {type: object}, next: done}
done: {end: succeeded}
"""
    game = play(document(states)).begun()
    assert [text.split("\n")[0] for text in contents(game, game.fails(Outcome.EMPTY))] == ["Second"]


HEADS = [
    ("", {"stream": True, "stream_options": {"include_usage": True}}),
    ("stream: false", {"stream": False}),
    ("sampling: {temperature: 0, seed: 7, top_k: -1}", {"temperature": 0, "seed": 7, "top_k": -1}),
    ("sampling: {stop: [END], chat_template_kwargs: {enable_thinking: false}}", {"stop": ["END"]}),
    ("max_completion_tokens: 64", {"max_completion_tokens": 64}),
]


@pytest.mark.parametrize(("head", "fields"), HEADS)
def test_the_body_says_what_the_document_chose(head: str, fields: dict[str, Any]) -> None:
    game = talk(head)
    sent = body(game, game.claim())
    assert fields.items() <= sent.items()
    assert sent["model"] == "model"
    assert ("stream_options" in sent) is sent["stream"]
    assert sent["response_format"]["json_schema"]["schema"] is game.machine.ask("one").schema.schema
    assert sent["response_format"]["json_schema"]["strict"] is True
    assert not sent.keys() & {"max_tokens", "guided_json", "tools", "tool_choice"}


def test_without_a_strict_decoder_the_schema_stands_in_the_prompt_alone() -> None:
    game = talk("decoding: prompt")
    sent = body(game, game.claim())
    assert "response_format" not in sent
    assert '{"type":"object"}' in sent["messages"][-1]["content"]


def test_a_request_can_be_built_again_to_the_byte() -> None:
    game = talk()
    step = told(game, 2)
    ask = the(Ask, step)
    first = json.dumps(body(game, step))
    later = game.says({"n": "later"})
    assert len(later.job.transcript) > len(step.job.transcript)
    state = machine_of(document(TALK, "system: 'Be brief, {{ input.name }}.'")).ask("one")
    assert json.dumps(body_of(state, "model", later.job.transcript, ask.turn, ask.attempt)) == first


TURNS = st.integers(0, 6)


@given(TURNS, st.booleans(), st.just("all") | st.integers(0, 8))
def test_a_range_holds_whole_turns_up_to_the_last_line(turns: int, system: bool, history: int | str) -> None:
    lines = [Message(1, 0, "system", "s")] if system else []
    for number in range(1, turns + 1):
        lines += [Message(len(lines) + 1, number, "user", "q"), Message(len(lines) + 2, number, "assistant", "a")]
    first, last = history_range(lines, history)
    shown = [line.turn for line in lines if line.turn and first <= line.ordinal <= last]
    count = turns if history == "all" else min(turns, int(history))
    assert shown == [number for number in range(turns - count + 1, turns + 1) for _ in range(2)]
    assert last == len(lines)
    attempt = Attempt(turns + 1, 1, 10, history_from=first, history_to=last)
    turn: Any = type("Turn", (), {"question": "next"})()
    assert [message["content"] for message in messages_of(lines, turn, attempt)] == [  # type: ignore[call-overload, index]  # JSON
        *(["s"] if system else []),
        *["q", "a"] * count,
        "next",
    ]
