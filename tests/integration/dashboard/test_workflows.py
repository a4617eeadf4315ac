"""The page of workflows and its buttons, and a wait that someone else must answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from support.site import BILL

if TYPE_CHECKING:
    from .conftest import Visitor

ASKING = """
name: asking
version: 1
start: confirm
states:
  confirm: {wait: {signal: approval, by: other, scopes: [refund:approve]}, next: {approve: done}}
  done: {end: succeeded}
"""


async def test_a_workflow_is_paused_and_unpaused(visitor: Visitor) -> None:
    job = await visitor.site.submit(BILL)
    page = await visitor.page("/workflows")
    name = next(version.name for version in await visitor.site.reads.workflows())
    assert (await visitor.post(f"/workflows/{name}/pause", page)).status_code == 303
    page = await visitor.page("/workflows")
    assert "paused</span> by local since" in page
    assert "Its workflow is paused" in await visitor.job(job)
    assert await visitor.site.store.claim("worker", 60.0) is None
    assert (await visitor.post(f"/workflows/{name}/unpause", page)).status_code == 303
    assert "Its workflow is paused" not in await visitor.job(job)
    assert "paused by local, with workflow usage-bill" in await visitor.job(job)


async def test_a_version_is_retired_and_unretired(visitor: Visitor) -> None:
    assert "stepladder publish" in await visitor.page("/workflows")
    await visitor.site.submit(BILL)
    [version] = await visitor.site.reads.workflows()
    path = f"/workflows/{version.name}/{version.version}"
    page = await visitor.page("/workflows")
    for word, retired in (("retire", True), ("unretire", False)):
        assert f'action="{path}/{word}"' in page
        assert (await visitor.post(f"{path}/{word}", page)).status_code == 303
        page = await visitor.page("/workflows")
        assert ("retired</span>" in page) is retired


async def test_unknown_versions_and_forged_forms_change_nothing(visitor: Visitor) -> None:
    await visitor.site.submit(BILL)
    page = await visitor.page("/workflows")
    for path in ("nobody/pause", "nobody/1/retire", f"nobody/{2**31}/retire"):
        assert (await visitor.post(f"/workflows/{path}", page)).status_code == 404
    forged = await visitor.client.post("/workflows/bill/pause", data={"token": "no"})
    assert forged.status_code == 403


async def test_a_wait_for_someone_else_has_no_form(
    visitor: Visitor,
) -> None:
    job = await visitor.site.run(document=ASKING, value={})
    page = await visitor.job(job)
    assert "You may not send it" in page
    assert "must not come from local" in page
    assert "STEPLADDER_API_KEYS" in page
    assert f'action="/jobs/{job}/signal"' not in page
    answer = await visitor.post(f"/jobs/{job}/signal", page, name="approval", action="approve", payload="{}")
    assert answer.status_code == 403
    assert "Nothing was sent: in state confirm the signal approval must not come from local" in answer.text
    assert (await visitor.site.store.pending_signals(job)).signals == ()
