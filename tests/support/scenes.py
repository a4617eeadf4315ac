"""The dashboard's pages as pictures: what each shows, and headless Chromium to take them."""

from __future__ import annotations

import shutil
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import cycle
from typing import TYPE_CHECKING, Any, Literal

from stepladder.testing import Answer, Fault
from support.site import BILL, ESSAY, RIGHT, USAGE, WRONG

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from playwright.async_api import Browser, Page

    from support.site import Site

WIDE, PHONE = 1280, 375
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")

LONG_TEXT = ("A ladder has rungs, and each one that holds carries whoever climbs to the next. " * 60)[:4000]


def missing() -> str | None:
    """Why no picture can be taken on this machine, or None."""
    try:
        import playwright.async_api  # noqa: F401 -- only whether it is there
    except ImportError:
        return "the Python package playwright is not installed (pip install playwright)"
    return None if chromium() else "there is no Chromium on the path (Debian: apt-get install chromium)"


def chromium() -> str | None:
    return next((path for name in CHROMIUM if (path := shutil.which(name))), None)


@asynccontextmanager
async def browser() -> AsyncIterator[Browser]:
    from playwright.async_api import async_playwright

    async with async_playwright() as playwright:
        started = await playwright.chromium.launch(executable_path=chromium(), args=list(ARGUMENTS))
        yield started
        await started.close()


@asynccontextmanager
async def opened(
    started: Browser, url: str, *, width: int = WIDE, scheme: Literal["light", "dark"] = "light", **context: Any
) -> AsyncIterator[Page]:
    """A page. Whatever its console says against it is an error at the end."""
    page = await started.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme, **context)
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    await page.goto(url)
    yield page
    await page.close()
    assert not said, said


@dataclass(frozen=True, slots=True)
class Scene:
    """A picture: its name, the path of its page, and how it is looked at."""

    name: str
    path: str
    width: int = WIDE
    scheme: Literal["light", "dark"] = "light"


async def few_jobs(site: Site) -> list[Scene]:
    """One of each kind. The database is empty before."""
    waits = await site.run(USAGE, WRONG, RIGHT, metadata={"order": "4711"})
    done = await site.run(USAGE, RIGHT, signals={"approval": [{"action": "approve", "by": "the owner"}]})
    failed = await site.run(USAGE, FENCE, CUT, WRONG)
    again = await site.run(USAGE, WRONG, WRONG, WRONG)
    unsettled = await site.run_unsettled()
    ending = await site.run_unsettled()
    await site.store.request_cancel(ending)
    long = await site.run({"text": LONG_TEXT}, document=ESSAY)
    cut_long = '{"text": "' + LONG_TEXT
    broken = await site.run(*[Answer(cut_long, finish_reason="length", completion_tokens=4000)] * 3, document=ESSAY)
    return [
        Scene("waiting", f"/jobs/{waits}"),
        Scene("waiting-dark", f"/jobs/{waits}", scheme="dark"),
        Scene("waiting-phone", f"/jobs/{waits}", PHONE),
        Scene("unsettled", f"/jobs/{unsettled}"),
        Scene("unsettled-dark", f"/jobs/{ending}", scheme="dark"),
        Scene("unsettled-phone", f"/jobs/{ending}", PHONE),
        Scene("succeeded", f"/jobs/{done}"),
        Scene("failed", f"/jobs/{failed}"),
        Scene("failed-dark", f"/jobs/{failed}", scheme="dark"),
        Scene("failed-phone", f"/jobs/{failed}", PHONE),
        Scene("long-answer", f"/jobs/{long}"),
        Scene("long-answer-phone", f"/jobs/{long}", PHONE),
        Scene("long-cut", f"/jobs/{broken}"),
        Scene("compared", f"/jobs/{failed}/diff/{again}"),
        Scene("workflow", "/workflows/usage-bill/1"),
        Scene("workflow-dark", "/workflows/usage-bill/1", scheme="dark"),
        Scene("workflow-phone", "/workflows/usage-bill/1", PHONE),
        Scene("workflows", "/workflows"),
        Scene("overview-few", "/"),
        Scene("filtered", "/jobs?status=failed&failure=attempts_exhausted"),
        Scene("filtered-phone", "/jobs?status=failed", PHONE),
        Scene("nothing-found", "/jobs?status=cancelled"),
    ]


