"""Jobs found again: every filter, and pages that stay right while rows arrive."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from stepladder.testing import Answer

from .conftest import BILL, GOOD, problem

if TYPE_CHECKING:
    from .conftest import Api


async def pages(api: Api, query: str, limit: int) -> list[list[str]]:
    """The ids on every page, from the first to the last."""
    found: list[list[str]] = []
    cursor: str | None = None
    while True:
        parameters = httpx.QueryParams(query).set("limit", limit)
        if cursor is not None:
            parameters = parameters.set("cursor", cursor)
        answer = await api.client.get("/v1/jobs", params=parameters)
        assert answer.status_code == 200, answer.text
        body = answer.json()
        found.append([job["id"] for job in body["jobs"]])
        cursor = body["next_cursor"]
        if cursor is None:
            return found


async def batch(api: Api, count: int, **fields: Any) -> list[str]:
    """Ids of new jobs, newest first. All of a batch have the same moment, so that their ids decide."""
    answer = await api.client.post("/v1/jobs/batch", json={"jobs": [GOOD | fields] * count})
    assert answer.status_code == 202, answer.text
    return sorted((job["id"] for job in answer.json()["jobs"]), reverse=True)


@pytest.mark.parametrize("limit", [1, 3, 7, 8])
async def test_pages_hold_every_job_once_newest_first(bill: Api, limit: int) -> None:
    older, newer = await batch(bill, 4), await batch(bill, 3)
    found = await pages(bill, "", limit)
    assert [job for page in found for job in page] == newer + older
    assert [len(page) for page in found[:-1]] == [limit] * (len(found) - 1)


async def test_pages_stay_right_while_rows_arrive(bill: Api) -> None:
    known = await batch(bill, 60)
    ended = asyncio.Event()

    async def more() -> None:
        while not ended.is_set():
            await bill.submit()

    arriving = [asyncio.ensure_future(more()) for _ in range(3)]
    try:
        for limit in (1, 7, 20):
            seen = [job for page in await pages(bill, "", limit) for job in page]
            assert len(seen) == len(set(seen))
            assert [job for job in seen if job in set(known)] == known
    finally:
        ended.set()
        await asyncio.gather(*arriving)
    assert (await bill.counts())["jobs"] > 70


async def test_a_cursor_belongs_to_its_filters(bill: Api) -> None:
    await batch(bill, 3)
    first = (await bill.client.get("/v1/jobs", params={"limit": 1, "status": "queued"})).json()
    cursor = first["next_cursor"]
    assert (
        await bill.client.get("/v1/jobs", params={"limit": 2, "status": "queued", "cursor": cursor})
    ).status_code == 200
    for other in ({}, {"status": "failed"}, {"status": "queued", "workflow": "bill"}):
        found = problem(await bill.client.get("/v1/jobs", params={"cursor": cursor, **other}), 422)
        assert "is not from this list" in found["errors"][0]["reason"]
    tampered = ("A" if cursor[-2] != "A" else "B").join((cursor[:-2], cursor[-1:]))
    problem(await bill.client.get("/v1/jobs", params={"status": "queued", "cursor": tampered}), 422)


async def test_each_filter_selects_its_jobs(bill: Api) -> None:
    await bill.publish(BILL.replace("name: bill", "name: other"))
    wrong = [Answer('{"total": 1}')] * 3
    [failed] = await batch(bill, 1)
    await bill.drive(failed, *wrong)
    [waiting] = await batch(bill, 1, metadata={"order": "4711", "n": 5, "urgent": True})
    await bill.drive(waiting, Answer('{"total": 36}'))
    [paused] = await batch(bill, 1, metadata={"order": "5", "n": "5"})
    await bill.client.post(f"/v1/jobs/{paused}/pause")
    [other] = await batch(bill, 1, workflow="other")
    [edge] = await bill.rows("SELECT created_at FROM jobs WHERE id = %s", paused)
    at = edge["created_at"].isoformat().replace("+00:00", "Z")

    for query, expected in {
        "": [other, paused, waiting, failed],
        "status=queued": [other],
        "status=paused": [paused],
        "status=waiting&status=failed": [waiting, failed],
        "workflow=other": [other],
        "workflow=nobody": [],
        "outcome=semantic": [failed],
        "outcome=valid&outcome=semantic": [waiting, failed],
        "failure=attempts_exhausted": [failed],
        "failure=loop": [],
        f"created_after={at}": [other, paused],
        f"created_before={at}": [waiting, failed],
        f"created_after={at}&created_before={at}": [],
        "metadata.order=4711": [waiting],
        "metadata.n=5": [paused, waiting],
        "metadata.urgent=true": [waiting],
        "metadata.order=4711&metadata.order=5": [paused, waiting],
        "metadata.order=5&metadata.urgent=true": [],
        "metadata.nothing=x": [],
        "status=waiting&workflow=bill&outcome=valid&metadata.n=5": [waiting],
    }.items():
        assert [job for page in await pages(bill, query, 2) for job in page] == expected, query
