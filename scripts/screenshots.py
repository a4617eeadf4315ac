"""Pictures of the dashboard's pages, all or those named, over a temporary PostgreSQL."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from stepladder.embedded import postgres
from stepladder.models import migrate
from stepladder.testing import Answer
from support import scenes
from support.site import BILL, USAGE, open_site

if TYPE_CHECKING:
    from playwright.async_api import Browser

    from support.site import Site


async def take_all(url: str, folder: Path, names: frozenset[str]) -> None:
    async def picture(browser: Browser, site: Site, scene: scenes.Scene) -> None:
        if not names or scene.name in names:
            print(await scenes.take(browser, site, scene, folder))

    async with open_site(url) as site, scenes.browser() as browser:
        await picture(browser, site, scenes.Scene("empty", "/"))
        await picture(browser, site, scenes.Scene("empty-phone", "/", scenes.PHONE))
        await picture(browser, site, scenes.Scene("empty-jobs", "/jobs"))
        for scene in await scenes.few_jobs(site):
            await picture(browser, site, scene)
        running = await site.submit(BILL)
        # It answers once the picture is taken, when the engine is broken off.
        async with site.worker(USAGE, Answer(None, delay_s=3600)) as driver:
            driving = asyncio.create_task(driver.drive(running))
            await site.until(running, lambda job: job.attempts == 2)
            for scene in (
                scenes.Scene("running", f"/jobs/{running}"),
                scenes.Scene("running-phone", f"/jobs/{running}", scenes.PHONE),
            ):
                await picture(browser, site, scene)
            driving.cancel()
            await asyncio.wait((driving,))
        many = await scenes.many_jobs(site, 1000)
        await scenes.spread(site)
    async with open_site(url) as site, scenes.browser() as browser:
        for scene in many:
            await picture(browser, site, scene)


def main() -> int:
    if len(sys.argv) < 2:
        print("usage: scripts/screenshots OUT_DIR [NAME...]", file=sys.stderr)
        return 2
    if reason := scenes.missing():
        print(f"error: no pictures can be taken: {reason}", file=sys.stderr)
        return 3
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as home, postgres.running(Path(home)) as url:
        migrate.upgrade(url)
        asyncio.run(take_all(url, folder, frozenset(sys.argv[2:])))
    return 0


if __name__ == "__main__":
    sys.exit(main())
