"""The list of jobs with its filters, and the page of a job."""

from __future__ import annotations

import re
from html import unescape
from typing import TYPE_CHECKING
from uuid import UUID

from stepladder.testing import Answer
from support.site import ESSAY, RIGHT, USAGE, WRONG

if TYPE_CHECKING:
    from .conftest import Visitor


MISSING = UUID("0190a3c4-5b6d-7e8f-9a0b-1c2d3e4f5a6b")


def listed(page: str) -> list[UUID]:
    return [UUID(text) for text in re.findall(r'<th scope="row"><a href="/jobs/([0-9a-f-]{36})"', page)]


def link(page: str, words: str) -> str:
    found = re.search(rf'<a href="([^"]*)"[^>]*>{words}</a>', page)
    assert found is not None, f"the page has no link {words}"
    return unescape(found[1])


async def test_the_list_counts_and_links_the_jobs(visitor: Visitor) -> None:
    waiting = await visitor.site.run(USAGE, RIGHT)
    queued = await visitor.site.submit()
    page = await visitor.page("/jobs")
    assert listed(page) == [queued, waiting]
    counts = {status: int(n) for status, n in re.findall(r'href="/jobs\?status=(\w+)"[^>]*><b>(\d+)</b>', page)}
    assert counts == dict.fromkeys(counts, 0) | {"waiting": 1, "queued": 1}
    assert listed(await visitor.page("/jobs?status=waiting")) == [waiting]


async def test_filters_are_those_of_the_api(visitor: Visitor) -> None:
    site = visitor.site
    failed = await site.run(USAGE, WRONG, WRONG, metadata={"order": 4711})
    other = await site.run({"text": "Up."}, document=ESSAY, metadata={"order": "4712"})
    for query, found in {
        "workflow=essay&workflow=usage-bill": [other, failed],
        "failure=attempts_exhausted": [failed],
        "metadata.order=4711": [failed],
        "created_before=2020-01-01T00:00": [],
    }.items():
        assert listed(await visitor.page(f"/jobs?{query}")) == found, query
    assert "No jobs match" in await visitor.page("/jobs?failure=loop")


async def test_empty_form_fields_are_dropped_from_the_url(visitor: Visitor) -> None:
    answer = await visitor.client.get("/jobs?status=failed&workflow=&created_after=&metadata=order%3D4711+team%3Da")
    assert answer.status_code == 303
    assert answer.headers["location"] == "/jobs?status=failed&metadata.order=4711&metadata.team=a"
    assert (await visitor.client.get("/jobs?status=&workflow=")).headers["location"] == "/jobs"


async def test_an_invalid_filter_is_explained_and_ignored(visitor: Visitor) -> None:
    job = await visitor.site.submit()
    page = unescape(await visitor.page("/jobs?status=sleeping&created_after=yesterday", 422))
    assert "`status` cannot be 'sleeping'; write one of queued" in page
    assert "`created_after` cannot be 'yesterday'; write a time" in page
    assert listed(page) == [job]
    assert "belongs to other filters" in await visitor.page("/jobs?cursor=AAAA", 422)
    assert "too long or not text" in await visitor.page("/jobs?metadata.a=%00", 422)


async def test_pages_from_none_to_many_jobs(visitor: Visitor) -> None:
    page = await visitor.page("/jobs")
    for text in ("No jobs submitted yet", "stepladder publish workflow.yaml", f"curl {visitor.site.url}/v1/jobs"):
        assert text in page
    jobs = [await visitor.site.submit() for _ in range(60)]
    first = await visitor.page("/jobs?workflow=usage-bill")
    await visitor.site.submit()
    second = await visitor.page(link(first, "Older →"))
    assert listed(first) + listed(second) == jobs[::-1]
    assert "Older" not in second
    assert len(listed(await visitor.page(link(second, "← Newest")))) == 50
    moved = link(first, "Older →").replace("usage-bill", "essay")
    assert "belongs to other filters" in await visitor.page(moved, 422)


CONVERSATION = (
    *("usage-bill", "4711", "Turn 1</span> usage", "Call usage_query for team search."),
    *("Tool</span> usage_query", '{"team": "search", "hours": 12}', "Turn 2</span> bill", "Attempt 1", "arithmetic"),
    '<li class="r-failed"><span class="step"><i aria-hidden="true">✗</i> semantic</span>',
    *("<code>/total</code>", "must be hours times 3", '{"hours": 12, "total": 35}', "Attempt 2"),
    *('{"hours": 12, "total": 36}', "Note added to the question", "Your last answer was not accepted"),
    *("Wait</span> approval", '{"total": 36}', '"by": "the owner"', "submitted", "signal approval received: approve"),
    "succeeded",
)


async def test_a_job_is_shown_as_a_conversation(visitor: Visitor) -> None:
    approval = {"action": "approve", "by": "the owner"}
    job = await visitor.site.run(USAGE, WRONG, RIGHT, signals={"approval": [approval]}, metadata={"order": "4711"})
    page = unescape(await visitor.job(job))
    at = 0
    for text in CONVERSATION:
        found = page.find(text, at)
        assert found >= 0, f"{text!r} is missing or out of order"
        at = found
    assert page.count('class="ladder"') == 3
    assert "data-follow" not in page, "an ended job is not followed"
    assert "<button>" not in page, "nothing can be done to an ended job"


