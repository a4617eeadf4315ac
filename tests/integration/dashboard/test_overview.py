"""The first page: rates, slow turns, failures, and the queue."""

from __future__ import annotations

import re
from html import unescape
from typing import TYPE_CHECKING

from stepladder.testing import Answer, Fault
from support.site import ESSAY, RIGHT, USAGE, WRONG

if TYPE_CHECKING:
    from .conftest import Visitor


def rates(page: str) -> dict[str, str]:
    return dict(re.findall(r'rate[^"]*">\s*<h2>([^<]+)</h2>\s*<p class="number"><b>([^<]+)</b>', page))


def shares(page: str) -> dict[str, tuple[str, str]]:
    [table] = re.findall(r'<table class="plain outcomes">(.*?)</table>', page, re.DOTALL)
    rows = re.findall(
        r'</svg> (?:<a [^>]*>)?([a-z ]+)(?:</a>)?</th><td class="n">([^<]+)</td><td class="n">([^<]+)', table
    )
    return {outcome: (count, share) for outcome, count, share in rows}


async def test_an_empty_system_says_how_to_submit_a_job(visitor: Visitor) -> None:
    page = await visitor.page("/")
    assert "No jobs submitted yet" in page
    assert "<svg" not in page


async def test_rates_and_shares_are_those_of_the_attempts(visitor: Visitor) -> None:
    cut = Answer('{"hours": 12, "tot', finish_reason="length", completion_tokens=512)
    await visitor.site.run(USAGE, WRONG, Fault("reset_before"), RIGHT)
    await visitor.site.run(USAGE, cut, "", RIGHT)
    page = unescape(await visitor.page("/?since=1h"))
    assert rates(page) == {
        "Validity": "57.1 %",
        "Truncation": "14.3 %",
        "Zero-token": "14.3 %",
        "Transport": "12.5 %",
    }
    assert shares(page) == {
        "valid": ("4", "50 %"),
        "semantic": ("1", "12.5 %"),
        "empty": ("1", "12.5 %"),
        "truncation": ("1", "12.5 %"),
        "transport": ("1", "12.5 %"),
    }
    assert "4 valid, 1 transport, 1 truncation, 1 empty, 1 semantic" in page, "the picture in words"
    slowest = re.search(r'aria-labelledby="slow-title">(.*?)</section>', page, re.DOTALL)
    assert slowest is not None
    turns = re.findall(r'#visit-(\d)">.*?<td class="n">(\d)</td><td><span class="badge s-valid">', slowest[1])
    assert sorted(turns) == [("1", "1"), ("1", "1"), ("3", "3"), ("3", "3")]


async def test_the_overview_can_be_of_one_workflow(visitor: Visitor) -> None:
    await visitor.site.run(USAGE, WRONG, RIGHT)
    await visitor.site.run({"text": "Up."}, document=ESSAY)
    assert shares(await visitor.page("/?workflow=essay"))["valid"] == ("1", "100 %")
    assert shares(await visitor.page("/?workflow=usage-bill"))["semantic"] == ("1", "33.3 %")
    assert "No attempts in this period for nobody" in await visitor.page("/?workflow=nobody&since=never")


async def test_failures_and_the_queue_are_shown_with_links(visitor: Visitor) -> None:
    failed = await visitor.site.run(USAGE, WRONG, WRONG, WRONG)
    await visitor.site.submit()
    page = await visitor.page("/")
    assert f'<a href="/jobs/{failed}">usage-bill' in page
    assert "<b>attempts exhausted</b>" in page
    assert re.search(r'href="/jobs\?status=queued"[^>]*>.*?<b>1</b> queued', page)
    assert re.search(r"Waiting for a worker</dt><dd>1 ", page)
    assert "none configured here" in page
    assert re.search(r'href="/jobs\?outcome=semantic"', page)
