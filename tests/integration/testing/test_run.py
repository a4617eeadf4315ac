"""``stepladder.testing.run`` as users call it in the tests of their own workflows."""

from __future__ import annotations

from typing import Any

import pytest

import stepladder
from stepladder.schemas.errors import BadInputError, UnreachableError
from stepladder.schemas.finding import BadDocumentError
from stepladder.schemas.job import JobStatus
from stepladder.schemas.tool import Kit
from stepladder.sdk import kit
from stepladder.testing import Fault, ScriptedEngine, run
from stepladder.workflows.transition import Await, Finished

TEXT = """
name: greet
version: 1
input: {type: object, properties: {name: {type: string}}, required: [name], additionalProperties: false}
start: greet
states:
  greet:
    ask: Greet {{ input.name }}.
    output: {type: object, properties: {text: {type: string}}, required: [text], additionalProperties: false}
    rules: [{id: polite, call: polite, pointer: /text}]
    next: agree
  agree:
    wait: {signal: agree}
    next: {yes: done, no: greet}
  done: {end: succeeded, result: {text: turns.greet.text}}
"""


@pytest.fixture(autouse=True)
def polite(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kit, "_rules", {})
    monkeypatch.setattr(kit, "_tools", {})

    @stepladder.rule("polite")
    def polite(output: Any, *, input: Any, turns: Any, tools: Any) -> str | None:  # noqa: A002, ARG001
        return None if input["name"] in output["text"] else f"must name {input['name']}"


def built() -> stepladder.Workflow:
    """The same workflow in Python."""
    text = {"type": "object", "properties": {"text": {"type": "string"}}}
    name = {"type": "object", "properties": {"name": {"type": "string"}}}
    return stepladder.Workflow(
        name="greet",
        version=1,
        input=name | {"required": ["name"], "additionalProperties": False},
        start="greet",
        states={
            "greet": stepladder.Ask(
                ask="Greet {{ input.name }}.",
                output=text | {"required": ["text"], "additionalProperties": False},
                rules=[stepladder.RuleSpec(id="polite", call="polite", pointer="/text")],
                next="agree",
            ),
            "agree": stepladder.Wait(wait=stepladder.WaitSpec(signal="agree"), next={"yes": "done", "no": "greet"}),
            "done": stepladder.End(end="succeeded", result={"text": "turns.greet.text"}),
        },
    )


async def test_a_run_tells_what_became_of_the_job_turn_by_turn(database_url: str) -> None:
    answers = [{"text": "Hello!"}, {"text": "Hello, Ada."}, {"text": "Good day, Ada."}]
    async with ScriptedEngine(answers) as engine:
        ran = await run(
            TEXT,
            {"name": "Ada"},
            engine_url=engine.url,
            database_url=database_url,
            signals={"agree": [{"action": "no"}, {"action": "yes"}]},
        )
        assert "/text: must name Ada" in engine.requests[1].text
    assert (ran.job.status, ran.job.result) == (JobStatus.SUCCEEDED, {"text": "Good day, Ada."})
    assert [[attempt.cause for attempt in turn.attempts] for turn in ran.turns] == [["polite", None], [None]]
    assert [turn.output for turn in ran.turns] == [{"text": "Hello, Ada."}, {"text": "Good day, Ada."}]
    assert ran.events[-1].kind == "job_succeeded"
    assert [record.ordinal for record in ran.events] == list(range(1, len(ran.events) + 1))
    assert isinstance(ran.transitions[-1].next, Finished)
    assert ran.transitions[-1].job.id == ran.job.id


async def test_without_signals_it_stops_where_the_job_waits(database_url: str) -> None:
    async with ScriptedEngine([{"text": "Ada?"}]) as engine:
        ran = await run(built(), {"name": "Ada"}, engine_url=engine.url, database_url=database_url)
    assert (ran.job.status, ran.job.waiting_for) == (JobStatus.WAITING, "agree")
    assert isinstance(ran.transitions[-1].next, Await)


async def test_text_and_python_are_one_definition_and_a_changed_one_is_refused(database_url: str) -> None:
    async with ScriptedEngine(respond=lambda _: {"text": "Ada"}) as engine:
        where: dict[str, Any] = {"engine_url": engine.url, "database_url": database_url}
        for workflow in (TEXT, built(), TEXT):
            assert (await run(workflow, {"name": "Ada"}, **where)).job.status is JobStatus.WAITING
        with pytest.raises(BadInputError, match="another definition") as refused:
            await run(TEXT.replace("Greet {{", "Welcome {{"), {"name": "Ada"}, **where)
        assert "version: 2" in refused.value.remedy
        assert len(engine.requests) == 3


async def test_a_kit_of_the_tests_own_stands_for_what_is_registered(database_url: str) -> None:
    ours = Kit(rules={"polite": lambda output, **_: None if output["text"].isupper() else "must be loud"})
    async with ScriptedEngine([{"text": "Ada"}, {"text": "ADA"}]) as engine:
        ran = await run(TEXT, {"name": "Ada"}, engine_url=engine.url, database_url=database_url, kit=ours)
    assert [error.reason for error in ran.turns[0].attempts[0].errors] == ["must be loud"]


async def test_it_complains_as_the_command_does(database_url: str) -> None:
    async with ScriptedEngine() as engine:
        where: dict[str, Any] = {"engine_url": engine.url, "database_url": database_url}
        with pytest.raises(BadDocumentError, match="no state `gret`"):
            await run(TEXT.replace("start: greet", "start: gret"), {"name": "Ada"}, **where)
        with pytest.raises(BadInputError, match='must have the field "name"'):
            await run(TEXT, **where)
        with pytest.raises(BadDocumentError, match="no rule `polite`"):
            await run(TEXT, {"name": "Ada"}, **where, kit=Kit())
        with pytest.raises(UnreachableError, match="No engine answers"):
            await run(TEXT, {"name": "Ada"}, engine_url="http://127.0.0.1:1/v1", database_url=database_url)
        assert engine.requests == []


async def test_an_engine_that_dies_for_a_moment_costs_an_attempt_and_nothing_else(database_url: str) -> None:
    async with ScriptedEngine([Fault("refuse", delay_s=0.05), {"text": "Ada"}]) as engine:
        ran = await run(TEXT, {"name": "Ada"}, engine_url=engine.url, database_url=database_url)
    assert ran.job.status is JobStatus.WAITING
    assert [attempt.outcome for attempt in ran.turns[0].attempts][-1] == "valid"
    assert {attempt.outcome for attempt in ran.turns[0].attempts[:-1]} == {"transport"}
