"""The dashboard's pages as pictures: what each shows, and headless Chromium to take them."""

from __future__ import annotations

import shutil
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from stepladder.testing import Answer
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
    fence = '```json\n{"hours": 12, "total": 36}\n```'
    cut = Answer('{"hours": 12, "tot', finish_reason="length", completion_tokens=512)
    failed = await site.run(USAGE, fence, cut, WRONG)
    long = await site.run({"text": LONG_TEXT}, document=ESSAY)
    return [
        Scene("waiting", f"/jobs/{waits}"),
        Scene("waiting-dark", f"/jobs/{waits}", scheme="dark"),
        Scene("waiting-phone", f"/jobs/{waits}", PHONE),
        Scene("succeeded", f"/jobs/{done}"),
        Scene("failed", f"/jobs/{failed}"),
        Scene("failed-dark", f"/jobs/{failed}", scheme="dark"),
        Scene("failed-phone", f"/jobs/{failed}", PHONE),
        Scene("long-answer", f"/jobs/{long}"),
        Scene("long-answer-phone", f"/jobs/{long}", PHONE),
        Scene("filtered", "/?status=failed&failure=attempts_exhausted"),
        Scene("filtered-phone", "/?status=failed", PHONE),
        Scene("nothing-found", "/?status=cancelled"),
    ]


async def many_jobs(site: Site) -> list[Scene]:
    """Two hundred, in every status."""
    queued = [await site.submit(BILL, priority=number % 3, metadata={"number": number}) for number in range(200)]
    async with site.worker(respond=lambda request: USAGE if "Call usage" in request.text else RIGHT) as driver:
        for job_id in queued[:60]:
            await driver.drive(job_id)
    for job_id in queued[60:64]:
        await site.store.pause(job_id, "local")
    for job_id in queued[64:70]:
        await site.store.request_cancel(job_id)
        async with site.worker() as driver:
            await driver.drive(job_id)
    return [
        Scene("many", "/"),
        Scene("many-dark", "/", scheme="dark"),
        Scene("many-phone", "/", PHONE),
        Scene("many-middle", "/", 800),
    ]


async def take(started: Browser, site: Site, scene: Scene, folder: Path) -> Path:
    path = folder / f"{scene.name}.png"
    async with opened(started, site.url + scene.path, width=scene.width, scheme=scene.scheme) as page:
        await page.screenshot(path=path, full_page=True)
    return path
