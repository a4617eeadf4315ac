"""A job in detail: its requests, visits, and what retention leaves of it."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from stepladder.models.retention import Ages, retain
from stepladder.schemas import history, responses
from stepladder.testing import Answer

from .conftest import APPROVE, problem

if TYPE_CHECKING:
    from .conftest import Api


WRONG, RIGHT = {"total": 35}, {"total": 36}


async def approved(bill: Api) -> dict[str, Any]:
    """A job with a wrong answer, a right one, and its approval."""
    job = await bill.submit()
    assert (await bill.signal(job["id"], APPROVE | {"by": "ü"})).status_code == 202
    return await bill.drive(job["id"], WRONG, RIGHT)


async def attempts(bill: Api, job: dict[str, Any]) -> list[dict[str, Any]]:
    turns = (await bill.client.get(f"/v1/jobs/{job['id']}/turns")).json()
    return [attempt for turn in turns for attempt in turn["attempts"]]


async def test_an_attempts_request_is_what_was_sent(bill: Api) -> None:
    job = await approved(bill)
    wrong, right = await attempts(bill, job)
    bodies = []
    for attempt in (wrong, right):
        answer = await bill.client.get(f"/v1/attempts/{attempt['id']}/request")
        assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
        assert "attachment" in answer.headers["content-disposition"]
        bodies.append(answer.json())
    first, second = (body["messages"][-1]["content"] for body in bodies)
    assert second == first + right["note"]
    assert "must be hours times 3" in right["note"]
    nothing = problem(await bill.client.get(f"/v1/attempts/{uuid4()}/request"), 404)
    assert "/turns" in nothing["remedy"]


async def test_visits_show_waits_and_their_signals(bill: Api) -> None:
    job = await approved(bill)
    early = await bill.submit()
    assert (await bill.signal(early["id"], {"action": "refuse"})).status_code == 202
    visits = (await bill.client.get(f"/v1/jobs/{job['id']}/visits")).json()
    [wait], [signal] = visits["waits"], visits["signals"]
    assert (visits["turns"], visits["tools"], visits["calls"]) == ({"1": 1}, [], [])
    assert (wait["visit"], wait["state"], wait["action"], wait["show"]) == (2, "approve", "approve", {"total": 36})
    assert (signal["payload"], signal["by"]) == ({"action": "approve", "by": "ü"}, "local")
    assert signal["taken_at"] is not None
    assert wait["signal_id"] == signal["id"]
    other = (await bill.client.get(f"/v1/jobs/{early['id']}/visits")).json()
    assert [one["taken_at"] for one in other["signals"]] == [None]
    problem(await bill.client.get(f"/v1/jobs/{uuid4()}/visits"), 404)


async def test_jobs_are_found_by_rule_cause_text_and_state(bill: Api) -> None:
    job = await approved(bill)
    other = await bill.submit()

    async def found(**query: str) -> list[str]:
        answer = await bill.client.get("/v1/jobs", params=query)
        assert answer.status_code == 200, answer.text
        body = answer.json()
        assert ("looked_back_to" in body) is ("search" in query)
        return [one["id"] for one in body["jobs"]]

    assert await found(rule="arithmetic") == await found(cause="arithmetic") == [job["id"]]
    assert await found(search='"total": 35') == await found(search="HOURS times") == [job["id"]]
    assert await found(state="done") == [job["id"]]
    assert await found(principal="local") == [other["id"], job["id"]]
    assert await found(replay_of=job["id"]) == []
    assert await found(rule="arithmetic", search='"total": 36') == []


async def test_retention_spares_a_held_job_and_reports_what_it_removed(bill: Api) -> None:
    job = await approved(bill)
    held = await approved(bill)
    url = f"/v1/jobs/{held['id']}"
    answers = [await bill.client.post(f"{url}/hold") for _ in range(2)]
    assert [answer.status_code for answer in answers] == [202, 200]
    assert answers[0].json()["hold_by"] == "local"
    await retain(bill.store.database, Ages(timedelta(0), timedelta(0)))

    wrong, _ = await attempts(bill, job)
    assert (wrong["outcome"], wrong["cause"], wrong["content"]) == ("semantic", "arithmetic", None)
    gone = problem(await bill.client.get(f"/v1/attempts/{wrong['id']}/raw"), 410)
    assert gone["type"] == "urn:stepladder:problem:gone"
    assert "retention" in gone["detail"]
    assert (await bill.client.get(f"/v1/attempts/{wrong['id']}/request")).status_code == 200
    assert (await bill.job(job["id"]))["raw_gone_at"] is not None
    events = f"/v1/jobs/{job['id']}/events"
    assert (await bill.client.get(events)).json() == []
    # A browser comes back to a stream that ends without this.
    stream = await bill.client.get(events, headers={"Accept": "text/event-stream"})
    assert stream.status_code == 204

    [kept, _] = await attempts(bill, held)
    assert kept["content"] == '{"total": 35}'
    assert (await bill.client.get(f"/v1/attempts/{kept['id']}/raw")).content
    released = [await bill.client.post(f"{url}/release") for _ in range(2)]
    assert [answer.status_code for answer in released] == [202, 200]
    assert released[0].json()["hold_at"] is None
    problem(await bill.client.post(f"/v1/jobs/{uuid4()}/hold"), 404)

    judged = await bill.client.post(f"/v1/jobs/{job['id']}/replays", json={"mode": "revalidate"})
    assert [one["unjudged"] for one in judged.json()["attempts"]] == ["gone", "gone"]
    assert judged.json()["changed"] == 0


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


async def test_a_truncated_turn_has_no_output_but_a_degraded_value(api: Api) -> None:
    await api.publish(LETTER)
    job = await api.submit(workflow="letter", input={})
    assert job["degraded"] is None
    cut = ('{"na', '{"name": "Ad', '{"name": "Ad\\u0000a\\ud83d\\ude00", "ag')
    job = await api.drive(job["id"], *(Answer(text, finish_reason="length", completion_tokens=512) for text in cut))
    assert (job["status"], job["failure"], job["result"]) == ("failed", "attempts_exhausted", None)
    kept = {
        "value": {"name": "Ad\0a😀"},
        "lost": [
            {"pointer": "", "reason": "the answer was cut off; everything after the last complete value is lost"},
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
    assert history.TurnVisit.model_validate(turn).degraded == typed["read"]
    [page] = (await api.client.get("/v1/jobs", params={"workflow": "letter"})).json()["jobs"]
    assert page["degraded"] == {"read": kept}
    [event] = [event for event in await api.events(job["id"]) if event["kind"] == "turn_degraded"]
    assert (event["turn"], event["attempt"], event["data"]) == (1, 3, {"outcome": "truncation", "lost": 2})


async def ran(api: Api, *answers: Any, signal: Any = None, **fields: Any) -> str:
    job: str = (await api.submit(**fields))["id"]
    if signal is not None:
        await api.signal(job, signal)
    await api.drive(job, *answers)
    return job


async def test_a_retry_and_another_decision_are_differences(bill: Api) -> None:
    was = await ran(bill, {"total": 36}, signal={"action": "approve"})
    now = await ran(bill, {"total": 35}, {"total": 36}, signal={"action": "refuse", "by": "me"}, input={"team": "x"})
    answer = await bill.client.get(f"/v1/jobs/{was}/diff/{now}")
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert found["same"] is False
    assert found["input"] == [{"kind": "changed", "pointer": "/team", "was": "search", "now": "x"}]
    assert found["result"] == [{"kind": "changed", "pointer": "", "was": {"total": 36}, "now": None}]
    turn, wait = found["visits"]
    assert (turn["kind"], turn["state"], turn["differs"], turn["output"]) == ("turn", "sum", ["attempts"], [])
    assert (turn["was"]["attempts"], turn["now"]["attempts"]) == (1, 2)
    assert turn["now"]["tokens"] > turn["was"]["tokens"] > 0
    assert (wait["kind"], wait["differs"]) == ("wait", ["action", "output"])
    assert {change["pointer"]: change["kind"] for change in wait["output"]} == {"/action": "changed", "/by": "added"}
    assert (found["job"]["status"], found["other"]["failure"]) == ("succeeded", "rejected")


async def test_a_job_is_the_same_as_itself(bill: Api) -> None:
    job = await ran(bill, {"total": 36})
    found = (await bill.client.get(f"/v1/jobs/{job}/diff/{job}")).json()
    assert (found["same"], [visit["differs"] for visit in found["visits"]]) == (True, [[], []])


CHILD = """
name: one-word
version: 1
start: ask
states:
  ask:
    ask: A word?
    output: {type: object, properties: {word: {enum: [yes, no]}}, required: [word], additionalProperties: false}
    next: done
  done: {end: succeeded, result: turns.ask.word}
