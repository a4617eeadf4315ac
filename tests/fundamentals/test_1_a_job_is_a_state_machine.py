"""Chapter 1. A workflow is a document; a job is one run of it; an action without a listed transition is denied."""

from __future__ import annotations

import pytest

from stepladder import Ask, BadDocumentError, End, Workflow
from stepladder.testing import ScriptedEngine, run

# A state either asks the model (`ask`), runs a tool (`tool`), waits (`wait`) or ends the job (`end`).
# The model's answer moves the machine by its `action`, and each action has an edge of its own.
TRIAGE = """
name: triage
version: 1
input: {type: object, properties: {text: {type: string, maxLength: 500}}, required: [text], additionalProperties: false}
system: You sort reports.
start: sort
states:
  sort:
    ask: "What is to be done with this report? {{ input.text }}"
    output:
      type: object
      properties: {action: {enum: [fix, close, escalate]}, why: {type: string, maxLength: 80}}
      required: [action, why]
      additionalProperties: false
    next: {fix: fixed, close: closed}
  fixed: {end: succeeded, result: {why: "turns.sort.why"}}
  closed: {end: failed}
"""


async def test_the_answer_moves_the_machine_to_its_end(database_url: str) -> None:
    with ScriptedEngine([{"action": "fix", "why": "it crashes"}]) as engine:
        ran = await run(TRIAGE, {"text": "Boom."}, engine_url=engine.url, database_url=database_url)
    assert ran.job.status == "succeeded"
    assert ran.job.result == {"why": "it crashes"}
    assert [turn.state for turn in ran.turns] == ["sort"]


async def test_the_engine_is_asked_under_the_schema_of_the_state(database_url: str) -> None:
    with ScriptedEngine([{"action": "fix", "why": "it crashes"}]) as engine:
        await run(TRIAGE, {"text": "Boom."}, engine_url=engine.url, database_url=database_url)
        (request,) = engine.requests
    assert request.body["response_format"]["json_schema"]["schema"]["properties"]["action"]["enum"][0] == "fix"
    assert [message["role"] for message in request.messages] == ["system", "user"]
    assert "What is to be done with this report? Boom." in request.text


async def test_a_failure_state_ends_the_job_as_rejected(database_url: str) -> None:
    with ScriptedEngine([{"action": "close", "why": "no bug"}]) as engine:
        ran = await run(TRIAGE, {"text": "Hm."}, engine_url=engine.url, database_url=database_url)
    assert (ran.job.status, ran.job.failure) == ("failed", "rejected")


async def test_an_action_without_an_edge_is_denied_and_never_guessed_at(database_url: str) -> None:
    with ScriptedEngine([{"action": "escalate", "why": "unsure"}]) as engine:
        ran = await run(TRIAGE, {"text": "Hm."}, engine_url=engine.url, database_url=database_url)
    assert ran.job.failure == "transition_denied"
    assert "escalate" in (ran.job.failure_detail or "")


async def test_the_same_machine_can_be_built_in_python(database_url: str) -> None:
    workflow = Workflow(
        name="ping",
        version=1,
        start="ping",
        states={
            "ping": Ask(
                ask="Say pong.",
                output={"type": "object", "properties": {"word": {"enum": ["pong"]}}, "required": ["word"]},
                next="done",
            ),
            "done": End(end="succeeded"),
        },
    )
    with ScriptedEngine([{"word": "pong"}]) as engine:
        ran = await run(workflow, engine_url=engine.url, database_url=database_url)
    assert ran.job.status == "succeeded"


async def test_a_document_is_checked_whole_before_anything_runs(database_url: str) -> None:
    broken = TRIAGE.replace("fix: fixed", "fix: fxied").replace("input.text", "inptu.text")
    with pytest.raises(BadDocumentError) as raised:
        await run(broken, {"text": ""}, engine_url="http://127.0.0.1:1/v1", database_url=database_url)
    assert {finding.code for finding in raised.value.findings} == {"unknown_state", "unknown_name"}