async def many_jobs(site: Site, count: int = 60) -> list[Scene]:
    """As many, in every status; a third of them are at their end."""
    queued = [await site.submit(BILL, priority=number % 3, metadata={"number": number}) for number in range(count)]
    bills = cycle(BILLS)
    ended = count // 3
    approvals = {"approval": [{"action": "approve", "by": "the owner"}] * ended}
    async with site.worker(
        respond=lambda request: USAGE if "Call usage" in request.text else next(bills), signals=approvals
    ) as driver:
        for job_id in queued[:ended]:
            await driver.drive(job_id)
    async with site.worker(respond=lambda request: USAGE if "Call usage" in request.text else RIGHT) as driver:
        for job_id in queued[ended : ended + 10]:
            await driver.drive(job_id)
    for job_id in queued[-14:-10]:
        await site.store.pause(job_id, "local")
    for job_id in queued[-10:-4]:
        await site.store.request_cancel(job_id)
        async with site.worker() as driver:
            await driver.drive(job_id)
    return [
        Scene("many", "/jobs"),
        Scene("many-dark", "/jobs", scheme="dark"),
        Scene("many-phone", "/jobs", PHONE),
        Scene("many-middle", "/jobs", 800),
        Scene("overview", "/"),
        Scene("overview-dark", "/", scheme="dark"),
        Scene("overview-phone", "/", PHONE),
        Scene("overview-middle", "/", 800),
    ]


FENCE = '```json\n{"hours": 12, "total": 36}\n```'
CUT = Answer('{"hours": 12, "tot', finish_reason="length", completion_tokens=512)
BILLS = (*[RIGHT] * 9, WRONG, RIGHT, RIGHT, CUT, *[RIGHT] * 8, FENCE, RIGHT, RIGHT, Fault("reset_before"), *[RIGHT] * 5,
         WRONG, WRONG, WRONG, *[RIGHT] * 4, "", RIGHT, RIGHT)  # fmt: skip
"""Answers one after the other: most are right, three in a row are not."""


async def spread(site: Site) -> None:
    """Moves the jobs that have ended into the day before, not evenly. What counts as it goes must begin anew."""
    await site.database.write(SPREAD, {})


# What is written is never changed; only a picture of a day wants a day.
SPREAD = """
DO $$ BEGIN
    SET LOCAL session_replication_role = replica;
    CREATE TEMPORARY TABLE moved ON COMMIT DROP AS
        SELECT id, make_interval(mins => (1380 * power((hashtext(id::text) & 65535) / 65536.0, 1.5))::int) AS back
        FROM jobs WHERE finished_at IS NOT NULL;
    UPDATE jobs SET
        created_at = created_at - back, started_at = started_at - back, finished_at = finished_at - back
    FROM moved WHERE moved.id = jobs.id;
    UPDATE turns SET opened_at = opened_at - back, closed_at = closed_at - back FROM moved WHERE moved.id = job_id;
    UPDATE attempts SET
        started_at = started_at - back, arrived_at = arrived_at - back, judged_at = judged_at - back
    FROM moved WHERE moved.id = job_id;
    UPDATE events SET at = at - back FROM moved WHERE moved.id = job_id;
END $$
"""


async def take(started: Browser, site: Site, scene: Scene, folder: Path) -> Path:
    path = folder / f"{scene.name}.png"
    async with opened(started, site.url + scene.path, width=scene.width, scheme=scene.scheme) as page:
        await page.screenshot(path=path, full_page=True)
    return path