"""
PARENT = """
name: two-words
version: 1
start: ask
states:
  ask:
    call: one-word
    each: {over: "[1, 2]", at_most: 2}
    next: {ok: done, error: broken}
  done: {end: succeeded, result: calls.ask}
  broken: {end: failed}
"""


async def test_a_parent_and_its_children_name_each_other(bill: Api) -> None:
    for document in (CHILD, PARENT):
        published = await bill.client.post("/v1/workflows", content=document)
        assert published.status_code == 201
    parent = (await bill.client.post("/v1/jobs", json={"workflow": "two-words", "input": {}})).json()
    job = await bill.drive(parent["id"], Answer({"word": "yes"}), Answer({"word": "yes"}))
    responses.Job.model_validate(job)
    assert (job["result"], job["parent"]) == (["yes", "yes"], None)
    assert [(child["index"], child["workflow"], child["status"]) for child in job["children"]] == [
        (1, "one-word", "succeeded"),
        (2, "one-word", "succeeded"),
    ]
    child = await bill.job(job["children"][0]["id"])
    assert (child["parent"], child["children"]) == (parent["id"], [])
    found = (await bill.client.get(f"/v1/jobs?parent={parent['id']}&limit=1")).json()
    rest = (await bill.client.get(f"/v1/jobs?parent={parent['id']}&cursor={found['next_cursor']}")).json()
    assert {one["id"] for one in (*found["jobs"], *rest["jobs"])} == {one["id"] for one in job["children"]}
    assert rest["next_cursor"] is None


async def test_statistics_are_by_workflow_and_since_a_moment(bill: Api) -> None:
    job = await bill.submit()
    await bill.drive(job["id"], Answer({"total": 35}), Answer({"total": 36}))
    answer = await bill.client.get("/v1/stats")
    [stats] = answer.json()["workflows"]
    assert (stats["workflow"], stats["attempts"], stats["usable"], stats["cost"]) == ("bill", 2, 1, None)
    assert stats["rates"]["semantic_pass"] == 0.5
    assert stats["attempts_per_turn"] == [{"attempts": 2, "turns": 1, "accepted": 1}]
    assert [(share["outcome"], share["cause"]) for share in stats["outcomes"]] == [
        ("valid", None), ("semantic", "arithmetic"),
    ]  # fmt: skip
    assert stats["jobs"] == {"succeeded": 0, "failed": 0, "cancelled": 0, "live": 1}
    asked = {"workflow": "another", "since": "2026-01-31T12:30:00+02:00"}
    none = (await bill.client.get("/v1/stats", params=asked)).json()
    assert none == {"since": "2026-01-31T10:30:00Z", "workflows": []}
