"""The page that compares two jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from support.site import RIGHT, USAGE, WRONG

if TYPE_CHECKING:
    from .conftest import Visitor


async def test_two_jobs_are_compared_in_words(visitor: Visitor) -> None:
    approve = {"approval": [{"action": "approve"}]}
    was = await visitor.site.run(USAGE, RIGHT, signals=approve)
    now = await visitor.site.run(USAGE, WRONG, RIGHT, signals={"approval": [{"action": "refuse", "by": "<b>me</b>"}]})
    page = await visitor.page(f"/jobs/{was}/diff/{now}")
    for said in (
        "1 → 2",
        "approve → refuse",
        "~</i> attempts",
        "action, output",
        "/by",
        "&lt;b&gt;me&lt;/b&gt;",
        "the same",
    ):
        assert said in page, said
    assert "<b>me" not in page
    assert "Both took the same path" in await visitor.page(f"/jobs/{was}/diff/{was}")


async def test_a_job_that_is_not_there_is_not_found(visitor: Visitor) -> None:
    job = await visitor.site.submit()
    for other in ("0190a3c4-5b6d-7e8f-9a0b-1c2d3e4f5a6b", "me"):
        await visitor.page(f"/jobs/{job}/diff/{other}", 404)
