"""The machine as a graph: on a job's page with the path taken, and on a version's page with its findings."""

from __future__ import annotations

import re
from html import unescape
from typing import TYPE_CHECKING

from stepladder.schemas.tool import Kit
from support.site import BILL, ESSAY, RIGHT, USAGE, WRONG

if TYPE_CHECKING:
    from .conftest import Visit, Visitor

DENIED = """
name: choosing
version: 1
start: choose
states:
  choose:
    ask: "Go up or down?"
    output: {type: object, properties: {action: {enum: [up, down]}}, required: [action], additionalProperties: false}
    next: {up: done}
  done: {end: succeeded}
"""


def nodes(page: str) -> dict[str, str]:
    """Titles of the states by their names."""
    found = re.findall(r'<g class="node [^"]*"><title>([^<]*)</title>', page)
    return {title.partition(":")[0]: title for title in found}


def taken(page: str) -> set[tuple[str, str]]:
    return set(re.findall(r'<g class="edge taken[^"]*"><title>(\S+) to ([^:]+):', page))


async def test_the_path_of_a_job_is_drawn_and_listed(visitor: Visitor) -> None:
    job = await visitor.site.run(USAGE, WRONG, RIGHT, signals={"approval": [{"action": "approve"}]})
    page = unescape(await visitor.job(job))
    assert taken(page) == {("usage", "run_usage"), ("run_usage", "bill"), ("bill", "approve"), ("approve", "done")}
    assert nodes(page)["usage"] == "usage: turn, visited 1 time"
    assert nodes(page)["done"].endswith("; the job ended here")
    assert "never visited" in nodes(page)["broken"]
    way = re.findall(r'<li><a href="#(visit-\d)">(\w+)</a> (?:<span class="muted">([^<]+)</span>)?', page)
    assert way == [
        ("visit-1", "usage", "usage query"),
        ("visit-2", "run_usage", "ok"),
        ("visit-3", "bill", ""),
        ("visit-4", "approve", "approve"),
    ]
    for anchor, *_ in way:
        assert f'id="{anchor}"' in page
    assert 'role="img"' in page
    assert "The job made 4 visits and never reached 2 of the states." in page


async def test_the_state_in_which_a_job_failed_is_marked(visitor: Visitor) -> None:
    job = await visitor.site.run(USAGE, WRONG, WRONG, WRONG)
    page = await visitor.job(job)
    assert nodes(page)["bill"].endswith("; the job failed here")
    assert re.search(r'<g class="node k-turn visited here failed">.*?✗ bill</text>', page, re.DOTALL)
    assert ("bill", "approve") not in taken(page)


async def test_a_denied_action_is_drawn(visitor: Visitor) -> None:
    job = await visitor.site.run({"action": "down"}, document=DENIED)
    page = await visitor.job(job)
    assert "there is no transition for down" in page
    assert re.search(r'<g class="edge taken denied">|<g class="edge [^"]*denied">', page)
    assert "chose <code>down</code>, which has no transition" in page


async def test_an_error_is_highlighted_in_the_answer(visitor: Visitor) -> None:
    job = await visitor.site.run(USAGE, WRONG, '{"hours": 12, "total": 36} as asked', RIGHT)
    page = unescape(await visitor.job(job))
    marked = re.findall(r'<mark title="([^"]+)"><span class="hidden">[^<]*</span>([^<]+)</mark>', page)
    assert marked == [("must be hours times 3", '"total": 35'), ("not JSON from here on", "a")]
    assert "(character 28)" in page


async def test_a_version_has_a_page_with_its_graph_and_its_findings(visitor: Visitor) -> None:
    await visitor.site.submit(BILL)
    await visitor.site.submit(ESSAY)
    page = unescape(await visitor.page("/workflows/usage-bill/1"))
    assert set(nodes(page)) == {"usage", "run_usage", "bill", "approve", "done", "refused", "broken"}
    assert not taken(page)
    assert re.search(r"warning</b> <code>/states/bill/output/properties/hours</code>.*no_range", page)
    assert 'href="/jobs?workflow=usage-bill"' in page
    assert 'action="/workflows/usage-bill/1/retire"' in page
    assert '"name": "usage-bill"' in page
    overview = await visitor.page("/workflows")
    assert 'href="/workflows/essay/1"' in overview
    for path in ("/workflows/usage-bill/2", "/workflows/nobody/1", f"/workflows/usage-bill/{2**31}"):
        await visitor.page(path, 404)


async def test_without_its_tools_a_machine_is_not_drawn(visit: Visit) -> None:
    job = await (await visit()).site.submit(BILL)
    toolless = await visit(kit=Kit({}, {}))
    page = await toolless.job(job)
    assert "lacks the tools" in page
    assert "<svg" not in page
    page = await toolless.page("/workflows/usage-bill/1")
    assert "error</b>" in page
    assert "cannot be drawn" in page
