"""Child jobs over HTTP: their parent names them, they name their parent, and they are found by it."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from stepladder.schemas import responses
from stepladder.testing import Answer

if TYPE_CHECKING:
    from .conftest import Api

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


async def test_a_family_is_seen_from_both_sides(bill: Api) -> None:
    for document in (CHILD, PARENT):
        published = await bill.client.post("/v1/workflows", content=document)
        assert published.status_code == 201
    parent = (await bill.client.post("/v1/jobs", json={"workflow": "two-words", "input": {}})).json()
    async with bill.worker(Answer({"word": "yes"}), Answer({"word": "yes"})) as worker:
        await worker.drive(UUID(parent["id"]))
    job = await bill.job(parent["id"])
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
