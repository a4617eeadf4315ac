"""Replays, revalidation and comparison from a job's page."""

from __future__ import annotations

import re
from html import unescape
from typing import TYPE_CHECKING
from uuid import UUID

import pytest

from support.site import RIGHT, USAGE, WRONG

if TYPE_CHECKING:
    import httpx

    from .conftest import Visitor


def key_of(page: str) -> str:
    found = re.search(r'name="key" value="([0-9a-f-]{36})"', page)
    assert found is not None
    return found[1]


def made(answer: httpx.Response) -> UUID:
    assert answer.status_code == 303, answer.text
    return UUID(answer.headers["location"].removeprefix("/jobs/"))


async def test_a_failed_job_is_resumed_once_and_linked(visitor: Visitor) -> None:
    site = visitor.site
    job = await site.run(USAGE, WRONG, WRONG, WRONG)
    page = await visitor.job(job)
    assert "Resume</button>" in page
    again = [made(await visitor.post(f"/jobs/{job}/replays", page, key=key_of(page), mode="resume")) for _ in "ab"]
    assert again[0] == again[1], "a second click makes no second job"
    assert site.notified == [again[0]]
    await site.drive(again[0], RIGHT)
    found = await site.reads.overview(again[0])
    assert found is not None
    assert (found.status, found.turn_count) == ("waiting", 2)
    assert f'href="/jobs/{job}"' in await visitor.job(again[0])
    page = await visitor.job(job)
    assert f'href="/jobs/{again[0]}"' in page
    assert f'href="/jobs/{job}/diff/{again[0]}"' in page
    other = made(await visitor.post(f"/jobs/{job}/replays", page, key=key_of(page), mode="resume"))
    assert other != again[0], "a page that has seen the first one means another"


async def test_a_job_is_forked_from_a_turn_with_changes(visitor: Visitor) -> None:
    site = visitor.site
    job = await site.run(USAGE, WRONG, WRONG, WRONG)
    page = await visitor.job(job)
    assert '<option value="2">turn 2, bill</option>' in page
    changes = "states.bill.rules.0.check=output.total == 35\n\nstates.bill.retry.attempts=1"
    fields = {"key": key_of(page), "mode": "fork", "from_turn": "2", "set": changes}
    fork = made(await visitor.post(f"/jobs/{job}/replays", page, **fields))
    await site.drive(fork, WRONG)
    found = await site.reads.overview(fork)
    assert found is not None
    assert found.status == "waiting", "by the changed rule the answer is right"
    assert "carried over" in await visitor.job(fork)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"mode": "fork", "set": "states.bill.rules.0.check=output."}, "the changed document has 1 error"),
        ({"mode": "fork", "set": "no change"}, "'no change' is not PATH=VALUE"),
        ({"mode": "fork", "from_turn": "x"}, "'x' is not a turn"),
        ({"mode": "dance"}, "press one of the buttons"),
    ],
)
async def test_a_rejected_replay_keeps_what_was_typed(visitor: Visitor, fields: dict[str, str], said: str) -> None:
    job = await visitor.site.run(USAGE, WRONG, WRONG, WRONG)
    answer = await visitor.post(f"/jobs/{job}/replays", await visitor.job(job), **fields)
    assert answer.status_code == 422
    page = unescape(answer.text)
    assert said in page
    assert f'retry.attempts=5">{fields.get("set", "")}</textarea>' in page
    assert await visitor.site.reads.replays(job) == ()


async def test_answers_are_revalidated_by_a_changed_document(visitor: Visitor) -> None:
    job = await visitor.site.run(USAGE, WRONG, RIGHT, signals={"approval": [{"action": "approve"}]})
    page = await visitor.job(job)
    same = unescape((await visitor.post(f"/jobs/{job}/replays", page, mode="revalidate")).text)
    assert "3 stored answers were judged" in same
    assert "All verdicts match." in same
    changes = "states.bill.rules.0.check=output.total == 35"
    answer = await visitor.post(f"/jobs/{job}/replays", page, mode="revalidate", set=changes)
    other = unescape(answer.text)
    assert "2 verdicts change." in other
    assert "accepted now" in other
    assert "must be hours times 3" in other
    assert await visitor.site.reads.replays(job) == ()


async def test_two_jobs_are_compared_by_the_id_of_the_other(visitor: Visitor) -> None:
    one, other = [await visitor.site.run(USAGE, *answers) for answers in ((RIGHT,), (WRONG, RIGHT))]
    answer = await visitor.client.get(f"/jobs/{one}/compare?with=+{other}+")
    assert (answer.status_code, answer.headers["location"]) == (303, f"/jobs/{one}/diff/{other}")
    assert "Two jobs compared" in await visitor.page(answer.headers["location"])
    odd = await visitor.client.get(f"/jobs/{one}/compare?with=//evil.example")
    assert odd.headers["location"] == f"/jobs/{one}/diff/%2F%2Fevil.example"
