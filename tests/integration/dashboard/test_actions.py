"""The buttons of a job's page."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from support.site import PAYING, RIGHT, USAGE, WHY

if TYPE_CHECKING:
    from uuid import UUID

    from .conftest import Visitor


async def status(visitor: Visitor, job: UUID) -> str:
    found = await visitor.site.reads.overview(job)
    assert found is not None
    return str(found.status)


async def test_a_job_is_paused_and_unpaused(visitor: Visitor) -> None:
    job = await visitor.site.submit()
    for path, after in (("pause", "paused"), ("unpause", "queued")):
        page = await visitor.job(job)
        assert f'action="/jobs/{job}/{path}"' in page
        answer = await visitor.post(f"/jobs/{job}/{path}", page)
        assert (answer.status_code, answer.headers["location"]) == (303, f"/jobs/{job}")
        assert await status(visitor, job) == after
    assert visitor.site.notified == [job, job]


async def test_a_cancelled_job_ends_and_has_no_buttons_left(visitor: Visitor) -> None:
    job = await visitor.site.submit()
    page = await visitor.job(job)
    assert (await visitor.post(f"/jobs/{job}/cancel", page)).status_code == 303
    await visitor.site.drive(job)
    assert await status(visitor, job) == "cancelled"
    again = await visitor.post(f"/jobs/{job}/cancel", page)
    assert again.status_code == 409
    assert "is cancelled." in again.text
    ended = await visitor.job(job)
    assert not re.findall(rf'action="/jobs/{job}/(?:cancel|pause|unpause|signal)"', ended)


async def test_the_awaited_signal_is_sent(visitor: Visitor) -> None:
    job = await visitor.site.run(USAGE, RIGHT)
    page = await visitor.job(job)
    assert "Send the signal approval" in page
    assert re.findall(r"<option>(\w+)</option>", page) == ["approve", "refuse"]
    assert "For your decision" in page
    key = re.search(r'name="key" value="([^"]+)"', page)
    assert key is not None
    fields = {"name": "approval", "key": key[1], "action": "approve", "payload": '{"by": "me"}'}
    for _ in range(2):  # a second click sends nothing new
        assert (await visitor.post(f"/jobs/{job}/signal", page, **fields)).status_code == 303
    [kept] = (await visitor.site.store.pending_signals(job)).signals
    assert kept.payload == {"action": "approve", "by": "me"}
    await visitor.site.drive(job)
    assert await status(visitor, job) == "succeeded"
    late = await visitor.post(f"/jobs/{job}/signal", page, **fields)
    assert late.status_code == 422
    assert "no longer waits for this signal" in late.text


async def test_irreversible_calls_are_shown_before_they_start(visitor: Visitor) -> None:
    job = await visitor.site.run(document=PAYING)
    page = await visitor.job(job)
    assert "starts irreversible calls" in page
    assert "&#34;amount&#34;: 36" in page
    named = re.search(r'name="wait_id" value="([^"]+)"', page)
    assert named is not None
    fields = {"name": "confirmation", "action": "yes", "payload": "{}"}
    unnamed = await visitor.post(f"/jobs/{job}/signal", page, **fields)
    assert unnamed.status_code == 422
    assert "has to name the wait" in unnamed.text
    assert (await visitor.post(f"/jobs/{job}/signal", page, wait_id=named[1], **fields)).status_code == 303
    await visitor.site.drive(job)
    assert await status(visitor, job) == "succeeded"
    assert "{&#34;paid&#34;: 36}" in await visitor.job(job)


async def test_a_call_is_settled_once(visitor: Visitor) -> None:
    job = await visitor.site.run_unsettled()
    page = await visitor.job(job)
    [call] = (await visitor.site.reads.timeline(job)).tools
    for shown in ("Did the tool pay take effect?", WHY, call.key, "&#34;amount&#34;: 36", "needs settlement"):
        assert shown in page
    fields = {"key": call.key, "done": "yes", "result": '{"paid": 36}'}
    for _ in range(2):  # a second click sends nothing new
        assert (await visitor.post(f"/jobs/{job}/settle", page, **fields)).status_code == 303
    kept = await visitor.job(job)
    assert "Settled by local: it took effect" in kept
    assert "It took effect</button>" not in kept
    other = await visitor.post(f"/jobs/{job}/settle", page, **fields | {"done": "no"})
    assert other.status_code == 422
    assert "settled differently before" in other.text
    await visitor.site.drive(job)
    assert await status(visitor, job) == "succeeded"
    assert "tool pay settled by local: it took effect" in await visitor.job(job)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"done": "yes", "result": '{"paid": '}, "the result is not JSON"),
        ({"done": "yes", "result": "36"}, "pay returns no such result: / must be"),
        ({"done": "maybe", "result": "{}"}, "press one of the two buttons"),
    ],
)
async def test_a_rejected_settlement_keeps_what_was_typed(visitor: Visitor, fields: dict[str, str], said: str) -> None:
    job = await visitor.site.run_unsettled()
    answer = await visitor.post(f"/jobs/{job}/settle", await visitor.job(job), **fields)
    assert answer.status_code == 422
    assert said in answer.text
    typed = re.search(r"<textarea[^>]*>([^<]*)</textarea>", answer.text)
    assert typed is not None
    assert typed[1].replace("&#34;", '"') == fields.get("result", "")
    found = await visitor.site.reads.unsettled(job)
    assert found is not None
    assert found.said is None


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"action": "approve", "payload": '{"by": '}, "the payload is not JSON"),
        ({"action": "approve", "payload": "[1]"}, "must be a JSON object"),
        ({"action": "approve", "payload": '{"by": 7}'}, "Nothing was sent: "),
        ({"name": "other", "payload": "{}"}, "no longer waits for this signal"),
    ],
)
async def test_a_rejected_signal_keeps_what_was_typed(visitor: Visitor, fields: dict[str, str], said: str) -> None:
    job = await visitor.site.run(USAGE, RIGHT)
    page = await visitor.job(job)
    answer = await visitor.post(f"/jobs/{job}/signal", page, **{"name": "approval", **fields})
    assert answer.status_code == 422
    assert said in answer.text
    assert "nothing was sent" in answer.text.lower()
    typed = re.search(r"<textarea[^>]*>([^<]*)</textarea>", answer.text)
    assert typed is not None
    assert typed[1].replace("&#34;", '"') == fields["payload"]
    assert not (await visitor.site.store.pending_signals(job)).signals


async def test_a_form_without_its_token_changes_nothing(visitor: Visitor) -> None:
    job = await visitor.site.submit()
    for fields in ({}, {"token": ""}, {"token": "0" * 64}, {"token": "ä"}):
        answer = await visitor.client.post(f"/jobs/{job}/pause", data={"a": "b", **fields})
        assert answer.status_code == 403
        assert "This page is out of date" in answer.text
    answer = await visitor.client.post(f"/jobs/{job}/pause", json={"token": "x"})
    assert answer.status_code == 415
    many = {f"f{n}": "x" for n in range(200)}
    assert (await visitor.client.post(f"/jobs/{job}/pause", data=many)).status_code == 400
    assert (await visitor.client.post(f"/jobs/{job}/pause", data={"a": "x" * 2_000_000})).status_code == 413
    assert await status(visitor, job) == "queued"


@pytest.mark.parametrize(
    "headers", [{"Host": "evil.example"}, {"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}]
)
async def test_without_keys_other_origins_are_refused(visitor: Visitor, headers: dict[str, str]) -> None:
    job = await visitor.site.submit()
    page = await visitor.job(job)
    for answer in (
        await visitor.client.get("/", headers=headers),
        await visitor.client.get(f"/jobs/{job}/part", headers=headers),
        await visitor.client.post(f"/jobs/{job}/pause", headers=headers, data={"token": page[-64:]}),
    ):
        assert answer.status_code == 403
        assert "STEPLADDER_API_KEYS" in answer.text
        assert str(job) not in answer.text
    assert await status(visitor, job) == "queued"
