"""What was kept of a turn that was given up, over HTTP in a field of its own; and which document may not ask for it."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from stepladder.schemas import history, responses
from stepladder.testing import Answer

from .conftest import problem

if TYPE_CHECKING:
    from .conftest import Api

LETTER = """
name: letter
version: 1
start: read
states:
  read:
    ask: "Who wrote it?"
    output: {type: object, properties: {name: {type: string}, age: {type: integer}}, required: [name, age]}
    degrade: true
    next: done
  done: {end: succeeded, result: turns.read}
"""
PAID = LETTER.replace("next: done", "next: pay") + (
    "  pay: {tool: pay, arguments: {amount: turns.read.age}, next: {ok: done}}\n"
)


def cut(text: str) -> Answer:
    return Answer(text, finish_reason="length", completion_tokens=512)


async def test_a_turn_cut_off_three_times_has_no_output_and_a_degraded_value(api: Api) -> None:
    await api.publish(LETTER)
    job = await api.submit(workflow="letter", input={})
    assert job["degraded"] is None
    answers = [cut('{"na'), cut('{"name": "Ad'), cut('{"name": "Ad\\u0000a\\ud83d\\ude00", "ag')]
    async with api.worker(*answers) as worker:
        await worker.drive(UUID(job["id"]))
    job = await api.job(job["id"])
    assert (job["status"], job["failure"], job["result"]) == ("failed", "attempts_exhausted", None)
    kept = {
        "value": {"name": "Ad\0a😀"},
        "lost": [
            {
                "pointer": "",
                "reason": "the answer was cut off; everything after the last complete value is lost",
            },
            {"pointer": "", "reason": 'still breaks the schema: must have the field "age"'},
        ],
        "attempt": 3,
        "outcome": "truncation",
    }
    assert job["degraded"] == {"read": kept}
    [turn] = (await api.client.get(f"/v1/jobs/{job['id']}/turns")).json()
    assert (turn["outcome"], turn["output"], turn["degraded"]) == ("truncation", None, kept)

    typed = responses.Job.model_validate(job).degraded
    assert typed is not None
    assert (typed["read"].value, typed["read"].attempt) == ({"name": "Ad\0a😀"}, 3)
    assert typed["read"].lost[1].reason == 'still breaks the schema: must have the field "age"'
    assert history.Turn.model_validate(turn).degraded == typed["read"]

    [page] = (await api.client.get("/v1/jobs", params={"workflow": "letter"})).json()["jobs"]
    assert page["degraded"] == {"read": kept}
    events = (await api.client.get(f"/v1/jobs/{job['id']}/events")).json()
    assert [event["kind"] for event in events][-3:] == ["turn_failed", "turn_degraded", "job_failed"]
    assert events[-2] | {"at": None} == {
        "ordinal": len(events) - 1,
        "kind": "turn_degraded",
        "turn": 1,
        "attempt": 3,
        "data": {"outcome": "truncation", "lost": 2},
        "at": None,
    }


async def test_a_document_that_would_lead_what_is_kept_to_a_tool_is_refused(api: Api) -> None:
    answer = await api.client.post("/v1/workflows", content=PAID, headers={"Content-Type": "application/yaml"})
    body = problem(answer, 422)
    [error] = [error for error in body["errors"] if error["code"] == "degrade_before_tool"]
    assert (error["pointer"], error["line"]) == ("/states/read/degrade", 9)
    assert "(read -> pay)" in error["reason"]