async def test_a_failure_is_explained_with_a_remedy(visitor: Visitor) -> None:
    cut = Answer('{"hours": 12, "tot', finish_reason="length", completion_tokens=512)
    job = await visitor.site.run(USAGE, '```json\n{"hours": 12, "total": 36}\n```', cut, WRONG)
    page = unescape(await visitor.job(job))
    assert "Attempts exhausted" in page
    assert "state bill: 3 of 3 attempts" in page
    assert "What to do:" in page
    assert "without a Markdown fence" in page
    for state in ("passed", "failed", "not_reached"):
        assert f'<li class="r-{state}">' in page


async def test_model_output_is_never_markup(visitor: Visitor) -> None:
    evil = "<script>alert(1)</script><img src=x onerror=alert(2)>\x00\x1b\ud800"
    job = await visitor.site.run({"text": evil}, document=ESSAY, metadata={"<b>": "<i>"})
    page = await visitor.job(job)
    assert "<script>alert" not in page
    assert "<img src=x" not in page
    assert "<b>:" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    answer = await visitor.client.get(f"/jobs/{job}")
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    assert not re.search(r"<script(?! src=)", page), "an inline script"
    assert not re.search(r"<[^<>]*\s(?:on\w+|style)=", page)


async def test_a_raw_answer_is_a_download(visitor: Visitor) -> None:
    job = await visitor.site.run(USAGE, RIGHT)
    [attempt] = (await visitor.site.reads.turns(job))[0].attempts
    assert f'href="/attempts/{attempt.id}/raw"' in await visitor.job(job)
    answer = await visitor.client.get(f"/attempts/{attempt.id}/raw")
    assert answer.content == await visitor.site.reads.raw(attempt.id)
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-disposition"].startswith("attachment")
    assert answer.headers["x-content-type-options"] == "nosniff"
    for path in ("/attempts/x/raw", f"/attempts/{MISSING}/raw"):
        assert "There is no attempt" in await visitor.page(path, 404)


async def test_a_missing_page_is_a_404(visitor: Visitor) -> None:
    for path in ("/nowhere", f"/jobs/{MISSING}", "/jobs/x", f"/jobs/{MISSING}/part", "/static/nothing.css"):
        page = await visitor.page(path, 404)
        assert "There is no" in page
        assert 'href="/jobs"' in page


async def test_static_files_are_cached_forever(visitor: Visitor) -> None:
    page = await visitor.page("/")
    paths = set(re.findall(r'(?:href|src)="(/static/[^"]+)"', page))
    assert {path.partition("?")[0].rpartition(".")[2] for path in paths} == {"css", "js", "svg"}
    for path in paths:
        answer = await visitor.client.get(path)
        assert answer.status_code == 200
        assert "immutable" in answer.headers["cache-control"]
        again = await visitor.client.get(path, headers={"If-None-Match": answer.headers["etag"]})
        assert again.status_code == 304
        assert not again.content
    assert not re.findall(r'(?:href|src)="(?:https?:)?//', page), "something from elsewhere"


async def test_a_degraded_turn_is_flagged(visitor: Visitor) -> None:
    document = ESSAY.replace("    next: done", "    degrade: true\n    retry: {attempts: 1}\n    next: done")
    document = document.replace("{text: {type: string}}", "{text: {type: string}, title: {type: string}}")
    document = document.replace("name: essay", "name: degraded")
    cut = Answer('{"text": "<b>Up</b>", "title": "Lad', finish_reason="length", completion_tokens=4000)
    job = await visitor.site.run(cut, document=document)
    page = await visitor.job(job)
    assert "&lt;b&gt;Up" in page
    page = unescape(page)
    for text in (
        "Degraded:</b> only part of a failed answer was kept for state write",
        "kept from attempt 1 after truncation; the workflow does not use it",
        "the answer was cut off; everything after",
        '{"text": "<b>Up</b>"}',
        "turn 1: degraded result kept from attempt 1",
    ):
        assert text in page, text
    assert re.search(r'failed</span> <span class="warn">degraded</span>', await visitor.page("/jobs?workflow=degraded"))


CHILD = """
name: one-word
version: 1
input: {type: object, properties: {n: {type: integer, maximum: 1}}, required: [n]}
start: ask
states:
  ask: {wait: {signal: word}, next: {go: done}}
  done: {end: succeeded, result: signals.ask}
"""
PARENT = """
name: two-words
version: 1
start: ask
states:
  ask:
    call: one-word
    input: {n: each.item}
    each: {over: "[1, 1, 2]", at_most: 3, failures: collect}
    next: {ok: done, error: broken}
  done: {end: succeeded, result: calls.ask}
  broken: {end: failed}
"""


async def test_a_parent_and_its_children_link_to_each_other(visitor: Visitor) -> None:
    await visitor.site.submit(CHILD, {"n": 1})  # which publishes it
    parent = await visitor.site.run(document=PARENT)
    page = await visitor.page(f"/jobs/{parent}")
    assert "Waiting for the jobs that it called" in page
    assert "0 of 3 ended" in page
    children = await visitor.site.reads.children(parent)
    assert [child.index for child in children] == [1, 2], "the third input does not fit"
    for child in children:
        assert f'href="/jobs/{child.id}"' in page
        assert f'href="/jobs/{parent}"' in await visitor.page(f"/jobs/{child.id}")
    await visitor.site.drive(parent, signals={"word": [{"action": "go"}] * 2})
    page = await visitor.page(f"/jobs/{parent}")
    assert "1 of 3 gave no result" in page
    assert "workflow one-word called, children: 3" in page


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
